//! Staging folders: `base/tmp/<label>.<owner>`, one an attempt, with a lock on the folder itself as the owner's lease.
//!
//! Layout of one: `cache/` is what gets published by a rename, `spill` holds what is only needed while writing,
//! `old/<name>` a replaced cache on its way out, where the system can't swap two names in one step: the cache is at no
//! other place then, so it gets its name back if the swap is not completed. Looking at other folders, and making or removing one, happens under a lock
//! on `tmp`, held for moments only. The lock spares work that would be lost; nothing is wrong where it can't be had.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dataset_rt_format::SHARD_DIR;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use sha2::{Digest, Sha256};

use crate::disk;
use crate::error::{Error, Result};
use crate::forked::PerProcess;
use crate::writer::names::{TMP_DIR, fold_source_name};
use crate::writer::owner::{Lock, Owner, Process, age_of, is_dead, is_worth_waiting_for, look_up};
use crate::writer::target::is_cache_path;

const CACHE: &str = "cache";
const SPILL: &str = "spill";
const OLD: &str = "old";

/// Labels longer than this are replaced by a digest: label and owner must fit into the 255 bytes of a name.
const MAX_LABEL_BYTES: usize = 120;
/// How long to wait for the lock on `tmp` before going on without it.
const TMP_PATIENCE: Duration = Duration::from_secs(2);
/// How often a folder that vanishes while it is being made is made again.
const ATTEMPTS: usize = 100;

/// Descriptors kept for the removal of a staging folder: one for each level of folders.
const SPARE_DESCRIPTORS: usize = 4;

/// Names of the staging folders that writers of this process work in. One of this process that is not among them
/// could not be removed.
static IN_USE: PerProcess<Mutex<HashSet<OsString>>> = PerProcess::new(Mutex::default);

/// A name in [`IN_USE`], while it lives.
#[derive(Debug)]
struct Listed(OsString);

impl Listed {
    fn new(name: String) -> Self {
        let name = OsString::from(name);
        in_use().insert(name.clone());
        Self(name)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        in_use().remove(&self.0);
    }
}

fn in_use() -> MutexGuard<'static, HashSet<OsString>> {
    IN_USE.get().lock().unwrap_or_else(PoisonError::into_inner)
}

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A live writer that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    label: String,
    /// Who it is, for people.
    pub(crate) description: String,
}

impl Holder {
    /// Whether it writes the cache of that name.
    pub(crate) fn writes(&self, name: &str) -> bool {
        self.label == label_of(name)
    }
}

/// What stands for a source in folder names; equal for names that could be one folder.
fn label_of(name: &str) -> String {
    let folded = fold_source_name(name);
    // A name may begin with `~` too; it then gets a digest like the long ones, so that no two meet.
    if folded.len() <= MAX_LABEL_BYTES && !folded.starts_with('~') {
        return folded;
    }
    let digest = Sha256::digest(folded.as_bytes());
    let hex: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("~{hex}")
}

/// A number that no other attempt uses: random per process, counted within it.
fn unique() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    if let Ok(since) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        hasher.write_u128(since.as_nanos());
    }
    hasher.finish()
}

/// The paths below a staging folder that we make.
fn is_staging_path(path: &Path) -> bool {
    let mut parts = path.components();
    let first = parts.next().map(|part| part.as_os_str().to_owned());
    let rest = parts.as_path();
    let cache = |path: &Path| path.as_os_str().is_empty() || is_cache_path(path);
    match first.as_deref().and_then(|name| name.to_str()) {
        Some(CACHE) => cache(rest),
        Some(OLD) => {
            parts.next();
            cache(parts.as_path())
        }
        Some(SPILL) => rest.as_os_str().is_empty(),
        _ => false,
    }
}

/// Removes a staging folder. A cache that was moved aside, and in whose place nothing came, gets its name back first;
/// where that can't be done the folder stays for the next time, since it holds all there is of that cache.
fn discard(base: &Path, staging: &Path) -> io::Result<()> {
    restore_aside(base, staging)?;
    disk::remove_tree(staging, &is_staging_path)
}

fn restore_aside(base: &Path, staging: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(staging.join(OLD)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let target = base.join(entry.file_name());
        match target.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Whoever took the name meanwhile has a cache there; the old one is then no longer wanted.
                disk::rename_dir_noreplace(&entry.path(), &target)
                    .and_then(|_| disk::sync_dir(base))
                    .map_err(|error| io::Error::other(error.to_string()))?;
            }
            found => {
                found?;
            }
        }
    }
    Ok(())
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

fn try_lock(folder: &OwnedFd) -> Lock {
    Lock::from_attempt(rustix::io::retry_on_intr(|| {
        flock(folder, FlockOperation::NonBlockingLockExclusive)
    }))
}

/// An open folder with, if it was to be had, the lock on it.
#[derive(Debug)]
struct Locked {
    folder: OwnedFd,
    pid: u32,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Said explicitly, because a forked child shares the lock and would keep it. In the child itself the lock is
        // not ours to give up.
        if self.pid == std::process::id() {
            let _ = flock(&self.folder, FlockOperation::Unlock);
        }
    }
}

/// `base/tmp`, locked where possible.
pub(crate) struct Tmp {
    path: PathBuf,
    // Held for its drop.
    _lock: Option<Locked>,
}

impl Tmp {
    /// Enters `base/tmp`; `None` when there is none and it is not to be made.
    ///
    /// # Errors
    /// [`Error::Io`] when it can't be made, or is a link or a file: what is behind a link is not ours to fill.
    pub(crate) fn enter(base: &Path, make: bool) -> Result<Option<Self>> {
        let path = base.join(TMP_DIR);
        let deadline = Instant::now() + TMP_PATIENCE;
        let mut vanished = 0;
        loop {
            if make {
                disk::create_dir(&path)?;
            }
            let folder = match open_folder(&path) {
                Ok(folder) => folder,
                Err(rustix::io::Errno::NOENT) if !make => return Ok(None),
                Err(rustix::io::Errno::NOENT) if vanished < ATTEMPTS => {
                    vanished += 1;
                    continue;
                }
                Err(errno) => {
                    if make {
                        disk::remove_dir_if_empty(&path);
                    }
                    let plain =
                        !matches!(errno, rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP);
                    let hint = if plain {
                        ""
                    } else {
                        "; the folder for unfinished caches must be a plain directory"
                    };
                    return Err(Error::Io {
                        operation: "open",
                        hint: hint.to_owned(),
                        path,
                        source: errno.into(),
                    });
                }
            };
            match try_lock(&folder) {
                Lock::Held if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(2));
                }
                Lock::Held | Lock::Unknown => return Ok(Some(Self { path, _lock: None })),
                Lock::Free => {
                    let lock = Locked {
                        folder,
                        pid: std::process::id(),
                    };
                    // Whoever held the lock before may have removed the folder: then ours is a lock on nothing.
                    if is_at(&lock.folder, &path) {
                        return Ok(Some(Self {
                            path,
                            _lock: Some(lock),
                        }));
                    }
                }
            }
        }
    }

    fn base(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Removes the folders whose owners are dead and returns who seems to be at work. What can't be removed or looked
    /// at is left for the next time.
    pub(crate) fn clean(&self) -> Vec<Holder> {
        let here = Owner::current();
        let mut live = Vec::new();
        let Ok(entries) = fs::read_dir(&self.path) else {
            return live;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some((label, owner)) = name.to_str().and_then(Owner::split_name) else {
                continue;
            };
            let path = entry.path();
            let Ok(folder) = open_folder(&path) else {
                continue;
            };
            let lock = try_lock(&folder);
            let process = match look_up(&owner, &here) {
                Process::Running if owner == here && !in_use().contains(&name) => Process::Gone,
                found => found,
            };
            let _ours_now = (lock == Lock::Free).then(|| Locked {
                folder,
                pid: std::process::id(),
            });
            let age = folder_age(&path);
            if is_dead(process, lock, age) {
                let _ = discard(self.base(), &path);
            } else if is_worth_waiting_for(process, lock, age) {
                let description = match process {
                    Process::Running => format!("process {}", owner.pid),
                    _ => format!(
                        "process {} of another boot, container or machine",
                        owner.pid
                    ),
                };
                live.push(Holder {
                    label: label.to_owned(),
                    description,
                });
            }
        }
        live
    }

    /// Makes a staging folder for a source, and takes its lease. After an error nothing of it is left.
    pub(crate) fn stage(&self, base: &Path, name: &str) -> Result<Staging> {
        let owner = Owner::current();
        for _ in 0..ATTEMPTS {
            let name = format!("{}.{}", label_of(name), owner.to_suffix(unique()));
            let path = self.path.join(&name);
            let listed = Listed::new(name);
            match disk::create_dir(&path) {
                Ok(true) => {}
                Ok(false) => continue,
                // Without the lock on it others may find `tmp` empty, and remove it, at any moment.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    disk::create_dir(&self.path)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let folder = match open_folder(&path) {
                Ok(folder) => folder,
                Err(errno) => {
                    disk::remove_dir_if_empty(&path);
                    return Err(Error::io("open", path, errno.into()));
                }
            };
            let spare = match spare_descriptors(&folder) {
                Ok(spare) => spare,
                Err(errno) => {
                    disk::remove_dir_if_empty(&path);
                    return Err(Error::io("open", path, errno.into()));
                }
            };
            // Without locks the owner in the folder's name, and in the end its age, have to do.
            try_lock(&folder);
            let pid = std::process::id();
            let lease = Some(Locked { folder, pid });
            return Ok(Staging {
                base: base.to_path_buf(),
                path,
                lease,
                spare,
                _listed: listed,
                pid,
            });
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(Error::io("create directory", self.path.clone(), source))
    }

    /// Removes `tmp` itself if nothing is in it.
    pub(crate) fn leave(self) {
        disk::remove_dir_if_empty(&self.path);
    }
}

/// Descriptors of a staging folder for the day there are no others: a write that fails because the process has no
/// descriptors left must be able to clean up.
fn spare_descriptors(folder: &OwnedFd) -> rustix::io::Result<Vec<OwnedFd>> {
    (0..SPARE_DESCRIPTORS)
        .map(|_| rustix::io::fcntl_dupfd_cloexec(folder, 0))
        .collect()
}

/// Gives a folder that can't be removed an owner that no process is. The next writer, of this process too, then takes
/// it for what it is instead of waiting for a writer that is at work.
fn disown(path: &Path) {
    let name = path.file_name().and_then(OsStr::to_str);
    if let Some((label, owner)) = name.and_then(Owner::split_name) {
        let nobody = Owner {
            start: owner.start.wrapping_add(1),
            ..owner
        };
        let name = format!("{label}.{}", nobody.to_suffix(unique()));
        // Where not even this works the folder is given up when this process ends.
        let _ = disk::rename_dir_noreplace(path, &path.with_file_name(name));
    }
}

/// Whether the open folder is the one that has this name now.
fn is_at(folder: &OwnedFd, path: &Path) -> bool {
    match (rustix::fs::fstat(folder), rustix::fs::lstat(path)) {
        (Ok(open), Ok(named)) => open.st_dev == named.st_dev && open.st_ino == named.st_ino,
        _ => false,
    }
}

/// Time since anything changed in a staging folder.
fn folder_age(path: &Path) -> Duration {
    let list = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).map_or_else(
            |_| Vec::new(),
            |entries| entries.flatten().map(|e| e.path()).collect(),
        )
    };
    let cache = path.join(CACHE);
    let shards = cache.join(SHARD_DIR);
    let inside: Vec<PathBuf> = [path, &cache, &shards].into_iter().flat_map(list).collect();
    age_of(std::iter::once(path).chain(inside.iter().map(PathBuf::as_path)))
}

/// Removes what dead writers left below `base`, and `tmp` if it is then empty. Never fails: what can't be removed
/// stays for the next writer.
pub(crate) fn clean_up(base: &Path) {
    if let Ok(Some(tmp)) = Tmp::enter(base, false) {
        tmp.clean();
        tmp.leave();
    }
}

/// One attempt's folder. It is removed when dropped, except in a process forked from its owner.
#[derive(Debug)]
pub(crate) struct Staging {
    base: PathBuf,
    path: PathBuf,
    lease: Option<Locked>,
    spare: Vec<OwnedFd>,
    // After the folder is gone, or could not be removed.
    _listed: Listed,
    pid: u32,
}

impl Staging {
    /// Where the cache is built.
    pub(crate) fn cache(&self) -> PathBuf {
        self.path.join(CACHE)
    }

    /// A file for what is needed only while writing.
    pub(crate) fn spill(&self) -> PathBuf {
        self.path.join(SPILL)
    }

    /// A free name for the cache `name` on its way out, in a folder that a power cut can't take away.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn make_aside(&self, name: &OsStr) -> Result<PathBuf> {
        let old = self.path.join(OLD);
        disk::create_dir(&old)?;
        disk::sync_dir(&self.path)?;
        disk::sync_dir(&self.base.join(TMP_DIR))?;
        disk::sync_dir(&self.base)?;
        Ok(old.join(name))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        // The lease ends with the folder: until then nobody takes it for dead.
        self.spare.clear();
        if discard(&self.base, &self.path).is_err() {
            disown(&self.path);
        }
        self.lease = None;
        if let Ok(Some(tmp)) = Tmp::enter(&self.base, false) {
            tmp.leave();
        }
    }
}

#[cfg(test)]
mod tests;
