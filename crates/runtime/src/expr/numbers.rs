//! Columns of numbers, checked and shown block by block, or copied once; then functions work in place.

use super::codes::{Chunk, Codes};
use super::memory::with_room;
use super::refused;
use crate::error::Result;
use crate::vector::wide;

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

/// What the numbers of a column must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Anything, NaN too: so once they have been checked.
    Any,
    /// Not NaN.
    Number,
    /// Neither NaN nor infinite.
    Finite,
    /// Finite and not below 0.
    Weight,
}

impl Rule {
    /// Whether a number is allowed.
    pub(super) fn allows(self, value: f64) -> bool {
        self.allows_all(&[value])
    }

    /// Whether all are.
    pub(super) fn allows_all(self, values: &[f64]) -> bool {
        match self {
            Self::Any => true,
            Self::Number => none_is_nan(values),
            Self::Finite => all_are_finite(values),
            Self::Weight => all_are_weights(values),
        }
    }

    /// What stands behind "must be" in a message.
    fn text(self) -> &'static str {
        match self {
            Self::Any | Self::Number => "a number",
            Self::Finite => "finite",
            Self::Weight => "finite and at least 0",
        }
    }
}

wide! {
    fn none_is_nan(values: &[f64]) -> bool {
        all_of(values, |value| !value.is_nan())
    }
}

wide! {
    fn all_are_finite(values: &[f64]) -> bool {
        all_of(values, |value| value.abs() <= f64::MAX)
    }
}

wide! {
    fn all_are_weights(values: &[f64]) -> bool {
        all_of(values, is_weight)
    }
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

/// Values that are shown at once.
const BLOCK: usize = 2048;

impl Numbers<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.values.len()).sum()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.values.is_empty())
    }

    /// Number of rows with a value, where others are allowed.
    pub(super) fn count_there(&self) -> usize {
        if self.null == NullNumber::Error {
            return self.len();
        }
        let there = |chunk: &Chunk<'_, f64>| match chunk.validity {
            None => chunk.values.len(),
            Some(validity) => (0..chunk.values.len())
                .filter(|&row| validity.get(row))
                .count(),
        };
        self.chunks.iter().map(there).sum()
    }

    /// One of `step` rows of each chunk, where it has a value; unchecked.
    pub(super) fn sample(&self, step: usize) -> impl Iterator<Item = f64> {
        self.chunks.iter().flat_map(move |chunk| {
            let rows = chunk.values.iter().enumerate().step_by(step.max(1));
            let is_there = |row| chunk.validity.is_none_or(|validity| validity.get(row));
            rows.filter(move |&(row, value)| is_there(row) && !value.is_nan())
                .map(|(_, &value)| value)
        })
    }

    /// The values in one piece, `null` for nulls.
    ///
    /// # Errors
    /// [`Error::Table`](crate::Error::Table) for the first row whose value is not allowed, and for the first null where they
    /// are refused.
    pub(super) fn checked(&self, null: f64, rule: Rule) -> Result<Vec<f64>> {
        let mut values = with_room(self.len());
        self.each_filled_block(null, rule, |block| values.extend_from_slice(block))?;
        Ok(values)
    }

    /// A function of each value, of `null` for nulls, which must have been checked before; block by block, each of which
    /// the function appends.
    pub(super) fn mapped(
        &self,
        null: f64,
        mut append: impl FnMut(&[f64], &mut Vec<f64>),
    ) -> Result<Vec<f64>> {
        let mut out = with_room(self.len());
        self.each_filled_block(null, Rule::Any, |block| append(block, &mut out))?;
        Ok(out)
    }

    /// Shows all values, `null` for nulls, block by block while they are in the cache, after a check of each.
    ///
    /// # Errors
    /// As [`checked`](Self::checked).
    pub(super) fn each_filled_block(
        &self,
        null: f64,
        rule: Rule,
        mut visit: impl FnMut(&[f64]),
    ) -> Result<()> {
        let mut filled = Vec::new();
        let mut before = 0;
        for chunk in &self.chunks {
            for (number, block) in chunk.values.chunks(BLOCK).enumerate() {
                let mut shown = block;
                if let Some(validity) = chunk.validity {
                    filled.clear();
                    for (row, &value) in block.iter().enumerate() {
                        let is_there = validity.get(number * BLOCK + row);
                        if !is_there && self.null == NullNumber::Error {
                            return Err(self.missing(before + row));
                        }
                        if is_there && !rule.allows(value) {
                            return Err(self.not_allowed(before, Some(row), block, rule));
                        }
                        filled.push(if is_there { value } else { null });
                    }
                    shown = &filled;
                } else if !rule.allows_all(block) {
                    let row = block.iter().position(|&value| !rule.allows(value));
                    return Err(self.not_allowed(before, row, block, rule));
                }
                visit(shown);
                before += block.len();
            }
        }
        Ok(())
    }

    /// Shows the values that are there, block by block, after a check of each.
    ///
    /// # Errors
    /// As [`checked`](Self::checked).
    pub(super) fn each_block(&self, rule: Rule, mut visit: impl FnMut(&[f64])) -> Result<()> {
        let mut there = Vec::new();
        let mut before = 0;
        for chunk in &self.chunks {
            for (number, block) in chunk.values.chunks(BLOCK).enumerate() {
                let valid = |row: usize| {
                    chunk
                        .validity
                        .is_none_or(|validity| validity.get(number * BLOCK + row))
                };
                let mut shown = block;
                if chunk.validity.is_some() {
                    there.clear();
                    let rows = block.iter().enumerate();
                    there.extend(rows.filter(|(row, _)| valid(*row)).map(|(_, value)| *value));
                    shown = &there;
                }
                if !rule.allows_all(shown) {
                    let wrong = |row: &usize| valid(*row) && !rule.allows(block[*row]);
                    let row = (0..block.len()).find(wrong);
                    return Err(self.not_allowed(before, row, block, rule));
                }
                visit(shown);
                before += block.len();
            }
        }
        Ok(())
    }

    fn not_allowed(
        &self,
        before: usize,
        row: Option<usize>,
        values: &[f64],
        rule: Rule,
    ) -> crate::Error {
        let at = row.unwrap_or_default();
        let value = values.get(at).copied().unwrap_or(f64::NAN);
        let (row, rule) = (before + at, rule.text());
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

/// Finite and not below 0; in these words for the same reason as [`is_above_zero`].
#[inline(always)]
#[allow(clippy::manual_range_contains, reason = "its `&&` is a branch")]
fn is_weight(value: f64) -> bool {
    (value >= 0.0) & (value <= f64::MAX)
}

/// Whether a number is above 0 and of full precision: neither infinite nor too small. In these words, since others become
/// branches, or comparisons of integers, which are slow as vectors.
#[inline(always)]
#[allow(clippy::manual_range_contains, reason = "its `&&` is a branch")]
pub(super) fn is_above_zero(value: f64) -> bool {
    (value >= f64::MIN_POSITIVE) & (value <= f64::MAX)
}

/// Whether all values are allowed. Counts in words as wide as the values, which become vector instructions; so would not
/// truth values.
#[inline(always)]
pub(super) fn all_of(values: &[f64], allowed: impl Fn(f64) -> bool) -> bool {
    let wrong = |wrong: u64, &value: &f64| wrong | u64::from(!allowed(value));
    values.iter().fold(0, wrong) == 0
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
    values.chunks(1024).map(block_sum).sum()
}

/// Numbers that are added side by side, each lane by itself.
pub(super) const LANES: usize = 8;

wide! {
    /// The sum of a few values.
    pub(super) fn block_sum(block: &[f64]) -> f64 {
        let (rows, rest) = block.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for row in rows {
            for (lane, &value) in lanes.iter_mut().zip(row) {
                *lane += value;
            }
        }
        lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
    }
}

/// Numbers of one vector register, which are added side by side.
type Lanes = [f64; 4];

/// The sums of a few values and of their squares, and all bits that are set in any.
pub(super) fn block_sums(block: &[f64]) -> (f64, f64, u64) {
    let mut sums = [[0.0; 4]; 2];
    let mut squares = sums;
    let mut bits = [[0; 4]; 2];
    let (rows, rest) = block.as_chunks::<8>();
    add_squares(rows, &mut sums, &mut squares, &mut bits);
    let of_rest = |(sum, squares, bits): (f64, f64, u64), &value: &f64| {
        (sum + value, squares + value * value, bits | value.to_bits())
    };
    let whole = (
        sums.as_flattened().iter().sum(),
        squares.as_flattened().iter().sum(),
        bits.as_flattened().iter().fold(0, |all, bits| all | bits),
    );
    rest.iter().fold(whole, of_rest)
}

wide! {
    /// Two registers at a time, each with sums of its own: written for all lanes at once they become shuffles.
    fn add_squares(
        rows: &[[f64; 8]],
        sums: &mut [Lanes; 2],
        squares: &mut [Lanes; 2],
        bits: &mut [[u64; 4]; 2],
    ) {
        let ([mut sums_a, mut sums_b], [mut squares_a, mut squares_b]) = (*sums, *squares);
        let [mut bits_a, mut bits_b] = *bits;
        for &[a, b, c, d, e, f, g, h] in rows {
            let (left, right) = ([a, b, c, d], [e, f, g, h]);
            sums_a = added(sums_a, left);
            sums_b = added(sums_b, right);
            squares_a = added(squares_a, squared(left));
            squares_b = added(squares_b, squared(right));
            bits_a = joined(bits_a, left);
            bits_b = joined(bits_b, right);
        }
        *sums = [sums_a, sums_b];
        *squares = [squares_a, squares_b];
        *bits = [bits_a, bits_b];
    }
}

#[inline(always)]
fn added(a: Lanes, b: Lanes) -> Lanes {
    std::array::from_fn(|lane| a[lane] + b[lane])
}

#[inline(always)]
fn squared(a: Lanes) -> Lanes {
    a.map(|value| value * value)
}

#[inline(always)]
fn joined(bits: [u64; 4], values: Lanes) -> [u64; 4] {
    std::array::from_fn(|lane| bits[lane] | values[lane].to_bits())
}

wide! {
    /// The largest of values of which none is NaN, and of `least`.
    pub(super) fn block_max(block: &[f64], least: f64) -> f64 {
        let larger = |a: f64, b: f64| if a > b { a } else { b };
        let (rows, rest) = block.as_chunks::<LANES>();
        let mut lanes = [least; LANES];
        for row in rows {
            for (lane, &value) in lanes.iter_mut().zip(row) {
                *lane = larger(*lane, value);
            }
        }
        lanes.iter().chain(rest).copied().fold(least, larger)
    }
}

wide! {
    /// How many values are above 0.
    pub(super) fn count_above_zero(values: &[f64]) -> usize {
        values.iter().map(|&value| usize::from(value > 0.0)).sum()
    }
}

/// A function of each value of a chunk, nulls too.
pub(super) fn mapped(values: &[f64], function: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut out = with_room(values.len());
    out.extend(values.iter().map(|&value| function(value)));
    out
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
