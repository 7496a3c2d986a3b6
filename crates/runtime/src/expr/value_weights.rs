//! Weights from a number a row: losses, priorities, other weights.

use super::classes::Classes;
use super::codes::{Codes, NO_CLASS};
use super::numbers::{
    LANES, Numbers, Rule, block_max, block_sums, count_above_zero, each_mut, fold, mapped, sums,
};
use super::power::Power;
use super::refused;
use super::select::{largest, largest_of_groups};
use crate::error::{Error, Result};
use crate::vector::wide;

/// Weights brought to mean 1 over the rows whose weight is above 0.
///
/// # Errors
/// [`Error::Table`] for a weight that is negative or not finite, or vanishes beside the others.
pub fn normalize_weight(weight: &Numbers<'_>, groups: Option<&Codes>) -> Result<Vec<f64>> {
    if groups.is_none() {
        // The column is read twice rather than copied first.
        let mut extent = Extent::default();
        weight.each_filled_block(0.0, Rule::Any, |block| add_block(&mut extent, block))?;
        if let Some(mean) = extent.mean() {
            let mut vanished = 0;
            let scaled = weight.mapped(0.0, |block, out| {
                vanished += append_quotients(block, mean, out);
            })?;
            // None is too large: a sum is no smaller than what it is made of.
            if vanished == weight.len() as u64 - extent.above_zero {
                return Ok(scaled);
            }
        }
    }
    let mut values = weights(weight)?;
    let zeros = count_zeros(&values);
    let mut means = finite_sums(&mut values, groups);
    for (mean, count) in means.iter_mut().zip(counts_above_zero(&values, groups)) {
        *mean /= count as f64;
    }
    let mut all = count_zeros(&values) == zeros;
    if !all {
        // What vanished on the way to finite sums.
        for (value, given) in values.iter_mut().zip(weights(weight)?) {
            if *value == 0.0 && given > 0.0 {
                *value = f64::NAN;
            }
        }
    }
    each_mut(&mut values, groups, |value, group| {
        if *value != 0.0 {
            *value = marked(*value / means[group], &mut all);
        }
    });
    all_there(values, all, weight.name)
}

fn count_zeros(values: &[f64]) -> usize {
    values.iter().filter(|&&value| value == 0.0).count()
}

/// What scaling needs to know of numbers that should be weights.
#[derive(Default)]
struct Extent {
    sum: f64,
    above_zero: u64,
    bits: u64,
}

impl Extent {
    /// The mean of the weights above 0, of which there must be one. `None`: one may be no weight, or their sum isn't finite.
    fn mean(&self) -> Option<f64> {
        let is_usual = are_weights(self.sum, self.bits) && self.above_zero > 0;
        is_usual.then_some(self.sum / self.above_zero as f64)
    }
}

/// Whether numbers are weights for certain, by their sum and the bits of all. One that is infinite or NaN shows in the
/// sum, one below 0 in the sign, as -0.0 does, which is a weight.
fn are_weights(sum: f64, bits: u64) -> bool {
    sum.is_finite() && bits >> 63 == 0
}

wide! {
    fn add_block(extent: &mut Extent, block: &[f64]) {
        let (rows, rest) = block.as_chunks::<LANES>();
        let (mut sums, mut counts, mut bits) = ([0.0; LANES], [0; LANES], [0; LANES]);
        let mut add = |lane: usize, value: f64| {
            sums[lane] += value;
            counts[lane] += u64::from(value > 0.0);
            bits[lane] |= value.to_bits();
        };
        for row in rows {
            for (lane, &value) in row.iter().enumerate() {
                add(lane, value);
            }
        }
        for (lane, &value) in rest.iter().enumerate() {
            add(lane, value);
        }
        extent.sum += sums.iter().sum::<f64>();
        extent.above_zero += counts.iter().sum::<u64>();
        extent.bits |= bits.iter().fold(0, |all, bits| all | bits);
    }
}

wide! {
    /// Weights over their mean, and how many of these are 0 or of less than full precision.
    fn append_quotients(block: &[f64], mean: f64, out: &mut Vec<f64>) -> u64 {
        let mut vanished = 0;
        out.extend(block.iter().map(|&value| {
            let quotient = value / mean;
            vanished += u64::from(quotient < f64::MIN_POSITIVE);
            quotient
        }));
        vanished
    }
}

/// 1 for the rows of the largest losses, 0 for the others: a fraction of the rows, to the nearest number and at least one.
/// Of equal losses the first rows come first (online hard example mining, Shrivastava, Gupta and Girshick 2016).
///
/// # Errors
/// [`Error::Argument`] unless `0 < fraction <= 1`, [`Error::Table`] for a loss that is NaN.
pub fn hard_example_weight(
    loss: &Numbers<'_>,
    fraction: f64,
    groups: Option<&Codes>,
) -> Result<Vec<f64>> {
    if !(fraction > 0.0 && fraction <= 1.0) {
        return Err(Error::Argument {
            argument: "fraction",
            message: format!("fraction must be above 0 and at most 1, found {fraction}"),
        });
    }
    // Rows are fewer than 2^32, so the product is far below what a float counts.
    #[allow(clippy::cast_possible_truncation)]
    let kept = |rows: usize| ((fraction * rows as f64 + 0.5).floor() as usize).max(1);
    let Some(groups) = groups else {
        return largest(loss, kept);
    };
    let values = loss.checked(f64::NAN, Rule::Number)?;
    Ok(largest_of_groups(values, groups, kept))
}

/// The share of draws that the class of each row gets: the sum of the class's weights over the sum of all.
///
/// # Errors
/// [`Error::Table`] for a weight that is negative or not finite, or if all of a group are 0.
pub fn expected_share(classes: &Classes, weight: &Numbers<'_>) -> Result<Vec<f64>> {
    let mut of_class = sums_of_classes(classes.codes(), weight, 1.0)?;
    if !of_class.iter().sum::<f64>().is_finite() {
        // A share is a ratio: what keeps the sum of all finite doesn't change it.
        of_class = sums_of_classes(classes.codes(), weight, SMALL)?;
    }
    let codes = classes.codes();
    let nothing = |row: Option<usize>| {
        let message = format!(
            "all weights of the group of row {} are 0, so nothing is drawn from it",
            row.unwrap_or_default()
        );
        refused(weight.name, row, message)
    };
    if classes.is_one_group() {
        // Which classes have rows is of no matter here, and is not counted.
        let total: f64 = of_class.iter().sum();
        let first = || codes.as_slice().iter().position(|&code| code != NO_CLASS);
        if total == 0.0
            && let Some(row) = first()
        {
            return Err(nothing(Some(row)));
        }
        of_class.iter_mut().for_each(|sum| *sum /= total);
        return Ok(codes.look_up(&of_class, 0.0));
    }
    classes.each_group(|present| {
        let total: f64 = present.iter().map(|&class| of_class[class]).sum();
        if total == 0.0 {
            let row = present.iter().find_map(|&class| codes.first_row(class));
            return Err(nothing(row));
        }
        for &class in present {
            of_class[class] /= total;
        }
        Ok(())
    })?;
    Ok(codes.look_up(&of_class, 0.0))
}

/// The sum of each class's weights, times `scale`. Rows without a class are in none.
fn sums_of_classes(codes: &Codes, weight: &Numbers<'_>, scale: f64) -> Result<Vec<f64>> {
    // One more, for the rows without a class: all codes are in bounds then, and none is a branch.
    let mut sums = vec![0.0; codes.bound() + 1];
    let mut rows = codes.as_slice();
    let last = codes.bound();
    weight.each_filled_block(0.0, Rule::Weight, |block| {
        let (of_block, rest) = rows.split_at(block.len().min(rows.len()));
        rows = rest;
        for (&value, &code) in block.iter().zip(of_block) {
            sums[last.min(code as usize)] += value * scale;
        }
    })?;
    sums.truncate(last);
    Ok(sums)
}

/// The next shares of domains from the losses in excess of a reference model: `alpha * exp(eta * max(excess, 0))`
/// scaled to sum 1, then mixed with equal shares, `(1 - c) * share + c / k` (DoReMi, Xie et al. 2023).
///
/// # Errors
/// [`Error::Argument`] unless `eta` is finite and at least 0 and `0 <= c <= 1`; [`Error::Table`] for a share that is
/// negative or an excess that is not a finite number, or if all shares of a group are 0.
pub fn doremi_weight(
    alpha: &Numbers<'_>,
    excess: &Numbers<'_>,
    eta: f64,
    c: f64,
    groups: Option<&Codes>,
) -> Result<Vec<f64>> {
    check("eta", eta)?;
    if !(0.0..=1.0).contains(&c) {
        return Err(Error::Argument {
            argument: "c",
            message: format!("c must be at least 0 and at most 1, found {c}"),
        });
    }
    let mut values = weights(alpha)?;
    let excess = excess.checked(0.0, Rule::Finite)?;
    // Logarithms: the largest exponent is taken off before the exponential.
    for (value, excess) in values.iter_mut().zip(&excess) {
        *value = value.ln() + eta * excess.max(0.0);
    }
    let tops = fold(&values, groups, f64::NEG_INFINITY, f64::max);
    if let Some(row) = values
        .iter()
        .enumerate()
        .position(|(row, _)| tops[groups.map_or(0, |g| g.as_slice()[row] as usize)].is_infinite())
    {
        let message = format!("all {} of the group of row {row} are 0", alpha.name);
        return Err(refused(alpha.name, Some(row), message));
    }
    each_mut(&mut values, groups, |value, group| {
        *value = (*value - tops[group]).exp()
    });
    let sums = sums(&values, groups);
    let counts = match groups {
        None => vec![values.len() as u64],
        Some(groups) => groups.counts(),
    };
    each_mut(&mut values, groups, |value, group| {
        *value = (1.0 - c) * (*value / sums[group]) + c / counts[group] as f64;
    });
    Ok(values)
}

/// How many equally weighted rows are worth as much as these: `(sum w)^2 / sum(w^2)` (Kish 1965); 0 without a weight above 0.
/// Nulls are left out.
///
/// # Errors
/// [`Error::Table`] for a weight that is negative or not finite.
pub fn effective_sample_size(weight: &Numbers<'_>) -> Result<f64> {
    let mut found = Squares::default();
    weight.each_block(Rule::Any, |block| found.add(block))?;
    if are_weights(found.sum, found.bits) && found.size_is_exact() {
        return Ok(found.size());
    }
    let mut largest = 0.0;
    weight.each_block(Rule::Weight, |block| largest = block_max(block, largest))?;
    if largest == 0.0 {
        return Ok(0.0);
    }
    // Squares that overflow or vanish: the size doesn't change where all weights are scaled, by a power of 2, which rounds
    // nothing.
    let scale = if found.size_is_exact() {
        1.0
    } else if largest < 1.0 {
        2.0_f64.powi(600)
    } else {
        2.0_f64.powi(-544)
    };
    let mut scaled = Squares::default();
    weight.each_block(Rule::Any, |block| {
        let block: Vec<f64> = block.iter().map(|value| value * scale).collect();
        scaled.add(&block);
    })?;
    Ok(scaled.size())
}

/// Sums of numbers and of their squares.
#[derive(Default)]
struct Squares {
    sum: f64,
    squares: f64,
    bits: u64,
}

impl Squares {
    fn add(&mut self, block: &[f64]) {
        let (sum, squares, bits) = block_sums(block);
        self.sum += sum;
        self.squares += squares;
        self.bits |= bits;
    }

    fn size_is_exact(&self) -> bool {
        self.squares.is_normal() && (self.sum * self.sum).is_finite()
    }

    fn size(&self) -> f64 {
        self.sum * self.sum / self.squares
    }
}

/// `(1 - p)^gamma` of the probabilities that a model gives to the truth, cut to 0..1; NaN stays NaN (Lin, Goyal, Girshick, He
/// and Dollar 2017).
pub fn focal_weight(p_true: &[f64], gamma: f64) -> Vec<f64> {
    let rest = |p: f64| 1.0 - p.clamp(0.0, 1.0);
    match Power::of(gamma) {
        // The common one in a single pass.
        Power::Two => mapped(p_true, |p| rest(p) * rest(p)),
        power => {
            let mut values = mapped(p_true, rest);
            power.raise(&mut values);
            values
        }
    }
}

/// Weights within bounds; 0, which leaves a row out, stays 0, and NaN stays NaN.
pub fn clip_weight(weight: &[f64], lower: f64, upper: f64) -> Vec<f64> {
    mapped(weight, |weight| {
        // `f64::clamp` panics where the bounds are swapped.
        let raised = if weight < lower { lower } else { weight };
        let clipped = if raised > upper { upper } else { raised };
        if weight == 0.0 { 0.0 } else { clipped }
    })
}

fn weights(column: &Numbers<'_>) -> Result<Vec<f64>> {
    column.checked(0.0, Rule::Weight)
}

/// The sum of any finite numbers times this is finite: they are fewer than 2^32.
const SMALL: f64 = 1.0 / (1_u64 << 33) as f64;

/// The sums of each group, after values that overflow them were made smaller, all by one power of 2.
fn finite_sums(values: &mut [f64], groups: Option<&Codes>) -> Vec<f64> {
    let found = sums(values, groups);
    if found.iter().all(|sum| sum.is_finite()) {
        return found;
    }
    values.iter_mut().for_each(|value| *value *= SMALL);
    sums(values, groups)
}

fn counts_above_zero(values: &[f64], groups: Option<&Codes>) -> Vec<u64> {
    let Some(groups) = groups else {
        return vec![count_above_zero(values) as u64];
    };
    let mut counts = vec![0; groups.bound()];
    for (&value, &group) in values.iter().zip(groups.as_slice()) {
        counts[group as usize] += u64::from(value > 0.0);
    }
    counts
}

pub(super) fn check(argument: &'static str, value: f64) -> Result<()> {
    if (0.0..f64::INFINITY).contains(&value) {
        return Ok(());
    }
    Err(Error::Argument {
        argument,
        message: format!("{argument} must be finite and at least 0, found {value}"),
    })
}

/// Marks a weight that a float doesn't hold, for [`all_there`].
#[inline(always)]
pub(super) fn marked(weight: f64, all: &mut bool) -> f64 {
    let there = weight.is_normal();
    *all &= there;
    if there { weight } else { f64::NAN }
}

pub(super) fn all_there(values: Vec<f64>, all: bool, name: &str) -> Result<Vec<f64>> {
    if all {
        return Ok(values);
    }
    Err(vanishing(
        values.iter().position(|value| value.is_nan()),
        name,
    ))
}

fn vanishing(row: Option<usize>, name: &str) -> Error {
    let message = format!(
        "the weight of row {} is beyond what a float holds: its {name} is too far from the others",
        row.unwrap_or_default()
    );
    refused(name, row, message)
}

#[cfg(test)]
mod tests;
