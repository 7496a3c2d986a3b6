//! Written caches, read back by the rules of the format.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use dataset_rt_format::{
    Columns, ContentHasher, Field, FieldType, Manifest, Schema, Value, crc32c,
};
use dataset_rt_runtime::{
    Begin, CacheOptions, Cancel, Error, InputBlock, PayloadList, Pool, RECORD_ALIGNMENT, Stage,
    Status, WriteOptions, WriteSession, verify,
};

#[path = "write_support/mod.rs"]
mod support;

use support::*;

#[test]
fn a_source_comes_back_whole() {
    let base = tempfile::tempdir().unwrap();
    let written = write_small(base.path(), "s", 1).unwrap();
    assert_eq!((written.status, written.samples), (Status::Written, 100));
    assert_eq!(written.path, base.path().join("s"));
    assert!(!written.reason.is_empty());
    let read = read_back(&written.path);
    read.assert_is(1, 100);
    assert_eq!(read.manifest.source.name, "s");
    assert_eq!(read.manifest.source.fingerprint, None);
    assert_eq!(read.manifest.created, written.created);
    assert_eq!(read.manifest.writer, "dataset_rt 0.1.0");
    assert_eq!(read.manifest.payload_bytes, written.payload_bytes);
    assert_eq!(names(base.path()), ["s"], "tmp is gone");
}

#[test]
fn lz4_stores_less_and_gives_the_same_back() {
    let base = tempfile::tempdir().unwrap();
    let raw = write_small(base.path(), "raw", 1).unwrap();
    let packed = write(base.path(), lz4(), 2, "lz4", Some("f"), 1, 100, &[7]).unwrap();
    assert!(packed.stored_bytes < raw.stored_bytes);
    assert_eq!(raw.stored_bytes, raw.payload_bytes);
    let (raw, packed) = (read_back(&raw.path), read_back(&packed.path));
    packed.assert_is(1, 100);
    assert_eq!(packed.manifest.source.fingerprint.as_deref(), Some("f"));
    assert_eq!(raw.manifest.identity, packed.manifest.identity);
}

/// Payloads that come laid out for the file.
struct Laid(Vec<Vec<u8>>, Option<Vec<u8>>);

impl Laid {
    fn new(payloads: Vec<Vec<u8>>, extra: usize) -> Self {
        let mut laid = Vec::new();
        for payload in &payloads {
            laid.extend_from_slice(payload);
            laid.resize(laid.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        }
        laid.resize(laid.len() + extra, 0);
        Self(payloads, Some(laid))
    }
}

impl PayloadList for Laid {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> &[u8] {
        self.0.as_slice().get(index).map_or(&[], Vec::as_slice)
    }

    fn take_laid(&mut self) -> Option<Vec<u8>> {
        self.1.take()
    }
}

#[test]
fn laid_out_payloads_make_the_same_files() {
    let base = tempfile::tempdir().unwrap();
    for (name, options) in [("raw", WriteOptions::default()), ("lz4", lz4())] {
        let options = WriteOptions {
            max_shard_bytes: 10_000,
            ..options
        };
        let plain = write(base.path(), options.clone(), 2, name, None, 1, 300, &[70]).unwrap();
        let session = session(base.path(), options, 2);
        let writer = begin(&session, &format!("{name}-laid"), None);
        writer.start(schema()).unwrap();
        for start in (0..300).step_by(50) {
            let columns = block(1, start, start + 50).columns;
            let payloads = (start..start + 50).map(|i| payload(1, i)).collect();
            let payloads = Box::new(Laid::new(payloads, 0));
            writer.submit(InputBlock { payloads, columns }).unwrap();
        }
        writer.finish();
        let laid = outcome(&writer).unwrap();
        read_back(&laid.path).assert_is(1, 300);
        let files = |path| {
            let mut files = tree(path);
            files.retain(|(name, _)| name != Path::new("manifest.json"));
            files
        };
        assert!(files(&plain.path) == files(&laid.path), "{name}");
    }
}

#[test]
fn a_layout_that_is_none_is_an_error() {
    let base = tempfile::tempdir().unwrap();
    let session = session(base.path(), WriteOptions::default(), 1);
    let writer = begin(&session, "s", None);
    writer.start(schema()).unwrap();
    let columns = block(1, 0, 3).columns;
    let payloads = Box::new(Laid::new((0..3).map(|i| payload(1, i)).collect(), 8));
    writer.submit(InputBlock { payloads, columns }).unwrap();
    writer.finish();
    assert!(matches!(outcome(&writer), Err(Error::Internal(_))));
}

/// The identity goes by blocks of 65,536 rows and the file by batches of 16 MiB of text.
#[test]
fn long_texts_over_many_batches() {
    let base = tempfile::tempdir().unwrap();
    let fields = ["a", "b"].map(|name| Field::new(name, FieldType::Utf8));
    let schema = Schema::new(fields.to_vec()).unwrap();
    let session = session(base.path(), WriteOptions::default(), 2);
    let writer = begin(&session, "s", None);
    writer.start(schema.clone()).unwrap();
    let rows = 65_536 + 5_000;
    let mut expected = ContentHasher::new(&schema);
    for start in (0..rows).step_by(1_000) {
        let mut columns = Columns::new(&schema);
        let end = rows.min(start + 1_000);
        for row in start..end {
            let long = format!("{row}").repeat(row % 200);
            let values = [Value::Utf8(&long), Value::Utf8("short")];
            columns.push_row(&values).unwrap();
        }
        let records = vec![(1, crc32c(b"p")); end - start];
        expected.push(&records, &columns).unwrap();
        while !writer.wait_for_room(Duration::from_secs(1)) {}
        let payloads = Box::new(vec![b"p".to_vec(); end - start]);
        writer.submit(InputBlock { payloads, columns }).unwrap();
    }
    writer.finish();
    let written = outcome(&writer).unwrap();
    let manifest = fs::read(written.path.join("manifest.json")).unwrap();
    let manifest = Manifest::parse(&manifest).unwrap();
    assert!(manifest.metadata.size > 32 << 20, "several batches");
    assert_eq!(manifest.identity, expected.finish());
    let options = CacheOptions {
        use_mmap: true,
        follow_links: false,
    };
    verify(&written.path, options, &Cancel::new()).unwrap();
}

#[test]
fn bytes_depend_neither_on_workers_nor_on_blocks() {
    let base = tempfile::tempdir().unwrap();
    // More rows than one batch and one identity block hold.
    let samples = 70_000;
    for codec in [WriteOptions::default(), lz4()] {
        let options = WriteOptions {
            max_shard_bytes: 1_000_000,
            ..codec
        };
        let mut first: Option<Vec<_>> = None;
        for (workers, cuts) in [
            (1, &[512][..]),
            (2, &[1, 511, 3]),
            (4, &[4096, 17]),
            (2, &[70_000]),
            (4, &[100]),
        ] {
            let name = format!("{}-{workers}-{}", options.codec.name(), cuts[0]);
            let written = write(
                base.path(),
                options.clone(),
                workers,
                &name,
                None,
                5,
                samples,
                cuts,
            )
            .unwrap();
            let read = read_back(&written.path);
            assert!(read.manifest.shards.len() > 5);
            read.assert_is(5, samples);
            let mut files = tree(&written.path);
            files.retain(|(name, _)| name != Path::new("manifest.json"));
            match &first {
                None => first = Some(files),
                Some(first) => assert!(*first == files, "{name} differs"),
            }
            fs::remove_dir_all(written.path).unwrap();
        }
    }
}

#[test]
fn a_shard_ends_before_the_record_that_would_make_it_too_long() {
    let base = tempfile::tempdir().unwrap();
    for (max, name) in [(1, "one"), (500, "some"), (64 << 20, "all")] {
        let options = WriteOptions {
            max_shard_bytes: max,
            ..lz4()
        };
        let written = write(base.path(), options, 2, name, None, 3, 400, &[64]).unwrap();
        let read = read_back(&written.path);
        read.assert_is(3, 400);
        let shards = &read.manifest.shards;
        assert!(
            shards
                .iter()
                .all(|shard| shard.size <= max || shard.samples == 1)
        );
        match max {
            1 => assert_eq!(shards.len(), 400),
            500 => assert!(shards.len() > 10 && shards.iter().any(|shard| shard.samples > 1)),
            _ => assert_eq!(shards.len(), 1),
        }
    }
}

#[test]
fn long_payloads_are_written_from_where_they_lie() {
    let base = tempfile::tempdir().unwrap();
    let payloads: Vec<Vec<u8>> = (0..5_usize)
        .map(|i| vec![i as u8 + 1; 200_000 + i * 13])
        .collect();
    let mut identity = None;
    for options in [
        WriteOptions {
            max_shard_bytes: 500_000,
            ..WriteOptions::default()
        },
        lz4(),
    ] {
        let session = session(base.path(), options.clone(), 2);
        let writer = begin(&session, options.codec.name(), None);
        writer.start(Schema::default()).unwrap();
        for part in payloads.chunks(3) {
            let columns = Columns::from_columns(&Schema::default(), part.len(), vec![]).unwrap();
            writer
                .submit(InputBlock {
                    payloads: Box::new(part.to_vec()),
                    columns,
                })
                .unwrap();
        }
        writer.finish();
        let read = read_back(&outcome(&writer).unwrap().path);
        assert_eq!(read.payloads, payloads);
        assert_eq!(
            *identity.get_or_insert(read.manifest.identity),
            read.manifest.identity
        );
    }
}

#[test]
fn metadata_batches_are_bounded_by_text() {
    let base = tempfile::tempdir().unwrap();
    let schema = Schema::new(vec![Field::new("t", FieldType::Utf8)]).unwrap();
    let session = session(base.path(), WriteOptions::default(), 2);
    let writer = begin(&session, "s", None);
    writer.start(schema.clone()).unwrap();
    let text = "x".repeat(5 << 20);
    for _ in 0..8 {
        let mut columns = Columns::new(&schema);
        columns
            .push_row(&[dataset_rt_format::Value::Utf8(&text)])
            .unwrap();
        while !writer.wait_for_room(Duration::from_secs(1)) {}
        writer
            .submit(InputBlock {
                payloads: Box::new(vec![vec![1]]),
                columns,
            })
            .unwrap();
    }
    writer.finish();
    let written = outcome(&writer).unwrap();
    let bytes = fs::read(written.path.join("metadata.arrow")).unwrap();
    let mut read = |offset: u64, len: u64| -> Result<_, dataset_rt_format::FormatError> {
        Ok(std::borrow::Cow::Borrowed(
            &bytes[offset as usize..(offset + len) as usize],
        ))
    };
    let layout =
        dataset_rt_format::MetadataLayout::parse(bytes.len() as u64, &schema, 8, &mut read)
            .unwrap();
    let rows: Vec<u64> = layout.batches().iter().map(|batch| batch.rows).collect();
    assert_eq!(rows, [3, 3, 2]);
}

#[test]
fn several_sources_at_once_share_the_room() {
    let base = tempfile::tempdir().unwrap();
    let options = WriteOptions {
        prefetch_size: 2,
        profile: true,
        ..WriteOptions::default()
    };
    let session = session(base.path(), options, 1);
    let writers: Vec<_> = (0..4)
        .map(|i| {
            let writer = begin(&session, &format!("s{i}"), None);
            writer.start(schema()).unwrap();
            feed(&writer, i, 300, &[10]);
            writer.finish();
            writer
        })
        .collect();
    for (i, writer) in (0..).zip(&writers) {
        read_back(&outcome(writer).unwrap().path).assert_is(i, 300);
        assert!(
            writer.wait(Duration::ZERO).is_none(),
            "an outcome is told once"
        );
    }
    let progress = session.progress();
    assert_eq!((progress.samples, progress.committed), (1200, 4));
    let json = session.profile_json().unwrap();
    let profile: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(profile["samples"], 1200);
    assert_eq!(profile["sources"][3]["outcome"], "written");
    for stage in Stage::ALL {
        let row = &profile["stages"][stage.name()];
        assert!(
            row["seconds"].is_f64() && row["count"].is_u64(),
            "{stage:?}"
        );
    }
    for stage in [
        "metadata", "compress", "checksum", "write", "sync", "finish", "publish",
    ] {
        assert!(
            profile["stages"][stage]["count"].as_u64().unwrap() >= 4,
            "{stage}"
        );
    }
}

#[test]
fn a_source_without_samples_is_an_error_and_leaves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().join("not/there/yet");
    let session = session(&base, WriteOptions::default(), 2);
    for (name, started) in [("a", false), ("b", true)] {
        let writer = begin(&session, name, None);
        if started {
            writer.start(schema()).unwrap();
        }
        writer.finish();
        let refused = outcome(&writer).unwrap_err();
        assert!(matches!(refused, Error::EmptySource { .. }));
        assert!(
            refused
                .to_string()
                .contains("cache source yielded no samples"),
            "{refused}"
        );
    }
    assert_eq!(names(&base), [""; 0]);
    read_back(&write_small(&base, "a", 1).unwrap().path).assert_is(1, 100);
}

#[test]
fn giving_up_leaves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let options = WriteOptions {
        profile: true,
        ..WriteOptions::default()
    };
    let session = session(base.path(), options, 2);
    for blocks in [0, 1, 20] {
        let writer = begin(&session, &format!("s{blocks}"), None);
        writer.start(schema()).unwrap();
        feed(&writer, 1, blocks * 50, &[50]);
        writer.abort("the source raised ValueError");
        assert!(writer.failed());
        writer.submit(block(1, 0, 10)).unwrap();
        assert!(matches!(outcome(&writer), Err(Error::Interrupted)));
        assert_eq!(names(base.path()), [""; 0]);
    }
    let dropped = begin(&session, "dropped", None);
    dropped.start(schema()).unwrap();
    feed(&dropped, 1, 500, &[50]);
    drop(dropped);
    wait_until(|| names(base.path()).is_empty());
    let json = session.profile_json().unwrap();
    assert!(
        json.contains("the source raised ValueError") && json.contains("aborted"),
        "{json}"
    );
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_interrupt_stops_everything_and_leaves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let cancel = Cancel::new();
    let options = WriteOptions {
        prefetch_size: 1000,
        profile: true,
        ..lz4()
    };
    let session = WriteSession::new(
        Pool::new(1).unwrap(),
        base.path().to_path_buf(),
        options,
        cancel.clone(),
    )
    .unwrap();
    let writer = begin(&session, "s", None);
    writer.start(schema()).unwrap();
    feed(&writer, 1, 20_000, &[100]);
    cancel.cancel();
    assert!(writer.failed());
    let started = std::time::Instant::now();
    writer.finish();
    assert!(matches!(outcome(&writer), Err(Error::Interrupted)));
    assert!(started.elapsed() < Duration::from_secs(1));
    assert!(matches!(session.begin("t", None), Err(Error::Interrupted)));
    assert_eq!(names(base.path()), [""; 0]);
    assert!(
        session
            .profile_json()
            .unwrap()
            .contains("\"interrupted\": true")
    );
}

#[test]
fn a_failing_source_leaves_the_others_whole() {
    let base = tempfile::tempdir().unwrap();
    let session = session(base.path(), WriteOptions::default(), 2);
    let good = begin(&session, "good", None);
    let bad = begin(&session, "bad", None);
    for writer in [&good, &bad] {
        writer.start(schema()).unwrap();
        feed(writer, 1, 200, &[50]);
    }
    bad.abort("no more");
    good.finish();
    assert!(outcome(&bad).is_err());
    read_back(&outcome(&good).unwrap().path).assert_is(1, 200);
    assert_eq!(names(base.path()), ["good"]);
}

#[test]
fn blocks_of_other_fields_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let session = session(base.path(), WriteOptions::default(), 1);
    let writer = begin(&session, "s", None);
    assert!(writer.submit(block(1, 0, 1)).is_err(), "not started");
    writer.start(Schema::default()).unwrap();
    assert!(writer.start(schema()).is_err(), "started twice");
    assert!(writer.submit(block(1, 0, 1)).is_err(), "other fields");
    let columns = Columns::from_columns(&Schema::default(), 2, vec![]).unwrap();
    let payloads = Box::new(vec![vec![1_u8]]);
    assert!(
        writer.submit(InputBlock { payloads, columns }).is_err(),
        "one payload, two rows"
    );
}

#[test]
fn options_out_of_range_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let open = |base: &Path, options| {
        WriteSession::new(
            Pool::new(1).unwrap(),
            base.to_path_buf(),
            options,
            Cancel::new(),
        )
    };
    let default = WriteOptions::default;
    assert!(
        open(
            base.path(),
            WriteOptions {
                prefetch_size: 0,
                ..default()
            }
        )
        .is_err()
    );
    assert!(
        open(
            base.path(),
            WriteOptions {
                max_shard_bytes: 0,
                ..default()
            }
        )
        .is_err()
    );
    assert!(
        open(
            base.path(),
            WriteOptions {
                max_shard_bytes: 1 << 40,
                ..default()
            }
        )
        .is_err()
    );
    fs::write(base.path().join("file"), b"").unwrap();
    let refused = open(&base.path().join("file"), default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("file"), "{refused}");
}

#[test]
fn odd_base_directories_are_taken_literally() {
    let base = tempfile::tempdir().unwrap();
    for name in [
        "[brackets]",
        "a*b",
        "with space",
        "#%20",
        "~",
        ".dot",
        "trailing/",
    ] {
        let odd = base.path().join(name);
        read_back(&write_small(&odd, "s", 1).unwrap().path).assert_is(1, 100);
        assert_eq!(names(&odd), ["s"]);
    }
    assert!(matches!(
        session(base.path(), create_or_reuse(), 1).begin("../s", None),
        Err(Error::SourceName { .. })
    ));
    let session = session(&base.path().join(".dot"), create_or_reuse(), 1);
    assert!(matches!(session.begin("s", None), Ok(Begin::Reuse(_))));
}
