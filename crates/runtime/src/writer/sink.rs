//! The files of one cache while they are written: blocks go in one after the other, in the order of the samples.

use std::path::{Path, PathBuf};

use dataset_rt_format::constants::DEFAULT_ALIGN;
use dataset_rt_format::{
    Codec, IndexEntry, MANIFEST_FILE, Manifest, SHARD_DIR, Schema, SourceInfo, StreamedHasher,
};

use crate::disk::{self, OutFile};
use crate::error::{Error, Result};
use crate::writer::WRITER;
use crate::writer::created;
use crate::writer::encode::EncodedBlock;
use crate::writer::index::IndexFile;
use crate::writer::metadata::MetadataFile;
use crate::writer::profile::{Profile, Stage};
use crate::writer::shard::{ClosedShard, FullShard, ShardFile};

/// A cache being written.
pub(crate) struct Sink {
    cache: PathBuf,
    schema: Schema,
    codec: Codec,
    max_shard_bytes: u64,
    shard: Option<ShardFile>,
    /// Number of the next shard, and the samples before it.
    next_shard: (u32, u64),
    index: IndexFile,
    metadata: MetadataFile,
    hasher: StreamedHasher,
    payload_bytes: u64,
    stored_bytes: u64,
}

/// A cache that is complete, on the disk, and not published.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) created: String,
    pub(crate) samples: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) stored_bytes: u64,
}

impl Sink {
    /// Makes the directory `cache` with its files, and `spill` where the codec needs one.
    pub(crate) fn create(
        cache: PathBuf,
        spill: PathBuf,
        schema: Schema,
        codec: Codec,
        max_shard_bytes: u64,
    ) -> Result<Self> {
        for directory in [&cache, &cache.join(SHARD_DIR)] {
            if !disk::create_dir(directory)? {
                let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
                return Err(Error::io("create directory", directory, source));
            }
        }
        Ok(Self {
            index: IndexFile::create(&cache, spill, codec)?,
            metadata: MetadataFile::create(&cache, &schema)?,
            hasher: StreamedHasher::new(&schema),
            cache,
            schema,
            codec,
            max_shard_bytes,
            shard: None,
            next_shard: (0, 0),
            payload_bytes: 0,
            stored_bytes: 0,
        })
    }

    /// Adds a block. Shards that get full are given to `close`.
    pub(crate) fn append(
        &mut self,
        block: &EncodedBlock,
        profile: &Profile,
        close: &mut dyn FnMut(FullShard) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        while start < block.records.len() {
            let (ordinal, first) = self.next_shard;
            let mut shard = match self.shard.take() {
                Some(shard) => shard,
                None => {
                    let limit = self.max_shard_bytes;
                    ShardFile::create(&self.cache, self.codec, limit, ordinal, first)?
                }
            };
            let number = shard.ordinal();
            let index = &mut self.index;
            start = shard.append(block, start, profile, |offset, record| {
                let (stored_len, crc) = (record.stored_len, record.crc);
                index.push(
                    &IndexEntry {
                        shard: number,
                        offset,
                        stored_len,
                        crc,
                    },
                    record.raw_len,
                );
            })?;
            if start < block.records.len() {
                self.next_shard = (number + 1, shard.next_first());
                close(shard.full())?;
            } else {
                self.shard = Some(shard);
            }
        }
        profile.time(Stage::Metadata, || self.append_rows(block))
    }

    fn append_rows(&mut self, block: &EncodedBlock) -> Result<()> {
        self.payload_bytes += block.payload_bytes;
        self.stored_bytes += block.stored_bytes();
        let contents: Vec<(u32, u32)> = block
            .records
            .iter()
            .map(|record| (record.raw_len, record.crc))
            .collect();
        let mut start = 0;
        while start < contents.len() {
            let end = contents.len().min(start + self.hasher.room());
            let part = contents.get(start..end).unwrap_or_default();
            self.hasher
                .push(part, &block.columns, start)
                .map_err(unfit)?;
            self.metadata.append(&block.columns, start, end)?;
            if self.hasher.room() == 0 {
                self.close_identity_block()?;
            }
            start = end;
        }
        self.index.flush_if_full()
    }

    fn close_identity_block(&mut self) -> Result<()> {
        let metadata = &self.metadata;
        self.hasher
            .close_block(|field, take| metadata.texts(field, take))?;
        self.metadata.forget_texts();
        Ok(())
    }

    /// Writes what is left, the manifest last. All is on the disk afterwards, and nothing is published.
    pub(crate) fn finish(
        mut self,
        mut closed: Vec<ClosedShard>,
        source: SourceInfo,
        profile: &Profile,
        stopped: &dyn Fn() -> Result<()>,
    ) -> Result<Finished> {
        stopped()?;
        if let Some(shard) = self.shard.take() {
            closed.push(shard.full().close(true, profile)?);
        }
        closed.sort_unstable_by_key(|shard| shard.ordinal);
        stopped()?;
        let samples = self.hasher.samples();
        profile.time(Stage::Finish, || self.close_identity_block())?;
        let (metadata, sums) = self.metadata.finish(profile)?;
        let identity = profile.time(Stage::Finish, || self.hasher.finish());
        let shards: Vec<_> = closed.into_iter().map(|shard| shard.info).collect();
        let index = self
            .index
            .finish(shards.len() as u64, identity, &sums, profile)?;
        profile.time(Stage::Sync, || disk::sync_dir(&self.cache.join(SHARD_DIR)))?;
        let manifest = Manifest {
            required: Vec::new(),
            optional: Vec::new(),
            identity,
            source,
            created: created::now(),
            writer: WRITER.to_owned(),
            samples,
            payload_bytes: self.payload_bytes,
            stored_bytes: self.stored_bytes,
            schema: self.schema,
            codec: self.codec,
            user: None,
            media_type: None,
            align: DEFAULT_ALIGN,
            metadata,
            index,
            shards,
        };
        stopped()?;
        write_manifest(&self.cache, &manifest, profile)?;
        Ok(Finished {
            created: manifest.created,
            samples,
            payload_bytes: self.payload_bytes,
            stored_bytes: self.stored_bytes,
        })
    }
}

fn write_manifest(cache: &Path, manifest: &Manifest, profile: &Profile) -> Result<()> {
    manifest.check().map_err(unfit)?;
    let bytes = profile.time(Stage::Finish, || manifest.to_bytes());
    let mut file = OutFile::create(cache.join(MANIFEST_FILE))?;
    file.append(&bytes)?;
    profile.time(Stage::Sync, || {
        file.sync()?;
        disk::sync_dir(cache)
    })
}

/// What came from the caller was checked before, so that the format has nothing to refuse.
fn unfit(error: dataset_rt_format::FormatError) -> Error {
    Error::Internal(format!(
        "what was written breaks a rule of the format: {error}"
    ))
}
