//! `metadata.arrow`, streamed a record batch at a time, so that memory does not grow with the rows.

use std::path::Path;

use dataset_rt_format::{
    Batcher, BlockSums, Columns, FileInfo, FormatError, METADATA_FILE, MetadataEncoder, Schema,
};

use crate::disk::OutFile;
use crate::error::{Error, Result};
use crate::writer::profile::{Profile, Stage};

/// The metadata being written.
pub(crate) struct MetadataFile {
    file: OutFile,
    encoder: MetadataEncoder,
    batcher: Batcher,
    sums: BlockSums,
}

impl MetadataFile {
    /// Makes the file in `cache`.
    pub(crate) fn create(cache: &Path, schema: &Schema) -> Result<Self> {
        let encoder = MetadataEncoder::new(schema);
        let mut made = Self {
            file: OutFile::create(cache.join(METADATA_FILE))?,
            batcher: Batcher::new(schema),
            sums: BlockSums::new(),
            encoder,
        };
        let prefix = made.encoder.prefix();
        made.write(&prefix)?;
        Ok(made)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sums.push(bytes);
        self.file.append(bytes)
    }

    /// Adds rows; batches that they complete are written.
    pub(crate) fn append(&mut self, columns: &Columns) -> Result<()> {
        for batch in self.batcher.push(columns).map_err(unfit)? {
            let bytes = self.encoder.batch(&batch).map_err(unfit)?;
            self.write(&bytes)?;
        }
        Ok(())
    }

    /// Writes the last batch and the file's end, waits until it is on the disk, and returns the sums of its blocks.
    pub(crate) fn finish(self, profile: &Profile) -> Result<(FileInfo, Vec<u32>)> {
        let Self {
            mut file,
            mut encoder,
            batcher,
            mut sums,
        } = self;
        if let Some(batch) = batcher.finish() {
            let bytes = encoder.batch(&batch).map_err(unfit)?;
            sums.push(&bytes);
            file.append(&bytes)?;
        }
        let end = encoder.finish();
        sums.push(&end);
        file.append(&end)?;
        profile.time(Stage::Sync, || file.sync())?;
        let info = FileInfo {
            size: file.len(),
            crc32c: sums.crc(),
            sha256: None,
        };
        Ok((info, sums.finish()))
    }
}

fn unfit(error: FormatError) -> Error {
    Error::Internal(format!(
        "metadata that breaks a rule of the format: {error}"
    ))
}
