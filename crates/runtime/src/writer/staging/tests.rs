//! Leases and the removal of what dead writers left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::{Tmp, clean_up, label_of};
use crate::writer::owner::{
    LOCKLESS_AGE, Lock, Owner, Process, SIGN_OF_LIFE_AGE, UNLOCKED_AGE, look_up,
};

fn enter(base: &Path) -> Tmp {
    Tmp::enter(base, true).unwrap().unwrap()
}

/// A folder as a writer with this owner would have left it.
fn left_behind(base: &Path, owner: &Owner) -> PathBuf {
    let path = base.join("tmp").join(format!("s.{}", owner.to_suffix(1)));
    fs::create_dir_all(path.join("cache/shards")).unwrap();
    fs::write(path.join("cache/shards/000000.bin"), b"x").unwrap();
    fs::write(path.join("cache/index.bin"), b"x").unwrap();
    fs::write(path.join("spill"), b"x").unwrap();
    path
}

fn make_old(path: &Path, age: Duration) {
    let then = SystemTime::now() - age;
    for name in [
        "cache/shards/000000.bin",
        "cache/index.bin",
        "cache/shards",
        "cache",
        "spill",
        "",
    ] {
        File::open(path.join(name))
            .unwrap()
            .set_modified(then)
            .unwrap();
    }
}

fn gone() -> Owner {
    let here = Owner::current();
    Owner {
        start: here.start + 1,
        ..here
    }
}

fn elsewhere() -> Owner {
    Owner {
        boot: "ffffffff".to_owned(),
        ..Owner::current()
    }
}

#[test]
fn a_staging_folder_is_held_while_it_lives_and_gone_with_its_owner() {
    let base = tempfile::tempdir().unwrap();
    let tmp = enter(base.path());
    let staging = tmp.stage(base.path(), "Name").unwrap();
    let live = tmp.clean();
    assert_eq!(live.len(), 1);
    assert!(live[0].writes("name") && live[0].writes("NAME") && !live[0].writes("other"));
    assert!(
        live[0]
            .description
            .contains(&std::process::id().to_string())
    );
    drop(tmp);
    fs::create_dir(staging.cache()).unwrap();
    fs::write(staging.cache().join("index.bin"), b"x").unwrap();
    drop(staging);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_cant_be_removed_belongs_to_nobody() {
    // Else writers of other processes would wait for this one, as long as it lives.
    let base = tempfile::tempdir().unwrap();
    let staging = enter(base.path()).stage(base.path(), "s").unwrap();
    fs::write(staging.path.join("not ours"), b"x").unwrap();
    drop(staging);
    let left: Vec<_> = fs::read_dir(base.path().join("tmp")).unwrap().collect();
    assert_eq!(left.len(), 1);
    let name = left[0].as_ref().unwrap().file_name();
    let (label, owner) = Owner::split_name(name.to_str().unwrap()).unwrap();
    assert_eq!(label, "s");
    assert_eq!(look_up(&owner, &Owner::current()), Process::Gone);
}

#[test]
#[allow(unsafe_code)] // A fork.
fn a_forked_child_neither_gives_up_the_lease_nor_removes_the_folder() {
    let base = tempfile::tempdir().unwrap();
    let staging = enter(base.path()).stage(base.path(), "s").unwrap();
    let path = staging.path.clone();
    let mut staging = Some(staging);
    // SAFETY: the child only drops what it inherited, which must do nothing, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(staging.take());
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &mut 0, 0) };
    let other = File::open(&path).unwrap();
    let attempt = flock(&other, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(Lock::from_attempt(attempt), Lock::Held);
    drop(staging.take());
    assert!(!path.exists());
}

#[test]
fn what_a_dead_writer_left_is_removed() {
    let base = tempfile::tempdir().unwrap();
    let dead = left_behind(base.path(), &gone());
    // A child forked from the dead writer may still hold its lock.
    let held = File::open(&dead).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    clean_up(base.path());
    assert!(!base.path().join("tmp").exists());
}

#[test]
fn a_writer_that_cant_be_looked_up_is_kept_while_its_lock_is_held_or_its_files_change() {
    let base = tempfile::tempdir().unwrap();
    let path = left_behind(base.path(), &elsewhere());
    clean_up(base.path());
    assert!(path.exists(), "its files are new");
    let held = File::open(&path).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    make_old(&path, LOCKLESS_AGE * 2);
    clean_up(base.path());
    assert!(path.exists(), "its lock is held");
    flock(&held, FlockOperation::Unlock).unwrap();
    File::open(path.join("cache/index.bin"))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    clean_up(base.path());
    assert!(path.exists(), "one of its files is new");
    make_old(&path, UNLOCKED_AGE + Duration::from_secs(60));
    clean_up(base.path());
    assert!(!base.path().join("tmp").exists());
}

#[test]
fn a_writer_that_cant_be_looked_up_is_waited_for_while_it_shows_signs_of_life() {
    // After a power cut: nobody holds the lock, and the process that is named was one of the boot before.
    let base = tempfile::tempdir().unwrap();
    let path = left_behind(base.path(), &elsewhere());
    let tmp = enter(base.path());
    let holders = tmp.clean();
    assert_eq!(holders.len(), 1, "its files are new");
    assert!(holders[0].writes("s"));
    make_old(&path, SIGN_OF_LIFE_AGE + Duration::from_secs(1));
    assert_eq!(tmp.clean(), [], "nothing has changed for a while");
    assert!(path.exists(), "but it is kept");
    let held = File::open(&path).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(tmp.clean().len(), 1, "its lock is held");
}

#[test]
fn a_writer_keeps_its_folder_by_its_lock_alone() {
    // As a process of another container sees it: the owner can't be looked up, and nothing has changed for long.
    let base = tempfile::tempdir().unwrap();
    let tmp = enter(base.path());
    let mut staging = tmp.stage(base.path(), "s").unwrap();
    let name = format!("s.{}", elsewhere().to_suffix(1));
    let path = base.path().join("tmp").join(name);
    fs::rename(&staging.path, &path).unwrap();
    let then = SystemTime::now() - 2 * UNLOCKED_AGE;
    File::open(&path).unwrap().set_modified(then).unwrap();
    assert!(tmp.clean().iter().all(|holder| holder.writes("s")));
    assert!(path.exists());
    staging.lease = None;
    assert!(tmp.clean().is_empty());
    assert!(!path.exists());
}

#[test]
fn what_is_not_ours_stays() {
    let base = tempfile::tempdir().unwrap();
    let dead = left_behind(base.path(), &gone());
    fs::write(dead.join("cache/notes.txt"), b"theirs").unwrap();
    fs::create_dir(base.path().join("tmp/unrelated")).unwrap();
    let outside = base.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("index.bin"), b"x").unwrap();
    let name = format!("t.{}", gone().to_suffix(2));
    std::os::unix::fs::symlink(&outside, base.path().join("tmp").join(name)).unwrap();
    clean_up(base.path());
    assert!(dead.join("cache/notes.txt").exists());
    assert!(base.path().join("tmp/unrelated").exists());
    assert!(outside.join("index.bin").exists());
}

#[test]
fn tmp_must_be_a_plain_directory() {
    let base = tempfile::tempdir().unwrap();
    let outside = base.path().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, base.path().join("tmp")).unwrap();
    let Err(refused) = Tmp::enter(base.path(), true) else {
        panic!("a link was followed")
    };
    assert!(refused.to_string().contains("plain directory"), "{refused}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_lock_that_is_never_given_up_does_not_stop_writers() {
    let base = tempfile::tempdir().unwrap();
    fs::create_dir(base.path().join("tmp")).unwrap();
    let held = File::open(base.path().join("tmp")).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    let tmp = enter(base.path());
    let staging = tmp.stage(base.path(), "s").unwrap();
    assert_eq!(tmp.clean().len(), 1);
    drop(staging);
}

#[test]
fn a_lock_on_a_removed_folder_is_not_taken_for_one() {
    let base = tempfile::tempdir().unwrap();
    let first = enter(base.path());
    let path = base.path().to_path_buf();
    let second = std::thread::spawn(move || {
        let tmp = enter(&path);
        assert!(path.join("tmp").is_dir());
        tmp.leave();
    });
    std::thread::sleep(Duration::from_millis(20));
    first.leave();
    second.join().unwrap();
    assert!(!base.path().join("tmp").exists());
}

#[test]
fn a_tmp_that_others_remove_is_made_again() {
    let base = tempfile::tempdir().unwrap();
    let tmp = enter(base.path());
    fs::remove_dir(base.path().join("tmp")).unwrap();
    let staging = tmp.stage(base.path(), "s").unwrap();
    fs::create_dir(staging.cache()).unwrap();
    drop(tmp);
    drop(staging);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn a_cache_that_was_moved_aside_gets_its_name_back() {
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("s");
    let tmp = enter(base.path());
    let stage_aside = || {
        let staging = tmp.stage(base.path(), "s").unwrap();
        let aside = staging.make_aside("s".as_ref()).unwrap();
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("index.bin"), b"old").unwrap();
        (staging, aside)
    };
    let (staging, _) = stage_aside();
    drop(staging);
    assert_eq!(fs::read(target.join("index.bin")).unwrap(), b"old");
    // Something has the name: what was moved aside is not wanted.
    fs::write(target.join("index.bin"), b"new").unwrap();
    let (staging, aside) = stage_aside();
    drop(staging);
    assert!(!aside.exists());
    assert_eq!(fs::read(target.join("index.bin")).unwrap(), b"new");
    tmp.leave();
    assert!(!base.path().join("tmp").exists());
}

#[test]
fn long_names_get_a_label_that_fits() {
    let long = "x".repeat(200);
    let base = tempfile::tempdir().unwrap();
    let tmp = enter(base.path());
    let staging = tmp.stage(base.path(), &long).unwrap();
    let live = tmp.clean();
    assert!(live[0].writes(&long) && live[0].writes(&"X".repeat(200)));
    assert!(!live[0].writes(&"x".repeat(199)));
    assert!(
        label_of(&label_of(&long)) != label_of(&long),
        "no name can pose as a digest"
    );
    drop(tmp);
    drop(staging);
}
