//! Every truncation and every changed byte of a small cache is an error, or the right data; never a panic.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod common;

use common::{Files, Packing, write};
use dataset_rt_format::{
    Codec, Columns, ERROR_CODES, Field, FieldType, INDEX_FILE, MANIFEST_FILE, METADATA_FILE,
    MetadataLayout, Schema, Value, verify,
};

fn small(codec: Codec) -> Files {
    let fields = FieldType::ALL.map(|t| Field::new(t.name(), t)).to_vec();
    let schema = Schema::new(fields).unwrap();
    let mut columns = Columns::new(&schema);
    let mut payloads = Vec::new();
    for i in 0..9_i64 {
        let text = "añ".repeat(usize::try_from(i % 3).unwrap());
        let number = Value::Float64(1.5);
        let row = [
            Value::Bool(i % 2 == 0),
            Value::Int64(i),
            number,
            Value::Utf8(&text),
        ];
        columns.push_row(&row).unwrap();
        payloads.push(vec![
            u8::try_from(i).unwrap();
            usize::try_from(i * 7).unwrap()
        ]);
    }
    let packing = Packing {
        codec,
        align: 3,
        max_shard_bytes: 300,
    };
    let files = write(&schema, packing, &payloads, &[columns]);
    verify(&files).unwrap();
    files
}

/// Codes that damage of one file, with its size unchanged, may have.
fn expected(path: &str) -> &'static [&'static str] {
    match path {
        MANIFEST_FILE => &["manifest_damaged"],
        INDEX_FILE => &["index_damaged", "checksum_mismatch"],
        METADATA_FILE => &["metadata_damaged"],
        _ => &[
            "shard_damaged",
            "shard_mismatch",
            "record_damaged",
            "checksum_mismatch",
        ],
    }
}

#[test]
fn every_changed_byte_is_seen() {
    for codec in [Codec::None, Codec::Lz4] {
        let files = small(codec);
        assert!(files.0.len() >= 5);
        for (path, bytes) in &files.0 {
            for at in 0..bytes.len() {
                for change in [0x01, 0x80, 0xFF] {
                    let mut bad = files.clone();
                    bad.0.get_mut(path).unwrap()[at] ^= change;
                    let error = verify(&bad).unwrap_err();
                    let code = error.code();
                    assert!(
                        expected(path).contains(&code),
                        "{path} at {at}: {code} {error}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_truncation_is_seen() {
    let files = small(Codec::Lz4);
    for (path, bytes) in &files.0 {
        for len in 0..bytes.len() {
            let mut bad = files.clone();
            bad.0.get_mut(path).unwrap().truncate(len);
            let code = verify(&bad).unwrap_err().code();
            let right = if path == MANIFEST_FILE {
                "manifest_damaged"
            } else {
                "file_size"
            };
            assert_eq!(code, right, "{path} cut to {len}");
        }
        let mut bad = files.clone();
        bad.0.remove(path);
        assert_eq!(verify(&bad).unwrap_err().code(), "file_missing");
    }
}

/// Without the checksums in front, the parser of metadata stands alone against any change.
#[test]
fn metadata_without_checksums_never_panics() {
    let files = small(Codec::None);
    let manifest = dataset_rt_format::Manifest::parse(&files.0[MANIFEST_FILE]).unwrap();
    let file = &files.0[METADATA_FILE];
    let read_all = |bytes: &[u8]| {
        let layout = MetadataLayout::parse_bytes(bytes, &manifest.schema, manifest.samples)?;
        layout.check_values(bytes)?;
        for row in 0..manifest.samples {
            let (batch, in_batch) = layout.locate(row).unwrap();
            for field in 0..manifest.schema.len() {
                layout.column(bytes, batch, field)?.value(in_batch)?;
            }
        }
        Ok::<(), dataset_rt_format::FormatError>(())
    };
    let mut refused = 0;
    for at in 0..file.len() {
        for byte in [
            0x00,
            0x01,
            0x7F,
            0x80,
            0xFF,
            file[at].wrapping_add(1),
            file[at] ^ 4,
        ] {
            let mut bad = file.clone();
            bad[at] = byte;
            if let Err(error) = read_all(&bad) {
                assert_eq!(error.code(), "metadata_invalid");
                refused += 1;
            }
        }
    }
    assert!(refused > 500, "{refused} changes were refused");
    for len in 0..file.len() {
        assert!(read_all(&file[..len]).is_err(), "{len}");
    }
}

#[test]
fn swapped_files_are_seen() {
    let files = small(Codec::None);
    let shards: Vec<&String> = files
        .0
        .keys()
        .filter(|path| path.starts_with("shards/"))
        .collect();
    assert!(shards.len() >= 2);
    for a in &shards {
        for b in &shards {
            if a == b {
                continue;
            }
            let mut bad = files.clone();
            let other = files.0[*b].clone();
            bad.0.insert((*a).clone(), other);
            let code = verify(&bad).unwrap_err().code();
            assert!(["file_size", "shard_mismatch"].contains(&code), "{code}");
        }
    }
}

#[test]
fn codes_are_listed() {
    for path in [
        "manifest.json",
        "index.bin",
        "metadata.arrow",
        "shards/000000.bin",
    ] {
        assert!(expected(path).iter().all(|code| ERROR_CODES.contains(code)));
    }
}
