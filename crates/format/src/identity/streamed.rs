//! The identity of a stream of samples whose texts are elsewhere.
//!
//! The definition takes the texts of 65,536 rows field by field, so that those of the second field wait for the last row
//! of the first. They may be far more than the rest of a block, and a writer has them in its file already.

use super::{IdentityBlock, identity_of};
use crate::column::{Columns, Value};
use crate::constants::IDENTITY_BLOCK;
use crate::error::FormatError;
use crate::schema::Schema;

/// As [`ContentHasher`](super::ContentHasher), but asks for the texts of a block when it is closed. Its memory is
/// bounded by the number of fields.
#[derive(Clone, Debug)]
pub struct StreamedHasher {
    schema: Schema,
    block: IdentityBlock,
    digests: Vec<[u8; 32]>,
    samples: u64,
}

impl StreamedHasher {
    /// No samples yet.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        Self {
            schema: schema.clone(),
            block: IdentityBlock::new(schema),
            digests: Vec::new(),
            samples: 0,
        }
    }

    /// How many more samples belong into the open block; none: it is to be closed.
    #[must_use]
    pub fn room(&self) -> usize {
        IDENTITY_BLOCK - self.block.samples()
    }

    /// The number of samples so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Adds rows of `columns`, none null, from `start` on: one for each of `records`, which has raw length and CRC of
    /// its payload.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] for more rows than there are or than there is room for, and for columns that are
    /// not the schema's; the hasher is of no use then.
    pub fn push(
        &mut self,
        records: &[(u32, u32)],
        columns: &Columns,
        start: usize,
    ) -> Result<(), FormatError> {
        if records.len() > self.room() || !columns.fits(&self.schema) {
            let expected = format!("up to {} rows of the schema's fields", self.room());
            return Err(columns.shape_error(expected));
        }
        self.block.push_columns(records, columns, start, false)?;
        self.samples += records.len() as u64;
        Ok(())
    }

    /// Adds one sample, whose values may be null where the field is nullable.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the values are not those of the schema, or without room; the hasher is of no use
    /// then.
    pub fn push_row<'v>(
        &mut self,
        raw_len: u32,
        crc: u32,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<(), FormatError> {
        if self.room() == 0 {
            return Err(self.block.shape_error("room for a row"));
        }
        self.block.push_values(raw_len, crc, values, false)?;
        self.samples += 1;
        Ok(())
    }

    /// Ends the open block. `texts` gives the texts of a field, by its position, of all rows since the last block: one
    /// after another, in any pieces.
    ///
    /// # Errors
    /// What `texts` returns; the hasher is of no use then.
    pub fn close_block<E>(
        &mut self,
        texts: impl FnMut(usize, &mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.block.samples() > 0 {
            self.digests.push(self.block.digest_with(texts)?);
            self.block.clear();
        }
        Ok(())
    }

    /// The identity of all samples, whose last block was closed.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        identity_of(&self.schema, self.samples, &self.digests)
    }
}
