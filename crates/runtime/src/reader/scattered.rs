//! Metadata of samples that lie anywhere: one row here, one there, as shuffled and weighted orders want it.
//!
//! What holds for all rows of a batch is looked up once a batch and column; what is left for a row is its block's bit
//! and its bytes.

use dataset_rt_format::constants::MAX_TEXT_VALUE;
use dataset_rt_format::{ColumnLayout, FieldType};

use crate::active::SampleRef;
use crate::error::{Error, Result};
use crate::region::{Region, prefetch};

use super::columns::{GatheredColumn, GatheredColumns, Values, end_of, unknown_type};
use super::loaded::Loaded;
use super::metadata::Metadata;

/// Rows whose values are asked for before they are copied, and half as many their texts.
const AHEAD: usize = 48;
/// Batches among which a row's is found by a look at each; rows of more are gathered span by span.
const MOST_BATCHES: usize = 64;

/// Rows of a few batches, in the order of the samples.
pub(super) struct Scattered<'a> {
    batches: Vec<Batch<'a>>,
    rows: Vec<Row>,
}

/// The columns of a batch that rows are wanted of.
struct Batch<'a> {
    cache: u32,
    metadata: &'a Metadata,
    columns: &'a [ColumnLayout],
}

#[derive(Clone, Copy)]
struct Row {
    /// Index into the batches.
    batch: usize,
    /// Row in the batch.
    row: usize,
}

impl<'a> Scattered<'a> {
    /// The rows of samples. `None`: they follow each other, most of them, or lie in too many batches.
    pub(super) fn of(loaded: &'a Loaded, samples: &[SampleRef]) -> Result<Option<Self>> {
        let pairs = samples.iter().zip(samples.iter().skip(1));
        let next =
            |&(a, b): &(&SampleRef, &SampleRef)| a.cache == b.cache && a.sample + 1 == b.sample;
        if pairs.filter(next).count() * 2 >= samples.len() {
            return Ok(None);
        }
        let mut batches: Vec<Batch<'a>> = Vec::new();
        let mut rows = Vec::with_capacity(samples.len());
        for sample in samples {
            let Some(cache) = loaded.cache(sample.cache) else {
                return Err(Error::Internal("a sample without a cache".to_owned()));
            };
            let metadata = cache.metadata();
            let place = metadata.place(sample.sample)?;
            let columns = place.batch.columns.as_slice();
            let known = batches
                .iter()
                .position(|batch| std::ptr::eq(batch.columns, columns));
            let batch = match known {
                Some(batch) => batch,
                None if batches.len() == MOST_BATCHES => return Ok(None),
                None => {
                    batches.push(Batch {
                        cache: sample.cache,
                        metadata,
                        columns,
                    });
                    batches.len() - 1
                }
            };
            let row = usize::try_from(place.row).unwrap_or(usize::MAX);
            rows.push(Row { batch, row });
        }
        Ok(Some(Self { batches, rows }))
    }

    /// All fields of the rows. `None` where one has rows without a value, or a file is not mapped: they are gathered
    /// span by span.
    pub(super) fn gather(&self, loaded: &'a Loaded) -> Result<Option<GatheredColumns>> {
        let fields = loaded.fields().iter().enumerate();
        let parts = fields.map(|(at, field)| {
            let parts = self.batches.iter().map(|batch| batch.part(loaded, at));
            Some((field.field_type, parts.collect::<Option<Vec<Part<'a>>>>()?))
        });
        let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let columns = parts.iter().map(|(kind, parts)| self.column(*kind, parts));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        // AFTER copying: pages that could not be loaded read as zeros.
        for batch in &self.batches {
            batch.metadata.region().intact()?;
        }
        let rows = self.rows.len();
        Ok(Some(GatheredColumns { rows, columns }))
    }

    fn column(&self, field_type: FieldType, parts: &[Part<'_>]) -> Result<GatheredColumn> {
        let values = match field_type {
            FieldType::Bool => Values::Bool(self.copy(parts, |part, row| {
                let byte: [u8; 1] = part.value(row / 8)?;
                Some(byte[0] >> (row % 8) & 1 == 1)
            })?),
            FieldType::Int64 => Values::Int64(self.copy(parts, |part, row| {
                Some(i64::from_le_bytes(part.value(row)?))
            })?),
            FieldType::Float64 => Values::Float64(self.copy(parts, |part, row| {
                Some(f64::from_le_bytes(part.value(row)?))
            })?),
            FieldType::Utf8 => self.texts(parts)?,
            other => return Err(unknown_type(other)),
        };
        Ok(GatheredColumn {
            values,
            present: None,
        })
    }

    #[inline]
    fn copy<T>(
        &self,
        parts: &[Part<'_>],
        value: impl Fn(&Part<'_>, usize) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(self.rows.len());
        for (i, &Row { batch, row }) in self.rows.iter().enumerate() {
            self.prefetch(parts, i + AHEAD);
            let Some(part) = parts.get(batch) else {
                return Err(short());
            };
            part.check(row)?;
            values.push(value(part, row).ok_or_else(short)?);
        }
        Ok(values)
    }

    fn texts(&self, parts: &[Part<'_>]) -> Result<Values> {
        let mut ends = Vec::with_capacity(self.rows.len() + 1);
        let mut bytes = Vec::new();
        ends.push(0);
        for (i, &Row { batch, row }) in self.rows.iter().enumerate() {
            self.prefetch(parts, i + AHEAD);
            if let Some(later) = self.rows.get(i + AHEAD / 2)
                && let Some(part) = parts.get(later.batch)
            {
                part.prefetch_text(later.row);
            }
            let part = parts.get(batch).ok_or_else(short)?;
            bytes.extend_from_slice(part.text(row)?);
            ends.push(end_of(&bytes));
        }
        // The copy is checked, which nobody can change any more. A border inside of a character makes neither text
        // UTF-8, though the whole is.
        let whole = std::str::from_utf8(&bytes).ok();
        let is_border = |&end: &i64| {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            whole.is_some_and(|whole| whole.is_char_boundary(end))
        };
        if whole.is_some_and(str::is_ascii) || ends.iter().all(is_border) {
            return Ok(Values::Utf8 { ends, bytes });
        }
        for (&Row { batch, row }, end) in self.rows.iter().zip(ends.windows(2)) {
            let range = end.first().zip(end.last()).and_then(|(&start, &end)| {
                Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
            });
            let text = range.and_then(|range| bytes.get(range)).unwrap_or_default();
            if std::str::from_utf8(text).is_err()
                && let Some(part) = parts.get(batch)
            {
                let offset = part.text_range(row)?.start;
                return Err(part.metadata.not_utf8(row as u64, offset));
            }
        }
        Err(short())
    }

    #[inline]
    fn prefetch(&self, parts: &[Part<'_>], i: usize) {
        if let Some(later) = self.rows.get(i)
            && let Some(part) = parts.get(later.batch)
            && let Some(byte) = part.values.get(part.offset_of(later.row))
        {
            prefetch(byte);
        }
    }
}

impl<'a> Batch<'a> {
    /// A field of the batch, where all its rows have a value and the file is mapped.
    fn part(&self, loaded: &'a Loaded, field: usize) -> Option<Part<'a>> {
        let own = loaded.cache_fields(self.cache).get(field).copied()??;
        let column = self.columns.get(own)?;
        let field_type = loaded.fields().get(field)?.field_type;
        let region = self.metadata.region();
        if column.nulls.is_some() || !region.is_mapped() {
            return None;
        }
        Some(Part {
            metadata: self.metadata,
            region,
            column,
            values: region.unchecked(column.values.clone()).ok()?,
            bits: match field_type {
                FieldType::Bool => 1,
                FieldType::Utf8 => 32,
                _ => 64,
            },
        })
    }
}

/// A column of a batch as a slice, whose blocks may not be checked yet.
struct Part<'a> {
    metadata: &'a Metadata,
    region: &'a Region,
    column: &'a ColumnLayout,
    values: &'a [u8],
    /// Width of a value, or of a text's offset.
    bits: usize,
}

impl<'a> Part<'a> {
    #[inline]
    fn offset_of(&self, row: usize) -> usize {
        row.wrapping_mul(self.bits) / 8
    }

    /// Checks the block of a row's value.
    #[inline]
    fn check(&self, row: usize) -> Result<()> {
        let at = self.column.values.start + self.offset_of(row) as u64;
        self.region.check(at..at + (self.bits as u64).div_ceil(8))
    }

    #[inline]
    fn value<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.values.get(at * N..)?.first_chunk().copied()
    }

    fn text_range(&self, row: usize) -> Result<std::ops::Range<u64>> {
        self.metadata.text_range(self.column, row as u64, 1)
    }

    #[inline]
    fn text(&self, row: usize) -> Result<&'a [u8]> {
        let at = self.column.values.start + self.offset_of(row) as u64;
        self.region.check(at..at + 8)?;
        let text = self.column.text.clone().unwrap_or(0..0);
        let offsets = self
            .value::<4>(row)
            .zip(self.value::<4>(row + 1))
            .map(|(start, end)| (i32::from_le_bytes(start), i32::from_le_bytes(end)));
        if let Some((start, end)) = offsets
            && let (Ok(start), Ok(end)) = (u64::try_from(start), u64::try_from(end))
            && start <= end
            && end <= text.end - text.start
            && end - start <= MAX_TEXT_VALUE
        {
            return self.region.bytes(text.start + start..text.start + end);
        }
        // Says what is wrong.
        let range = self.text_range(row)?;
        self.region.bytes(range)
    }

    #[inline]
    fn prefetch_text(&self, row: usize) {
        if let (Some(offset), Some(text)) = (self.value::<4>(row), &self.column.text) {
            let offset = u64::from(u32::from_le_bytes(offset));
            self.region.prefetch(text.start.wrapping_add(offset));
        }
    }
}

/// A column that ends before its batch does, which parsing would have refused.
fn short() -> Error {
    Error::Internal("a metadata column ends before its batch".to_owned())
}
