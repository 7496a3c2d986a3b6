//! The metadata of an open cache: where its columns are, and single values of them.
//!
//! Nothing is read whole. What is touched is checked at first touch: blocks of bytes by their sums, text by its offsets
//! and UTF-8 at every access, since no Arrow library does that for us.

use std::borrow::Cow;
use std::ops::Range;

use dataset_rt_format::constants::MAX_TEXT_VALUE;
use dataset_rt_format::{
    BatchLayout, ColumnLayout, FieldType, FormatError, MetadataLayout, Schema, Value,
};

use crate::error::{Error, Result};
use crate::region::Region;

use super::columns::unknown_type;

/// Parts of the file that are read before the first batch: both ends and the footer.
const PARTS_BEFORE_BATCHES: usize = 3;

/// The columns of one cache.
pub(crate) struct Metadata {
    region: Region,
    layout: MetadataLayout,
    /// First row of each batch.
    firsts: Box<[u64]>,
    /// Where the header of each batch lies. Opening parses them; their sums are checked when a batch is first used,
    /// which spares opening 64 KiB a batch.
    headers: Box<[Range<u64>]>,
    /// Rows of the first batch: the size of all of them, most of the time.
    usual_rows: u64,
}

/// A row of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) batch: &'a BatchLayout,
    /// Row in the batch.
    pub(crate) row: u64,
}

impl Metadata {
    pub(crate) fn new(region: Region, schema: &Schema, rows: u64) -> Result<Self> {
        /// Failed reads come out of the parser as they went in.
        struct Failure(Error);
        let mut parts = Vec::new();
        let parsed = {
            let mut read = |offset: u64, len: u64| {
                let range = offset..offset.saturating_add(len);
                parts.push(range.clone());
                let bytes = if parts.len() <= PARTS_BEFORE_BATCHES {
                    region.bytes(range)
                } else {
                    region.unchecked(range)
                };
                bytes.map(Cow::Borrowed).map_err(Failure)
            };
            impl From<FormatError> for Failure {
                fn from(error: FormatError) -> Self {
                    Self(Error::damaged(std::path::PathBuf::new(), error))
                }
            }
            MetadataLayout::parse(region.len(), schema, rows, &mut read)
        };
        let layout = match parsed {
            Ok(layout) => layout,
            Err(Failure(error)) => {
                // A wrong header may be a damaged one.
                for part in parts {
                    region.check(part)?;
                }
                return Err(match error {
                    Error::Damaged { source, offset, .. } => region.error(source, offset),
                    other => other,
                });
            }
        };
        let headers: Box<[Range<u64>]> = parts.into_iter().skip(PARTS_BEFORE_BATCHES).collect();
        if headers.len() != layout.batches().len() {
            return Err(Error::Internal(
                "batch headers of the metadata miscounted".to_owned(),
            ));
        }
        let firsts = layout
            .batches()
            .iter()
            .map(|batch| batch.first_row)
            .collect();
        let usual_rows = layout
            .batches()
            .first()
            .map_or(1, |batch| batch.rows.max(1));
        Ok(Self {
            region,
            layout,
            firsts,
            headers,
            usual_rows,
        })
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// The batch and the row in it of a sample.
    pub(crate) fn place(&self, sample: u64) -> Result<Place<'_>> {
        let batches = self.layout.batches();
        let guess = usize::try_from(sample / self.usual_rows).unwrap_or(usize::MAX);
        let guessed = batches
            .get(guess)
            .filter(|batch| (batch.first_row..batch.first_row + batch.rows).contains(&sample));
        let (at, batch) = match guessed {
            Some(batch) => (guess, batch),
            None => {
                let at = self
                    .firsts
                    .partition_point(|&first| first <= sample)
                    .wrapping_sub(1);
                match batches
                    .get(at)
                    .filter(|batch| sample - batch.first_row < batch.rows)
                {
                    Some(batch) => (at, batch),
                    None => return Err(Error::Internal(format!("no metadata row {sample}"))),
                }
            }
        };
        if let Some(header) = self.headers.get(at) {
            self.region.check(header.clone())?;
        }
        Ok(Place {
            batch,
            row: sample - batch.first_row,
        })
    }

    /// One value. Text points into the file's bytes.
    pub(crate) fn value(&self, field: usize, sample: u64) -> Result<Value<'_>> {
        let place = self.place(sample)?;
        let value = self.value_at(&place, field);
        // AFTER the value was read.
        self.region.intact()?;
        value
    }

    /// All values of a sample, in the order of the fields. Text points into the file's bytes.
    pub(crate) fn values<E: From<Error>>(
        &self,
        sample: u64,
        mut take: impl FnMut(usize, Value<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let place = self.place(sample)?;
        for field in 0..self.layout.types().len() {
            let value = self.value_at(&place, field);
            if value.is_err() {
                // What is wrong may be no damage, but a file that was cut.
                self.region.intact()?;
            }
            take(field, value?)?;
        }
        // AFTER the values were read.
        Ok(self.region.intact()?)
    }

    fn value_at<'a>(&'a self, place: &Place<'a>, field: usize) -> Result<Value<'a>> {
        let (Some(column), Some(field_type)) = (
            place.batch.columns.get(field),
            self.layout.types().get(field),
        ) else {
            return Err(Error::Internal(format!("no metadata field {field}")));
        };
        if !self.is_present(column, place.row)? {
            return Ok(Value::Null);
        }
        Ok(match field_type {
            FieldType::Bool => Value::Bool(self.bit(&column.values, place.row)?),
            FieldType::Int64 => Value::Int64(i64::from_le_bytes(self.word(column, place.row)?)),
            FieldType::Float64 => Value::Float64(f64::from_bits(u64::from_le_bytes(
                self.word(column, place.row)?,
            ))),
            FieldType::Utf8 => {
                let range = self.text_range(column, place.row, 1)?;
                let bytes = self.region.bytes(range.clone())?;
                match std::str::from_utf8(bytes) {
                    Ok(text) => Value::Utf8(text),
                    Err(_) => return Err(self.not_utf8(place.row, range.start)),
                }
            }
            other => return Err(unknown_type(*other)),
        })
    }

    pub(crate) fn is_present(&self, column: &ColumnLayout, row: u64) -> Result<bool> {
        column
            .nulls
            .as_ref()
            .map_or(Ok(true), |nulls| self.bit(nulls, row))
    }

    pub(crate) fn bit(&self, bits: &Range<u64>, row: u64) -> Result<bool> {
        let at = bits.start + row / 8;
        let byte = self.region.bytes(at..at + 1)?.first().copied().unwrap_or(0);
        Ok(byte >> (row % 8) & 1 == 1)
    }

    fn word(&self, column: &ColumnLayout, row: u64) -> Result<[u8; 8]> {
        let at = column.values.start + row * 8;
        let word = self.region.bytes(at..at + 8)?.first_chunk().copied();
        word.ok_or_else(|| Error::Internal("short metadata value".to_owned()))
    }

    /// Where the text of `rows` rows lies: their offsets rise and stay inside of the column's text.
    pub(crate) fn text_range(
        &self,
        column: &ColumnLayout,
        row: u64,
        rows: u64,
    ) -> Result<Range<u64>> {
        let at = column.values.start + row * 4;
        let offsets = self.region.bytes(at..at + (rows + 1) * 4)?;
        let offsets = offsets.as_chunks::<4>().0;
        let text = column.text.clone().unwrap_or(0..0);
        let limit = text.end - text.start;
        let offset = |at: usize| {
            offsets
                .get(at)
                .map_or(-1, |bytes| i32::from_le_bytes(*bytes))
        };
        let (first, last) = (offset(0), offset(offsets.len().wrapping_sub(1)));
        // All at once; which row is wrong is looked for only when one is.
        let mut before = first;
        let mut falls = false;
        for bytes in offsets {
            let next = i32::from_le_bytes(*bytes);
            falls |= next < before;
            before = next;
        }
        if let (Ok(start), Ok(end)) = (u64::try_from(first), u64::try_from(last))
            && !falls
            && end <= limit
            && end - start <= MAX_TEXT_VALUE
        {
            return Ok(text.start + start..text.start + end);
        }
        for (row, at_row) in (row..).zip(0..offsets.len() - 1) {
            let (start, end) = (i64::from(offset(at_row)), i64::from(offset(at_row + 1)));
            let length = u64::try_from(end - start).ok().filter(|_| start >= 0);
            let Some(found) = length.filter(|_| end.cast_unsigned() <= limit) else {
                let source = FormatError::TextOffsets {
                    row,
                    start,
                    end,
                    limit,
                };
                return Err(self.region.error(source, Some(at)));
            };
            if found > MAX_TEXT_VALUE {
                let source = FormatError::TextLong {
                    found,
                    most: MAX_TEXT_VALUE,
                };
                return Err(self.region.error(source, Some(at)));
            }
        }
        // Every text fits, only not all of them together.
        let bound = |offset: i32| text.start + u64::try_from(offset).unwrap_or(0);
        Ok(bound(first)..bound(last))
    }

    /// Starts to load the text of a row whose offset has arrived. A hint, so nothing is checked.
    #[inline]
    pub(crate) fn prefetch_text(&self, column: &ColumnLayout, row: u64) {
        let at = column.values.start + row * 4;
        if let Ok(bytes) = self.region.unchecked(at..at + 4)
            && let Some(bytes) = bytes.first_chunk()
            && let Some(text) = &column.text
        {
            let offset = u64::from(u32::from_le_bytes(*bytes));
            self.region.prefetch(text.start.wrapping_add(offset));
        }
    }

    pub(crate) fn not_utf8(&self, row: u64, offset: u64) -> Error {
        self.region
            .error(FormatError::TextUtf8 { row }, Some(offset))
    }
}
