//! Unit cases of the specification, one function for each.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::path::Path;

use dataset_rt_format::{
    Batcher, BlockSums, Codec, Columns, ContentHasher, Field, FieldType, IndexEntry, IndexHeader,
    METADATA_FILE, Manifest, MetadataLayout, Schema, ShardFooter, ShardHeader, ShardPlan,
    ShardTrailer, TextColumn, Value, check_shard_name, crc32c, decode_lz4_block, encode_tail,
};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

pub(crate) fn text(value: &Json) -> String {
    value["value"].as_str().unwrap().to_owned()
}

pub(crate) fn number(value: &Json) -> u64 {
    assert_eq!(value["type"], "uint64");
    text(value).parse().unwrap()
}

fn numbers(value: &Json) -> Vec<u64> {
    assert_eq!(value["type"], "uint64");
    let values = value["values"].as_array().unwrap();
    values
        .iter()
        .map(|value| value.as_str().unwrap().parse().unwrap())
        .collect()
}

pub(crate) fn bytes(value: &Json) -> Vec<u8> {
    assert_eq!(value["type"], "bytes");
    let digits = text(value);
    assert!(digits.len().is_multiple_of(2));
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn assert_payload(expected: &Json, payload: &[u8]) {
    if expected["type"] == "bytes" {
        assert_eq!(bytes(expected), payload);
    } else {
        assert_eq!(expected["type"], "bytes_digest");
        let digest = hex(&Sha256::digest(payload));
        assert_eq!(text(expected), format!("{}:{digest}", payload.len()));
    }
}

fn small(value: u64) -> usize {
    usize::try_from(value).unwrap()
}

fn to_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap()
}

/// Runs one case; `at` says which, `root` is where the vectors are.
pub(crate) fn run(id: &str, at: &str, input: &Json, out: &Json, root: &Path) {
    match id {
        "unit/crc32c" => {
            let crc = crc32c(&bytes(&input["data"]));
            assert_eq!(u64::from(crc), number(&out["number"]), "{at}");
            assert_eq!(format!("{crc:08x}"), text(&out["hex"]), "{at}");
        }
        "unit/block-sums" => {
            let mut sums = BlockSums::new();
            sums.push(&vec![0; small(number(&input["zero_bytes"]))]);
            let found: Vec<u64> = sums.finish().into_iter().map(u64::from).collect();
            assert_eq!(found, numbers(out), "{at}");
        }
        "unit/lz4-blocks" => lz4_block(at, input, out),
        "unit/shard-parts" => shard_parts(at, input, out),
        "unit/index-entries" => index_entry(at, input, out),
        "unit/index-headers" => index_header(at, input, out),
        "unit/rotation" => rotation(at, input, out),
        "unit/batches" => batches(at, input, out),
        "unit/identity" => identity(at, input, out, root),
        "unit/identity-by-rule" => identity_by_rule(at, input, out),
        "unit/manifest-tail" => manifest_tail(at, input, out),
        "unit/shard-names" => {
            let good = check_shard_name(&text(&input["name"])).is_ok();
            assert_eq!(good.to_string(), text(out), "{at}");
        }
        other => panic!("nothing runs the vector {other}"),
    }
}

fn lz4_block(at: &str, input: &Json, out: &Json) {
    let stored = bytes(&input["stored"]);
    let mut raw = vec![0xAA; small(number(&input["raw_len"]))];
    let decoded = decode_lz4_block(&stored, &mut raw);
    if out["type"] == "null" {
        assert!(decoded.is_err(), "{at}");
    } else {
        assert_eq!(decoded, Ok(()), "{at}");
        assert_payload(out, &raw);
    }
}

fn shard_parts(at: &str, input: &Json, out: &Json) {
    let (header, footer) = (bytes(&input["header"]), bytes(&input["footer"]));
    let trailer_bytes = bytes(&input["trailer"]);
    let parsed = ShardHeader::decode(&header).unwrap();
    let expected = &out["header"];
    assert_eq!(
        u64::from(parsed.codec.byte()),
        number(&expected["codec"]),
        "{at}"
    );
    assert_eq!(u64::from(parsed.align), number(&expected["align"]), "{at}");
    assert_eq!(parsed.part, number(&expected["part"]), "{at}");
    assert_eq!(parsed.first, number(&expected["first"]), "{at}");
    assert_eq!(
        u64::from(parsed.ordinal),
        number(&expected["ordinal"]),
        "{at}"
    );

    let expected = &out["trailer"];
    let size = number(&expected["size"]);
    let trailer = ShardTrailer::decode(&trailer_bytes, size, parsed.codec, None).unwrap();
    assert_eq!(trailer.count, number(&expected["count"]), "{at}");
    assert_eq!(trailer.footer_offset, number(&expected["F"]), "{at}");
    assert_eq!(trailer.id.as_slice(), bytes(&expected["id"]), "{at}");
    assert_eq!(trailer.last.to_string(), text(&expected["last"]), "{at}");

    let read = ShardFooter::decode(&header, &trailer, &footer).unwrap();
    let records = &out["records"];
    let entries: Vec<_> = read.index_entries(0).collect();
    let column =
        |of: &dyn Fn(&(IndexEntry, u32)) -> u64| entries.iter().map(of).collect::<Vec<_>>();
    assert_eq!(
        column(&|(entry, _)| entry.offset),
        numbers(&records["offsets"]),
        "{at}"
    );
    let stored_len = column(&|(entry, _)| u64::from(entry.stored_len));
    assert_eq!(stored_len, numbers(&records["stored_len"]), "{at}");
    assert_eq!(
        column(&|(_, raw_len)| u64::from(*raw_len)),
        numbers(&records["raw_len"]),
        "{at}"
    );
    assert_eq!(
        column(&|(entry, _)| u64::from(entry.crc)),
        numbers(&records["crc"]),
        "{at}"
    );

    // And back to the same bytes.
    assert_eq!(parsed.encode().as_slice(), header, "{at}");
    let last = entries.last().unwrap().0;
    let end = last.offset + u64::from(last.stored_len);
    let tail = encode_tail(
        &parsed.encode(),
        end,
        read.entries(),
        parsed.codec,
        trailer.last,
    );
    let padding = small(trailer.footer_offset - end);
    assert_eq!(
        tail.bytes[padding..],
        [footer, trailer_bytes].concat(),
        "{at}"
    );
    assert_eq!((tail.id, tail.file_size), (trailer.id, size), "{at}");
}

fn index_entry(at: &str, input: &Json, out: &Json) {
    let encoded: [u8; 16] = bytes(&input["entry"]).try_into().unwrap();
    let entry = IndexEntry::decode(&encoded);
    assert_eq!(u64::from(entry.shard), number(&out["shard"]), "{at}");
    assert_eq!(entry.offset, number(&out["offset"]), "{at}");
    assert_eq!(
        u64::from(entry.stored_len),
        number(&out["stored_len"]),
        "{at}"
    );
    assert_eq!(u64::from(entry.crc), number(&out["crc"]), "{at}");
    assert_eq!(entry.encode(), encoded, "{at}");
}

fn index_header(at: &str, input: &Json, out: &Json) {
    let head = bytes(&input["head"]);
    let header = IndexHeader::decode(&head, number(&out["size"]), None).unwrap();
    assert_eq!(
        u64::from(header.codec.byte()),
        number(&out["codec"]),
        "{at}"
    );
    assert_eq!(u64::from(header.align), number(&out["align"]), "{at}");
    assert_eq!(header.samples, number(&out["samples"]), "{at}");
    assert_eq!(header.shards, number(&out["shards"]), "{at}");
    assert_eq!(header.identity.as_slice(), bytes(&out["identity"]), "{at}");
    let sections = [
        Some(header.entries),
        header.raw_lens,
        Some(header.entry_sums),
        header.raw_len_sums,
        Some(header.metadata_sums),
    ];
    let sections: Vec<_> = sections.into_iter().flatten().collect();
    let table = &out["sections"];
    let kinds: Vec<u64> = sections
        .iter()
        .map(|section| u64::from(section.kind))
        .collect();
    assert_eq!(kinds, numbers(&table["kind"]), "{at}");
    let offsets: Vec<u64> = sections.iter().map(|section| section.offset).collect();
    assert_eq!(offsets, numbers(&table["offset"]), "{at}");
    let lengths: Vec<u64> = sections.iter().map(|section| section.length).collect();
    assert_eq!(lengths, numbers(&table["length"]), "{at}");
    let sums: Vec<u64> = sections
        .iter()
        .map(|section| u64::from(section.crc))
        .collect();
    assert_eq!(sums, numbers(&table["crc"]), "{at}");
}

fn rotation(at: &str, input: &Json, out: &Json) {
    let codec = Codec::from_name(&text(&input["codec"])).unwrap();
    let align = u8::try_from(number(&input["align"])).unwrap();
    let new = || ShardPlan::new(codec, align, number(&input["max_shard_bytes"]));
    let (mut plan, mut counts) = (new(), Vec::new());
    for stored_len in numbers(&input["stored_len"]) {
        if !plan.fits(to_u32(stored_len)) {
            counts.push(plan.count());
            plan = new();
        }
        plan.place(to_u32(stored_len));
    }
    counts.push(plan.count());
    assert_eq!(counts, numbers(out), "{at}");
}

fn batches(at: &str, input: &Json, out: &Json) {
    let schema = Schema::new(vec![Field::new("t", FieldType::Utf8)]).unwrap();
    let mut batcher = Batcher::new(&schema);
    let mut found = Vec::new();
    let runs = numbers(&input["rows"])
        .into_iter()
        .zip(numbers(&input["bytes"]));
    for (rows, bytes) in runs {
        let value = "x".repeat(small(bytes));
        // In blocks, as a writer gets its rows, so that the test needs little memory.
        for start in (0..rows).step_by(1000) {
            let rows = small((rows - start).min(1000));
            let mut texts = TextColumn::new();
            (0..rows).for_each(|_| texts.push(&value));
            let columns = vec![dataset_rt_format::Column::Utf8(texts)];
            let block = Columns::from_columns(&schema, rows, columns).unwrap();
            found.extend(
                batcher
                    .push(&block)
                    .unwrap()
                    .iter()
                    .map(|batch| batch.rows() as u64),
            );
        }
    }
    found.extend(batcher.finish().map(|batch| batch.rows() as u64));
    assert_eq!(found, numbers(out), "{at}");
}

fn identity(at: &str, input: &Json, out: &Json, root: &Path) {
    let cache = root
        .join("v1/valid")
        .join(text(&input["cache"]))
        .join("cache");
    let manifest = std::fs::read(cache.join("manifest.json")).unwrap();
    let manifest = Manifest::parse(&manifest).unwrap();
    let metadata = std::fs::read(cache.join(METADATA_FILE)).unwrap();
    let layout =
        MetadataLayout::parse_bytes(&metadata, &manifest.schema, manifest.samples).unwrap();
    let mut hasher = ContentHasher::new(&manifest.schema);
    let records = numbers(&input["raw_len"])
        .into_iter()
        .zip(numbers(&input["crc"]));
    for (row, (raw_len, crc)) in (0..).zip(records) {
        let (batch, in_batch) = layout.locate(row).unwrap();
        let values = (0..manifest.schema.len()).map(|field| {
            layout
                .column(&metadata, batch, field)
                .unwrap()
                .value(in_batch)
                .unwrap()
        });
        hasher
            .push_row(to_u32(raw_len), to_u32(crc), values)
            .unwrap();
    }
    assert_eq!(hasher.finish().as_slice(), bytes(out), "{at}");
}

fn identity_by_rule(at: &str, input: &Json, out: &Json) {
    let fields = vec![
        Field::new("n", FieldType::Int64),
        Field {
            nullable: true,
            ..Field::new("t", FieldType::Utf8)
        },
    ];
    let mut hasher = ContentHasher::new(&Schema::new(fields).unwrap());
    for i in 0..number(&input["samples"]) {
        let text = i.to_string();
        let value = if i % 3 == 0 {
            Value::Null
        } else {
            Value::Utf8(&text)
        };
        let crc = to_u32(i * 2_654_435_761 % (1 << 32));
        let number = Value::Int64(i64::try_from(i).unwrap());
        hasher
            .push_row(to_u32(i % 7), crc, [number, value])
            .unwrap();
    }
    assert_eq!(hasher.finish().as_slice(), bytes(out), "{at}");
}

/// Cases end where the members would be looked at: "ok" means that any later rule may be broken.
fn manifest_tail(at: &str, input: &Json, out: &Json) {
    let result = Manifest::parse(&bytes(&input["manifest"]));
    let expected = text(out);
    match result {
        Err(error) if expected == "ok" => {
            assert!(
                ["manifest_invalid", "feature_unsupported"].contains(&error.code()),
                "{at}"
            );
        }
        Err(error) => assert_eq!(error.code(), expected, "{at}: {error}"),
        Ok(_) => assert_eq!(expected, "ok", "{at}"),
    }
}
