//! Columns of numbers, checked and copied once; then functions work in place.

use super::codes::{Chunk, Codes};
use super::refused;
use crate::error::Result;

/// What becomes of rows whose number is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NullNumber {
    /// They are refused.
    #[default]
    Error,
    /// They get weight 0 and count for nothing.
    Zero,
}

/// A column of numbers.
#[derive(Clone, Debug)]
pub struct Numbers<'a> {
    /// Its name in messages.
    pub name: &'static str,
    /// Its pieces.
    pub chunks: Vec<Chunk<'a, f64>>,
    /// What a null is.
    pub null: NullNumber,
}

impl Numbers<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.values.len()).sum()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.values.is_empty())
    }

    /// The values in one piece, `null` for nulls.
    ///
    /// # Errors
    /// [`Error::Table`](crate::Error::Table) for the first row whose value is not `allowed`, NaN among others, and for
    /// the first null where they are refused.
    pub(super) fn checked(
        &self,
        null: f64,
        allowed: impl Fn(f64) -> bool,
        rule: &str,
    ) -> Result<Vec<f64>> {
        let mut values = Vec::with_capacity(self.len());
        for chunk in &self.chunks {
            let before = values.len();
            let Some(validity) = chunk.validity else {
                // Two passes over what is in the cache: the second is a comparison without a way out.
                values.extend_from_slice(chunk.values);
                if !chunk
                    .values
                    .iter()
                    .fold(true, |all, &value| all & allowed(value))
                {
                    let row = chunk.values.iter().position(|&value| !allowed(value));
                    return Err(self.not_allowed(before, row, chunk.values, rule));
                }
                continue;
            };
            for (row, &value) in chunk.values.iter().enumerate() {
                if !validity.get(row) {
                    if self.null == NullNumber::Error {
                        return Err(self.missing(before + row));
                    }
                    values.push(null);
                } else if allowed(value) {
                    values.push(value);
                } else {
                    return Err(self.not_allowed(before, Some(row), chunk.values, rule));
                }
            }
        }
        Ok(values)
    }

    fn not_allowed(
        &self,
        before: usize,
        row: Option<usize>,
        values: &[f64],
        rule: &str,
    ) -> crate::Error {
        let at = row.unwrap_or_default();
        let value = values.get(at).copied().unwrap_or(f64::NAN);
        let row = before + at;
        let message = format!("{} must be {rule}, found {value} in row {row}", self.name);
        refused(self.name, Some(row), message)
    }

    fn missing(&self, row: usize) -> crate::Error {
        let message = format!(
            "{} is null in row {row}; say null=\"zero\" to give such rows weight 0",
            self.name
        );
        refused(self.name, Some(row), message)
    }
}

/// Calls `visit` with each value and the code of its group; 0 where all rows are one group.
#[inline(always)]
pub(super) fn each_mut(
    values: &mut [f64],
    groups: Option<&Codes>,
    mut visit: impl FnMut(&mut f64, usize),
) {
    match groups {
        None => values.iter_mut().for_each(|value| visit(value, 0)),
        Some(groups) => {
            for (value, &group) in values.iter_mut().zip(groups.as_slice()) {
                visit(value, group as usize);
            }
        }
    }
}

/// Sums of a group each.
pub(super) fn sums(values: &[f64], groups: Option<&Codes>) -> Vec<f64> {
    let Some(groups) = groups else {
        return vec![sum(values)];
    };
    let mut sums = vec![0.0; groups.bound()];
    for (value, &group) in values.iter().zip(groups.as_slice()) {
        sums[group as usize] += value;
    }
    sums
}

/// The sum, by sums of blocks of several lanes: faster than one sum, and nearer to the true value.
pub(super) fn sum(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    values
        .chunks(1024)
        .map(|block| {
            let (rows, rest) = block.as_chunks::<LANES>();
            let mut lanes = [0.0; LANES];
            for row in rows {
                for (lane, value) in lanes.iter_mut().zip(row) {
                    *lane += value;
                }
            }
            lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
        })
        .sum()
}

/// The smallest or largest of a group each, by `choose`, from `start` on.
pub(super) fn fold(
    values: &[f64],
    groups: Option<&Codes>,
    start: f64,
    choose: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let Some(groups) = groups else {
        return vec![values.iter().copied().fold(start, choose)];
    };
    let mut chosen = vec![start; groups.bound()];
    for (&value, &group) in values.iter().zip(groups.as_slice()) {
        let chosen = &mut chosen[group as usize];
        *chosen = choose(*chosen, value);
    }
    chosen
}
