//! Every change of the disk fails once, or is the last thing a process does: nothing is left, and nothing is half.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataset_rt_format::Codec;
use dataset_rt_runtime::fault::{Operation, set_hook};
use dataset_rt_runtime::{Error, OnMismatch, Status, WriteOptions, Written};

#[path = "write_support/mod.rs"]
mod support;

use support::*;

/// The hook is the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    set_hook(None);
    guard
}

/// Runs `act` with the hook that counts the changes below `base` and answers each by its number.
fn counted<T>(
    base: &Path,
    answer: impl Fn(usize, Operation) -> io::Result<()> + Send + Sync + 'static,
    act: impl FnOnce() -> T,
) -> (T, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let (seen, below) = (count.clone(), base.to_path_buf());
    set_hook(Some(Arc::new(move |operation, path| {
        if !path.starts_with(&below) {
            return Ok(());
        }
        answer(seen.fetch_add(1, Ordering::SeqCst), operation)
    })));
    let result = act();
    set_hook(None);
    (result, count.load(Ordering::SeqCst))
}

/// lz4 and small shards: every kind of file and operation takes part.
fn options() -> WriteOptions {
    WriteOptions {
        codec: Codec::Lz4,
        max_shard_bytes: 4000,
        ..create_or_reuse()
    }
}

fn write_new(base: &Path) -> Result<Written, Error> {
    write(base, options(), 1, "s", None, 1, 100, &[40])
}

#[test]
fn whichever_change_fails_nothing_is_left_and_the_next_write_succeeds() {
    let _alone = alone();
    let base = scratch();
    let ((), total) = {
        let clean = base.path().join("clean");
        counted(
            &clean,
            |_, _| Ok(()),
            || {
                write_new(&clean).unwrap();
            },
        )
    };
    assert!(total > 30, "{total}");
    let mut failed = 0;
    for k in 0..total {
        let base = base.path().join(k.to_string());
        let broken = Arc::new(Mutex::new(None));
        let seen = broken.clone();
        let (outcome, _) = counted(
            &base,
            move |number, operation| {
                if number == k {
                    *seen.lock().unwrap() = Some(operation);
                    return Err(io::Error::from_raw_os_error(libc::EIO));
                }
                Ok(())
            },
            || std::panic::catch_unwind(|| write_new(&base)),
        );
        let operation = broken.lock().unwrap().unwrap();
        // Making the base fails inside of begin(), which the helper passes on.
        match outcome.unwrap() {
            Ok(written) => {
                // Only what happens after the cache stands may fail unseen: the removal of an empty folder.
                assert_eq!(operation, Operation::RemoveDir, "change {k} failed unseen");
                read_back(&written.path).assert_is(1, 100);
            }
            Err(error) => {
                failed += 1;
                let message = error.to_string();
                assert!(
                    matches!(error, Error::Io { .. }),
                    "{k} {operation:?}: {message}"
                );
                assert!(message.contains("os error 5"), "{message}");
                assert_eq!(
                    names(&base),
                    [""; 0],
                    "left after change {k}, {operation:?}"
                );
                read_back(&write_new(&base).unwrap().path).assert_is(1, 100);
            }
        }
        assert!(!base.join("tmp").exists() || operation == Operation::RemoveDir);
    }
    assert!(failed >= total - 3, "{failed} of {total}");
}

#[test]
fn whichever_change_of_a_rebuild_fails_the_old_cache_stays() {
    let _alone = alone();
    for kernel in [true, false] {
        let mut k = 0;
        loop {
            let dir = scratch();
            let base = dir.path();
            write(base, options(), 1, "s", Some("old"), 1, 100, &[40]).unwrap();
            let before = tree(&base.join("s"));
            let last = Arc::new(AtomicUsize::new(0));
            let seen = last.clone();
            let (outcome, _) = counted(
                base,
                move |number, operation| {
                    // Without the kernel's swap two renames take its place.
                    if operation == Operation::Exchange && !kernel {
                        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
                    }
                    // Once the old cache is on its way out, failing to remove it is no failure of the write.
                    let removal = matches!(operation, Operation::RemoveDir | Operation::RemoveFile);
                    seen.fetch_max(number, Ordering::SeqCst);
                    if number == k && !removal {
                        return Err(io::Error::from_raw_os_error(libc::EIO));
                    }
                    Ok(())
                },
                || {
                    let options = WriteOptions {
                        on_mismatch: OnMismatch::Rebuild,
                        ..options()
                    };
                    write(base, options, 1, "s", Some("new"), 2, 150, &[40])
                },
            );
            assert_eq!(names(base), ["s"], "left after change {k}");
            match outcome {
                Ok(written) => {
                    assert_eq!(written.status, Status::Rebuilt);
                    assert!(written.reason.contains("old") && written.reason.contains("new"));
                    read_back(&base.join("s")).assert_is(2, 150);
                }
                Err(_) => assert!(
                    tree(&base.join("s")) == before,
                    "the old cache changed, change {k}"
                ),
            }
            if k > last.load(Ordering::SeqCst) {
                assert!(k > 40, "{k}");
                break;
            }
            k += 1;
        }
    }
}

#[test]
fn a_full_disk_tells_the_numbers_and_spares_the_other_sources() {
    let _alone = alone();
    let dir = scratch();
    let base = dir.path().to_path_buf();
    let (outcome, _) = counted(
        &base,
        |number, operation| {
            if operation == Operation::Write && number > 10 {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
            Ok(())
        },
        || write_new(&base),
    );
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.contains("bytes needed") && message.contains("bytes free"),
        "{message}"
    );
    assert_eq!(names(&base), [""; 0]);
}

#[test]
fn a_writer_that_cant_even_clean_up_is_cleaned_up_after() {
    let _alone = alone();
    let dir = scratch();
    let base = dir.path().to_path_buf();
    let (outcome, _) = counted(
        &base,
        |_, operation| match operation {
            Operation::SyncFile | Operation::RemoveFile => {
                Err(io::Error::from_raw_os_error(libc::EIO))
            }
            _ => Ok(()),
        },
        || write_new(&base),
    );
    assert!(outcome.is_err());
    assert_eq!(names(&base), ["tmp"]);
}

#[test]
fn a_swap_that_goes_neither_on_nor_back_loses_no_cache() {
    let _alone = alone();
    let dir = scratch();
    let base = dir.path();
    write(base, options(), 1, "s", Some("old"), 1, 100, &[40]).unwrap();
    let renames = AtomicUsize::new(0);
    let (outcome, _) = counted(
        base,
        move |_, operation| match operation {
            Operation::Exchange | Operation::RenameNoReplace => {
                Err(io::Error::from_raw_os_error(libc::ENOSYS))
            }
            Operation::Rename if renames.fetch_add(1, Ordering::SeqCst) > 0 => {
                Err(io::Error::from_raw_os_error(libc::EIO))
            }
            _ => Ok(()),
        },
        || {
            let options = WriteOptions {
                on_mismatch: OnMismatch::Rebuild,
                ..options()
            };
            write(base, options, 1, "s", Some("new"), 2, 150, &[40])
        },
    );
    assert!(outcome.is_err());
    // Its folder is all there is of it, so it stays until it can have its name back.
    assert_eq!(names(base), ["tmp"]);
    let [folder] = names(&base.join("tmp")).try_into().unwrap();
    let aside = base.join("tmp").join(folder).join("old/s");
    read_back(&aside).assert_is(1, 100);
}

const CHILD_BASE: &str = "DATASET_RT_TEST_CHILD_BASE";
const CHILD_STOP: &str = "DATASET_RT_TEST_CHILD_STOP";

/// No test by itself: the process that is killed.
#[test]
fn child() {
    let (Ok(base), Ok(stop)) = (std::env::var(CHILD_BASE), std::env::var(CHILD_STOP)) else {
        return;
    };
    let stop: usize = stop.parse().unwrap();
    let base = PathBuf::from(base);
    let _ = counted(
        &base,
        move |number, _| {
            if number == stop {
                // No destructor, no handler.
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                )?;
            }
            Ok(())
        },
        || {
            let options = WriteOptions {
                on_mismatch: OnMismatch::Rebuild,
                ..options()
            };
            write(&base, options, 2, "s", Some("new"), 2, 150, &[40]).unwrap();
        },
    );
}

/// Runs the child; whether it was killed.
fn run_child(base: &Path, stop: usize) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--test-threads=1"])
        .env(CHILD_BASE, base)
        .env(CHILD_STOP, stop.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}

#[test]
fn a_process_killed_at_any_change_poisons_nothing() {
    let _alone = alone();
    let dir = scratch();
    for stop in 0.. {
        let base = dir.path().join(stop.to_string());
        let killed = run_child(&base, stop);
        let target = base.join("s");
        if target.exists() {
            read_back(&target).assert_is(2, 150);
        }
        assert!(killed || names(&base) == ["s"]);
        assert!(
            names(&base.join("tmp")).len() <= 1,
            "one staging folder at most"
        );
        // The next writer needs no help.
        let options = WriteOptions {
            on_mismatch: OnMismatch::Rebuild,
            ..options()
        };
        if target.exists() {
            let session = session(&base, options, 1);
            assert!(session.begin("s", Some("new")).is_ok());
        } else {
            write(&base, options, 1, "s", Some("new"), 2, 150, &[40]).unwrap();
        }
        read_back(&target).assert_is(2, 150);
        assert_eq!(names(&base), ["s"], "left of change {stop}");
        if !killed {
            assert!(stop > 30, "{stop}");
            return;
        }
    }
}

#[test]
fn a_process_killed_while_it_replaces_a_cache_leaves_the_old_or_the_new_one() {
    let _alone = alone();
    let dir = scratch();
    for stop in 0.. {
        let base = dir.path().join(stop.to_string());
        write(&base, options(), 1, "s", Some("old"), 1, 100, &[40]).unwrap();
        let killed = run_child(&base, stop);
        let read = read_back(&base.join("s"));
        match read.manifest.source.fingerprint.as_deref() {
            Some("old") => read.assert_is(1, 100),
            _ => read.assert_is(2, 150),
        }
        drop(session(&base, options(), 1));
        assert_eq!(names(&base), ["s"], "left of change {stop}");
        if !killed {
            return;
        }
    }
}
