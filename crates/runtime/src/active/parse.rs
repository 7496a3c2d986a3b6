//! An incoming table: checked whole before anything changes, without a look at single rows unless one is wrong.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use super::{ActiveTable, Numbering, Rows, Weights};
use crate::cancel::Cancel;
use crate::error::{Error, Fault, Result};

/// Name of the column with the position of a row's cache.
pub(crate) const CACHE_ID: &str = "cache_id";
/// Name of the column with a row's sample in its cache.
pub(crate) const SAMPLE_ID: &str = "sample_id";
/// Name of the column with a row's weight.
pub(crate) const WEIGHT: &str = "weight";

impl ActiveTable {
    /// A table from record batches with the columns `cache_id`, `sample_id` (any integers of up to 64 bits) and
    /// `weight` (integers or floats of up to 64 bits, to the nearest binary64); other columns are not looked at.
    ///
    /// # Errors
    /// [`Error::Table`] for a missing column, a type that is not accepted, a null, a sample that does not exist, a
    /// weight that is not a finite number above 0, or no rows at all; [`Error::Interrupted`].
    pub(crate) fn parse(
        numbering: Arc<Numbering>,
        batches: &[RecordBatch],
        cancel: &Cancel,
    ) -> Result<Self> {
        let len: usize = batches.iter().map(RecordBatch::num_rows).sum();
        // A list of row numbers is no shorter than a table that is all samples in order, so look for that first.
        let mut rows = RowList::new(&numbering, len);
        let mut weights = WeightList {
            first: None,
            each: Vec::new(),
            len,
        };
        let mut base = 0;
        for batch in batches {
            cancel.check()?;
            let caches = integers(batch, CACHE_ID, base)?;
            let samples = integers(batch, SAMPLE_ID, base)?;
            cancel.check()?;
            rows.extend(&numbering, &caches, &samples, base)?;
            drop((caches, samples));
            cancel.check()?;
            weights.extend(&floats(batch, base)?, base)?;
            base += batch.num_rows() as u64;
        }
        if base == 0 {
            let message = "the table has no rows; at least one sample must stay active".to_owned();
            let column = CACHE_ID.to_owned();
            return Err(Error::Table {
                fault: Fault::Value,
                column,
                row: None,
                message,
            });
        }
        let rows = rows.finish(&numbering);
        Ok(Self {
            numbering,
            rows,
            weights: weights.finish(),
            len: base,
        })
    }
}

fn value_error(column: &str, row: u64, found: impl Display, allowed: &str) -> Error {
    Error::Table {
        fault: Fault::Value,
        column: column.to_owned(),
        row: Some(row),
        message: format!("column {column:?}, row {row}: found {found}; allowed: {allowed}"),
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &str, base: u64) -> Result<&'a dyn Array> {
    let Some(array) = batch.column_by_name(name) else {
        return Err(Error::Table {
            fault: Fault::Value,
            column: name.to_owned(),
            row: None,
            message: format!("the table has no column {name:?}, which is required"),
        });
    };
    let nulls = array.logical_nulls();
    let count = nulls.as_ref().map_or(0, |nulls| nulls.null_count());
    if count > 0 {
        let first = nulls
            .and_then(|nulls| nulls.iter().position(|valid| !valid))
            .unwrap_or(0);
        let row = base + first as u64;
        return Err(Error::Table {
            fault: Fault::Value,
            column: name.to_owned(),
            row: Some(row),
            message: format!(
                "column {name:?} has {count} nulls, the first in row {row}; allowed: none"
            ),
        });
    }
    Ok(array.as_ref())
}

fn type_error(column: &str, found: &DataType, allowed: &str, cast: &str) -> Error {
    Error::Table {
        fault: Fault::Type,
        column: column.to_owned(),
        row: None,
        message: format!(
            "column {column:?} is {found}; allowed: {allowed}; cast it: pl.col({column:?}).cast(pl.{cast})"
        ),
    }
}

fn integers<'a>(batch: &'a RecordBatch, name: &str, base: u64) -> Result<Cow<'a, [u64]>> {
    let array = column(batch, name, base)?;
    match array.data_type() {
        DataType::UInt64 => Ok(Cow::Borrowed(array.as_primitive::<UInt64Type>().values())),
        DataType::UInt32 => Ok(unsigned::<UInt32Type>(array)),
        DataType::UInt16 => Ok(unsigned::<UInt16Type>(array)),
        DataType::UInt8 => Ok(unsigned::<UInt8Type>(array)),
        DataType::Int64 => signed::<Int64Type>(array, name, base),
        DataType::Int32 => signed::<Int32Type>(array, name, base),
        DataType::Int16 => signed::<Int16Type>(array, name, base),
        DataType::Int8 => signed::<Int8Type>(array, name, base),
        // What an empty frame's columns are before anybody gave them a type.
        DataType::Null if array.is_empty() => Ok(Cow::Borrowed(&[])),
        other => Err(type_error(
            name,
            other,
            "integers of up to 64 bits",
            "UInt64",
        )),
    }
}

fn unsigned<T: ArrowPrimitiveType>(array: &dyn Array) -> Cow<'_, [u64]>
where
    T::Native: Into<u64>,
{
    Cow::Owned(
        array
            .as_primitive::<T>()
            .values()
            .iter()
            .map(|&value| value.into())
            .collect(),
    )
}

fn signed<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    name: &str,
    base: u64,
) -> Result<Cow<'a, [u64]>>
where
    T::Native: Into<i64>,
{
    let values = array.as_primitive::<T>().values();
    // The sign bit of all values at once; the cast keeps bits.
    let bits = values
        .iter()
        .fold(0_i64, |bits, &value| bits | value.into());
    if bits < 0 {
        let bad = values
            .iter()
            .position(|&value| value.into() < 0)
            .unwrap_or(0);
        let found: i64 = values.get(bad).map_or(0, |&value| value.into());
        return Err(value_error(name, base + bad as u64, found, "0 and above"));
    }
    Ok(Cow::Owned(
        values
            .iter()
            .map(|&value| value.into().cast_unsigned())
            .collect(),
    ))
}

fn floats(batch: &RecordBatch, base: u64) -> Result<Cow<'_, [f64]>> {
    fn into<T: ArrowPrimitiveType>(array: &dyn Array) -> Cow<'_, [f64]>
    where
        T::Native: Into<f64>,
    {
        Cow::Owned(
            array
                .as_primitive::<T>()
                .values()
                .iter()
                .map(|&value| value.into())
                .collect(),
        )
    }
    let array = column(batch, WEIGHT, base)?;
    Ok(match array.data_type() {
        DataType::Float64 => Cow::Borrowed(array.as_primitive::<Float64Type>().values()),
        DataType::Float32 => into::<Float32Type>(array),
        DataType::Float16 => {
            let values = array.as_primitive::<Float16Type>().values();
            Cow::Owned(values.iter().map(|value| value.to_f64()).collect())
        }
        // A cast of 64-bit integers rounds to the nearest binary64, ties to even.
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values();
            Cow::Owned(values.iter().map(|&value| value as f64).collect())
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            Cow::Owned(values.iter().map(|&value| value as f64).collect())
        }
        DataType::Int32 => into::<Int32Type>(array),
        DataType::Int16 => into::<Int16Type>(array),
        DataType::Int8 => into::<Int8Type>(array),
        DataType::UInt32 => into::<UInt32Type>(array),
        DataType::UInt16 => into::<UInt16Type>(array),
        DataType::UInt8 => into::<UInt8Type>(array),
        DataType::Null if array.is_empty() => Cow::Borrowed(&[]),
        other => {
            let allowed = "integers and floats of up to 64 bits";
            return Err(type_error(WEIGHT, other, allowed, "Float64"));
        }
    })
}

/// The rows met so far. While they are all samples in order, nothing is stored.
struct RowList {
    in_order: u64,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    is_narrow: bool,
    len: usize,
}

impl RowList {
    fn new(numbering: &Numbering, len: usize) -> Self {
        let is_narrow = numbering.total() <= 1 << 32;
        Self {
            in_order: 0,
            narrow: Vec::new(),
            wide: Vec::new(),
            is_narrow,
            len,
        }
    }

    fn is_listing(&self) -> bool {
        !self.narrow.is_empty() || !self.wide.is_empty()
    }

    fn extend(
        &mut self,
        numbering: &Numbering,
        caches: &[u64],
        samples: &[u64],
        base: u64,
    ) -> Result<()> {
        let numbers = numbers(numbering, caches, samples, base)?;
        if !self.is_listing() {
            let first = self.in_order;
            let differ = numbers
                .iter()
                .zip(first..)
                .fold(false, |differ, (&number, wanted)| {
                    differ | (number != wanted)
                });
            if !differ {
                self.in_order += numbers.len() as u64;
                return Ok(());
            }
            let before = self.in_order;
            self.push(0..before);
        }
        self.push(numbers.iter().copied());
        Ok(())
    }

    fn push(&mut self, numbers: impl Iterator<Item = u64>) {
        if self.is_narrow {
            self.narrow
                .reserve(self.len.saturating_sub(self.narrow.len()));
            self.narrow
                .extend(numbers.map(|n| u32::try_from(n).unwrap_or(u32::MAX)));
        } else {
            self.wide.reserve(self.len.saturating_sub(self.wide.len()));
            self.wide.extend(numbers);
        }
    }

    fn finish(self, numbering: &Numbering) -> Rows {
        if self.is_listing() {
            return if self.is_narrow {
                Rows::Narrow(self.narrow.into())
            } else {
                Rows::Wide(self.wide.into())
            };
        }
        let all = self.in_order;
        if all == numbering.total() {
            return Rows::All;
        }
        // The first so many samples.
        let first = 0..all;
        if self.is_narrow {
            Rows::Narrow(
                first
                    .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
                    .collect(),
            )
        } else {
            Rows::Wide(first.collect())
        }
    }
}

/// Numbers of samples over all caches.
fn numbers<'a>(
    numbering: &Numbering,
    caches: &[u64],
    samples: &'a [u64],
    base: u64,
) -> Result<Cow<'a, [u64]>> {
    if numbering.caches() == 1 {
        let total = numbering.total();
        let bad = caches
            .iter()
            .zip(samples)
            .fold(false, |bad, (&cache, &sample)| {
                bad | (cache != 0) | (sample >= total)
            });
        if !bad {
            return Ok(Cow::Borrowed(samples));
        }
    }
    let mut numbers = Vec::with_capacity(samples.len());
    for (row, (&cache, &sample)) in (base..).zip(caches.iter().zip(samples)) {
        match numbering.number(cache, sample) {
            Some(number) => numbers.push(number),
            None => return Err(unknown(numbering, cache, sample, row)),
        }
    }
    Ok(Cow::Owned(numbers))
}

fn unknown(numbering: &Numbering, cache: u64, sample: u64, row: u64) -> Error {
    match numbering.samples(cache) {
        Some(samples) => {
            let found = format!("{sample}, which cache {cache} does not have");
            value_error(SAMPLE_ID, row, found, &format!("0 to {}", samples - 1))
        }
        None => {
            let last = numbering.caches() - 1;
            let allowed = if last == 0 {
                "0".to_owned()
            } else {
                format!("0 to {last}")
            };
            value_error(
                CACHE_ID,
                row,
                format!("{cache}, which is not loaded"),
                &allowed,
            )
        }
    }
}

/// The weights met so far. While all have the same bits, one is stored.
struct WeightList {
    first: Option<f64>,
    each: Vec<f64>,
    len: usize,
}

impl WeightList {
    fn extend(&mut self, weights: &[f64], base: u64) -> Result<()> {
        let Some(&head) = weights.first() else {
            return Ok(());
        };
        let first = *self.first.get_or_insert(head);
        let mut bad = false;
        let mut differ = false;
        for weight in weights {
            bad |= !(weight.is_finite() & (*weight > 0.0));
            differ |= weight.to_bits() != first.to_bits();
        }
        if bad {
            let row = weights
                .iter()
                .position(|w| !(w.is_finite() && *w > 0.0))
                .unwrap_or(0);
            let found = weights.get(row).copied().unwrap_or_default();
            return Err(value_error(
                WEIGHT,
                base + row as u64,
                found,
                if found == 0.0 {
                    "finite numbers above 0; update_metadata(..., zero_weights=\"drop\") leaves such rows out"
                } else {
                    "finite numbers above 0"
                },
            ));
        }
        if self.each.is_empty() && differ {
            self.each.reserve(self.len);
            self.each
                .resize(usize::try_from(base).unwrap_or(usize::MAX), first);
        }
        if differ || !self.each.is_empty() {
            self.each.extend_from_slice(weights);
        }
        Ok(())
    }

    fn finish(self) -> Weights {
        if self.each.is_empty() {
            Weights::Equal(self.first.unwrap_or(1.0))
        } else {
            Weights::Each(self.each.into())
        }
    }
}
