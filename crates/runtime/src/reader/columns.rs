//! Metadata of many samples at once, copied out of the files and checked.

use std::ops::Range;

use dataset_rt_format::{ColumnLayout, FieldType, Value};

use crate::active::SampleRef;
use crate::error::{Error, Result};

use super::loaded::Loaded;
use super::metadata::Metadata;
use super::scattered::Scattered;

/// Spans whose values are asked for before they are copied.
const AHEAD: usize = 16;

/// The bits of every byte, the lowest first.
static BITS: [[bool; 8]; 256] = {
    let mut bits = [[false; 8]; 256];
    let mut at = 0;
    while at < 256 * 8 {
        bits[at / 8][at % 8] = (at / 8) >> (at % 8) & 1 == 1;
        at += 1;
    }
    bits
};

/// The metadata of some samples, by the fields of their dataset's schema.
#[derive(Debug)]
pub struct GatheredColumns {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<GatheredColumn>,
}

/// One field of the gathered samples.
#[derive(Debug)]
pub(crate) struct GatheredColumn {
    pub(crate) values: Values,
    /// Which rows have a value; `None`: all.
    pub(crate) present: Option<Vec<bool>>,
}

/// Values of one type. Rows without a value hold anything, but for texts, which are empty then.
#[derive(Debug)]
pub(crate) enum Values {
    Bool(Vec<bool>),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    /// Where each text ends in `bytes`, after a leading 0. The bytes are UTF-8 and so is every text.
    Utf8 {
        ends: Vec<i64>,
        bytes: Vec<u8>,
    },
}

impl GatheredColumns {
    /// Number of samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The value of a field, by its place in the schema, for a row; [`Value::Null`] also where the row's cache lacks
    /// the field. `None` for a row or field that does not exist.
    #[inline]
    pub fn value(&self, row: usize, field: usize) -> Option<Value<'_>> {
        let column = self.columns.get(field)?;
        if row >= self.rows {
            return None;
        }
        if column
            .present
            .as_ref()
            .is_some_and(|present| present.get(row) == Some(&false))
        {
            return Some(Value::Null);
        }
        Some(match &column.values {
            Values::Bool(values) => Value::Bool(*values.get(row)?),
            Values::Int64(values) => Value::Int64(*values.get(row)?),
            Values::Float64(values) => Value::Float64(*values.get(row)?),
            Values::Utf8 { ends, bytes } => {
                let start = usize::try_from(*ends.get(row)?).ok()?;
                let end = usize::try_from(*ends.get(row + 1)?).ok()?;
                Value::Utf8(text(bytes.get(start..end)?))
            }
        })
    }

    /// Copies the metadata of samples that exist.
    pub(crate) fn gather(loaded: &Loaded, samples: &[SampleRef]) -> Result<Self> {
        if let Some(scattered) = Scattered::of(loaded, samples)?
            && let Some(found) = scattered.gather(loaded)?
        {
            return Ok(found);
        }
        Self::of_spans(loaded, &spans(loaded, samples)?, samples.len())
    }

    /// Copies the metadata of `count` samples that follow each other.
    pub(crate) fn gather_run(loaded: &Loaded, first: SampleRef, count: usize) -> Result<Self> {
        Self::of_spans(loaded, &spans_of_run(loaded, first, count)?, count)
    }

    /// The same for some fields alone, in the order asked for; of the others nothing is touched.
    pub(crate) fn gather_fields_of_run(
        loaded: &Loaded,
        first: SampleRef,
        count: usize,
        fields: &[usize],
    ) -> Result<Self> {
        let spans = spans_of_run(loaded, first, count)?;
        Self::fields_of_spans(loaded, &spans, count, fields.iter().copied())
    }

    fn of_spans(loaded: &Loaded, spans: &[Span<'_>], rows: usize) -> Result<Self> {
        Self::fields_of_spans(loaded, spans, rows, 0..loaded.fields().len())
    }

    fn fields_of_spans(
        loaded: &Loaded,
        spans: &[Span<'_>],
        rows: usize,
        fields: impl ExactSizeIterator<Item = usize>,
    ) -> Result<Self> {
        let mut columns = Vec::with_capacity(fields.len());
        for at in fields {
            let Some(field) = loaded.fields().get(at) else {
                return Err(Error::Internal(format!("no metadata field {at}")));
            };
            let mut column = GatheredColumn::new(field.field_type, rows)?;
            for (i, span) in spans.iter().enumerate() {
                if let Some(later) = spans.get(i + AHEAD) {
                    later.prefetch(loaded, at, field.field_type);
                }
                if field.field_type == FieldType::Utf8
                    && let Some(later) = spans.get(i + AHEAD / 2)
                    && let Some(part) = later.column(loaded, at)
                {
                    part.metadata.prefetch_text(part.column, later.rows.start);
                }
                match span.column(loaded, at) {
                    Some(part) => column.copy(span, part)?,
                    None => column.skip(span.rows.end - span.rows.start),
                }
            }
            columns.push(column);
        }
        // AFTER copying: pages that could not be loaded read as zeros.
        let mut last = None;
        for span in spans {
            if last.replace(span.cache) != Some(span.cache) {
                span.metadata.region().intact()?;
            }
        }
        Ok(Self { rows, columns })
    }
}

/// The texts of gathered columns were checked when they were copied.
#[allow(unsafe_code)] // Checking the same bytes at every access would double the cost of a sample's metadata.
fn text(bytes: &[u8]) -> &str {
    // SAFETY: `GatheredColumn::copy` appends UTF-8 only, and `ends` holds the borders of whole texts: each was checked
    // to be a character's border.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}

/// Samples that follow each other in one batch of one cache.
struct Span<'a> {
    cache: u32,
    metadata: &'a Metadata,
    columns: &'a [ColumnLayout],
    /// Rows of the batch.
    rows: Range<u64>,
}

/// A column of a span's batch.
#[derive(Clone, Copy)]
struct Part<'a> {
    metadata: &'a Metadata,
    column: &'a ColumnLayout,
}

impl<'a> Span<'a> {
    fn column(&self, loaded: &Loaded, field: usize) -> Option<Part<'a>> {
        let own = loaded
            .cache_fields(self.cache)
            .get(field)
            .copied()
            .flatten()?;
        Some(Part {
            metadata: self.metadata,
            column: self.columns.get(own)?,
        })
    }

    #[inline]
    fn prefetch(&self, loaded: &Loaded, field: usize, field_type: FieldType) {
        if let Some(part) = self.column(loaded, field) {
            let row = self.rows.start;
            let at = match field_type {
                FieldType::Bool => row / 8,
                FieldType::Int64 | FieldType::Float64 => row * 8,
                FieldType::Utf8 => row * 4,
                _ => 0,
            };
            part.metadata
                .region()
                .prefetch(part.column.values.start + at);
        }
    }
}

fn spans_of_run<'a>(loaded: &'a Loaded, first: SampleRef, count: usize) -> Result<Vec<Span<'a>>> {
    let mut spans = Vec::new();
    let Some(cache) = loaded.cache(first.cache) else {
        return Err(Error::Internal("a sample without a cache".to_owned()));
    };
    let metadata = cache.metadata();
    let mut sample = first.sample;
    let end = first.sample.saturating_add(count as u64);
    while sample < end {
        let place = metadata.place(sample)?;
        let rows = place.row..place.batch.rows.min(place.row + (end - sample));
        sample += rows.end - rows.start;
        spans.push(Span {
            cache: first.cache,
            metadata,
            columns: &place.batch.columns,
            rows,
        });
    }
    Ok(spans)
}

fn spans<'a>(loaded: &'a Loaded, samples: &[SampleRef]) -> Result<Vec<Span<'a>>> {
    let mut spans: Vec<Span<'a>> = Vec::with_capacity(samples.len());
    // The sample that would continue the last span, while its batch has rows left.
    let mut next = SampleRef::default();
    let mut left = 0;
    for &sample in samples {
        if left > 0
            && sample == next
            && let Some(span) = spans.last_mut()
        {
            span.rows.end += 1;
            left -= 1;
        } else {
            let Some(cache) = loaded.cache(sample.cache) else {
                return Err(Error::Internal("a sample without a cache".to_owned()));
            };
            let metadata = cache.metadata();
            let place = metadata.place(sample.sample)?;
            let rows = place.row..place.row + 1;
            left = place.batch.rows - rows.end;
            spans.push(Span {
                cache: sample.cache,
                metadata,
                columns: &place.batch.columns,
                rows,
            });
        }
        next = SampleRef {
            sample: sample.sample + 1,
            ..sample
        };
    }
    Ok(spans)
}

impl GatheredColumn {
    fn new(field_type: FieldType, rows: usize) -> Result<Self> {
        let values = match field_type {
            // Runs are copied by whole bytes.
            FieldType::Bool => Values::Bool(Vec::with_capacity(rows + 14)),
            FieldType::Int64 => Values::Int64(Vec::with_capacity(rows)),
            FieldType::Float64 => Values::Float64(Vec::with_capacity(rows)),
            FieldType::Utf8 => {
                let mut ends = Vec::with_capacity(rows + 1);
                ends.push(0);
                Values::Utf8 {
                    ends,
                    bytes: Vec::new(),
                }
            }
            other => return Err(unknown_type(other)),
        };
        Ok(Self {
            values,
            present: None,
        })
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::Bool(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Float64(values) => values.len(),
            Values::Utf8 { ends, .. } => ends.len() - 1,
        }
    }

    /// Rows whose cache lacks the field.
    fn skip(&mut self, rows: u64) {
        let rows = usize::try_from(rows).unwrap_or(0);
        let before = self.len();
        let present = self.present.get_or_insert_with(|| vec![true; before]);
        present.resize(before + rows, false);
        match &mut self.values {
            Values::Bool(values) => values.resize(before + rows, false),
            Values::Int64(values) => values.resize(before + rows, 0),
            Values::Float64(values) => values.resize(before + rows, 0.0),
            Values::Utf8 { ends, bytes } => ends.resize(before + rows + 1, end_of(bytes)),
        }
    }

    /// The rows of a span.
    #[inline]
    fn copy(&mut self, span: &Span<'_>, part: Part<'_>) -> Result<()> {
        let Part { metadata, column } = part;
        let region = metadata.region();
        let rows = span.rows.clone();
        if column.nulls.is_some() || self.present.is_some() {
            let before = self.len();
            let present = self.present.get_or_insert_with(|| vec![true; before]);
            for row in rows.clone() {
                present.push(metadata.is_present(column, row)?);
            }
        }
        let words = column.values.start + rows.start * 8..column.values.start + rows.end * 8;
        match &mut self.values {
            Values::Bool(values) => {
                let bytes = column.values.start + rows.start / 8
                    ..column.values.start + rows.end.div_ceil(8);
                let bytes = region.bytes(bytes)?;
                let skipped = usize::try_from(rows.start % 8).unwrap_or(0);
                let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
                let before = values.len();
                if let ([byte], 1) = (bytes, count) {
                    values.push(byte >> skipped & 1 == 1);
                    return Ok(());
                }
                for &byte in bytes {
                    values.extend_from_slice(&BITS[usize::from(byte)]);
                }
                values.drain(before..before + skipped);
                values.truncate(before + count);
            }
            Values::Int64(values) => {
                let words = region.bytes(words)?.as_chunks().0;
                values.extend(words.iter().map(|word| i64::from_le_bytes(*word)));
            }
            Values::Float64(values) => {
                let words = region.bytes(words)?.as_chunks().0;
                values.extend(
                    words
                        .iter()
                        .map(|word| f64::from_bits(u64::from_le_bytes(*word))),
                );
            }
            Values::Utf8 { ends, bytes } if column.nulls.is_some() => {
                // What lies under a null need not be text.
                for row in rows {
                    if metadata.is_present(column, row)? {
                        let range = metadata.text_range(column, row, 1)?;
                        let offset = range.start;
                        let from = bytes.len();
                        bytes.extend_from_slice(region.bytes(range)?);
                        if std::str::from_utf8(bytes.get(from..).unwrap_or_default()).is_err() {
                            return Err(metadata.not_utf8(row, offset));
                        }
                    }
                    ends.push(end_of(bytes));
                }
            }
            Values::Utf8 { ends, bytes } => {
                let count = rows.end - rows.start;
                let range = metadata.text_range(column, rows.start, count)?;
                let offset = range.start;
                let from = bytes.len();
                bytes.extend_from_slice(region.bytes(range)?);
                // The copy is checked, which nobody can change any more.
                let added = bytes.get(from..).unwrap_or_default();
                let Ok(added) = std::str::from_utf8(added) else {
                    return Err(metadata.not_utf8(rows.start, offset));
                };
                if count == 1 {
                    ends.push(end_of(bytes));
                    return Ok(());
                }
                let at = column.values.start + rows.start * 4;
                let offsets = region.bytes(at..at + (count + 1) * 4)?.as_chunks::<4>().0;
                let first = offsets
                    .first()
                    .map_or(0, |first| i32::from_le_bytes(*first));
                let base = end_of_len(from) - i64::from(first);
                let before = ends.len();
                let offsets = offsets.iter().skip(1);
                ends.extend(offsets.map(|offset| base + i64::from(i32::from_le_bytes(*offset))));
                // As for the bytes, the copy is checked. A border inside of a character makes neither text UTF-8,
                // though the whole is.
                let ascii = added.is_ascii();
                let mut last = end_of_len(from);
                let mut wrong = false;
                for &end in ends.get(before..).unwrap_or_default() {
                    wrong |= end < last;
                    last = end;
                }
                wrong |= last != end_of_len(from + added.len());
                let is_border = |end: i64| {
                    usize::try_from(end).is_ok_and(|end| {
                        end.checked_sub(from)
                            .is_some_and(|e| added.is_char_boundary(e))
                    })
                };
                if wrong || (!ascii && !ends.iter().skip(before).all(|&end| is_border(end))) {
                    return Err(metadata.not_utf8(rows.start, at));
                }
            }
        }
        Ok(())
    }
}

/// For a type that a later version of the format may have.
pub(crate) fn unknown_type(field_type: FieldType) -> Error {
    Error::Internal(format!("fields of type {} are not read", field_type.name()))
}

pub(super) fn end_of(bytes: &[u8]) -> i64 {
    end_of_len(bytes.len())
}

fn end_of_len(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}
