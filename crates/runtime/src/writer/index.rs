//! `index.bin`, streamed: entries as they come, raw lengths aside, the head at the end.

use std::path::{Path, PathBuf};

use dataset_rt_format::constants::DEFAULT_ALIGN;
use dataset_rt_format::{Codec, FileInfo, INDEX_FILE, IndexBuilder, IndexEntry};

use crate::disk::{self, OutFile};
use crate::error::Result;
use crate::writer::profile::{Profile, Stage};

/// Bytes gathered before they are written.
const BUFFER: usize = 64 << 10;
/// Bytes moved at once from the file of raw lengths into the index.
const MOVE_CHUNK: usize = 1 << 20;

/// The index being written.
pub(crate) struct IndexFile {
    file: OutFile,
    builder: IndexBuilder,
    entries: Vec<u8>,
    /// Where the gathered entries go.
    at: u64,
    raw_lens: Option<RawLens>,
}

/// Raw lengths come after all entries, so their place is known at the end only.
struct RawLens {
    file: OutFile,
    buffer: Vec<u8>,
}

impl IndexFile {
    /// Makes the file in `cache`, and with a codec the file `spill`.
    pub(crate) fn create(cache: &Path, spill: PathBuf, codec: Codec) -> Result<Self> {
        let builder = IndexBuilder::new(codec, DEFAULT_ALIGN);
        let raw_lens = if codec.has_raw_lens() {
            Some(RawLens {
                file: OutFile::create(spill)?,
                buffer: Vec::new(),
            })
        } else {
            None
        };
        Ok(Self {
            file: OutFile::create(cache.join(INDEX_FILE))?,
            at: builder.entries_offset(),
            builder,
            entries: Vec::new(),
            raw_lens,
        })
    }

    /// Adds the entry of the next sample.
    pub(crate) fn push(&mut self, entry: &IndexEntry, raw_len: u32) {
        self.entries.extend_from_slice(&entry.encode());
        if let Some(raw_lens) = &mut self.raw_lens {
            raw_lens.buffer.extend_from_slice(&raw_len.to_le_bytes());
        }
    }

    /// Writes what was gathered, once it is worth a write.
    pub(crate) fn flush_if_full(&mut self) -> Result<()> {
        if self.entries.len() >= BUFFER {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.builder.push_entries(&self.entries);
        self.file.write_at(&self.entries, self.at)?;
        self.at += self.entries.len() as u64;
        self.entries.clear();
        if let Some(RawLens { file, buffer }) = &mut self.raw_lens {
            self.builder.push_raw_lens(buffer);
            file.append(buffer)?;
            buffer.clear();
        }
        Ok(())
    }

    /// Writes the rest, the head last, and waits until the file is on the disk.
    pub(crate) fn finish(
        mut self,
        shards: u64,
        identity: [u8; 32],
        metadata_sums: &[u32],
        profile: &Profile,
    ) -> Result<FileInfo> {
        self.flush()?;
        let Self {
            mut file,
            builder,
            raw_lens,
            ..
        } = self;
        let parts = builder.finish(shards, identity, metadata_sums);
        if let (Some(raw_lens), Some(at)) = (raw_lens, parts.raw_lens_at) {
            raw_lens.move_into(&mut file, at)?;
        }
        file.write_at(&parts.tail, parts.tail_at)?;
        file.write_at(&parts.head, 0)?;
        profile.time(Stage::Sync, || file.sync())?;
        Ok(FileInfo {
            size: parts.file_size,
            crc32c: parts.crc,
            sha256: None,
        })
    }
}

impl RawLens {
    /// Copies the raw lengths to their place and removes their own file.
    fn move_into(self, index: &mut OutFile, mut at: u64) -> Result<()> {
        let (mut from, end) = (0, self.file.len());
        let mut chunk = vec![0; MOVE_CHUNK];
        while from < end {
            let len = usize::try_from(end - from)
                .unwrap_or(MOVE_CHUNK)
                .min(MOVE_CHUNK);
            let part = chunk.get_mut(..len).unwrap_or_default();
            self.file.read_at(part, from)?;
            index.write_at(part, at)?;
            from += len as u64;
            at += len as u64;
        }
        let path = self.file.path().to_path_buf();
        drop(self.file);
        disk::remove_file(&path)
    }
}
