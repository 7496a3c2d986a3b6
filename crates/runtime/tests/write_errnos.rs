//! Each error number from each change of the disk: never a success, never a leftover, never another source's loss.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataset_rt_format::Codec;
use dataset_rt_runtime::fault::{Operation, set_hook};
use dataset_rt_runtime::{
    Begin, Cancel, Error, OnMismatch, Pool, Status, WriteOptions, WriteSession, Written,
};

#[path = "write_support/mod.rs"]
mod support;

use support::*;

const ERRNOS: [i32; 6] = [
    libc::ENOSPC,
    libc::EDQUOT,
    libc::EIO,
    libc::EMFILE,
    libc::EACCES,
    libc::EROFS,
];

const REMOVALS: [Operation; 2] = [Operation::RemoveFile, Operation::RemoveDir];

const SAMPLES: u64 = 60;

/// The hook is the process's: one test at a time, and none for others afterwards.
struct Alone(#[expect(dead_code, reason = "held for its drop")] MutexGuard<'static, ()>);

impl Drop for Alone {
    fn drop(&mut self) {
        set_hook(None);
    }
}

fn alone() -> Alone {
    static ONE: Mutex<()> = Mutex::new(());
    Alone(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What was met: the change that failed last, and how many changes there were.
#[derive(Default)]
struct Seen {
    failed: Mutex<Option<(Operation, PathBuf)>>,
    changes: AtomicUsize,
}

/// Answers each change below `base` by its number: an error number fails it.
fn answer(
    base: &Path,
    choose: impl Fn(usize, Operation) -> Option<i32> + Send + Sync + 'static,
) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let (met, below) = (seen.clone(), base.to_path_buf());
    set_hook(Some(Arc::new(move |operation, path| {
        if !path.starts_with(&below) {
            return Ok(());
        }
        let number = met.changes.fetch_add(1, Ordering::SeqCst);
        match choose(number, operation) {
            Some(errno) => {
                *met.failed.lock().unwrap() = Some((operation, path.to_path_buf()));
                Err(io::Error::from_raw_os_error(errno))
            }
            None => Ok(()),
        }
    })));
    seen
}

/// lz4 and small shards: every kind of file and operation takes part.
fn options() -> WriteOptions {
    WriteOptions {
        codec: Codec::Lz4,
        max_shard_bytes: 4000,
        on_mismatch: OnMismatch::Rebuild,
        ..create_or_reuse()
    }
}

/// One call with two sources, one after the other, so that changes have the same numbers each time.
fn write_both(base: &Path) -> Vec<Result<Written, Error>> {
    let pool = Pool::new(1).unwrap();
    let session = WriteSession::new(pool, base.to_path_buf(), options(), Cancel::new()).unwrap();
    let write = |name: &str, salt| {
        let writer = match session.begin(name, Some("new"))? {
            Begin::Write(writer) => writer,
            other => panic!("{other:?}"),
        };
        writer.start(schema()).unwrap();
        feed(&writer, salt, SAMPLES, &[25]);
        writer.finish();
        outcome(&writer)
    };
    vec![write("first", 1), write("second", 2)]
}

/// Whether a change is no part of writing. (The file that is needed only while writing is removed as part of it.)
fn is_cleaning_up(operation: Operation, path: &Path) -> bool {
    REMOVALS.contains(&operation) && !path.ends_with("spill")
}

fn expected_message(errno: i32) -> String {
    format!("(os error {errno})")
}

/// The error is the system's answer, told with path and cause, and for a full disk with numbers.
fn assert_told(error: &Error, errno: i32, base: &Path) {
    let Error::Io { path, source, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(source.raw_os_error(), Some(errno), "{error}");
    assert!(path.starts_with(base), "{error}");
    let message = error.to_string();
    assert!(
        message.starts_with(&path.display().to_string()),
        "{message}"
    );
    assert!(message.contains(&expected_message(errno)), "{message}");
    let full = matches!(errno, libc::ENOSPC | libc::EDQUOT);
    for number in ["bytes needed", "bytes free"] {
        assert_eq!(message.contains(number), full, "{message}");
    }
}

/// What the call says is what stands, whole.
fn assert_stands(base: &Path, outcomes: &[Result<Written, Error>]) {
    for ((name, salt), outcome) in [("first", 1), ("second", 2)].iter().zip(outcomes) {
        assert_eq!(outcome.is_ok(), base.join(name).exists(), "{outcome:?}");
        if outcome.is_ok() {
            read_back(&base.join(name)).assert_is(*salt, SAMPLES);
        }
    }
}

/// What may stand below the base beside the caches that were written: at most an empty `tmp` whose removal failed.
fn assert_nothing_left(base: &Path, outcomes: &[Result<Written, Error>], what: &str) {
    let stored = ["first", "second"];
    let mut expected: Vec<String> = stored
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.is_ok())
        .map(|(name, _)| (*name).to_owned())
        .collect();
    if what.contains("RemoveDir") && base.join("tmp").exists() {
        assert_eq!(names(&base.join("tmp")), [""; 0], "{what}");
        expected.push("tmp".to_owned());
    }
    assert_eq!(names(base), expected, "{what}");
}

#[test]
fn one_failing_change_costs_one_source_and_leaves_nothing() {
    let _alone = alone();
    let dir = scratch();
    let clean = dir.path().join("clean");
    let seen = answer(&clean, |_, _| None);
    assert!(write_both(&clean).iter().all(Result::is_ok));
    let total = seen.changes.load(Ordering::SeqCst);
    assert!(total > 70, "{total}");
    let mut unseen = 0;
    for errno in ERRNOS {
        for k in 0..total {
            let base = dir.path().join(format!("{errno}-{k}"));
            let seen = answer(&base, move |number, _| (number == k).then_some(errno));
            let outcomes = write_both(&base);
            set_hook(None);
            let (operation, path) = seen.failed.lock().unwrap().take().unwrap();
            let what = format!("{k} {operation:?} {} {errno}", path.display());
            let failures: Vec<_> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
            // What is removed after a cache stands, or after a failure, is no failure of its own.
            let removal = is_cleaning_up(operation, &path);
            assert_eq!(
                failures.len(),
                usize::from(!removal),
                "{what}: {failures:?}"
            );
            failures.iter().for_each(|e| assert_told(e, errno, &base));
            unseen += usize::from(removal);
            assert_stands(&base, &outcomes);
            if removal {
                // The folder whose removal failed is gone with the second source or the next call.
                drop(session(&base, options(), 1));
            }
            assert_nothing_left(&base, &outcomes, if removal { "" } else { &what });
            std::fs::remove_dir_all(&base).unwrap_or_default();
        }
    }
    assert!(unseen < 12 * ERRNOS.len(), "{unseen}");
}

#[test]
fn a_disk_that_stays_broken_leaves_nothing_while_it_lets_go() {
    let _alone = alone();
    let dir = scratch();
    for errno in ERRNOS {
        for k in (0..60).step_by(3) {
            let base = dir.path().join(format!("{errno}-{k}"));
            let seen = answer(&base, move |number, operation| {
                (number >= k && !REMOVALS.contains(&operation)).then_some(errno)
            });
            let outcomes = write_both(&base);
            set_hook(None);
            assert!(seen.failed.lock().unwrap().is_some());
            assert!(outcomes[1].is_err());
            for error in outcomes.iter().filter_map(|o| o.as_ref().err()) {
                assert_told(error, errno, &base);
            }
            assert_stands(&base, &outcomes);
            assert_nothing_left(&base, &outcomes, &format!("{k} {errno}"));
        }
    }
}

#[test]
fn a_disk_that_keeps_all_leaves_one_folder_for_the_next_writer() {
    let _alone = alone();
    let dir = scratch();
    let mut left = 0;
    for errno in ERRNOS {
        for k in (0..60).step_by(3) {
            let base = dir.path().join(format!("{errno}-{k}"));
            answer(&base, move |number, _| (number >= k).then_some(errno));
            let outcomes = write_both(&base);
            set_hook(None);
            assert!(outcomes[1].is_err());
            assert_stands(&base, &outcomes);
            let folders = names(&base.join("tmp")).len();
            assert!(folders <= 1, "{folders} folders are left by {k} {errno}");
            left += folders;
            // The same process writes the same sources: it neither waits for itself nor keeps what it left.
            if outcomes[0].is_err() {
                write(&base, options(), 1, "first", Some("new"), 1, SAMPLES, &[25]).unwrap();
            }
            write(
                &base,
                options(),
                1,
                "second",
                Some("new"),
                2,
                SAMPLES,
                &[25],
            )
            .unwrap();
            assert_eq!(names(&base), ["first", "second"]);
            read_back(&base.join("second")).assert_is(2, SAMPLES);
        }
    }
    assert!(left > 60, "{left}");
}

#[test]
fn a_rebuild_that_fails_keeps_the_old_cache() {
    let _alone = alone();
    let dir = scratch();
    let old = WriteOptions::default();
    for errno in ERRNOS {
        for k in 0.. {
            let base = dir.path().join(format!("{errno}-{k}"));
            write(&base, old.clone(), 1, "s", Some("old"), 1, 10, &[10]).unwrap();
            let before = tree(&base.join("s"));
            let seen = answer(&base, move |number, _| (number == k).then_some(errno));
            let outcome = write(&base, options(), 1, "s", Some("new"), 2, SAMPLES, &[25]);
            set_hook(None);
            let failed = seen.failed.lock().unwrap().take();
            match &outcome {
                Ok(written) => {
                    assert_eq!(written.status, Status::Rebuilt);
                    read_back(&base.join("s")).assert_is(2, SAMPLES);
                }
                Err(error) => {
                    assert_told(error, errno, &base);
                    assert!(tree(&base.join("s")) == before, "{failed:?}");
                }
            }
            if let Some((operation, path)) = &failed {
                assert!(
                    outcome.is_err() != is_cleaning_up(*operation, path),
                    "{operation:?} {}: {outcome:?}",
                    path.display()
                );
                drop(session(&base, options(), 1));
            }
            assert_eq!(names(&base), ["s"], "{failed:?}");
            std::fs::remove_dir_all(&base).unwrap();
            if failed.is_none() {
                assert!(k > 40, "{k}");
                break;
            }
        }
    }
}

#[test]
fn signals_at_every_change_alter_nothing() {
    let _alone = alone();
    let dir = scratch();
    let base = dir.path().join("base");
    let interrupted = Arc::new(AtomicUsize::new(0));
    let count = interrupted.clone();
    // Three signals before each change that takes place.
    answer(&base, move |number, _| {
        (number % 4 != 3).then(|| {
            count.fetch_add(1, Ordering::SeqCst);
            libc::EINTR
        })
    });
    let outcomes = write_both(&base);
    set_hook(None);
    assert!(interrupted.load(Ordering::SeqCst) > 200);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_stands(&base, &outcomes);
    assert_eq!(names(&base), ["first", "second"]);
}

#[test]
fn a_process_without_descriptors_cleans_up() {
    let _alone = alone();
    let dir = scratch();
    let base = dir.path();
    // All that this process may have, but for the first few: taken away at the change given.
    let mut failed = 0;
    for k in 0..40 {
        let taken: Arc<Mutex<Vec<std::fs::File>>> = Arc::default();
        let hold = taken.clone();
        answer(base, move |number, _| {
            if number == k {
                let mut taken = hold.lock().unwrap();
                while let Ok(file) = std::fs::File::open("/dev/null") {
                    taken.push(file);
                }
            }
            None
        });
        let outcomes = with_few_descriptors(|| write_both(base));
        set_hook(None);
        taken.lock().unwrap().clear();
        for error in outcomes.iter().filter_map(|o| o.as_ref().err()) {
            failed += 1;
            let Error::Io { source, .. } = error else {
                panic!("{error:?}");
            };
            assert_eq!(source.raw_os_error(), Some(libc::EMFILE), "{error}");
        }
        assert_stands(base, &outcomes);
        assert_nothing_left(base, &outcomes, &format!("change {k}"));
        for name in ["first", "second"] {
            let _ = std::fs::remove_dir_all(base.join(name));
        }
    }
    assert!(failed > 20, "{failed}");
}

/// Runs `act` with a limit that is soon met.
fn with_few_descriptors<T>(act: impl FnOnce() -> T) -> T {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let mut few = before;
    few.current = Some(128);
    setrlimit(Resource::Nofile, few).unwrap();
    let result = act();
    setrlimit(Resource::Nofile, before).unwrap();
    result
}
