//! Shard files being filled, and their ends.

use std::path::Path;

use dataset_rt_format::constants::{DEFAULT_ALIGN, MAX_SHARDS};
use dataset_rt_format::{
    Codec, Crc32c, FooterEntry, SHARD_DIR, ShardHeader, ShardInfo, ShardPlan, encode_tail,
    shard_file, shard_name,
};

use crate::disk::OutFile;
use crate::error::{Error, Result};
use crate::writer::encode::{Body, EncodedBlock, RECORD_ALIGNMENT, Record};
use crate::writer::profile::{Profile, Stage};

/// The shard that records go to.
pub(crate) struct ShardFile {
    file: OutFile,
    header: ShardHeader,
    plan: ShardPlan,
    crc: Crc32c,
    entries: Vec<FooterEntry>,
}

/// A shard that gets no more records.
pub(crate) struct FullShard(ShardFile);

/// A shard that is complete and on the disk.
#[derive(Debug)]
pub(crate) struct ClosedShard {
    pub(crate) ordinal: u32,
    pub(crate) info: ShardInfo,
}

impl ShardFile {
    /// Makes shard number `ordinal` of a cache, with `first` samples before it.
    pub(crate) fn create(
        cache: &Path,
        codec: Codec,
        max_shard_bytes: u64,
        ordinal: u32,
        first: u64,
    ) -> Result<Self> {
        if u64::from(ordinal) >= MAX_SHARDS {
            return Err(Error::Argument {
                argument: "max_shard_bytes",
                message: format!(
                    "{max_shard_bytes} bytes a shard make more than {MAX_SHARDS} shards of this source; \
                     allow longer ones"
                ),
            });
        }
        let path = cache.join(SHARD_DIR).join(shard_file(&shard_name(ordinal)));
        let header = ShardHeader {
            codec,
            align: DEFAULT_ALIGN,
            part: 0,
            first,
            ordinal,
        };
        let mut shard = Self {
            file: OutFile::create(path)?,
            header,
            plan: ShardPlan::new(codec, DEFAULT_ALIGN, max_shard_bytes),
            crc: Crc32c::new(),
            entries: Vec::new(),
        };
        shard.write(&header.encode())?;
        Ok(shard)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.crc.update(bytes);
        self.file.append(bytes)
    }

    pub(crate) fn ordinal(&self) -> u32 {
        self.header.ordinal
    }

    /// Samples up to the end of this shard.
    pub(crate) fn next_first(&self) -> u64 {
        self.header.first + self.plan.count()
    }

    /// Adds the records of a block from number `start` on that belong into this shard, tells `placed` where each
    /// begins, and returns the number of the first that does not.
    pub(crate) fn append(
        &mut self,
        block: &EncodedBlock,
        start: usize,
        profile: &Profile,
        mut placed: impl FnMut(u64, &Record),
    ) -> Result<usize> {
        let coming = block.records.get(start..).unwrap_or_default();
        let mut count = 0;
        for record in coming {
            if !self.plan.fits(record.stored_len) {
                break;
            }
            let &Record {
                stored_len,
                raw_len,
                crc,
                ..
            } = record;
            placed(self.plan.place(stored_len), record);
            self.entries.push(FooterEntry {
                stored_len,
                crc,
                raw_len,
            });
            count += 1;
        }
        let run = coming.get(..count).unwrap_or_default();
        profile.time(Stage::Write, || self.append_run(block, start, run))?;
        Ok(start + count)
    }

    /// Writes records with the zeros behind each, so that the next one begins where the file ends.
    fn append_run(&mut self, block: &EncodedBlock, start: usize, run: &[Record]) -> Result<()> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        match &block.body {
            Body::Laid { bytes, crc } => {
                let range = to_usize(first.offset)?..to_usize(last.padded_end())?;
                let stored = bytes
                    .get(range)
                    .ok_or_else(|| Error::Internal("a record outside of its block".to_owned()))?;
                if stored.len() == bytes.len() {
                    self.crc.append(*crc, stored.len() as u64);
                } else {
                    self.crc.update(stored);
                }
                self.file.append(stored)
            }
            Body::Direct(payloads) => {
                for (index, record) in (start..).zip(run) {
                    // Stored as it is, so its CRC is that of the stored bytes.
                    self.crc.append(record.crc, u64::from(record.stored_len));
                    self.file.append(payloads.get(index))?;
                    let padding =
                        record.padded_end() - record.offset - u64::from(record.stored_len);
                    let zeros = [0; RECORD_ALIGNMENT];
                    self.write(zeros.get(..to_usize(padding)?).unwrap_or_default())?;
                }
                Ok(())
            }
        }
    }

    /// Takes no more records.
    pub(crate) fn full(self) -> FullShard {
        FullShard(self)
    }
}

fn to_usize(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::Internal(format!("{value} bytes in one block")))
}

impl FullShard {
    /// Writes the shard's end and waits until it is on the disk.
    pub(crate) fn close(self, last: bool, profile: &Profile) -> Result<ClosedShard> {
        let Self(mut shard) = self;
        let ShardHeader { codec, ordinal, .. } = shard.header;
        let records_end = shard.plan.records_end();
        let tail = profile.time(Stage::Finish, || {
            encode_tail(
                &shard.header.encode(),
                records_end,
                &shard.entries,
                codec,
                last,
            )
        });
        // The zeros behind the last record are part of the tail too.
        let written = to_usize(shard.file.len() - records_end)?;
        let rest = tail.bytes.get(written..).unwrap_or_default();
        profile.time(Stage::Write, || shard.write(rest))?;
        if shard.file.len() != tail.file_size {
            let message = format!(
                "a shard of {} bytes, not {}",
                shard.file.len(),
                tail.file_size
            );
            return Err(Error::Internal(message));
        }
        profile.time(Stage::Sync, || shard.file.sync())?;
        let info = ShardInfo {
            name: shard_name(ordinal),
            size: tail.file_size,
            samples: shard.plan.count(),
            id: tail.id,
            crc32c: shard.crc.value(),
            sha256: None,
        };
        Ok(ClosedShard { ordinal, info })
    }
}
