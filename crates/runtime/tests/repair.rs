//! The list of all that is wrong with a cache, and caches made of what is whole.
#![allow(
    clippy::single_range_in_vec_init,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

mod reading;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use dataset_rt_format::Codec;
use dataset_rt_runtime::{CacheOptions, Cancel, Error, VerifyReport, examine, repair, verify};

use reading::{Made, Spec, make};

const OPTIONS: CacheOptions = CacheOptions {
    use_mmap: true,
    follow_links: false,
};

fn look(path: &Path) -> VerifyReport {
    examine(path, OPTIONS, &Cancel::new()).unwrap()
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn flip(path: &Path, at: usize) {
    change(path, |bytes| bytes[at] ^= 1);
}

/// Where a payload starts in a shard.
fn find(file: &Path, payload: &[u8]) -> usize {
    let bytes = fs::read(file).unwrap();
    bytes
        .windows(payload.len())
        .position(|part| part == payload)
        .unwrap()
}

fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry.strip_prefix(path).unwrap().to_path_buf();
                found.push((name, fs::read(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn spec(codec: Codec) -> Spec {
    Spec {
        codec,
        ..Spec::new(120)
    }
}

#[test]
fn a_whole_cache_has_no_problems() {
    for codec in [Codec::None, Codec::Lz4] {
        let made = make(&spec(codec));
        let report = look(&made.path);
        assert_eq!((report.samples, report.readable), (Some(120), 120));
        assert!(report.problems.is_empty() && report.repairable);
    }
}

#[test]
fn every_damaged_record_is_listed_with_its_sample() {
    let made = make(&spec(Codec::None));
    let shard = made.path.join("shards/000000.bin");
    let mut places = Vec::new();
    for sample in [1, 4, 5] {
        let at = find(&shard, &made.spec.payload(sample));
        flip(&shard, at);
        places.push(at as u64);
    }
    let report = look(&made.path);
    assert_eq!(report.readable, 117);
    assert!(!report.repairable);
    let found: Vec<_> = report
        .problems
        .iter()
        .map(|p| (p.code, p.offset, p.lost.clone(), p.path.clone()))
        .collect();
    let expected: Vec<_> = [1, 4, 5]
        .into_iter()
        .zip(places)
        .map(|(sample, at)| {
            let lost = Vec::from([sample..sample + 1]);
            ("record_damaged", Some(at), lost, shard.clone())
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn damage_in_several_files_is_listed_for_each() {
    let made = make(&spec(Codec::Lz4));
    let shards = fs::read_dir(made.path.join("shards")).unwrap().count();
    assert!(shards > 3);
    let last = format!("shards/{:06}.bin", shards - 1);
    flip(&made.path.join("shards/000001.bin"), 20); // header
    let size = fs::metadata(made.path.join(&last)).unwrap().len() as usize;
    flip(&made.path.join(&last), size - 70); // footer
    flip(&made.path.join("shards/000002.bin"), 4000.min(size));
    let report = look(&made.path);
    let codes: Vec<_> = report.problems.iter().map(|p| p.code).collect();
    assert_eq!(codes[0], "shard_damaged", "{:?}", report.problems);
    assert!(report.problems.len() >= 3);
    assert!(report.problems[0].lost.is_empty(), "readers need no header");
    let last_problem = report.problems.last().unwrap();
    assert!(last_problem.path.ends_with(&last) && last_problem.lost.is_empty());
    assert!(report.readable >= 117);

    // A trailer costs its shard.
    let made = make(&spec(Codec::None));
    let path = made.path.join("shards/000001.bin");
    let size = fs::metadata(&path).unwrap().len() as usize;
    flip(&path, size - 30);
    let report = look(&made.path);
    let [problem] = &report.problems[..] else {
        panic!("{:?}", report.problems)
    };
    assert_eq!(problem.offset, Some(size as u64 - 64));
    let [lost] = &problem.lost[..] else {
        panic!("{problem:?}")
    };
    assert_eq!(report.readable, 120 - (lost.end - lost.start));
    assert!(lost.start > 1 && lost.end < 119);
}

#[test]
fn a_missing_or_cut_shard_keeps_a_dataset_from_opening() {
    let made = make(&spec(Codec::None));
    let shard = made.path.join("shards/000001.bin");
    let good = fs::read(&shard).unwrap();
    fs::remove_file(&shard).unwrap();
    let report = look(&made.path);
    assert_eq!(report.readable, 0);
    let [problem] = &report.problems[..] else {
        panic!("{:?}", report.problems)
    };
    assert_eq!(problem.code, "file_missing");
    assert_eq!(problem.lost.len(), 1);
    assert!(problem.lost[0].end - problem.lost[0].start < 120);
    fs::write(&shard, &good[..good.len() - 1]).unwrap();
    let report = look(&made.path);
    assert_eq!((report.problems[0].code, report.readable), ("file_size", 0));
    assert!(!report.repairable);
}

#[test]
fn a_damaged_block_of_index_or_metadata_costs_its_samples() {
    let made = make(&Spec {
        batch_rows: 5000,
        fixed_len: Some(8),
        max_shard: 1 << 20,
        ..Spec::new(20_000)
    });
    let index = made.path.join("index.bin");
    // Entries begin at 256 and a block has 4096 of them.
    flip(&index, 256 + 65_536 + 100);
    let metadata = made.path.join("metadata.arrow");
    flip(&metadata, 65_536 * 3 + 17);
    let report = look(&made.path);
    let [first, second] = &report.problems[..] else {
        panic!("{:?}", report.problems)
    };
    assert_eq!((first.code, &first.path), ("index_damaged", &index));
    assert_eq!(first.lost, [4096..8192]);
    assert_eq!((second.code, &second.path), ("metadata_damaged", &metadata));
    let lost = |sample: &u64| {
        let in_second = second.lost.iter().any(|range| range.contains(sample));
        in_second || (4096..8192).contains(sample)
    };
    assert!(!second.lost.is_empty());
    assert_eq!(
        report.readable,
        (0..20_000).filter(|s| !lost(s)).count() as u64
    );
    assert!(!report.repairable);
    flip(&metadata, 65_536 * 3 + 17);
    assert!(look(&made.path).repairable);
}

#[test]
fn the_report_agrees_with_the_check_for_every_byte() {
    for codec in [Codec::None, Codec::Lz4] {
        let made = make(&Spec {
            codec,
            max_shard: 700,
            batch_rows: 3,
            ..Spec::new(7)
        });
        for (name, good) in files(&made.path) {
            let path = made.path.join(name);
            for at in (0..good.len()).step_by(11) {
                flip(&path, at);
                let first = verify(&made.path, OPTIONS, &Cancel::new()).unwrap_err();
                let report = look(&made.path);
                let Error::Damaged {
                    path: at_path,
                    source,
                    ..
                } = &first
                else {
                    panic!("{first:?}")
                };
                let known =
                    |p: &dataset_rt_runtime::Problem| p.path == *at_path && p.code == source.code();
                assert!(report.problems.iter().any(known), "{first}: {report:?}");
                let lost: u64 = report
                    .problems
                    .iter()
                    .flat_map(|p| &p.lost)
                    .map(|range| range.end - range.start)
                    .sum();
                assert!(
                    report.readable + lost >= 7 || report.readable == 0,
                    "{report:?}"
                );
                fs::write(&path, &good).unwrap();
            }
        }
    }
}

fn broken(made: &Made, index: bool, manifest: bool) {
    if index {
        flip(&made.path.join("index.bin"), 130);
    }
    if manifest {
        flip(&made.path.join("manifest.json"), 300);
    }
}

#[test]
fn index_and_manifest_are_made_again() {
    for codec in [Codec::None, Codec::Lz4] {
        for (index, manifest) in [(true, false), (false, true), (true, true), (false, false)] {
            let made = make(&spec(codec));
            let good = files(&made.path);
            broken(&made, index, manifest);
            let damaged = files(&made.path);
            let output = made.path.with_file_name("new");
            let report = repair(&made.path, &output, OPTIONS, &Cancel::new()).unwrap();
            assert_eq!(report.samples, Some(120), "{:?}", report.problems);
            let mut remade = Vec::new();
            if index {
                remade.push("index.bin");
            }
            if manifest {
                remade.push("manifest.json");
            }
            assert_eq!(report.remade, remade);
            assert_eq!(report.lost.is_empty(), !manifest);
            assert_eq!(report.proven, !(index && manifest));
            let checked = verify(&output, OPTIONS, &Cancel::new()).unwrap();
            assert_eq!(files(&made.path), damaged);
            for ((name, bytes), (old_name, old)) in files(&output).iter().zip(&good) {
                assert_eq!(name, old_name);
                if !manifest || name != Path::new("manifest.json") {
                    assert_eq!(bytes, old, "{name:?}");
                }
            }
            if manifest {
                assert_eq!(checked.source.name, "cache");
                assert_eq!(checked.source.fingerprint, None);
            }
            assert!(!made.path.with_file_name("tmp").exists());
        }
    }
}

#[test]
fn what_is_not_whole_is_not_repaired() {
    let output = |made: &Made| made.path.with_file_name("new");
    let refused = |made: &Made| {
        let report = repair(&made.path, &output(made), OPTIONS, &Cancel::new()).unwrap();
        assert_eq!(report.samples, None);
        assert!(!report.problems.is_empty());
        assert!(!output(made).exists());
        report.problems[0].code
    };
    for manifest in [false, true] {
        let made = make(&spec(Codec::Lz4));
        broken(&made, false, manifest);
        let shards = made.path.join("shards");
        let metadata = made.path.join("metadata.arrow");
        let good = fs::read(&metadata).unwrap();
        flip(&metadata, good.len() / 2);
        let code = refused(&made);
        assert!(code == "metadata_damaged" || code == "checksum_mismatch");
        fs::write(&metadata, &good[..good.len() - 1]).unwrap();
        refused(&made);
        fs::remove_file(&metadata).unwrap();
        assert_eq!(refused(&made), "file_missing");
        fs::write(&metadata, &good).unwrap();

        let first = shards.join("000000.bin");
        let good = fs::read(&first).unwrap();
        for at in [3, 70, good.len() - 70, good.len() - 10] {
            flip(&first, at);
            let code = refused(&made);
            assert!(
                code == "shard_damaged" || code == "record_damaged",
                "{code}"
            );
            fs::write(&first, &good).unwrap();
        }
        // The first, one in the middle, the last: no shard can be missing unseen.
        let count = fs::read_dir(&shards).unwrap().count();
        for gone in [0, 1, count - 1] {
            let path = shards.join(format!("{gone:06}.bin"));
            let good = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let code = refused(&made);
            assert!(code == "file_missing" || code == "shard_invalid", "{code}");
            fs::write(&path, &good).unwrap();
        }
        // Metadata of another cache with as many samples.
        let other = make(&Spec {
            salt: 1,
            ..spec(Codec::Lz4)
        });
        fs::copy(other.path.join("metadata.arrow"), &metadata).unwrap();
        refused(&made);
    }
}

#[test]
fn the_output_must_be_free_and_elsewhere() {
    let made = make(&spec(Codec::None));
    let attempt = |output: &Path| repair(&made.path, output, OPTIONS, &Cancel::new());
    assert!(matches!(attempt(&made.path), Err(Error::Exists { .. })));
    for inside in ["new", "shards/new", "deep/new"] {
        let found = attempt(&made.path.join(inside));
        assert!(matches!(found, Err(Error::Argument { .. })), "{found:?}");
    }
    let link = made.path.with_file_name("link");
    symlink(&made.path, &link).unwrap();
    assert!(matches!(
        attempt(&link.join("new")),
        Err(Error::Argument { .. })
    ));
    assert!(matches!(attempt(&link), Err(Error::Exists { .. })));
    for name in ["tmp", ".new", "a:b"] {
        let found = attempt(&made.path.with_file_name(name));
        assert!(matches!(found, Err(Error::Argument { .. })), "{found:?}");
    }
    assert!(matches!(
        attempt(Path::new("/")),
        Err(Error::Argument { .. })
    ));
    let empty = tempfile::tempdir().unwrap();
    let nothing = repair(
        empty.path(),
        &link.with_file_name("x"),
        OPTIONS,
        &Cancel::new(),
    );
    assert!(matches!(nothing, Err(Error::NotFound { .. })));
    assert!(matches!(
        examine(empty.path(), OPTIONS, &Cancel::new()),
        Err(Error::NotFound { .. })
    ));
    let cancelled = Cancel::new();
    cancelled.cancel();
    let output = made.path.with_file_name("new");
    let stopped = repair(&made.path, &output, OPTIONS, &cancelled);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    // Missing parents are made.
    let deep = made.path.with_file_name("a").join("b");
    assert_eq!(attempt(&deep).unwrap().samples, Some(120));
    verify(&deep, OPTIONS, &Cancel::new()).unwrap();
}
