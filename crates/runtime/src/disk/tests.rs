//! Changes of the disk under faults.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::rename::Swapped;
use super::{
    Operation, OutFile, Renamed, create_dir_all, exchange_back, exchange_dirs, remove_tree,
    rename_dir_noreplace, set_hook, sync_dir,
};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A hook for paths below one directory, cleared when dropped.
struct Hooked<'a>(#[expect(dead_code, reason = "held for its drop")] MutexGuard<'a, ()>);

impl Drop for Hooked<'_> {
    fn drop(&mut self) {
        set_hook(None);
    }
}

fn hook<'a>(
    below: &Path,
    answer: impl Fn(Operation) -> io::Result<()> + Send + Sync + 'static,
) -> Hooked<'a> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let below = below.to_path_buf();
    set_hook(Some(Arc::new(move |operation, path| {
        if path.starts_with(&below) {
            answer(operation)
        } else {
            Ok(())
        }
    })));
    Hooked(guard)
}

fn fail(errno: Errno) -> io::Result<()> {
    Err(errno.into())
}

/// Fails the first `times` calls of `operation`.
fn fails_first(
    operation: Operation,
    errno: Errno,
    times: u32,
) -> impl Fn(Operation) -> io::Result<()> + Send + Sync + 'static {
    let seen = AtomicU32::new(0);
    move |found| {
        if found == operation && seen.fetch_add(1, Ordering::SeqCst) < times {
            fail(errno)
        } else {
            Ok(())
        }
    }
}

fn dirs(base: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (new, standing) = (base.join("new"), base.join("standing"));
    std::fs::create_dir(&new).unwrap();
    std::fs::write(new.join("x"), b"new").unwrap();
    (new, standing)
}

#[test]
fn a_write_that_takes_no_byte_is_an_error() {
    let refused = super::file::some_progress(0).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::WriteZero);
    assert_eq!(super::file::some_progress(1).unwrap(), 1);
}

#[test]
fn a_signal_is_no_error() {
    let base = tempfile::tempdir().unwrap();
    let _hooked = hook(base.path(), fails_first(Operation::Write, Errno::INTR, 5));
    let mut file = OutFile::create(base.path().join("f")).unwrap();
    file.append(b"abc").unwrap();
    assert_eq!(std::fs::read(base.path().join("f")).unwrap(), b"abc");
}

#[test]
fn a_full_disk_is_told_with_numbers() {
    let base = tempfile::tempdir().unwrap();
    for errno in [Errno::NOSPC, Errno::DQUOT] {
        let path = base.path().join(format!("f{}", errno.raw_os_error()));
        let _hooked = hook(base.path(), fails_first(Operation::Write, errno, 1));
        let mut file = OutFile::create(path.clone()).unwrap();
        let message = file.append(&[0; 1234]).unwrap_err().to_string();
        assert!(
            message.starts_with(&path.display().to_string()),
            "{message}"
        );
        assert!(message.contains("can't write"), "{message}");
        assert!(message.contains("1234 bytes needed"), "{message}");
        assert!(message.contains("bytes free"), "{message}");
    }
}

#[test]
fn a_sync_that_fails_is_an_error_and_one_that_is_not_to_be_had_is_none() {
    let base = tempfile::tempdir().unwrap();
    let _hooked = hook(base.path(), fails_first(Operation::SyncDir, Errno::IO, 1));
    assert!(sync_dir(base.path()).is_err());
    drop(_hooked);
    let _hooked = hook(
        base.path(),
        fails_first(Operation::SyncDir, Errno::INVAL, 1),
    );
    sync_dir(base.path()).unwrap();
}

#[test]
fn a_rename_meets_busy_a_bounded_number_of_times() {
    let base = tempfile::tempdir().unwrap();
    let (new, standing) = dirs(base.path());
    let _hooked = hook(
        base.path(),
        fails_first(Operation::RenameNoReplace, Errno::BUSY, u32::MAX),
    );
    let message = rename_dir_noreplace(&new, &standing)
        .unwrap_err()
        .to_string();
    assert!(message.contains("rename"), "{message}");
    drop(_hooked);
    let _hooked = hook(
        base.path(),
        fails_first(Operation::RenameNoReplace, Errno::BUSY, 2),
    );
    assert_eq!(
        rename_dir_noreplace(&new, &standing).unwrap(),
        Renamed::Done
    );
}

#[test]
fn a_rename_replaces_nothing_with_and_without_the_kernels_help() {
    for errno in [None, Some(Errno::NOSYS), Some(Errno::INVAL)] {
        let base = tempfile::tempdir().unwrap();
        let (new, standing) = dirs(base.path());
        let _hooked = hook(base.path(), move |operation| match (operation, errno) {
            (Operation::RenameNoReplace, Some(errno)) => fail(errno),
            _ => Ok(()),
        });
        // An empty directory is the case that a plain rename would replace.
        std::fs::create_dir(&standing).unwrap();
        assert_eq!(
            rename_dir_noreplace(&new, &standing).unwrap(),
            Renamed::Occupied
        );
        std::fs::write(standing.join("y"), b"").unwrap();
        assert_eq!(
            rename_dir_noreplace(&new, &standing).unwrap(),
            Renamed::Occupied
        );
        std::fs::remove_dir_all(&standing).unwrap();
        std::fs::write(&standing, b"a file").unwrap();
        assert_eq!(
            rename_dir_noreplace(&new, &standing).unwrap(),
            Renamed::Occupied
        );
        std::fs::remove_file(&standing).unwrap();
        std::os::unix::fs::symlink("nowhere", &standing).unwrap();
        assert_eq!(
            rename_dir_noreplace(&new, &standing).unwrap(),
            Renamed::Occupied
        );
        std::fs::remove_file(&standing).unwrap();
        assert_eq!(
            rename_dir_noreplace(&new, &standing).unwrap(),
            Renamed::Done
        );
        assert!(standing.join("x").exists() && !new.exists());
    }
}

#[test]
fn directories_are_swapped_with_and_without_the_kernels_help() {
    for errno in [None, Some(Errno::NOSYS), Some(Errno::INVAL)] {
        let base = tempfile::tempdir().unwrap();
        let (new, standing) = dirs(base.path());
        let aside = base.path().join("aside");
        std::fs::create_dir(&standing).unwrap();
        std::fs::write(standing.join("x"), b"old").unwrap();
        let hooked = hook(base.path(), move |operation| match (operation, errno) {
            (Operation::Exchange, Some(errno)) => fail(errno),
            _ => Ok(()),
        });
        let swapped = exchange_dirs(&new, &standing, &|| Ok(aside.clone())).unwrap();
        let (expected, old) = match errno {
            None => (Swapped::AtOnce, &new),
            Some(_) => (Swapped::Aside(aside.clone()), &aside),
        };
        assert_eq!(swapped, expected);
        assert_eq!(std::fs::read(standing.join("x")).unwrap(), b"new");
        assert_eq!(std::fs::read(old.join("x")).unwrap(), b"old");
        exchange_back(&new, &standing, &swapped).unwrap();
        drop(hooked);
        assert_eq!(std::fs::read(standing.join("x")).unwrap(), b"old");
        assert_eq!(std::fs::read(new.join("x")).unwrap(), b"new");
        assert!(!aside.exists());
    }
}

#[test]
fn a_swap_that_fails_half_way_is_undone() {
    for failing in 0..2 {
        let base = tempfile::tempdir().unwrap();
        let (new, standing) = dirs(base.path());
        std::fs::create_dir(&standing).unwrap();
        std::fs::write(standing.join("x"), b"old").unwrap();
        let renames = AtomicU32::new(0);
        let _hooked = hook(base.path(), move |operation| match operation {
            Operation::Exchange => fail(Errno::NOSYS),
            Operation::Rename if renames.fetch_add(1, Ordering::SeqCst) == failing => {
                fail(Errno::IO)
            }
            _ => Ok(()),
        });
        exchange_dirs(&new, &standing, &|| Ok(base.path().join("aside"))).unwrap_err();
        assert_eq!(std::fs::read(standing.join("x")).unwrap(), b"old");
        assert_eq!(std::fs::read(new.join("x")).unwrap(), b"new");
    }
}

#[test]
fn removing_follows_no_link_and_keeps_what_is_not_ours() {
    let base = tempfile::tempdir().unwrap();
    let outside = base.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), b"").unwrap();
    let tree = base.path().join("tree");
    std::fs::create_dir_all(tree.join("in")).unwrap();
    std::fs::write(tree.join("in/f"), b"").unwrap();
    std::os::unix::fs::symlink(&outside, tree.join("in/link")).unwrap();
    std::fs::write(tree.join("theirs"), b"").unwrap();

    assert!(remove_tree(&tree, &|path| path != Path::new("theirs")).is_err());
    assert!(tree.join("theirs").exists() && !tree.join("in").exists());
    remove_tree(&tree, &|_| true).unwrap();
    assert!(!tree.exists() && outside.join("precious").exists());

    let link = base.path().join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    assert!(remove_tree(&link, &|_| true).is_err());
    assert!(outside.join("precious").exists());
}

#[test]
fn missing_parents_are_made_and_a_file_in_the_way_is_told() {
    let base = tempfile::tempdir().unwrap();
    create_dir_all(&base.path().join("a/b/c")).unwrap();
    create_dir_all(&base.path().join("a/b/c")).unwrap();
    assert!(base.path().join("a/b/c").is_dir());
    std::fs::write(base.path().join("file"), b"").unwrap();
    assert!(create_dir_all(&base.path().join("file/x")).is_err());
    assert!(create_dir_all(&base.path().join("file")).is_err());
}
