//! Who owns a staging folder, told by the folder's name, and whether that process can still be at work.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// A folder whose lock is free, and whose owner can't be looked up from here (another boot, container or machine), is
/// given up after this time without a change. Some network file systems keep locks to one machine, so a free lock
/// alone proves nothing.
pub(crate) const UNLOCKED_AGE: Duration = Duration::from_secs(60 * 60);
/// The same where locks are not to be had at all.
pub(crate) const LOCKLESS_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Who can't be looked up, and does not hold a lock, is waited for only while its folder changed within this time:
/// after a power cut the folder of the boot before must not keep its source waiting until it is given up.
pub(crate) const SIGN_OF_LIFE_AGE: Duration = Duration::from_secs(60);

/// A process, so that it can be told from every other one on this machine and, mostly, on others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// First eight digits of the boot id; "0" where the system has none.
    pub(crate) boot: String,
    /// Inode of the pid namespace; 0 where unknown. Pids of another namespace mean nothing here.
    pub(crate) namespace: u64,
    pub(crate) pid: u32,
    /// Start of the process in clock ticks since boot; 0 where unknown. Tells a reused pid.
    pub(crate) start: u64,
}

impl Owner {
    /// This process. Asked anew each time, since a fork changes it.
    pub(crate) fn current() -> Self {
        let pid = std::process::id();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .and_then(|id| id.get(..8).map(str::to_owned))
            .filter(|id| id.bytes().all(|b| b.is_ascii_hexdigit()))
            .unwrap_or_else(|| "0".to_owned());
        // A /proc of another pid namespace shows other processes under our numbers.
        let own_proc =
            fs::read_link("/proc/self").is_ok_and(|link| link == Path::new(&pid.to_string()));
        let namespace = if own_proc {
            pid_namespace().unwrap_or(0)
        } else {
            0
        };
        let start = stat_of(pid).map_or(0, |stat| stat.start);
        Self {
            boot,
            namespace,
            pid,
            start,
        }
    }

    /// The five parts that end a folder's name, with `unique` to tell attempts of one process apart.
    pub(crate) fn to_suffix(&self, unique: u64) -> String {
        let Self {
            boot,
            namespace,
            pid,
            start,
        } = self;
        format!("{boot}.{namespace}.{pid}.{start}.{unique:016x}")
    }

    /// Splits a folder's name into its label and its owner. `None`: not a name of ours.
    pub(crate) fn split_name(name: &str) -> Option<(&str, Self)> {
        let mut parts = name.rsplitn(6, '.');
        let unique = parts.next()?;
        let start = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        let namespace = parts.next()?.parse().ok()?;
        let boot = parts.next()?.to_owned();
        let label = parts.next()?;
        let hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let ours = unique.len() == 16 && hex(unique) && hex(&boot) && matches!(boot.len(), 1 | 8);
        (ours && !label.is_empty()).then_some((
            label,
            Self {
                boot,
                namespace,
                pid,
                start,
            },
        ))
    }

    /// Whether the other process can be looked up by its pid from this one.
    fn sees(&self, other: &Self) -> bool {
        self.boot != "0"
            && self.namespace != 0
            && self.boot == other.boot
            && self.namespace == other.namespace
    }
}

fn pid_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?
        .strip_prefix("pid:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

struct Stat {
    zombie: bool,
    start: u64,
}

/// Reads state and start time of a process. The command name in the middle may hold anything, so fields are counted
/// from its closing parenthesis.
fn stat_of(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = fields.next()?;
    // State is field 3 and the start time field 22.
    let start = fields.nth(18)?.parse().ok()?;
    Some(Stat {
        zombie: matches!(state, "Z" | "X"),
        start,
    })
}

/// What became of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// It runs.
    Running,
    /// It ended, but its parent has not asked for it yet; threads of it may still run.
    Zombie,
    /// It ended, or its pid belongs to another process now.
    Gone,
    /// It can't be told from here.
    Unknown,
}

/// Looks a process up, from the process `here`.
pub(crate) fn look_up(owner: &Owner, here: &Owner) -> Process {
    if !here.sees(owner) {
        return Process::Unknown;
    }
    let Some(pid) = i32::try_from(owner.pid).ok().and_then(Pid::from_raw) else {
        return Process::Unknown;
    };
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return Process::Gone;
    }
    // Another user's process may be hidden in /proc; that it exists is known all the same.
    match stat_of(owner.pid) {
        None => Process::Unknown,
        Some(_) if owner.start == 0 => Process::Unknown,
        Some(stat) if stat.start != owner.start => Process::Gone,
        Some(stat) if stat.zombie => Process::Zombie,
        Some(_) => Process::Running,
    }
}

/// What trying a folder's lock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Nobody holds it.
    Free,
    /// Somebody holds it: the owner, or a process forked from it.
    Held,
    /// The file system or the system has no locks, or does not let us ask.
    Unknown,
}

impl Lock {
    /// Reads the answer to a lock that was tried without waiting.
    pub(crate) fn from_attempt(attempt: rustix::io::Result<()>) -> Self {
        match attempt {
            Ok(()) => Self::Free,
            Err(error) if error == Errno::WOULDBLOCK => Self::Held,
            Err(_) => Self::Unknown,
        }
    }
}

/// Whether a folder can be given up. In doubt it is kept.
pub(crate) fn is_dead(process: Process, lock: Lock, age: Duration) -> bool {
    match (process, lock) {
        (Process::Running, _) => false,
        (Process::Gone, _) | (Process::Zombie, Lock::Free) => true,
        (Process::Zombie | Process::Unknown, Lock::Held) => false,
        (Process::Unknown, Lock::Free) => age >= UNLOCKED_AGE,
        (Process::Zombie | Process::Unknown, Lock::Unknown) => age >= LOCKLESS_AGE,
    }
}

/// Whether the owner of a folder that is kept seems to be at work, so that waiting for it spares work. Where that is
/// wrong a source is read twice, and one of the two is stored.
pub(crate) fn is_worth_waiting_for(process: Process, lock: Lock, age: Duration) -> bool {
    process == Process::Running || lock == Lock::Held || age < SIGN_OF_LIFE_AGE
}

/// Time since the newest change of the files given; what can't be told counts as just now.
pub(crate) fn age_of<'a>(paths: impl Iterator<Item = &'a Path>) -> Duration {
    let newest: io::Result<Option<std::time::SystemTime>> = paths
        .map(|path| path.symlink_metadata()?.modified())
        .try_fold(None, |newest, found| {
            let found = found?;
            Ok(Some(
                newest.map_or(found, |newest: std::time::SystemTime| newest.max(found)),
            ))
        });
    newest
        .ok()
        .flatten()
        .and_then(|newest| newest.elapsed().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::{LOCKLESS_AGE, Lock, Owner, Process, UNLOCKED_AGE, is_dead, look_up};

    #[test]
    fn a_name_tells_its_owner() {
        let owner = Owner {
            boot: "0123abcd".to_owned(),
            namespace: 4_026_531_836,
            pid: 77,
            start: 9,
        };
        let name = format!("a.b.c.{}", owner.to_suffix(5));
        assert_eq!(Owner::split_name(&name), Some(("a.b.c", owner)));
        for other in [
            "a",
            "a.0123abcd.1.2.3",
            ".0123abcd.1.2.3.0000000000000005",
            "a.0123abcg.1.2.3.0000000000000005",
            "a.0123abcd.1.2.x.0000000000000005",
            "a.0123abcd.1.2.3.05",
        ] {
            assert_eq!(Owner::split_name(other), None, "{other}");
        }
    }

    #[test]
    fn processes_are_found_running_ended_and_replaced() {
        let here = Owner::current();
        assert_eq!(look_up(&here, &here), Process::Running);
        let reused = Owner {
            start: here.start + 1,
            ..here.clone()
        };
        assert_eq!(look_up(&reused, &here), Process::Gone);
        for elsewhere in [
            Owner {
                boot: "ffffffff".to_owned(),
                ..here.clone()
            },
            Owner {
                namespace: 1,
                ..here.clone()
            },
            Owner {
                start: 0,
                ..here.clone()
            },
        ] {
            assert_eq!(look_up(&elsewhere, &here), Process::Unknown);
        }
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let stat = super::stat_of(child.id()).unwrap();
        let owner = Owner {
            pid: child.id(),
            start: stat.start,
            ..here.clone()
        };
        assert_eq!(look_up(&owner, &here), Process::Running);
        drop(child.stdin.take());
        while look_up(&owner, &here) == Process::Running {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(look_up(&owner, &here), Process::Zombie);
        child.wait().unwrap();
        assert_eq!(look_up(&owner, &here), Process::Gone);
    }

    #[test]
    fn in_doubt_a_folder_is_kept() {
        let (now, hour, day) = (Duration::ZERO, UNLOCKED_AGE, LOCKLESS_AGE);
        for (process, lock, age, dead) in [
            (Process::Running, Lock::Free, day, false),
            (Process::Running, Lock::Held, day, false),
            (Process::Running, Lock::Unknown, day, false),
            (Process::Gone, Lock::Held, now, true),
            (Process::Gone, Lock::Free, now, true),
            (Process::Gone, Lock::Unknown, now, true),
            (Process::Zombie, Lock::Free, now, true),
            (Process::Zombie, Lock::Held, day, false),
            (Process::Unknown, Lock::Held, day, false),
            (Process::Unknown, Lock::Free, now, false),
            (Process::Unknown, Lock::Free, hour, true),
            (Process::Unknown, Lock::Unknown, hour, false),
            (Process::Unknown, Lock::Unknown, day, true),
        ] {
            assert_eq!(
                is_dead(process, lock, age),
                dead,
                "{process:?} {lock:?} {age:?}"
            );
        }
    }
}
