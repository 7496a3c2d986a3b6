//! Small caches made with the format crate alone, and what they must read back as.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use dataset_rt_format::{
    BlockSums, Codec, Columns, ContentHasher, Crc32c, Field, FieldType, FileInfo, FooterEntry,
    INDEX_FILE, IndexBuilder, IndexEntry, MANIFEST_FILE, METADATA_FILE, Manifest, MetadataEncoder,
    SHARD_DIR, Schema, ShardHeader, ShardInfo, ShardPlan, SourceInfo, Value, crc32c, encode_tail,
    shard_file, shard_name,
};
use dataset_rt_runtime::{
    Block, BlockSizing, BlockStream, Cancel, Dataset, Error, Poll, Pool, ReaderOptions, SampleRef,
    VecBuffers,
};

/// What a cache of a test holds.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) samples: u64,
    pub(crate) codec: Codec,
    pub(crate) max_shard: u64,
    pub(crate) batch_rows: u64,
    /// The length of every payload, instead of different ones.
    pub(crate) fixed_len: Option<u64>,
    /// Payloads are so many times as long.
    pub(crate) stretch: u64,
    /// Changes all contents.
    pub(crate) salt: u64,
    pub(crate) fields: Vec<Field>,
}

impl Spec {
    pub(crate) fn new(samples: u64) -> Self {
        Self {
            samples,
            codec: Codec::None,
            max_shard: 4096,
            batch_rows: 17,
            fixed_len: None,
            stretch: 1,
            salt: 0,
            fields: vec![
                Field::new("label", FieldType::Int64),
                Field::new("score", FieldType::Float64),
                Field::new("good", FieldType::Bool),
                Field::new("text", FieldType::Utf8),
            ],
        }
    }

    pub(crate) fn payload(&self, sample: u64) -> Vec<u8> {
        let len = self.fixed_len.unwrap_or((sample * 37 + self.salt) % 301) * self.stretch;
        if sample.is_multiple_of(3) {
            return vec![sample as u8; len as usize];
        }
        (0..len)
            .map(|i| (i * (sample + 3) * 131 + i * i + self.salt) as u8)
            .collect()
    }

    pub(crate) fn text(&self, sample: u64) -> String {
        [
            "",
            "a",
            "größer\0als",
            "a text of more than twelve bytes: ",
            "日本",
        ][(sample % 5) as usize]
            .repeat((sample % 3 + 1) as usize)
    }

    /// The value of a field, by its type alone.
    pub(crate) fn value(
        &self,
        field_type: FieldType,
        sample: u64,
        text: &mut String,
    ) -> Value<'static> {
        match field_type {
            FieldType::Bool => Value::Bool(sample % 7 < 3),
            FieldType::Int64 => Value::Int64(i64::MIN + (sample * 3 + self.salt) as i64),
            FieldType::Float64 if sample == 1 => {
                Value::Float64(f64::from_bits(0x7ff8_0000_dead_beef))
            }
            FieldType::Float64 => Value::Float64(sample as f64 / 7.0),
            _ => {
                *text = self.text(sample);
                Value::Null
            }
        }
    }

    /// Writes the cache into `dir`, which must not exist.
    pub(crate) fn write(&self, dir: &Path) -> Manifest {
        let schema = Schema::new(self.fields.clone()).unwrap();
        fs::create_dir_all(dir.join(SHARD_DIR)).unwrap();
        let mut hasher = ContentHasher::new(&schema);
        let mut metadata = MetadataEncoder::new(&schema);
        let mut metadata_bytes = metadata.prefix();
        let mut columns = Columns::new(&schema);
        let mut index = IndexBuilder::new(self.codec, 3);
        let (mut entries, mut raw_lens) = (Vec::new(), Vec::new());
        let mut shards: Vec<ShardInfo> = Vec::new();
        let mut shard = Shard::new(self, 0, 0);
        let (mut payload_bytes, mut stored_bytes) = (0, 0);
        for sample in 0..self.samples {
            let payload = self.payload(sample);
            let crc = crc32c(&payload);
            let mut stored = Vec::new();
            let stored_len = self.codec.encode(&payload, &mut stored) as u32;
            if !shard.plan.fits(stored_len) {
                shards.push(shard.finish(self, dir, false));
                shard = Shard::new(self, shards.len() as u32, sample);
            }
            let offset = shard.plan.place(stored_len);
            shard.bytes.resize(offset as usize, 0);
            shard.bytes.extend_from_slice(&stored);
            let raw_len = payload.len() as u32;
            shard.footer.push(FooterEntry {
                stored_len,
                crc,
                raw_len,
            });
            let entry = IndexEntry {
                shard: shards.len() as u32,
                offset,
                stored_len,
                crc,
            };
            entries.extend_from_slice(&entry.encode());
            raw_lens.extend_from_slice(&raw_len.to_le_bytes());
            payload_bytes += u64::from(raw_len);
            stored_bytes += u64::from(stored_len);

            let mut text = String::new();
            let types: Vec<FieldType> = self.fields.iter().map(|f| f.field_type).collect();
            let mut values: Vec<Value<'_>> = types
                .iter()
                .map(|t| self.value(*t, sample, &mut text))
                .collect();
            for (value, field_type) in values.iter_mut().zip(types) {
                if field_type == FieldType::Utf8 {
                    *value = Value::Utf8(&text);
                }
            }
            hasher
                .push_row(raw_len, crc, values.iter().copied())
                .unwrap();
            columns.push_row(&values).unwrap();
            if columns.rows() as u64 == self.batch_rows || sample + 1 == self.samples {
                metadata_bytes.extend(metadata.batch(&columns).unwrap());
                columns.clear();
            }
        }
        shards.push(shard.finish(self, dir, true));
        metadata_bytes.extend(metadata.finish());
        fs::write(dir.join(METADATA_FILE), &metadata_bytes).unwrap();

        let identity = hasher.finish();
        let mut sums = BlockSums::new();
        sums.push(&metadata_bytes);
        index.push_entries(&entries);
        if self.codec.has_raw_lens() {
            index.push_raw_lens(&raw_lens);
        }
        let parts = index.finish(shards.len() as u64, identity, &sums.finish());
        let mut index_bytes = parts.head.clone();
        index_bytes.extend_from_slice(&entries);
        if let Some(at) = parts.raw_lens_at {
            index_bytes.resize(at as usize, 0);
            index_bytes.extend_from_slice(&raw_lens);
        }
        index_bytes.resize(parts.tail_at as usize, 0);
        index_bytes.extend_from_slice(&parts.tail);
        fs::write(dir.join(INDEX_FILE), &index_bytes).unwrap();

        let info = |bytes: &[u8]| FileInfo {
            size: bytes.len() as u64,
            crc32c: crc32c(bytes),
            sha256: None,
        };
        let manifest = Manifest {
            required: vec![],
            optional: vec![],
            identity,
            source: SourceInfo {
                name: "test".to_owned(),
                fingerprint: None,
            },
            created: "2024-01-02T03:04:05Z".to_owned(),
            writer: "a test".to_owned(),
            samples: self.samples,
            payload_bytes,
            stored_bytes,
            schema,
            codec: self.codec,
            user: None,
            media_type: None,
            align: 3,
            metadata: info(&metadata_bytes),
            index: info(&index_bytes),
            shards,
        };
        fs::write(dir.join(MANIFEST_FILE), manifest.to_bytes()).unwrap();
        manifest
    }
}

struct Shard {
    bytes: Vec<u8>,
    footer: Vec<FooterEntry>,
    plan: ShardPlan,
    header: [u8; 64],
    ordinal: u32,
}

impl Shard {
    fn new(spec: &Spec, ordinal: u32, first: u64) -> Self {
        let header = ShardHeader {
            codec: spec.codec,
            align: 3,
            part: 0,
            first,
            ordinal,
        };
        let header = header.encode();
        let plan = ShardPlan::new(spec.codec, 3, spec.max_shard);
        Self {
            bytes: header.to_vec(),
            footer: Vec::new(),
            plan,
            header,
            ordinal,
        }
    }

    fn finish(mut self, spec: &Spec, dir: &Path, last: bool) -> ShardInfo {
        let end = self.plan.records_end();
        let tail = encode_tail(&self.header, end, &self.footer, spec.codec, last);
        self.bytes.extend_from_slice(&tail.bytes);
        let mut crc = Crc32c::new();
        crc.update(&self.bytes);
        let name = shard_name(self.ordinal);
        fs::write(dir.join(SHARD_DIR).join(shard_file(&name)), &self.bytes).unwrap();
        ShardInfo {
            name,
            size: tail.file_size,
            samples: self.footer.len() as u64,
            id: tail.id,
            crc32c: crc.value(),
            sha256: None,
        }
    }
}

/// A cache in a folder of its own.
pub(crate) struct Made {
    pub(crate) spec: Spec,
    pub(crate) path: PathBuf,
    _dir: tempfile::TempDir,
}

pub(crate) fn make(spec: &Spec) -> Made {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache");
    spec.write(&path);
    Made {
        spec: spec.clone(),
        path,
        _dir: dir,
    }
}

pub(crate) fn ordered() -> ReaderOptions {
    ReaderOptions {
        shuffle: false,
        ..ReaderOptions::new(1)
    }
}

pub(crate) fn open(paths: &[&Made], options: ReaderOptions) -> Dataset {
    open_with(&Pool::new(2).unwrap(), paths, options).unwrap()
}

pub(crate) fn open_with(
    pool: &Pool,
    paths: &[&Made],
    options: ReaderOptions,
) -> Result<Dataset, Error> {
    let paths = paths.iter().map(|made| made.path.clone()).collect();
    Dataset::open(pool.clone(), paths, options, &Cancel::new())
}

/// The next block, with a bound on the time that it may take.
pub(crate) fn next(stream: &mut BlockStream<VecBuffers>) -> Option<Block<VecBuffers>> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut allocate = |lengths: &[u32]| Ok::<_, Error>(VecBuffers::allocate(lengths));
        match stream.poll(&mut allocate).unwrap() {
            Poll::Ready(block) => return Some(block),
            Poll::Pending(waiter) => waiter.wait(Duration::from_millis(100)),
            Poll::Done => return None,
        }
        assert!(Instant::now() < deadline, "the stream hangs");
    }
}

/// Samples with their payload, or the error's text.
pub(crate) type Read = Vec<(SampleRef, Result<Vec<u8>, String>)>;

pub(crate) fn read_all(stream: &mut BlockStream<VecBuffers>) -> Read {
    let mut read = Vec::new();
    while let Some(block) = next(stream) {
        read.extend(of_block(block));
    }
    read
}

pub(crate) fn of_block(block: Block<VecBuffers>) -> Read {
    let Block {
        samples,
        lengths,
        buffers,
        errors,
        ..
    } = block;
    assert_eq!(samples.len(), buffers.0.len());
    assert!(
        buffers
            .0
            .iter()
            .zip(&lengths)
            .all(|(b, &len)| b.len() == len as usize)
    );
    let mut read: Read = samples
        .into_iter()
        .zip(buffers.0.into_iter().map(Ok))
        .collect();
    for (place, error) in errors {
        read[place as usize].1 = Err(error.to_string());
    }
    read
}

/// Fails unless every payload is the one of its sample.
pub(crate) fn assert_payloads(read: &Read, caches: &[&Made]) {
    for (sample, payload) in read {
        let spec = &caches[sample.cache as usize].spec;
        assert_eq!(
            payload.as_ref().unwrap(),
            &spec.payload(sample.sample),
            "{sample:?}"
        );
    }
}

/// The samples that were read, by their ids in the cache.
pub(crate) fn ids(read: &Read) -> Vec<u64> {
    read.iter().map(|(sample, _)| sample.sample).collect()
}

/// Reads the next window.
pub(crate) fn window(dataset: &Dataset, sizing: BlockSizing) -> Read {
    read_all(&mut dataset.blocks(dataset.take_window().unwrap(), sizing))
}

/// A table for an update.
pub(crate) fn table(rows: &[(u64, u64, f64)]) -> RecordBatch {
    let caches: UInt64Array = rows.iter().map(|row| row.0).collect::<Vec<_>>().into();
    let samples: UInt64Array = rows.iter().map(|row| row.1).collect::<Vec<_>>().into();
    let weights: Float64Array = rows.iter().map(|row| row.2).collect::<Vec<_>>().into();
    columns(Arc::new(caches), Arc::new(samples), Arc::new(weights))
}

/// A table of columns of any type.
pub(crate) fn columns(caches: ArrayRef, samples: ArrayRef, weights: ArrayRef) -> RecordBatch {
    let columns = [
        ("cache_id", caches),
        ("sample_id", samples),
        ("weight", weights),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}
