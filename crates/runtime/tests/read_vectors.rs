//! The vectors of the specification, read as caches of a dataset: valid ones give what they should, invalid ones their
//! code when they are checked whole, and right data or an error when they are only read.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dataset_rt_format::Value;
use dataset_rt_runtime::{
    Block, BlockSizing, CacheOptions, Cancel, Dataset, Error, Poll, Pool, ReaderOptions,
    VecBuffers, verify,
};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// `spec/vectors`, or another copy of it that the environment names.
fn vectors() -> PathBuf {
    std::env::var_os("DATASET_RT_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors"),
        PathBuf::from,
    )
}

fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The folders of all listed caches of a kind.
fn listed(kind: &str) -> Vec<PathBuf> {
    let list = json(&vectors().join("index.json"));
    let vectors_of = list["vectors"].as_array().unwrap().iter();
    let paths: Vec<PathBuf> = vectors_of
        .filter(|vector| vector["kind"] == kind)
        .map(|vector| vectors().join(vector["path"].as_str().unwrap()))
        .collect();
    assert!(paths.len() > 10);
    paths
}

fn options(use_mmap: bool) -> ReaderOptions {
    ReaderOptions {
        use_mmap,
        shuffle: false,
        ..ReaderOptions::new(0)
    }
}

fn open(pool: &Pool, path: &Path, use_mmap: bool) -> Result<Dataset, Error> {
    let paths = vec![path.join("cache")];
    Dataset::open(pool.clone(), paths, options(use_mmap), &Cancel::new())
}

fn read(dataset: &Dataset) -> Vec<Block<VecBuffers>> {
    let window = dataset.take_window().unwrap();
    let mut stream = dataset.blocks(window, BlockSizing::Exact(1000));
    let mut blocks = Vec::new();
    loop {
        let mut allocate = |lengths: &[u32]| Ok::<_, Error>(VecBuffers::allocate(lengths));
        match stream.poll(&mut allocate).unwrap() {
            Poll::Ready(block) => blocks.push(block),
            Poll::Pending(waiter) => waiter.wait(Duration::from_secs(1)),
            Poll::Done => return blocks,
        }
    }
}

#[test]
fn valid_caches_read_back() {
    let pool = Pool::new(1).unwrap();
    for path in listed("valid") {
        let expected = json(&path.join("expected.json"));
        for use_mmap in [true, false] {
            let cache_options = CacheOptions {
                use_mmap,
                follow_links: false,
            };
            verify(&path.join("cache"), cache_options, &Cancel::new()).unwrap();
            let dataset = open(&pool, &path, use_mmap).unwrap();
            let mut all = Sha256::new();
            for block in read(&dataset) {
                assert!(block.errors.is_empty());
                for payload in &block.buffers.0 {
                    all.update((payload.len() as u64).to_le_bytes());
                    all.update(payload);
                }
            }
            let digest: String = all
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(
                expected["payloads_sha256"]["value"],
                digest.as_str(),
                "{path:?}"
            );
            let cache = &dataset.caches()[0];
            for row in expected["rows"].as_array().unwrap() {
                let sample = row["index"]["value"].as_str().unwrap().parse().unwrap();
                for (field, expected) in row["values"].as_array().unwrap().iter().enumerate() {
                    let (tag, text) = match cache.value(field, sample).unwrap() {
                        Value::Null => ("null", String::new()),
                        Value::Bool(value) => ("bool", value.to_string()),
                        Value::Int64(value) => ("int64", value.to_string()),
                        Value::Float64(value) => ("float64", format!("{:016x}", value.to_bits())),
                        Value::Utf8(value) => ("utf8", value.to_owned()),
                    };
                    assert_eq!(expected["type"], tag, "{path:?} row {sample} field {field}");
                    assert_eq!(expected["value"], text.as_str(), "{path:?} row {sample}");
                }
            }
            let exported = dataset.export().unwrap();
            let rows: usize = exported.iter().map(|batch| batch.num_rows()).sum();
            assert_eq!(rows as u64, cache.samples());
        }
    }
}

#[test]
fn invalid_caches_are_refused_by_code_and_read_without_harm() {
    let pool = Pool::new(1).unwrap();
    let mut wrong = Vec::new();
    for path in listed("invalid") {
        let expected = json(&path.join("expected.json"));
        let code = expected["code"].as_str().unwrap();
        // Whoever gathers texts meets what is wrong with them, but for those under a null.
        let wrong_text = ["A11", "A12"].contains(&expected["check"].as_str().unwrap())
            && !path.ends_with("metadata-offsets-of-null");
        for use_mmap in [true, false] {
            let cache_options = CacheOptions {
                use_mmap,
                follow_links: false,
            };
            match verify(&path.join("cache"), cache_options, &Cancel::new()) {
                Err(Error::Damaged { source, .. }) if source.code() == code => {}
                found => wrong.push(format!("{path:?}: {code}, found {found:?}")),
            }
            // Nothing but typed errors comes of reading what can be opened.
            match open(&pool, &path, use_mmap) {
                Err(Error::Damaged { .. }) => {}
                Err(error) => wrong.push(format!("{path:?}: {error:?}")),
                Ok(dataset) => {
                    for block in read(&dataset) {
                        for (_, error) in block.errors {
                            assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
                        }
                    }
                    let cache = &dataset.caches()[0];
                    for sample in 0..cache.samples().min(1000) {
                        for field in 0..cache.fields().len() {
                            let value = cache.value(field, sample);
                            assert!(matches!(value, Ok(_) | Err(Error::Damaged { .. })));
                        }
                    }
                    // Metadata is gathered in one way for runs of samples and in another for single ones.
                    let mut samples: Vec<_> = (0..cache.samples().min(1000))
                        .map(|sample| dataset.sample(0, sample).unwrap())
                        .collect();
                    for _ in 0..2 {
                        match dataset.export_samples(&samples) {
                            Err(Error::Damaged { source, .. }) if source.code() == code => {}
                            Ok(_) if !wrong_text => {}
                            found => wrong.push(format!("{path:?}: {code}, gathered {found:?}")),
                        }
                        samples.reverse();
                    }
                    let exported = dataset.export();
                    assert!(matches!(exported, Ok(_) | Err(Error::Damaged { .. })));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
