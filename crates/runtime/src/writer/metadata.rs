//! `metadata.arrow`, streamed a record batch at a time, so that memory does not grow with the rows.

use std::ops::Range;
use std::path::Path;

use dataset_rt_format::{
    Batcher, BlockSums, Column, Columns, FileInfo, FormatError, METADATA_FILE, MetadataEncoder,
    Schema,
};

use crate::disk::OutFile;
use crate::error::{Error, Result};
use crate::writer::profile::{Profile, Stage};

/// Bytes of text read back at once.
const READ_CHUNK: usize = 256 << 10;

/// The metadata being written.
pub(crate) struct MetadataFile {
    file: OutFile,
    encoder: MetadataEncoder,
    batcher: Batcher,
    sums: BlockSums,
    /// For each field, where the texts are that no block of the identity has had yet.
    texts: Vec<FieldTexts>,
}

/// Texts of one field: first those that are written, then those of the batcher's rows.
#[derive(Clone, Debug, Default)]
struct FieldTexts {
    written: Vec<Range<u64>>,
    /// How much of the open batch's text is no more wanted.
    used: usize,
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
            texts: vec![FieldTexts::default(); schema.len()],
        };
        let prefix = made.encoder.prefix();
        made.write(&prefix)?;
        Ok(made)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sums.push(bytes);
        self.file.append(bytes)
    }

    /// Adds rows `start..end`; batches that they complete are written.
    pub(crate) fn append(&mut self, columns: &Columns, start: usize, end: usize) -> Result<()> {
        let full = self.batcher.push_range(columns, start, end);
        for batch in full.map_err(unfit)? {
            let bytes = self.encoder.batch(&batch).map_err(unfit)?;
            drop(batch);
            self.write(&bytes)?;
            for (texts, place) in self.texts.iter_mut().zip(self.encoder.text_places()) {
                let used = std::mem::take(&mut texts.used) as u64;
                if place.start + used < place.end {
                    texts.written.push(place.start + used..place.end);
                }
            }
        }
        Ok(())
    }

    /// Gives the texts of a field in the rows since [`forget_texts`](Self::forget_texts), in pieces.
    pub(crate) fn texts(&self, field: usize, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let missing = || Error::Internal(format!("texts of field {field}"));
        let FieldTexts { written, used } = self.texts.get(field).ok_or_else(missing)?;
        let mut chunk = Vec::new();
        for place in written {
            let mut at = place.start;
            while at < place.end {
                let len = usize::try_from(place.end - at).map_or(READ_CHUNK, |n| n.min(READ_CHUNK));
                chunk.resize(len, 0);
                self.file.read_at(&mut chunk, at)?;
                take(&chunk);
                at += len as u64;
            }
        }
        let open = self.batcher.open().columns().get(field);
        let Some(Column::Utf8(texts)) = open else {
            return Err(missing());
        };
        take(texts.text().as_bytes().get(*used..).ok_or_else(missing)?);
        Ok(())
    }

    /// The texts of all rows so far are no more wanted.
    pub(crate) fn forget_texts(&mut self) {
        for (texts, open) in self.texts.iter_mut().zip(self.batcher.open().columns()) {
            texts.written.clear();
            texts.used = usize::try_from(open.text_bytes()).unwrap_or(usize::MAX);
        }
    }

    /// Writes the last batch and the file's end, waits until it is on the disk, and returns the sums of its blocks.
    pub(crate) fn finish(self, profile: &Profile) -> Result<(FileInfo, Vec<u32>)> {
        let Self {
            mut file,
            mut encoder,
            batcher,
            mut sums,
            ..
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
