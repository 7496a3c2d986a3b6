//! A writer of whole caches in memory, by the public functions of the crate.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;

use dataset_rt_format::{
    Batcher, BlockSums, CacheFiles, Codec, Columns, ContentHasher, FileInfo, FooterEntry,
    FormatError, INDEX_FILE, IndexBuilder, IndexEntry, MANIFEST_FILE, METADATA_FILE, Manifest,
    MetadataEncoder, Schema, ShardHeader, ShardInfo, ShardPlan, SourceInfo, Value, crc32c,
    encode_tail, shard_name, shard_path,
};

/// How a cache is packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    pub(crate) codec: Codec,
    pub(crate) align: u8,
    pub(crate) max_shard_bytes: u64,
}

/// The files of a cache by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Vec<u8>>);

impl CacheFiles for Files {
    type Bytes = Vec<u8>;
    type Error = FormatError;

    fn size(&self, path: &str) -> Result<Option<u64>, FormatError> {
        Ok(self.0.get(path).map(|bytes| bytes.len() as u64))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, FormatError> {
        Ok(self.0[path].clone())
    }

    fn refuse(&self, _path: &str, error: FormatError) -> FormatError {
        error
    }
}

fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap()
}

pub(crate) fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

struct OpenShard {
    header: ShardHeader,
    plan: ShardPlan,
    bytes: Vec<u8>,
    entries: Vec<FooterEntry>,
}

impl OpenShard {
    fn new(packing: Packing, ordinal: usize, first: u64) -> Self {
        let header = ShardHeader {
            codec: packing.codec,
            align: packing.align,
            part: 0,
            first,
            ordinal: len32(ordinal),
        };
        let plan = ShardPlan::new(packing.codec, packing.align, packing.max_shard_bytes);
        Self {
            header,
            plan,
            bytes: header.encode().to_vec(),
            entries: Vec::new(),
        }
    }

    fn close(mut self, name: String, last: bool) -> (ShardInfo, Vec<u8>) {
        let codec = self.header.codec;
        let head = self.header.encode();
        let tail = encode_tail(&head, self.plan.records_end(), &self.entries, codec, last);
        self.bytes.extend_from_slice(&tail.bytes);
        assert_eq!(self.bytes.len() as u64, tail.file_size);
        let info = ShardInfo {
            name,
            size: tail.file_size,
            samples: self.entries.len() as u64,
            id: tail.id,
            crc32c: crc32c(&self.bytes),
            sha256: None,
        };
        (info, self.bytes)
    }
}

/// Writes a cache whose rows come in the given blocks.
pub(crate) fn write(
    schema: &Schema,
    packing: Packing,
    payloads: &[Vec<u8>],
    blocks: &[Columns],
) -> Files {
    let mut files = BTreeMap::new();

    let mut shards = Vec::new();
    let mut open = OpenShard::new(packing, 0, 0);
    let mut closed = Vec::new();
    let mut entries = Vec::new();
    let mut raw_lens = Vec::new();
    let mut records = Vec::new();
    let (mut payload_bytes, mut stored_bytes) = (0, 0);
    for payload in payloads {
        let mut stored = Vec::new();
        let stored_len = len32(packing.codec.encode(payload, &mut stored));
        if !open.plan.fits(stored_len) {
            let next = OpenShard::new(
                packing,
                closed.len() + 1,
                open.header.first + open.entries.len() as u64,
            );
            closed.push(std::mem::replace(&mut open, next));
        }
        let offset = open.plan.place(stored_len);
        open.bytes.resize(at(offset), 0);
        open.bytes.extend_from_slice(&stored);
        let (crc, raw_len) = (crc32c(payload), len32(payload.len()));
        open.entries.push(FooterEntry {
            stored_len,
            crc,
            raw_len,
        });
        let shard = len32(closed.len());
        entries.extend(
            IndexEntry {
                shard,
                offset,
                stored_len,
                crc,
            }
            .encode(),
        );
        raw_lens.extend(raw_len.to_le_bytes());
        records.push((raw_len, crc));
        payload_bytes += u64::from(raw_len);
        stored_bytes += u64::from(stored_len);
    }
    closed.push(open);
    let count = closed.len();
    for (ordinal, shard) in closed.into_iter().enumerate() {
        let (info, bytes) = shard.close(shard_name(len32(ordinal)), ordinal + 1 == count);
        files.insert(shard_path(&info.name), bytes);
        shards.push(info);
    }

    let mut encoder = MetadataEncoder::new(schema);
    let mut batcher = Batcher::new(schema);
    let mut hasher = ContentHasher::new(schema);
    let mut metadata = encoder.prefix();
    let mut done = 0;
    for block in blocks {
        hasher
            .push(&records[done..done + block.rows()], block)
            .unwrap();
        done += block.rows();
        for batch in batcher.push(block).unwrap() {
            metadata.extend(encoder.batch(&batch).unwrap());
        }
    }
    if let Some(batch) = batcher.finish() {
        metadata.extend(encoder.batch(&batch).unwrap());
    }
    metadata.extend(encoder.finish());
    let mut sums = BlockSums::new();
    sums.push(&metadata);
    let metadata_info = FileInfo {
        size: metadata.len() as u64,
        crc32c: sums.crc(),
        sha256: None,
    };
    let identity = hasher.finish();

    let mut builder = IndexBuilder::new(packing.codec, packing.align);
    builder.push_entries(&entries);
    if packing.codec.has_raw_lens() {
        builder.push_raw_lens(&raw_lens);
    }
    let entries_at = at(builder.entries_offset());
    let parts = builder.finish(count as u64, identity, &sums.finish());
    let mut index = parts.head;
    assert_eq!(index.len(), entries_at);
    index.extend_from_slice(&entries);
    if let Some(offset) = parts.raw_lens_at {
        index.resize(at(offset), 0);
        index.extend_from_slice(&raw_lens);
    }
    index.resize(at(parts.tail_at), 0);
    index.extend_from_slice(&parts.tail);

    let manifest = Manifest {
        required: vec![],
        optional: vec![],
        identity,
        source: SourceInfo {
            name: "source".to_owned(),
            fingerprint: None,
        },
        created: "2025-01-02T03:04:05Z".to_owned(),
        writer: "test".to_owned(),
        samples: payloads.len() as u64,
        payload_bytes,
        stored_bytes,
        schema: schema.clone(),
        codec: packing.codec,
        user: None,
        media_type: None,
        align: packing.align,
        metadata: metadata_info,
        index: FileInfo {
            size: parts.file_size,
            crc32c: parts.crc,
            sha256: None,
        },
        shards,
    };
    manifest.check().unwrap();
    files.insert(METADATA_FILE.to_owned(), metadata);
    files.insert(INDEX_FILE.to_owned(), index);
    files.insert(MANIFEST_FILE.to_owned(), manifest.to_bytes());
    Files(files)
}

/// A row of any schema, by value equality of bits.
pub(crate) fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Float64(a), Value::Float64(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}
