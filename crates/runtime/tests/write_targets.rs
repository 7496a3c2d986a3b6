//! What stands at a target already, and who else writes there.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use dataset_rt_runtime::{Begin, Error, OnMismatch, Reused, Status, WriteOptions, Written};

#[path = "write_support/mod.rs"]
mod support;

use support::*;

fn with(on_mismatch: OnMismatch) -> WriteOptions {
    WriteOptions {
        on_mismatch,
        ..create_or_reuse()
    }
}

fn begun(base: &Path, options: WriteOptions, fingerprint: Option<&str>) -> Result<Begin, Error> {
    session(base, options, 1).begin("s", fingerprint)
}

fn reused(base: &Path, options: WriteOptions, fingerprint: Option<&str>) -> Reused {
    match begun(base, options, fingerprint).unwrap() {
        Begin::Reuse(reused) => reused,
        other => panic!("{other:?}"),
    }
}

fn mismatch(base: &Path, options: WriteOptions, fingerprint: Option<&str>) -> String {
    match begun(base, options, fingerprint) {
        Err(error @ Error::Mismatch { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn rebuilt(base: &Path, fingerprint: Option<&str>) -> Written {
    let written = write(
        base,
        with(OnMismatch::Rebuild),
        2,
        "s",
        fingerprint,
        9,
        50,
        &[20],
    )
    .unwrap();
    assert_eq!(written.status, Status::Rebuilt);
    read_back(&base.join("s")).assert_is(9, 50);
    assert_eq!(names(base), ["s"]);
    written
}

fn standing(fingerprint: Option<&str>) -> tempfile::TempDir {
    let base = tempfile::tempdir().unwrap();
    write(
        base.path(),
        create_or_reuse(),
        2,
        "s",
        fingerprint,
        1,
        100,
        &[30],
    )
    .unwrap();
    base
}

#[test]
fn a_cache_is_reused_by_name_or_by_fingerprint_and_says_so() {
    let base = standing(Some("f"));
    let created = read_back(&base.path().join("s")).manifest.created;
    for policy in [OnMismatch::Error, OnMismatch::Rebuild, OnMismatch::Reuse] {
        let by_name = reused(base.path(), with(policy), None);
        assert!(by_name.by_name_only && !by_name.mismatch);
        assert!(by_name.reason.contains(&created), "{}", by_name.reason);
        assert_eq!((by_name.created, by_name.samples), (created.clone(), 100));
        let same = reused(base.path(), with(policy), Some("f"));
        assert!(!same.by_name_only && !same.mismatch);
        assert!(same.reason.contains("\"f\""), "{}", same.reason);
    }
    assert_eq!(names(base.path()), ["s"]);
}

#[test]
fn a_mismatch_goes_by_the_policy() {
    for stored in [Some("old"), None] {
        let base = standing(stored);
        let before = tree(base.path());
        let message = mismatch(base.path(), with(OnMismatch::Error), Some("new"));
        assert!(
            message.contains("\"new\"") && message.contains("rebuild"),
            "{message}"
        );
        assert!(stored.is_none_or(|old| message.contains(old)), "{message}");
        let reused = reused(base.path(), with(OnMismatch::Reuse), Some("new"));
        assert!(reused.mismatch && !reused.by_name_only);
        assert!(reused.reason.contains(&reused.created), "{}", reused.reason);
        assert!(tree(base.path()) == before, "something changed");
        let written = rebuilt(base.path(), Some("new"));
        assert!(written.reason.contains("\"new\""), "{}", written.reason);
    }
}

#[test]
fn write_cache_refuses_whatever_stands() {
    let base = standing(None);
    let refusal = |base: &Path| match begun(base, WriteOptions::default(), None) {
        Err(error @ Error::Exists { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refusal(base.path()).contains("complete cache"));
    fs::write(base.path().join("s/manifest.json"), b"{").unwrap();
    let message = refusal(base.path());
    assert!(message.contains("from_cache_sources"), "{message}");
    assert!(
        message.contains("WriterConfig(on_mismatch=\"rebuild\")"),
        "{message}"
    );
    fs::remove_dir_all(base.path().join("s")).unwrap();
    fs::create_dir(base.path().join("s")).unwrap();
    assert!(refusal(base.path()).contains("an empty folder"));
    assert_eq!(names(base.path()), ["s"]);
}

/// A way to make or damage what stands, and a word of what is said about it.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 7] = [
    ("manifest.json", |cache| {
        fs::write(cache.join("manifest.json"), b"").unwrap()
    }),
    ("manifest.json", |cache| {
        fs::remove_file(cache.join("manifest.json")).unwrap()
    }),
    ("index.bin", |cache| {
        fs::write(cache.join("index.bin"), b"short").unwrap()
    }),
    ("index.bin", |cache| flip(&cache.join("index.bin"), 60)),
    ("metadata.arrow", |cache| {
        fs::remove_file(cache.join("metadata.arrow")).unwrap()
    }),
    ("metadata.arrow", |cache| {
        flip_end(&cache.join("metadata.arrow"))
    }),
    ("shards/000000.bin", |cache| {
        fs::remove_file(cache.join("shards/000000.bin")).unwrap()
    }),
];

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn flip_end(path: &Path) {
    let len = fs::read(path).unwrap().len();
    flip(path, len - 1);
}

#[test]
fn a_damaged_cache_is_a_mismatch_that_only_rebuild_settles() {
    for (file, damage) in DAMAGES {
        let base = standing(Some("f"));
        damage(&base.path().join("s"));
        let before = tree(base.path());
        for policy in [OnMismatch::Error, OnMismatch::Reuse] {
            let message = mismatch(base.path(), with(policy), Some("f"));
            assert!(
                message.contains("damaged") && message.contains(file),
                "{message}"
            );
            assert!(message.contains("rebuild"), "{message}");
        }
        assert!(tree(base.path()) == before, "something changed");
        let written = rebuilt(base.path(), Some("f"));
        assert!(written.reason.contains(file), "{}", written.reason);
    }
}

#[test]
fn a_changed_byte_is_noticed_when_reuse_validates() {
    let base = standing(None);
    let path = base.path().join("s");
    for file in ["shards/000000.bin", "metadata.arrow", "index.bin"] {
        let whole = fs::read(path.join(file)).unwrap();
        flip(&path.join(file), whole.len() / 2);
        let options = WriteOptions {
            validate_cache: true,
            ..create_or_reuse()
        };
        let message = mismatch(base.path(), options.clone(), None);
        assert!(message.contains(file), "{message}");
        fs::write(path.join(file), whole).unwrap();
        reused(base.path(), options, None);
    }
}

#[test]
fn what_is_not_ours_is_never_touched() {
    let makers: [Damage; 8] = [
        ("a file", |path| fs::write(path, b"notes").unwrap()),
        ("an empty folder", |path| fs::create_dir(path).unwrap()),
        ("notes.txt", |path| {
            fs::create_dir(path).unwrap();
            fs::write(path.join("notes.txt"), b"x").unwrap();
        }),
        ("extra", |path| {
            write_small(path.parent().unwrap(), "s", 1).unwrap();
            fs::write(path.join("extra"), b"x").unwrap();
        }),
        ("shards/notes.bin", |path| {
            write_small(path.parent().unwrap(), "s", 1).unwrap();
            fs::write(path.join("shards/notes.bin"), b"x").unwrap();
        }),
        ("like one of a cache", |path| {
            fs::create_dir(path).unwrap();
            fs::write(path.join("manifest.json"), b"{\"name\":\"a web app\"}").unwrap();
        }),
        ("a link to nothing", |path| {
            std::os::unix::fs::symlink("nowhere", path).unwrap();
        }),
        ("manifest.json", |path| {
            write_small(path.parent().unwrap(), "s", 1).unwrap();
            fs::rename(path.join("manifest.json"), path.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink("../s.moved", path.join("manifest.json")).unwrap();
        }),
    ];
    for (what, make) in makers {
        let base = tempfile::tempdir().unwrap();
        make(&base.path().join("s"));
        let before: Vec<_> = names(base.path());
        for options in [
            WriteOptions::default(),
            with(OnMismatch::Rebuild),
            with(OnMismatch::Reuse),
        ] {
            match begun(base.path(), options, Some("f")) {
                Err(error @ Error::Exists { .. }) => {
                    assert!(error.to_string().contains(what), "{error}");
                }
                other => panic!("{what}: {other:?}"),
            }
        }
        assert_eq!(names(base.path()), before);
    }
}

#[test]
fn a_cache_of_a_later_version_is_replaced_by_no_policy() {
    use sha2::{Digest, Sha256};
    let base = standing(None);
    let path = base.path().join("s/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let body = &text[..text.len() - 78];
    let body = body.replacen("\"version\":1,", "\"version\":2,", 1);
    let digest: String = Sha256::digest(body.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    fs::write(&path, format!("{body},\"sha256\":\"{digest}\"}}\n")).unwrap();
    for policy in [OnMismatch::Error, OnMismatch::Rebuild, OnMismatch::Reuse] {
        match begun(base.path(), with(policy), None) {
            Err(Error::Damaged { source, .. }) => assert_eq!(source.code(), "version_unsupported"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_cache_behind_a_link_is_used_but_not_replaced() {
    let base = standing(Some("f"));
    fs::rename(base.path().join("s"), base.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", base.path().join("s")).unwrap();
    reused(base.path(), create_or_reuse(), Some("f"));
    let message = mismatch(base.path(), with(OnMismatch::Rebuild), Some("g"));
    assert!(message.contains("link"), "{message}");
}

#[test]
fn names_that_could_be_one_folder_are_refused() {
    let base = tempfile::tempdir().unwrap();
    write_small(base.path(), "Data", 1).unwrap();
    fs::create_dir(base.path().join("Folder")).unwrap();
    for name in ["data", "DATA"] {
        match session(base.path(), create_or_reuse(), 1).begin(name, None) {
            Err(error @ Error::SourceName { .. }) => {
                assert!(error.to_string().contains("\"Data\""), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    // What is no cache does not stand in the way by its name alone.
    let session = session(base.path(), create_or_reuse(), 1);
    assert!(matches!(session.begin("folder", None), Ok(Begin::Write(_))));
}

#[test]
fn the_second_source_of_a_name_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let session = session(base.path(), create_or_reuse(), 1);
    let first = begin(&session, "\u{e9}t\u{e9}", None);
    for name in ["\u{e9}t\u{e9}", "e\u{301}te\u{301}", "\u{c9}T\u{c9}"] {
        assert!(matches!(
            session.begin(name, None),
            Err(Error::SourceName { .. })
        ));
    }
    first.start(schema()).unwrap();
    feed(&first, 1, 10, &[10]);
    first.finish();
    outcome(&first).unwrap();
}

#[test]
fn a_live_writer_is_waited_for_by_create_or_reuse_alone() {
    let base = tempfile::tempdir().unwrap();
    let mine = session(base.path(), create_or_reuse(), 1);
    let writer = begin(&mine, "S", Some("f"));
    writer.start(schema()).unwrap();
    let other = session(base.path(), create_or_reuse(), 1);
    for _ in 0..3 {
        match other.begin("S", Some("f")).unwrap() {
            Begin::Wait { holder } => {
                assert!(holder.contains(&std::process::id().to_string()), "{holder}");
            }
            other => panic!("{other:?}"),
        }
    }
    // Another cache is free, and write_cache does not wait.
    drop(begin(&other, "T", None));
    let racing = session(base.path(), WriteOptions::default(), 1);
    let loser = begin(&racing, "S", None);
    loser.start(schema()).unwrap();
    feed(&loser, 2, 50, &[20]);
    feed(&writer, 1, 100, &[30]);
    writer.finish();
    outcome(&writer).unwrap();
    match other.begin("S", Some("f")).unwrap() {
        Begin::Reuse(reused) => assert_eq!(reused.samples, 100),
        other => panic!("{other:?}"),
    }
    loser.finish();
    match outcome(&loser) {
        Err(error @ Error::Exists { .. }) => {
            assert!(error.to_string().contains("was not stored"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    read_back(&base.path().join("S")).assert_is(1, 100);
    assert_eq!(names(base.path()), ["S"]);
}

/// Begins while nothing stands, and finds at the end that somebody else was first.
fn lose(
    options: WriteOptions,
    fingerprint: Option<&str>,
) -> (Result<Written, Error>, tempfile::TempDir) {
    let base = tempfile::tempdir().unwrap();
    let session = session(base.path(), options, 1);
    let writer = begin(&session, "s", fingerprint);
    writer.start(schema()).unwrap();
    feed(&writer, 2, 50, &[20]);
    write(
        base.path(),
        WriteOptions::default(),
        1,
        "s",
        None,
        1,
        100,
        &[30],
    )
    .unwrap();
    writer.finish();
    let outcome = outcome(&writer);
    assert_eq!(names(base.path()), ["s"]);
    (outcome, base)
}

#[test]
fn who_is_second_goes_by_the_rules_for_the_winners_cache() {
    let (outcome, base) = lose(create_or_reuse(), None);
    let written = outcome.unwrap();
    assert_eq!((written.status, written.samples), (Status::Reused, 100));
    assert!(written.by_name_only && written.reason.contains("another process"));
    read_back(&base.path().join("s")).assert_is(1, 100);

    let (outcome, base) = lose(with(OnMismatch::Error), Some("f"));
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("was not stored"), "{message}");
    read_back(&base.path().join("s")).assert_is(1, 100);

    let (outcome, base) = lose(with(OnMismatch::Rebuild), Some("f"));
    assert_eq!(outcome.unwrap().status, Status::Rebuilt);
    read_back(&base.path().join("s")).assert_is(2, 50);
}

#[test]
fn a_rebuild_replaces_only_what_it_was_decided_about() {
    let base = standing(Some("old"));
    let session = session(base.path(), with(OnMismatch::Rebuild), 1);
    let writer = begin(&session, "s", Some("new"));
    writer.start(schema()).unwrap();
    feed(&writer, 2, 50, &[20]);
    // Meanwhile somebody else stores what we were about to.
    fs::remove_dir_all(base.path().join("s")).unwrap();
    write(
        base.path(),
        WriteOptions::default(),
        1,
        "s",
        Some("new"),
        3,
        70,
        &[30],
    )
    .unwrap();
    writer.finish();
    assert_eq!(outcome(&writer).unwrap().status, Status::Reused);
    read_back(&base.path().join("s")).assert_is(3, 70);
    assert_eq!(names(base.path()), ["s"]);
}

#[test]
fn writers_at_once_leave_one_whole_cache() {
    for (options, same) in [(create_or_reuse(), true), (WriteOptions::default(), false)] {
        for _ in 0..10 {
            let base = tempfile::tempdir().unwrap();
            let barrier = Arc::new(Barrier::new(4));
            let threads: Vec<_> = (0..4_u64)
                .map(|salt| {
                    let (path, options) = (base.path().to_path_buf(), options.clone());
                    let barrier = barrier.clone();
                    std::thread::spawn(move || {
                        barrier.wait();
                        race(&path, options, salt)
                    })
                })
                .collect();
            let results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            let winners: Vec<u64> = (0..4)
                .zip(&results)
                .filter(|(_, result)| matches!(result, Ok(true)))
                .map(|(salt, _)| salt)
                .collect();
            assert_eq!(winners.len(), 1, "{results:?}");
            assert!(
                results
                    .iter()
                    .all(|result| result.is_ok() == same || *result == Ok(true))
            );
            read_back(&base.path().join("s")).assert_is(winners[0], 60);
            assert_eq!(names(base.path()), ["s"]);
        }
    }
}

/// Whether this writer's data was stored.
fn race(base: &Path, options: WriteOptions, salt: u64) -> Result<bool, String> {
    let session = session(base, options, 1);
    loop {
        match session
            .begin("s", None)
            .map_err(|error| error.to_string())?
        {
            Begin::Reuse(_) => return Ok(false),
            Begin::Wait { .. } => std::thread::sleep(Duration::from_millis(1)),
            Begin::Write(writer) => {
                writer.start(schema()).unwrap();
                feed(&writer, salt, 60, &[7]);
                writer.finish();
                let written = outcome(&writer).map_err(|error| error.to_string())?;
                return Ok(written.status == Status::Written);
            }
        }
    }
}
