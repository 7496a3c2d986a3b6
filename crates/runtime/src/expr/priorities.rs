//! Weights of prioritised replay: probabilities from priorities, and what they must be corrected by.

use super::codes::Codes;
use super::numbers::{Numbers, Rule, block_max, block_sum, each_mut, fold, is_above_zero, sums};
use super::power::Power;
use super::refused;
use super::value_weights::{all_there, check, marked};
use crate::error::Result;
use crate::vector::wide;

/// Sampling probabilities in proportion to a power of the priorities: `p^alpha / sum(p^alpha)` (Schaul, Quan, Antonoglou
/// and Silver 2016).
///
/// # Errors
/// [`Error::Argument`] unless `alpha` is finite and at least 0; [`Error::Table`] for a priority that is negative or not
/// finite, if all are 0, or if one above 0 vanishes beside the others.
pub fn prioritized_weight(
    priority: &Numbers<'_>,
    alpha: f64,
    groups: Option<&Codes>,
) -> Result<Vec<f64>> {
    check("alpha", alpha)?;
    if groups.is_none() && alpha != 0.0 {
        let mut top = 0.0;
        priority.each_filled_block(0.0, Rule::Weight, |block| top = block_max(block, top))?;
        if top > 0.0 {
            return prioritized_beside(top, priority, alpha);
        }
    }
    let mut values = priorities(priority, alpha, groups)?;
    let tops = fold(&values, groups, 0.0, f64::max);
    // Relative to the largest of the group no power overflows. What isn't drawn stays 0, also where all are.
    each_mut(&mut values, groups, |value, group| {
        *value = ratio(*value, tops[group], *value);
    });
    let mut all = raise_drawn(&mut values, alpha);
    let sums = sums(&values, groups);
    each_mut(&mut values, groups, |value, group| {
        if *value != 0.0 {
            *value = marked(*value / sums[group], &mut all);
        }
    });
    all_there(values, all, priority.name)
}

/// [`prioritized_weight`] of one group whose largest priority is `top`: the column is read rather than copied, and raised
/// and summed while it is in the cache.
fn prioritized_beside(top: f64, priority: &Numbers<'_>, alpha: f64) -> Result<Vec<f64>> {
    let (mut sum, mut all) = (0.0, true);
    let mut values = priority.mapped(0.0, |block, out| {
        let first = out.len();
        append_ratios(block, top, out);
        let raised = &mut out[first..];
        all &= raise_drawn(raised, alpha);
        sum += block_sum(raised);
    })?;
    // At least 1, that of the top.
    all &= divide(&mut values, sum);
    all_there(values, all, priority.name)
}

wide! {
    fn append_ratios(block: &[f64], to: f64, out: &mut Vec<f64>) {
        out.extend(block.iter().map(|&value| ratio(value, to, value)));
    }
}

wide! {
    /// Divides all; NaN where what was not 0 becomes no normal float, which makes the result `false`.
    fn divide(values: &mut [f64], by: f64) -> bool {
        let mut wrong = 0;
        for value in values {
            let quotient = *value / by;
            let is_there = is_above_zero(quotient) | (*value == 0.0);
            wrong |= u64::from(!is_there);
            *value = if is_there { quotient } else { f64::NAN };
        }
        wrong == 0
    }
}

/// The importance-sampling correction of [`prioritized_weight`], 1 for the row that is drawn least: with `P` the
/// probability and N rows, `(N P)^-beta` over the largest of these, which is `(P_min / P)^beta`. 0 for rows that aren't
/// drawn (Schaul, Quan, Antonoglou and Silver 2016).
///
/// # Errors
/// As [`prioritized_weight`].
pub fn prioritized_correction(
    priority: &Numbers<'_>,
    alpha: f64,
    beta: f64,
    groups: Option<&Codes>,
) -> Result<Vec<f64>> {
    check("alpha", alpha)?;
    check("beta", beta)?;
    let mut values = priorities(priority, alpha, groups)?;
    let least = fold(&values, groups, f64::INFINITY, |least, value| {
        if value > 0.0 { least.min(value) } else { least }
    });
    each_mut(&mut values, groups, |value, group| {
        *value = ratio(least[group], *value, *value);
    });
    let all = raise_drawn(&mut values, alpha * beta);
    all_there(values, all, priority.name)
}

/// A ratio of numbers above 0, NaN if it vanishes; 0 for a row that is not drawn, whose weight is 0.
#[inline(always)]
fn ratio(of: f64, to: f64, weight: f64) -> f64 {
    let ratio = of / to;
    let there = if ratio == 0.0 { f64::NAN } else { ratio };
    if weight == 0.0 { 0.0 } else { there }
}

/// Raises what is above 0; what is 0 stays it. What is no normal float afterwards becomes NaN, and the result `false`.
fn raise_drawn(values: &mut [f64], exponent: f64) -> bool {
    let power = Power::of(exponent);
    let mut all = true;
    let mut bases = [0.0; BLOCK];
    for block in values.chunks_mut(BLOCK) {
        let (bases, _) = bases.split_at_mut(block.len());
        bases.copy_from_slice(block);
        power.raise(block);
        all &= mark_drawn(block, bases);
    }
    all
}

/// Numbers that are worked on while they are in the cache.
const BLOCK: usize = 2048;

wide! {
    /// 0 where the base is, NaN where else no normal float is, which makes the result `false`.
    fn mark_drawn(values: &mut [f64], bases: &[f64]) -> bool {
        let mut wrong = 0;
        for (value, &base) in values.iter_mut().zip(bases) {
            let is_normal = is_above_zero(*value);
            wrong |= u64::from(!(is_normal | (base == 0.0)));
            let there = if is_normal { *value } else { f64::NAN };
            *value = if base == 0.0 { 0.0 } else { there };
        }
        wrong == 0
    }
}

/// Priorities; 0 for rows that aren't drawn, and 1 for all others where `alpha` makes them equal.
fn priorities(column: &Numbers<'_>, alpha: f64, groups: Option<&Codes>) -> Result<Vec<f64>> {
    const NULL: f64 = -1.0;
    let mut values = column.checked(NULL, Rule::Weight)?;
    if alpha == 0.0 {
        for value in &mut values {
            *value = if *value < 0.0 { 0.0 } else { 1.0 };
        }
        return Ok(values);
    }
    let tops = fold(&values, groups, NULL, f64::max);
    if tops.contains(&0.0) {
        // A group's largest is 0: it has rows that count, and all of them are 0.
        let group_of = |row: usize| groups.map_or(0, |groups| groups.as_slice()[row] as usize);
        let row = (0..values.len()).find(|&row| tops[group_of(row)] == 0.0);
        if row.is_some() {
            let message = format!(
                "all values of {} of the group of row {} are 0, so nothing is drawn from it",
                column.name,
                row.unwrap_or_default()
            );
            return Err(refused(column.name, row, message));
        }
    }
    values.iter_mut().for_each(|value| *value = value.max(0.0));
    Ok(values)
}
