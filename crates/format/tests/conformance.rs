//! Runs every vector of the specification that is about the format: valid and invalid caches, unit cases.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod common;
mod units;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::at;
use dataset_rt_format::{
    CacheFiles, FormatError, INDEX_FILE, IndexView, METADATA_FILE, Manifest, MetadataLayout, Value,
    shard_path, verify,
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
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// Path, kind and expectation of each listed vector.
fn listed() -> Vec<(PathBuf, String, String)> {
    let root = vectors();
    let list = json(&root.join("index.json"));
    let text = |vector: &Json, member: &str| vector[member].as_str().unwrap().to_owned();
    let vectors = list["vectors"].as_array().unwrap().iter();
    vectors
        .map(|vector| {
            (
                root.join(text(vector, "path")),
                text(vector, "kind"),
                text(vector, "expected"),
            )
        })
        .collect()
}

struct Directory(PathBuf);

impl CacheFiles for Directory {
    type Bytes = Vec<u8>;
    type Error = FormatError;

    fn size(&self, path: &str) -> Result<Option<u64>, FormatError> {
        let file = fs::symlink_metadata(self.0.join(path))
            .ok()
            .filter(fs::Metadata::is_file);
        Ok(file.map(|file| file.len()))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, FormatError> {
        Ok(fs::read(self.0.join(path)).unwrap())
    }

    fn refuse(&self, _path: &str, error: FormatError) -> FormatError {
        error
    }
}

#[test]
fn the_list_is_closed() {
    let listed: BTreeSet<PathBuf> = listed().into_iter().map(|(path, ..)| path).collect();
    let mut found = BTreeSet::new();
    for kind in ["valid", "invalid", "units"] {
        for entry in fs::read_dir(vectors().join("v1").join(kind)).unwrap() {
            found.insert(entry.unwrap().path());
        }
    }
    assert_eq!(listed, found);
    assert!(listed.len() > 300);
}

#[test]
fn invalid_caches_are_refused_by_code() {
    let mut wrong = Vec::new();
    for (path, kind, expected) in listed() {
        if kind != "invalid" {
            continue;
        }
        let code = json(&path.join("expected.json"))["code"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(code, expected, "{path:?}");
        match verify(&Directory(path.join("cache"))) {
            Err(error) if error.code() == code => {}
            Err(error) => wrong.push(format!("{path:?}: {code}, found {}: {error}", error.code())),
            Ok(_) => wrong.push(format!("{path:?}: {code}, found nothing")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn valid_caches_read_back() {
    let mut count = 0;
    for (path, kind, _) in listed() {
        if kind == "valid" {
            check_valid(&path);
            count += 1;
        }
    }
    assert!(count > 15);
}

fn check_valid(path: &Path) {
    let files = Directory(path.join("cache"));
    let manifest = verify(&files).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let expected = json(&path.join("expected.json"));
    assert_eq!(
        units::bytes(&expected["identity"]),
        manifest.identity,
        "{path:?}"
    );
    assert_eq!(
        units::number(&expected["samples"]),
        manifest.samples,
        "{path:?}"
    );
    let fields = expected["fields"].as_array().unwrap();
    assert_eq!(fields.len(), manifest.schema.len());
    for (expected, field) in fields.iter().zip(manifest.schema.fields()) {
        assert_eq!(units::text(&expected["name"]), field.name);
        assert_eq!(units::text(&expected["type"]), field.field_type.name());
        assert_eq!(
            units::text(&expected["nullable"]),
            field.nullable.to_string()
        );
    }
    check_rows(path, &files, &manifest, &expected);
}

fn check_rows(path: &Path, files: &Directory, manifest: &Manifest, expected: &Json) {
    let index_bytes = files.read(INDEX_FILE).unwrap();
    let index = IndexView::verify(&index_bytes, manifest).unwrap();
    let metadata = files.read(METADATA_FILE).unwrap();
    let layout =
        MetadataLayout::parse_bytes(&metadata, &manifest.schema, manifest.samples).unwrap();
    let shards: Vec<Vec<u8>> = manifest
        .shards
        .iter()
        .map(|s| files.read(&shard_path(&s.name)).unwrap())
        .collect();
    let payload = |sample| {
        let (entry, raw_len) = index.get(sample).unwrap();
        let shard = &shards[usize::try_from(entry.shard).unwrap()];
        let stored = &shard[at(entry.offset)..][..at(u64::from(entry.stored_len))];
        let mut raw = vec![0; at(u64::from(raw_len))];
        manifest.codec.decode(stored, &mut raw).unwrap();
        raw
    };
    let mut all = Sha256::new();
    for sample in 0..manifest.samples {
        let payload = payload(sample);
        all.update((payload.len() as u64).to_le_bytes());
        all.update(payload);
    }
    let digest = all.finalize();
    assert_eq!(
        units::bytes(&expected["payloads_sha256"]),
        digest.as_slice(),
        "{path:?}"
    );

    let rows = expected["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let sample = units::number(&row["index"]);
        units::assert_payload(&row["payload"], &payload(sample));
        let (batch, in_batch) = layout.locate(sample).unwrap();
        let values = row["values"].as_array().unwrap();
        assert_eq!(values.len(), manifest.schema.len());
        for (field, expected) in values.iter().enumerate() {
            let found = layout
                .column(&metadata, batch, field)
                .unwrap()
                .value(in_batch)
                .unwrap();
            assert_eq!(
                tagged(&found),
                tag_of(expected),
                "{path:?} row {sample} field {field}"
            );
        }
    }
}

fn tag_of(value: &Json) -> (String, String) {
    (
        value["type"].as_str().unwrap().to_owned(),
        units::text(value),
    )
}

/// A value in the notation of the vectors.
fn tagged(value: &Value<'_>) -> (String, String) {
    let (tag, text) = match value {
        Value::Null => ("null", String::new()),
        Value::Bool(value) => ("bool", value.to_string()),
        Value::Int64(value) => ("int64", value.to_string()),
        Value::Float64(value) => ("float64", format!("{:016x}", value.to_bits())),
        Value::Utf8(value) => ("utf8", (*value).to_owned()),
    };
    (tag.to_owned(), text)
}

#[test]
fn unit_cases() {
    let mut ran = 0;
    for (path, kind, _) in listed() {
        if kind != "unit" {
            continue;
        }
        let unit = json(&path);
        let sections = unit["sections"].as_array().unwrap();
        let about_format = sections
            .iter()
            .any(|section| section.as_str().unwrap().starts_with("format"));
        if !about_format {
            // The sampling vectors are run where the sampler is.
            continue;
        }
        let cases = unit["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        for (number, case) in cases.iter().enumerate() {
            let id = unit["id"].as_str().unwrap();
            let at = format!("{id}, case {number}");
            units::run(id, &at, &case["in"], &case["out"], &vectors());
        }
        ran += 1;
    }
    assert!(ran >= 10, "{ran}");
}
