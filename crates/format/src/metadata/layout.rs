//! Where values are in a `metadata.arrow` that somebody wrote: found and checked without reading columns.

use std::borrow::Cow;
use std::ops::Range;

use arrow_ipc::root_as_footer_with_opts;
use flatbuffers::VerifierOptions;

use super::access::ColumnSlices;
use super::batch::{Place, read_batch};
use super::errors::message_error;
use super::footer::check_footer;
use super::frame::FILE_START;
use crate::constants::ARROW_MAGIC;
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::schema::{FieldType, Schema};

/// Length of the footer and magic bytes at the end of the file.
const FILE_END: u64 = 10;
/// The shortest flatbuffer.
const MIN_FOOTER: u64 = 8;

/// Where one batch's columns are in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchLayout {
    /// The sample of the batch's first row.
    pub first_row: u64,
    /// The number of rows, 1 or more.
    pub rows: u64,
    /// The columns in the schema's order.
    pub columns: Vec<ColumnLayout>,
}

/// Where one column of a batch is in the file. All ranges are inside the file and start at multiples of 8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnLayout {
    /// The number of nulls.
    pub null_count: u64,
    /// One bit a row, 1 where there is a value; `None` where no value is null.
    pub nulls: Option<Range<u64>>,

    /// Bits, 8-byte numbers, or rows + 1 offsets of 4 bytes.
    pub values: Range<u64>,
    /// The bytes of texts.
    pub text: Option<Range<u64>>,
}

/// Where all values of a metadata file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataLayout {
    types: Vec<FieldType>,
    rows: u64,
    batches: Vec<BatchLayout>,
}

impl MetadataLayout {
    /// Reads footer and batch headers of a file of `file_len` bytes through `read(offset, len)`, which
    /// returns exactly those bytes and is asked for bytes inside the file only.
    ///
    /// Text offsets and UTF-8 are checked later, by [`ColumnSlices`].
    ///
    /// # Errors
    /// Code `metadata_invalid`, and what `read` returns.
    pub fn parse<'a, E: From<FormatError>>(
        file_len: u64,
        schema: &Schema,
        rows: u64,
        read: &mut dyn FnMut(u64, u64) -> Result<Cow<'a, [u8]>, E>,
    ) -> Result<Self, E> {
        let footer_range = footer_range(file_len, read)?;
        let footer_bytes = read(footer_range.start, footer_range.end - footer_range.start)?;
        let options = VerifierOptions::default();
        let footer = root_as_footer_with_opts(&options, &footer_bytes)
            .map_err(|error| message_error("footer", &error.to_string()))?;
        check_footer(&footer, schema)?;

        let types: Vec<FieldType> = schema
            .fields()
            .iter()
            .map(|field| field.field_type)
            .collect();
        let nullable: Vec<bool> = schema.fields().iter().map(|field| field.nullable).collect();
        let mut batches = Vec::new();
        let mut first_row = 0;
        let mut end = FILE_START as u64;
        for block in footer
            .recordBatches()
            .iter()
            .flat_map(|blocks| blocks.iter())
        {
            let place = Place::of(block, end, footer_range.start)?;
            end = place.end();
            let bytes = read(place.message.start, place.message.end - place.message.start)?;
            let batch = read_batch(&bytes, &place, first_row, &types, &nullable)?;
            first_row = first_row.saturating_add(batch.rows);
            if first_row > rows {
                return Err(FormatError::MetadataRows {
                    found: first_row,
                    expected: rows,
                }
                .into());
            }
            batches.push(batch);
        }
        if first_row != rows {
            return Err(FormatError::MetadataRows {
                found: first_row,
                expected: rows,
            }
            .into());
        }
        Ok(Self {
            types,
            rows,
            batches,
        })
    }

    /// [`parse`](Self::parse) of a whole file in memory.
    ///
    /// # Errors
    /// Code `metadata_invalid`.
    pub fn parse_bytes(file: &[u8], schema: &Schema, rows: u64) -> Result<Self, FormatError> {
        let mut read = |start: u64, len: u64| {
            let range = start..start.saturating_add(len);
            slice(file, &range).map(Cow::Borrowed)
        };
        Self::parse(file.len() as u64, schema, rows, &mut read)
    }

    /// Checks every value of a file whose whole bytes are `file`: validity buffers, text offsets, UTF-8.
    ///
    /// # Errors
    /// Code `metadata_invalid`.
    pub fn check_values(&self, file: &[u8]) -> Result<(), FormatError> {
        for (position, batch) in self.batches.iter().enumerate() {
            for (field, column) in batch.columns.iter().enumerate() {
                self.column(file, position, field)?
                    .check(column.null_count)?;
            }
        }
        Ok(())
    }

    /// The batches in order.
    #[must_use]
    pub fn batches(&self) -> &[BatchLayout] {
        &self.batches
    }

    /// The types of the columns.
    #[must_use]
    pub fn types(&self) -> &[FieldType] {
        &self.types
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The batch of a row and the row's position in it; `None` beyond the last row.
    #[must_use]
    pub fn locate(&self, row: u64) -> Option<(usize, u64)> {
        if row >= self.rows {
            return None;
        }
        let after = self.batches.partition_point(|batch| batch.first_row <= row);
        let position = after.checked_sub(1)?;
        Some((position, row - self.batches.get(position)?.first_row))
    }

    /// A column of a batch inside `file`, the bytes of the whole file.
    ///
    /// # Errors
    /// [`FormatError::MetadataBounds`] if `file` is shorter than it was at [`parse`](Self::parse) or there
    /// is no such column.
    pub fn column<'f>(
        &self,
        file: &'f [u8],
        batch: usize,
        field: usize,
    ) -> Result<ColumnSlices<'f>, FormatError> {
        let layout = self.batches.get(batch);
        let column = layout.and_then(|layout| layout.columns.get(field));
        let (Some(layout), Some(column), Some(field_type)) =
            (layout, column, self.types.get(field))
        else {
            let (what, limit) = ("column", self.batches.len() as u64);
            return Err(FormatError::MetadataBounds {
                what,
                offset: -1,
                len: 0,
                limit,
            });
        };
        let slice = |range: &Range<u64>| slice(file, range);
        ColumnSlices::new(
            *field_type,
            layout.rows,
            column.nulls.as_ref().map(slice).transpose()?,
            slice(&column.values)?,
            column
                .text
                .as_ref()
                .map(slice)
                .transpose()?
                .unwrap_or_default(),
        )
    }
}

pub(super) fn slice<'f>(file: &'f [u8], range: &Range<u64>) -> Result<&'f [u8], FormatError> {
    let start = usize::try_from(range.start).ok();
    let end = usize::try_from(range.end).ok();
    start
        .zip(end)
        .and_then(|(start, end)| file.get(start..end))
        .ok_or_else(|| FormatError::MetadataBounds {
            what: "buffer",
            offset: i64::try_from(range.start).unwrap_or(i64::MAX),
            len: i64::try_from(range.end - range.start).unwrap_or(i64::MAX),
            limit: file.len() as u64,
        })
}

/// Checks both magic bytes and the footer's length; returns where the footer is.
pub(super) fn footer_range<'a, E: From<FormatError>>(
    file_len: u64,
    read: &mut dyn FnMut(u64, u64) -> Result<Cow<'a, [u8]>, E>,
) -> Result<Range<u64>, E> {
    let least = FILE_START as u64 + FILE_END;
    if file_len < least + MIN_FOOTER {
        return Err(FormatError::MetadataMagic.into());
    }
    let start = read(0, FILE_START as u64)?;
    let end = read(file_len - FILE_END, FILE_END)?;
    let mut cursor = Cursor::new(&end);
    let footer_len = cursor.array::<4>().map(i32::from_le_bytes);
    let starts = start.strip_prefix(&ARROW_MAGIC) == Some(&[0, 0]);
    if !starts || cursor.array() != Some(ARROW_MAGIC) {
        return Err(FormatError::MetadataMagic.into());
    }
    let footer_len = footer_len.unwrap_or(-1);
    let room = file_len - least;
    match u64::try_from(footer_len) {
        Ok(len) if (MIN_FOOTER..=room).contains(&len) => {
            let end = file_len - FILE_END;
            Ok(end - len..end)
        }
        _ => {
            let (what, len) = ("footer", i64::from(footer_len));
            Err(FormatError::MetadataBounds {
                what,
                offset: -1,
                len,
                limit: room,
            }
            .into())
        }
    }
}
