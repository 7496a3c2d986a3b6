//! A power cut at any moment leaves no cache or a whole one; of a rebuild the old one or the new one.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataset_rt_format::Codec;
use dataset_rt_runtime::fault::{Operation, set_hook, set_recorder};
use dataset_rt_runtime::{
    Begin, CacheOptions, Cancel, Error, OnMismatch, Status, WriteOptions, verify,
};

#[path = "power_model/mod.rs"]
mod model;
#[path = "write_support/mod.rs"]
mod support;

use model::{Bytes, Cut, Disk, Step, Tree, build};
use support::*;

/// Hook and recorder are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    set_hook(None);
    set_recorder(None);
    guard
}

/// The long form tries more combinations and builds more images.
fn is_long() -> bool {
    std::env::var_os("DATASET_RT_LONG").is_some()
}

/// Uncertain changes up to which all combinations are tried.
fn most() -> usize {
    if is_long() { 11 } else { 6 }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    /// Renames that refuse an existing name, and swaps.
    Kernel,
    /// Neither of them.
    Plain,
}

fn rebuilding(codec: Codec) -> WriteOptions {
    WriteOptions {
        codec,
        max_shard_bytes: 4000,
        on_mismatch: OnMismatch::Rebuild,
        ..create_or_reuse()
    }
}

fn load(root: &Path) -> Tree {
    tree(root).into_iter().collect()
}

/// Runs `act` and returns what it changed below `root`.
fn recorded<T>(root: &Path, system: System, act: impl FnOnce() -> T) -> (T, Vec<Step>) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let (seen, below) = (steps.clone(), root.to_path_buf());
    set_recorder(Some(Arc::new(move |change| {
        seen.lock().unwrap().extend(Step::of(change, &below));
    })));
    let below = root.to_path_buf();
    set_hook(Some(Arc::new(move |operation, path| {
        let lacking = matches!(operation, Operation::Exchange | Operation::RenameNoReplace);
        if lacking && system == System::Plain && path.starts_with(&below) {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        Ok(())
    })));
    let result = act();
    set_hook(None);
    set_recorder(None);
    let steps = std::mem::take(&mut *steps.lock().unwrap());
    (result, steps)
}

/// A write or rebuild of `base/s`, with what stood before and after.
struct Trace {
    system: System,
    codec: Codec,
    before: Tree,
    old: Option<Tree>,
    new: Tree,
    steps: Vec<Step>,
}

const TARGET: &str = "base/s";
const OLD: (u64, u64) = (1, 60);
const NEW: (u64, u64) = (2, 90);

fn store(base: &Path, codec: Codec, workers: usize, what: (u64, u64)) -> Result<Status, Error> {
    let fingerprint = what.0.to_string();
    let (salt, samples) = what;
    let options = rebuilding(codec);
    let written = write(
        base,
        options,
        workers,
        "s",
        Some(&fingerprint),
        salt,
        samples,
        &[25],
    )?;
    Ok(written.status)
}

fn trace(system: System, codec: Codec, workers: usize, rebuild: bool) -> Trace {
    let root = scratch();
    let base = root.path().join("base");
    if rebuild {
        store(&base, codec, 1, OLD).unwrap();
    }
    let before = load(root.path());
    let old = rebuild.then(|| load(&root.path().join(TARGET)));
    let (status, steps) = recorded(root.path(), system, || store(&base, codec, workers, NEW));
    let expected = if rebuild {
        Status::Rebuilt
    } else {
        Status::Written
    };
    assert_eq!(status.unwrap(), expected);
    let new = load(&root.path().join(TARGET));
    let trace = Trace {
        system,
        codec,
        before,
        old,
        new,
        steps,
    };
    // The model and the disk agree on what there is at the end.
    let mut disk = Disk::new(&trace.before);
    trace.steps.iter().for_each(|step| disk.apply(step));
    let all = Cut {
        kept: vec![true; disk.uncertain()],
        bytes: Bytes::Kept,
    };
    assert_eq!(
        disk.after(&all).tree(Path::new("")).unwrap(),
        load(root.path())
    );
    trace
}

fn traces() -> Vec<Trace> {
    let mut traces = Vec::new();
    for system in [System::Kernel, System::Plain] {
        for codec in [Codec::None, Codec::Lz4] {
            for rebuild in [false, true] {
                for workers in [1, 3] {
                    traces.push(trace(system, codec, workers, rebuild));
                }
            }
        }
    }
    traces
}

/// What is wrong with an outcome.
fn fault(trace: &Trace, disk: &Disk, cut: &Cut, ended: bool) -> Option<String> {
    let image = disk.after(cut);
    let target = image.tree(Path::new(TARGET));
    if target.as_ref() == Some(&trace.new) {
        return None;
    }
    if ended {
        return Some("the write said success, and its cache is not there".to_owned());
    }
    match (target, &trace.old) {
        (None, None) => None,
        (Some(found), Some(old)) if found == *old => None,
        (Some(found), _) => {
            let names: Vec<_> = found.keys().collect();
            Some(format!("a cache that is not whole, with {names:?}"))
        }
        // Only where names can't be swapped; the next writer gives it its name back.
        (None, Some(old)) => {
            let tmp = Path::new("base/tmp");
            let aside = image
                .names(tmp)
                .iter()
                .find_map(|name| image.tree(&tmp.join(name).join("old/s")));
            match aside {
                Some(aside) if aside == *old && trace.system == System::Plain => None,
                Some(_) => Some("the old cache was moved aside".to_owned()),
                None => Some("the old cache is lost".to_owned()),
            }
        }
    }
}

/// Tries every outcome after every step; the first fault, and how many outcomes there were.
fn search(trace: &Trace, steps: &[Step], most: usize) -> (Option<String>, usize) {
    let mut disk = Disk::new(&trace.before);
    let mut tried = 0;
    for (at, step) in steps.iter().enumerate() {
        disk.apply(step);
        let ended = at + 1 == steps.len();
        for cut in disk.cuts(most, at as u64) {
            tried += 1;
            if let Some(fault) = fault(trace, &disk, &cut, ended) {
                let message = format!("after step {at}, {step:?}, with {cut:?}: {fault}");
                return (Some(message), tried);
            }
        }
    }
    (None, tried)
}

#[test]
fn a_power_cut_after_any_step_leaves_nothing_half() {
    let _alone = alone();
    let mut tried = 0;
    for trace in traces() {
        let (found, outcomes) = search(&trace, &trace.steps, most());
        assert_eq!(found, None, "{:?} {:?}", trace.system, trace.codec);
        tried += outcomes;
    }
    println!("{tried} outcomes");
    assert!(tried > 50_000, "{tried}");
}

#[test]
fn no_sync_can_be_left_out() {
    let _alone = alone();
    for system in [System::Kernel, System::Plain] {
        for rebuild in [false, true] {
            let trace = trace(system, Codec::Lz4, 1, rebuild);
            let syncs: Vec<usize> = (0..trace.steps.len())
                .filter(|at| trace.steps[*at].is_sync())
                .collect();
            assert!(syncs.len() > 6, "{syncs:?}");
            for at in syncs {
                let mut steps = trace.steps.clone();
                let left_out = steps.remove(at);
                let (found, _) = search(&trace, &steps, most());
                assert!(
                    found.is_some(),
                    "{system:?}, rebuild {rebuild}: the model sees no harm without {left_out:?}"
                );
            }
        }
    }
}

#[test]
fn the_new_name_comes_after_all_that_it_stands_for() {
    let _alone = alone();
    for rebuild in [false, true] {
        let trace = trace(System::Kernel, Codec::None, 1, rebuild);
        let named = |step: &Step| matches!(step, Step::Rename(..) | Step::Exchange(..));
        let name = trace.steps.iter().position(named).unwrap();
        // Each step that the cache needs, moved behind the name.
        for at in 0..name {
            let step = &trace.steps[at];
            let part = match step {
                Step::SyncFile(path) | Step::SyncDir(path) => path,
                _ => continue,
            };
            if !part.starts_with("base/tmp") {
                continue;
            }
            let mut steps = trace.steps.clone();
            steps.remove(at);
            let mut disk = Disk::new(&trace.before);
            steps[..name].iter().for_each(|step| disk.apply(step));
            let bad = disk
                .cuts(most(), 0)
                .iter()
                .any(|cut| fault(&trace, &disk, cut, false).is_some());
            assert!(bad, "{step:?} may come after the name");
        }
    }
}

#[test]
fn the_manifest_is_made_when_all_else_is_on_the_disk() {
    let _alone = alone();
    for trace in traces() {
        let mut disk = Disk::new(&trace.before);
        let mut manifests = 0;
        for step in &trace.steps {
            disk.apply(step);
            if let Step::CreateFile(path) = step
                && path.ends_with("manifest.json")
            {
                manifests += 1;
                assert!(disk.is_synced_below(path.parent().unwrap(), "manifest.json"));
            }
        }
        assert_eq!(manifests, 1);
    }
}

/// The owner in the names of staging folders becomes one that has ended: its number belongs to another process by now.
fn bury(image: &Tree) -> Tree {
    let tmp = Path::new("base/tmp");
    let buried = |path: &PathBuf| {
        let Ok(below) = path.strip_prefix(tmp) else {
            return path.clone();
        };
        let mut parts = below.components();
        let Some(folder) = parts.next() else {
            return path.clone();
        };
        let folder = folder.as_os_str().to_str().unwrap();
        let mut fields: Vec<String> = folder.split('.').map(str::to_owned).collect();
        let start = fields.len() - 2;
        fields[start] = (fields[start].parse::<u64>().unwrap() + 1).to_string();
        let path = tmp.join(fields.join("."));
        match parts.as_path() {
            rest if rest.as_os_str().is_empty() => path,
            rest => path.join(rest),
        }
    };
    image
        .iter()
        .map(|(path, content)| (buried(path), content.clone()))
        .collect()
}

/// Opens what a power cut left, and lets the next writer at it.
fn go_on(trace: &Trace, image: &Tree) {
    let root = scratch();
    build(&bury(image), root.path());
    let (base, target) = (root.path().join("base"), root.path().join(TARGET));
    let stood = target.exists();
    if stood {
        let options = CacheOptions {
            use_mmap: false,
            follow_links: false,
        };
        verify(&target, options, &Cancel::new()).unwrap();
    }
    let session = session(&base, rebuilding(trace.codec), 1);
    assert!(
        trace.old.is_none() || target.exists(),
        "what stood has its name back"
    );
    let fingerprint = NEW.0.to_string();
    match session.begin("s", Some(&fingerprint)).unwrap() {
        Begin::Reuse(reused) => assert_eq!(reused.samples, NEW.1),
        Begin::Wait { holder } => panic!("waits for the dead: {holder}"),
        Begin::Write(writer) => {
            writer.start(schema()).unwrap();
            feed(&writer, NEW.0, NEW.1, &[25]);
            writer.finish();
            let written = outcome(&writer).unwrap();
            let rebuilt = written.status == Status::Rebuilt;
            assert_eq!(rebuilt, trace.old.is_some());
        }
    }
    read_back(&target).assert_is(NEW.0, NEW.1);
    assert_eq!(names(&base), ["s"]);
}

#[test]
fn what_a_power_cut_leaves_opens_and_is_written_over() {
    let _alone = alone();
    let mut built = BTreeSet::new();
    for trace in traces() {
        let mut disk = Disk::new(&trace.before);
        for (at, step) in trace.steps.iter().enumerate() {
            disk.apply(step);
            let cuts = disk.cuts(2, at as u64);
            let stride = if is_long() { 1 } else { cuts.len().div_ceil(4) };
            for cut in cuts.iter().skip(at % stride).step_by(stride) {
                let image = disk.after(cut).tree(Path::new("")).unwrap();
                let digest = dataset_rt_format::crc32c(format!("{image:?}").as_bytes());
                if built.insert(digest) {
                    go_on(&trace, &image);
                }
            }
        }
    }
    println!("{} images", built.len());
    assert!(built.len() > 100, "{}", built.len());
}

#[test]
fn a_power_cut_while_a_cache_gets_its_name_back_loses_nothing() {
    let _alone = alone();
    let first = trace(System::Plain, Codec::None, 1, true);
    let aside = |step: &Step| matches!(step, Step::Rename(from, _) if from == Path::new(TARGET));
    let at = first.steps.iter().position(aside).unwrap();
    let mut disk = Disk::new(&first.before);
    first.steps[..=at].iter().for_each(|step| disk.apply(step));
    let all = Cut {
        kept: vec![true; disk.uncertain()],
        bytes: Bytes::Kept,
    };
    let before = bury(&disk.after(&all).tree(Path::new("")).unwrap());
    assert!(!before.contains_key(Path::new(TARGET)));
    for system in [System::Kernel, System::Plain] {
        let root = scratch();
        build(&before, root.path());
        let ((), steps) = recorded(root.path(), system, || {
            drop(session(
                &root.path().join("base"),
                rebuilding(Codec::None),
                1,
            ));
        });
        let old = first.old.clone().unwrap();
        let again = Trace {
            system: System::Plain,
            codec: Codec::None,
            before: before.clone(),
            old: Some(old.clone()),
            new: old,
            steps,
        };
        assert_eq!(names(&root.path().join("base")), ["s"]);
        let (found, tried) = search(&again, &again.steps, most());
        assert_eq!(found, None);
        assert!(tried > 100, "{tried}");
        // Without the sync the removal of what was moved aside can come first.
        let steps: Vec<Step> = again
            .steps
            .iter()
            .filter(|step| !step.is_sync())
            .cloned()
            .collect();
        assert!(search(&again, &steps, most()).0.is_some());
    }
}

#[test]
fn what_the_boot_before_left_keeps_no_source_waiting() {
    let _alone = alone();
    let root = scratch();
    let base = root.path().join("base");
    let folder = base.join("tmp/s.ffffffff.1.1.1.0000000000000001");
    fs::create_dir_all(folder.join("cache/shards")).unwrap();
    let begin = || {
        session(&base, create_or_reuse(), 1)
            .begin("s", None)
            .unwrap()
    };
    assert!(
        matches!(begin(), Begin::Wait { .. }),
        "it may be another machine's that is at work"
    );
    for path in ["cache/shards", "cache", ""] {
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(120);
        let folder = fs::File::open(folder.join(path)).unwrap();
        folder.set_modified(then).unwrap();
    }
    assert!(matches!(begin(), Begin::Write(_)));
    assert!(folder.exists(), "in doubt it is kept");
}
