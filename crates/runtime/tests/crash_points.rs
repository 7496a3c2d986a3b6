//! A process is killed at every change of the disk, in the scenes that a plain write and rebuild don't show: reuse,
//! several sources, systems that can't swap names, and the removal of what the dead left.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset_rt_format::Codec;
use dataset_rt_runtime::fault::{Operation, set_hook};
use dataset_rt_runtime::{Begin, OnMismatch, WriteOptions, WriteSession};

#[path = "write_support/mod.rs"]
mod support;

use support::*;

const CHILD_SCENE: &str = "DATASET_RT_TEST_CHILD_SCENE";
const CHILD_BASE: &str = "DATASET_RT_TEST_CHILD_BASE";
const CHILD_STOP: &str = "DATASET_RT_TEST_CHILD_STOP";

/// Where no change has this number.
const NEVER: usize = usize::MAX;

fn options() -> WriteOptions {
    WriteOptions {
        codec: Codec::Lz4,
        max_shard_bytes: 4000,
        on_mismatch: OnMismatch::Rebuild,
        ..create_or_reuse()
    }
}

/// The sources of a call: name, salt, samples.
const THREE: [(&str, u64, u64); 3] = [("a", 1, 60), ("b", 2, 90), ("c", 3, 40)];

/// Writes each source that is not to be reused; the names of those that were written.
fn store_all(session: &WriteSession, sources: &[(&str, u64, u64)]) -> Vec<String> {
    let mut writers = Vec::new();
    for (name, salt, samples) in sources {
        match session.begin(name, Some(&salt.to_string())).unwrap() {
            Begin::Reuse(reused) => assert_eq!(reused.samples, *samples),
            Begin::Wait { holder } => panic!("{name} waits for {holder}"),
            Begin::Write(writer) => {
                writer.start(schema()).unwrap();
                feed(&writer, *salt, *samples, &[25]);
                writer.finish();
                writers.push(((*name).to_owned(), writer));
            }
        }
    }
    let mut written = Vec::new();
    for (name, writer) in writers {
        outcome(&writer).unwrap();
        written.push(name);
    }
    written
}

/// No test by itself: the process that is killed.
#[test]
fn child() {
    let (Ok(scene), Ok(base)) = (std::env::var(CHILD_SCENE), std::env::var(CHILD_BASE)) else {
        return;
    };
    let stop: usize = std::env::var(CHILD_STOP).unwrap().parse().unwrap();
    let base = PathBuf::from(base);
    let count = AtomicUsize::new(0);
    let (below, plain) = (base.clone(), scene.starts_with("plain"));
    set_hook(Some(Arc::new(move |operation, path| {
        if !path.starts_with(&below) {
            return Ok(());
        }
        if count.fetch_add(1, Ordering::SeqCst) == stop {
            // No destructor, no handler.
            rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            )?;
        }
        let lacking = matches!(operation, Operation::Exchange | Operation::RenameNoReplace);
        if plain && lacking {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        Ok(())
    })));
    match scene.as_str() {
        "three" => drop(store_all(&session(&base, options(), 2), &THREE)),
        "reuse" | "clean" => {
            let session = session(&base, options(), 1);
            assert!(matches!(session.begin("s", Some("1")), Ok(Begin::Reuse(_))));
        }
        "write" | "plain write" => drop(store_all(&session(&base, options(), 1), &[("s", 2, 90)])),
        other => panic!("{other}"),
    }
}

/// Plays a scene up to change number `stop`; whether the process was killed there.
fn play(scene: &str, base: &Path, stop: usize) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--test-threads=1"])
        .env(CHILD_SCENE, scene)
        .env(CHILD_BASE, base)
        .env(CHILD_STOP, stop.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}

/// Everything about the files below a path that a rewrite would change.
fn traces(path: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    tree(path)
        .into_iter()
        .map(|(below, _)| {
            let found = fs::symlink_metadata(path.join(&below)).unwrap();
            (below, found.ino(), found.mtime(), found.mtime_nsec())
        })
        .collect()
}

/// The standing cache `s` with salt 1.
fn standing(base: &Path) {
    assert_eq!(
        store_all(&session(base, options(), 1), &[("s", 1, 60)]),
        ["s"]
    );
}

#[test]
fn a_reuse_changes_nothing_on_the_disk() {
    let base = scratch();
    standing(base.path());
    let before = (traces(base.path()), tree(base.path()));
    // The first change would be the last.
    assert!(!play("reuse", base.path(), 0));
    assert!(before == (traces(base.path()), tree(base.path())));
}

#[test]
fn a_process_killed_while_it_cleans_up_harms_no_cache() {
    let dir = scratch();
    for stop in 0.. {
        let base = dir.path().join(stop.to_string());
        standing(&base);
        let before = (traces(&base.join("s")), tree(&base.join("s")));
        // Two dead writers: one early, one with most of its files.
        for at in [5, 40] {
            assert!(play("write", &base, at));
        }
        // The second removed what the first left.
        assert_eq!(names(&base.join("tmp")).len(), 1);
        let killed = play("clean", &base, stop);
        assert!(before == (traces(&base.join("s")), tree(&base.join("s"))));
        assert!(killed || names(&base) == ["s"]);
        drop(session(&base, options(), 1));
        assert_eq!(names(&base), ["s"], "left of change {stop}");
        if !killed {
            assert!(stop > 8, "{stop}");
            return;
        }
    }
}

#[test]
fn a_call_of_three_sources_killed_at_any_change_goes_on_where_it_was() {
    let dir = scratch();
    let mut reused_before = 0;
    for stop in 0.. {
        let base = dir.path().join(stop.to_string());
        let killed = play("three", &base, stop);
        let mut stood = Vec::new();
        for (name, salt, samples) in THREE {
            let path = base.join(name);
            if path.exists() {
                read_back(&path).assert_is(salt, samples);
                stood.push((name, traces(&path)));
            }
        }
        reused_before += usize::from(!stood.is_empty() && stood.len() < 3);
        let written = store_all(&session(&base, options(), 2), &THREE);
        assert_eq!(written.len() + stood.len(), 3);
        for (name, before) in stood {
            assert!(before == traces(&base.join(name)), "{name} was touched");
        }
        for (name, salt, samples) in THREE {
            read_back(&base.join(name)).assert_is(salt, samples);
        }
        assert_eq!(names(&base), ["a", "b", "c"], "left of change {stop}");
        if !killed {
            assert!(written.is_empty());
            assert!(stop > 80 && reused_before > 10, "{stop} {reused_before}");
            return;
        }
    }
}

#[test]
fn without_swaps_a_killed_rebuild_loses_no_cache() {
    let dir = scratch();
    let mut moved_aside = 0;
    for stop in 0.. {
        let base = dir.path().join(stop.to_string());
        standing(&base);
        let killed = play("plain write", &base, stop);
        let target = base.join("s");
        let absent = !target.exists();
        moved_aside += usize::from(absent);
        // The next writer gives the cache its name back, also one that writes another source.
        drop(session(&base, options(), 1));
        let read = read_back(&target);
        match read.manifest.source.fingerprint.as_deref() {
            Some("1") => read.assert_is(1, 60),
            _ => read.assert_is(2, 90),
        }
        assert_eq!(names(&base), ["s"], "left of change {stop}");
        store_all(&session(&base, options(), 1), &[("s", 2, 90)]);
        read_back(&target).assert_is(2, 90);
        if !killed {
            assert_eq!(moved_aside, 1, "the one change between two renames");
            return;
        }
    }
}

#[test]
fn a_process_killed_while_a_cache_gets_its_name_back_loses_nothing() {
    // Where the writer died between the two renames.
    let between = |base: &Path| {
        for at in 0.. {
            standing(base);
            assert!(play("plain write", base, at));
            if !base.join("s").exists() {
                return;
            }
            fs::remove_dir_all(base).unwrap();
        }
    };
    let dir = scratch();
    let first = dir.path().join("first");
    between(&first);
    for stop in 0.. {
        let base = dir.path().join(stop.to_string());
        copy(&first, &base);
        let killed = play("clean", &base, stop);
        drop(session(&base, options(), 1));
        read_back(&base.join("s")).assert_is(1, 60);
        assert_eq!(names(&base), ["s"], "left of change {stop}");
        if !killed {
            assert!(stop > 8, "{stop}");
            return;
        }
    }
}

#[test]
fn a_cache_moved_aside_yields_to_one_that_took_its_name() {
    let base = scratch();
    let base = base.path();
    for at in 0.. {
        standing(base);
        assert!(play("plain write", base, at));
        if !base.join("s").exists() {
            break;
        }
        fs::remove_dir_all(base).unwrap();
        fs::create_dir(base).unwrap();
    }
    // Somebody copies a cache there by hand.
    let other = scratch();
    store_all(&session(other.path(), options(), 1), &[("s", 3, 40)]);
    copy(&other.path().join("s"), &base.join("s"));
    drop(session(base, options(), 1));
    read_back(&base.join("s")).assert_is(3, 40);
    assert_eq!(names(base), ["s"]);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for (below, content) in tree(from) {
        match content {
            None => fs::create_dir(to.join(below)).unwrap(),
            Some(bytes) => fs::write(to.join(below), bytes).unwrap(),
        }
    }
}

#[test]
fn a_scene_that_nobody_stops_ends() {
    let base = scratch();
    assert!(!play("three", base.path(), NEVER));
    assert!(!play("three", base.path(), NEVER));
    assert_eq!(names(base.path()), ["a", "b", "c"]);
}
