//! Sources to write, and a reader that checks every rule of a finished cache from its bytes alone.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dataset_rt_format::constants::{CHECK_BLOCK, INDEX_ENTRY_LEN};
use dataset_rt_format::{
    ChainLink, Codec, ColumnSlices, Columns, ContentHasher, Field, FieldType, FormatError,
    IndexEntry, IndexHeader, Manifest, MetadataLayout, Schema, ShardFooter, ShardHeader,
    ShardTrailer, Value, check_block, check_chain, crc32c, decode_sums, shard_path,
};
use dataset_rt_runtime::{
    Begin, Cancel, Error, InputBlock, Pool, SourceWriter, WriteOptions, WriteSession, Written,
};

/// Longer than any test takes that does not hang.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A directory in memory where there is one: what takes part in hundreds of writes need not reach a disk.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

pub fn schema() -> Schema {
    Schema::new(vec![
        Field::new("flag", FieldType::Bool),
        Field::new("number", FieldType::Int64),
        Field::new("share", FieldType::Float64),
        Field::new("text", FieldType::Utf8),
    ])
    .unwrap()
}

/// Payload number `i` of a source: lengths from 0 to some hundreds, half of them compressible.
pub fn payload(salt: u64, i: u64) -> Vec<u8> {
    let len = (i * 37 + salt) % 301;
    (0..len)
        .map(|j| {
            let noise = (j + i)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .wrapping_add(salt)
                >> 29;
            if i.is_multiple_of(2) {
                (i % 251) as u8
            } else {
                noise as u8
            }
        })
        .collect()
}

pub fn row(i: u64) -> (bool, i64, f64, String) {
    (
        i.is_multiple_of(3),
        -(i as i64),
        i as f64 / 7.0,
        "ä".repeat((i % 5) as usize),
    )
}

/// Rows `start..end` as one block.
pub fn block(salt: u64, start: u64, end: u64) -> InputBlock {
    let mut columns = Columns::new(&schema());
    for i in start..end {
        let (flag, number, share, text) = row(i);
        columns
            .push_row(&[
                Value::Bool(flag),
                Value::Int64(number),
                Value::Float64(share),
                Value::Utf8(&text),
            ])
            .unwrap();
    }
    let payloads: Vec<Vec<u8>> = (start..end).map(|i| payload(salt, i)).collect();
    InputBlock {
        payloads: Box::new(payloads),
        columns,
    }
}

pub fn session(base: &Path, options: WriteOptions, workers: usize) -> WriteSession {
    let pool = Pool::new(workers).unwrap();
    WriteSession::new(pool, base.to_path_buf(), options, Cancel::new()).unwrap()
}

/// Begins a source that nothing stands in the way of.
pub fn begin(session: &WriteSession, name: &str, fingerprint: Option<&str>) -> SourceWriter {
    match session.begin(name, fingerprint).unwrap() {
        Begin::Write(writer) => writer,
        other => panic!("{other:?}"),
    }
}

/// Submits samples in blocks of the lengths given, repeated, as a source does that heeds backpressure.
pub fn feed(writer: &SourceWriter, salt: u64, samples: u64, cuts: &[u64]) {
    let mut start = 0;
    for cut in cuts.iter().cycle() {
        let end = (start + cut).min(samples);
        let deadline = Instant::now() + PATIENCE;
        while !writer.wait_for_room(Duration::from_millis(50)) {
            assert!(Instant::now() < deadline, "no room");
        }
        if writer.failed() || start == samples {
            return;
        }
        writer.submit(block(salt, start, end)).unwrap();
        start = end;
    }
}

pub fn outcome(writer: &SourceWriter) -> Result<Written, Error> {
    writer.wait(PATIENCE).expect("a source without an outcome")
}

/// Writes one whole source in a session of its own.
#[allow(
    clippy::too_many_arguments,
    reason = "a case of a test reads best as one line"
)]
pub fn write(
    base: &Path,
    options: WriteOptions,
    workers: usize,
    name: &str,
    fingerprint: Option<&str>,
    salt: u64,
    samples: u64,
    cuts: &[u64],
) -> Result<Written, Error> {
    let session = session(base, options, workers);
    let deadline = Instant::now() + PATIENCE;
    let writer = loop {
        match session.begin(name, fingerprint)? {
            Begin::Write(writer) => break writer,
            Begin::Reuse(reused) => panic!("reused: {}", reused.reason),
            Begin::Wait { .. } => {
                assert!(Instant::now() < deadline, "held for ever");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    };
    writer.start(schema()).unwrap();
    feed(&writer, salt, samples, cuts);
    writer.finish();
    outcome(&writer)
}

/// A small source with the defaults.
pub fn write_small(base: &Path, name: &str, salt: u64) -> Result<Written, Error> {
    write(
        base,
        WriteOptions::default(),
        2,
        name,
        None,
        salt,
        100,
        &[30],
    )
}

/// Names below a directory, with the contents of files.
pub fn tree(path: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap().path();
            let name = entry.strip_prefix(path).unwrap().to_path_buf();
            if entry.symlink_metadata().unwrap().is_dir() {
                found.push((name, None));
                folders.push(entry);
            } else {
                found.push((name, Some(fs::read(&entry).unwrap())));
            }
        }
    }
    found.sort();
    found
}

pub fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .map(|entries| {
            entries
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

/// A cache as it was read back.
pub struct ReadBack {
    pub manifest: Manifest,
    pub payloads: Vec<Vec<u8>>,
}

impl ReadBack {
    /// Compares with the samples of [`block`].
    pub fn assert_is(&self, salt: u64, samples: u64) {
        assert_eq!(self.payloads.len() as u64, samples);
        for (i, found) in (0..).zip(&self.payloads) {
            assert_eq!(*found, payload(salt, i), "sample {i}");
        }
    }
}

/// Reads and checks all there is to check in a cache of [`schema`].
pub fn read_back(path: &Path) -> ReadBack {
    let manifest_bytes = fs::read(path.join("manifest.json")).unwrap();
    let manifest = Manifest::parse(&manifest_bytes).unwrap();
    let index = fs::read(path.join("index.bin")).unwrap();
    let metadata = fs::read(path.join("metadata.arrow")).unwrap();
    assert_eq!(
        (index.len() as u64, crc32c(&index)),
        (manifest.index.size, manifest.index.crc32c)
    );
    let stated = (manifest.metadata.size, manifest.metadata.crc32c);
    assert_eq!((metadata.len() as u64, crc32c(&metadata)), stated);

    let head = IndexHeader::decode(&index, index.len() as u64, Some(&manifest)).unwrap();
    let section = |range: std::ops::Range<u64>| &index[range.start as usize..range.end as usize];
    let entries = section(head.entries.range());
    check_sums(entries, section(head.entry_sums.range()));
    check_sums(&metadata, section(head.metadata_sums.range()));
    let raw_lens = head.raw_lens.map(|raw| section(raw.range()));
    if let (Some(raw), Some(sums)) = (raw_lens, head.raw_len_sums) {
        check_sums(raw, section(sums.range()));
    }

    let (shards, expected) = read_shards(path, &manifest);
    let limits = manifest.records_limits();
    let mut payloads = Vec::new();
    let mut contents = Vec::new();
    let (mut payload_bytes, mut stored_bytes) = (0, 0);
    for (sample, (bytes, (entry, raw_len))) in entries
        .chunks(INDEX_ENTRY_LEN as usize)
        .zip(&expected)
        .enumerate()
    {
        let found = IndexEntry::decode(bytes.try_into().unwrap());
        assert_eq!(found, *entry, "entry {sample}");
        found.check(sample as u64, manifest.align, &limits).unwrap();
        if let Some(raw) = raw_lens {
            assert_eq!(raw[sample * 4..sample * 4 + 4], raw_len.to_le_bytes());
        }
        let start = found.offset as usize;
        let stored = &shards[found.shard as usize][start..start + found.stored_len as usize];
        let mut payload = vec![0; *raw_len as usize];
        if found.stored_len == *raw_len {
            payload.copy_from_slice(stored);
        } else {
            manifest.codec.decode(stored, &mut payload).unwrap();
        }
        assert_eq!(crc32c(&payload), found.crc);
        contents.push((*raw_len, found.crc));
        payload_bytes += u64::from(*raw_len);
        stored_bytes += u64::from(found.stored_len);
        payloads.push(payload);
    }
    assert_eq!(payloads.len(), expected.len());
    assert_eq!(payloads.len() as u64, manifest.samples);
    assert_eq!(
        (payload_bytes, stored_bytes),
        (manifest.payload_bytes, manifest.stored_bytes)
    );
    check_metadata(&metadata, &manifest, &contents);
    ReadBack { manifest, payloads }
}

fn check_sums(bytes: &[u8], sums: &[u8]) {
    let sums = decode_sums(sums);
    assert_eq!(sums.len(), bytes.len().div_ceil(CHECK_BLOCK as usize));
    for (block, part) in bytes.chunks(CHECK_BLOCK as usize).enumerate() {
        check_block(&sums, block as u64, part).unwrap();
    }
}

/// All shards, checked, and what an index rebuilt from them alone says.
fn read_shards(path: &Path, manifest: &Manifest) -> (Vec<Vec<u8>>, Vec<(IndexEntry, u32)>) {
    let mut shards = Vec::new();
    let mut entries = Vec::new();
    let mut links = Vec::new();
    for (number, info) in (0..).zip(&manifest.shards) {
        let bytes = fs::read(path.join(shard_path(&info.name))).unwrap();
        assert_eq!(
            (bytes.len() as u64, crc32c(&bytes)),
            (info.size, info.crc32c)
        );
        let header = ShardHeader::decode(&bytes).unwrap();
        let trailer =
            ShardTrailer::decode(&bytes, bytes.len() as u64, manifest.codec, Some(info)).unwrap();
        let range = trailer.footer_range();
        let footer = &bytes[range.start as usize..range.end as usize];
        let footer = ShardFooter::decode(&bytes, &trailer, footer).unwrap();
        entries.extend(footer.index_entries(number));
        links.push(ChainLink::new(&header, &trailer));
        assert_padding_is_zero(&bytes, &footer, trailer.footer_offset);
        shards.push(bytes);
    }
    check_chain(&links).unwrap();
    assert_eq!(names(&path.join("shards")).len(), shards.len());
    assert_eq!(
        names(path),
        ["index.bin", "manifest.json", "metadata.arrow", "shards"]
    );
    (shards, entries)
}

fn assert_padding_is_zero(bytes: &[u8], footer: &ShardFooter, footer_offset: u64) {
    let mut end = 64;
    for (entry, _) in footer.index_entries(0) {
        assert!(
            bytes[end..entry.offset as usize]
                .iter()
                .all(|byte| *byte == 0)
        );
        end = entry.offset as usize + entry.stored_len as usize;
    }
    assert!(
        bytes[end..footer_offset as usize]
            .iter()
            .all(|byte| *byte == 0)
    );
}

fn check_metadata(bytes: &[u8], manifest: &Manifest, contents: &[(u32, u32)]) {
    let mut read = |offset: u64, len: u64| -> Result<Cow<'_, [u8]>, FormatError> {
        Ok(Cow::Borrowed(
            &bytes[offset as usize..(offset + len) as usize],
        ))
    };
    let (schema, rows) = (&manifest.schema, manifest.samples);
    let layout = MetadataLayout::parse(bytes.len() as u64, schema, rows, &mut read).unwrap();
    let slice = |range: std::ops::Range<u64>| &bytes[range.start as usize..range.end as usize];
    let mut hasher = ContentHasher::new(schema);
    for batch in layout.batches() {
        let columns: Vec<ColumnSlices<'_>> = batch
            .columns
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| {
                assert!(column.nulls.is_none(), "a writer makes no nulls");
                let text = column.text.clone().map_or(&[][..], slice);
                let values = slice(column.values.clone());
                ColumnSlices::new(field.field_type, batch.rows, None, values, text).unwrap()
            })
            .collect();
        for at in 0..batch.rows {
            let i = batch.first_row + at;
            let values: Vec<Value<'_>> = columns.iter().map(|c| c.value(at).unwrap()).collect();
            if !columns.is_empty() {
                let (flag, number, share, text) = row(i);
                let expected = [
                    Value::Bool(flag),
                    Value::Int64(number),
                    Value::Float64(share),
                    Value::Utf8(&text),
                ];
                assert_eq!(values, expected, "row {i}");
            }
            let (raw_len, crc) = contents[i as usize];
            hasher.push_row(raw_len, crc, values).unwrap();
        }
    }
    assert_eq!(hasher.finish(), manifest.identity);
}

pub fn lz4() -> WriteOptions {
    WriteOptions {
        codec: Codec::Lz4,
        ..WriteOptions::default()
    }
}

/// The options of `from_cache_sources`.
pub fn create_or_reuse() -> WriteOptions {
    WriteOptions {
        create_or_reuse: true,
        ..WriteOptions::default()
    }
}
