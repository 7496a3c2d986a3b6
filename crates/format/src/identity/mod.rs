//! The identity of a cache: a digest of what the data is, not of how it is packed.
//!
//! Samples are hashed in blocks of 65,536, each on its own, so that blocks may be hashed by several
//! workers. Payloads enter by length and CRC: the identity tells accidents apart, not forgeries.

mod stored;
mod streamed;

use std::convert::Infallible;

use sha2::{Digest, Sha256};

use crate::column::{Column, Columns, Value};
use crate::constants::IDENTITY_BLOCK;
use crate::error::FormatError;
use crate::schema::{FieldType, Schema};

pub use stored::identity_of_metadata;
pub use streamed::StreamedHasher;

const DOMAIN: &[u8] = b"dataset_rt content 1\0";

/// Up to 65,536 consecutive samples on their way into the identity.
///
/// Holds the values in the order in which they are hashed: field by field.
#[derive(Clone, Debug)]
pub struct IdentityBlock {
    samples: usize,
    records: Vec<u8>,
    fields: Vec<FieldBytes>,
}

#[derive(Clone, Debug)]
struct FieldBytes {
    field_type: FieldType,
    nullable: bool,
    present: Vec<u8>,
    /// Values of fixed width, or the lengths of texts.
    fixed: Vec<u8>,
    text: Vec<u8>,
}

impl IdentityBlock {
    /// A block without samples.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let fields = schema.fields().iter().map(|field| FieldBytes {
            field_type: field.field_type,
            nullable: field.nullable,
            present: Vec::new(),
            fixed: Vec::new(),
            text: Vec::new(),
        });
        Self {
            samples: 0,
            records: Vec::new(),
            fields: fields.collect(),
        }
    }

    /// The number of samples.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Whether the block holds all the samples it may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.samples >= IDENTITY_BLOCK
    }

    /// Adds one sample: length and CRC of its payload, and one value a field.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the values are not those of the schema; the block is of no use
    /// then.
    pub fn push_row<'v>(
        &mut self,
        raw_len: u32,
        crc: u32,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<(), FormatError> {
        self.push_values(raw_len, crc, values, true)
    }

    fn push_values<'v>(
        &mut self,
        raw_len: u32,
        crc: u32,
        values: impl IntoIterator<Item = Value<'v>>,
        keeps_text: bool,
    ) -> Result<(), FormatError> {
        self.push_record(raw_len, crc);
        let mut values = values.into_iter();
        let mut fits = true;
        for field in &mut self.fields {
            fits &= values
                .next()
                .is_some_and(|value| field.push(value, keeps_text));
        }
        fits &= values.next().is_none();
        self.samples += 1;
        if fits {
            Ok(())
        } else {
            Err(self.shape_error("one value a field, of its type"))
        }
    }

    /// Adds rows of `columns` from `start` on, with length and CRC of each payload from `records`; their texts by length
    /// alone unless `keeps_text`.
    fn push_columns(
        &mut self,
        records: &[(u32, u32)],
        columns: &Columns,
        start: usize,
        keeps_text: bool,
    ) -> Result<(), FormatError> {
        for (raw_len, crc) in records {
            self.push_record(*raw_len, *crc);
        }
        let end = start + records.len();
        let mut fits = columns.columns().len() == self.fields.len() && end <= columns.rows();
        for (field, column) in self.fields.iter_mut().zip(columns.columns()) {
            fits &= field.push_range(column, start, end, keeps_text);
        }
        self.samples += records.len();
        if fits {
            Ok(())
        } else {
            Err(columns.shape_error("columns of the schema".to_owned()))
        }
    }

    /// The digest of the block.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let own_texts = |field: usize, hash: &mut dyn FnMut(&[u8])| {
            let text = self.fields.get(field).map(|field| field.text.as_slice());
            hash(text.unwrap_or_default());
            Ok::<(), Infallible>(())
        };
        match self.digest_with(own_texts) {
            Ok(digest) => digest,
            Err(never) => match never {},
        }
    }

    /// The digest of the block with the texts that `texts` gives for a field, all rows' one after another.
    fn digest_with<E>(
        &self,
        mut texts: impl FnMut(usize, &mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<[u8; 32], E> {
        let mut hash = Sha256::new();
        hash.update(&self.records);
        for (position, field) in self.fields.iter().enumerate() {
            hash.update(&field.present);
            hash.update(&field.fixed);
            if field.field_type == FieldType::Utf8 {
                texts(position, &mut |text| hash.update(text))?;
            }
        }
        Ok(hash.finalize().into())
    }

    /// Removes all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.samples = 0;
        self.records.clear();
        for field in &mut self.fields {
            field.present.clear();
            field.fixed.clear();
            field.text.clear();
        }
    }

    fn push_record(&mut self, raw_len: u32, crc: u32) {
        self.records.extend_from_slice(&raw_len.to_le_bytes());
        self.records.extend_from_slice(&crc.to_le_bytes());
    }

    fn shape_error(&self, expected: &str) -> FormatError {
        FormatError::ColumnsShape {
            found: self.samples as u64,
            columns: self.fields.len() as u64,
            expected: expected.to_owned(),
        }
    }
}

impl FieldBytes {
    /// `false` if the value is of another type, or null where nulls are not declared.
    fn push(&mut self, value: Value<'_>, keeps_text: bool) -> bool {
        if self.nullable {
            self.present.push(u8::from(value != Value::Null));
        }
        // A missing value is hashed as the zero of its type, which is also what files hold in its place.
        match (self.field_type, value) {
            (_, Value::Null) if !self.nullable => return false,
            (FieldType::Bool, Value::Null) => self.fixed.push(0),
            (FieldType::Int64 | FieldType::Float64, Value::Null) => {
                self.fixed.extend_from_slice(&[0; 8]);
            }
            (FieldType::Utf8, Value::Null) => self.push_text("", keeps_text),
            (FieldType::Bool, Value::Bool(value)) => self.fixed.push(u8::from(value)),
            (FieldType::Int64, Value::Int64(value)) => {
                self.fixed.extend_from_slice(&value.to_le_bytes());
            }
            (FieldType::Float64, Value::Float64(value)) => {
                self.fixed.extend_from_slice(&value.to_bits().to_le_bytes());
            }
            (FieldType::Utf8, Value::Utf8(value)) => self.push_text(value, keeps_text),
            _ => return false,
        }
        true
    }

    fn push_range(&mut self, column: &Column, start: usize, end: usize, keeps_text: bool) -> bool {
        if column.field_type() != self.field_type || end > column.len() || start > end {
            return false;
        }
        if self.nullable {
            self.present.resize(self.present.len() + (end - start), 1);
        }
        let fixed = &mut self.fixed;
        match column {
            Column::Bool(values) => {
                fixed.extend(values[start..end].iter().map(|value| u8::from(*value)));
            }
            Column::Int64(values) => {
                let values = values[start..end].iter();
                values.for_each(|value| fixed.extend_from_slice(&value.to_le_bytes()));
            }
            Column::Float64(values) => {
                let bits = values[start..end].iter().map(|value| value.to_bits());
                bits.for_each(|bits| fixed.extend_from_slice(&bits.to_le_bytes()));
            }
            Column::Utf8(values) => {
                let mut from = values.start_of(start);
                for &to in values.ends().get(start..end).unwrap_or_default() {
                    fixed.extend_from_slice(&text_len(to - from).to_le_bytes());
                    from = to;
                }
                if keeps_text {
                    let text = values.text().as_bytes();
                    let range = values.start_of(start)..from;
                    self.text
                        .extend_from_slice(text.get(range).unwrap_or_default());
                }
            }
        }
        true
    }

    fn push_text(&mut self, value: &str, keeps_text: bool) {
        self.fixed
            .extend_from_slice(&text_len(value.len()).to_le_bytes());
        if keeps_text {
            self.text.extend_from_slice(value.as_bytes());
        }
    }
}

/// Texts are at most 2^30 bytes, which columns and readers check.
fn text_len(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The identity of a stream of samples.
#[derive(Clone, Debug)]
pub struct ContentHasher {
    schema: Schema,
    block: IdentityBlock,
    digests: Vec<[u8; 32]>,
    samples: u64,
}

impl ContentHasher {
    /// No samples yet.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let block = IdentityBlock::new(schema);
        Self {
            schema: schema.clone(),
            block,
            digests: Vec::new(),
            samples: 0,
        }
    }

    /// Adds samples without nulls: raw length and CRC of each payload, and their metadata.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if `columns` does not have a row for each record, or not the
    /// schema's columns; the hasher is of no use then.
    pub fn push(&mut self, records: &[(u32, u32)], columns: &Columns) -> Result<(), FormatError> {
        if columns.rows() != records.len() || !columns.fits(&self.schema) {
            let expected = format!("{} rows of the schema's fields", records.len());
            return Err(columns.shape_error(expected));
        }
        let mut start = 0;
        while start < records.len() {
            let count = (IDENTITY_BLOCK - self.block.samples()).min(records.len() - start);
            self.block
                .push_columns(&records[start..start + count], columns, start, true)?;
            start += count;
            self.close_if_full();
        }
        self.samples += records.len() as u64;
        Ok(())
    }

    /// Adds one sample, whose values may be null where the field is nullable.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the values are not those of the schema; the hasher is of no use
    /// then.
    pub fn push_row<'v>(
        &mut self,
        raw_len: u32,
        crc: u32,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<(), FormatError> {
        self.block.push_row(raw_len, crc, values)?;
        self.samples += 1;
        self.close_if_full();
        Ok(())
    }

    /// The number of samples so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The identity of all samples so far.
    #[must_use]
    pub fn finish(mut self) -> [u8; 32] {
        if self.block.samples() > 0 {
            self.digests.push(self.block.digest());
        }
        identity_of(&self.schema, self.samples, &self.digests)
    }

    fn close_if_full(&mut self) {
        if self.block.is_full() {
            self.digests.push(self.block.digest());
            self.block.clear();
        }
    }
}

/// The identity, from the digests of all blocks in order.
#[must_use]
pub fn identity_of(schema: &Schema, samples: u64, blocks: &[[u8; 32]]) -> [u8; 32] {
    // Names are at most 1,024 bytes and fields at most 4,096, which the schema checks.
    let len = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(samples.to_le_bytes());
    hash.update(len(schema.len()));
    for field in schema.fields() {
        hash.update(len(field.name.len()));
        hash.update(field.name.as_bytes());
        hash.update([field.field_type.tag(), u8::from(field.nullable)]);
    }
    for block in blocks {
        hash.update(block);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests;
