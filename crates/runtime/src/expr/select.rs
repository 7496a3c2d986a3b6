//! The largest values of a column, without a sort.

use super::codes::Codes;
use super::numbers::{Numbers, Rule, all_of};
use super::smallest::{DIRECT, Nth, SAMPLED, Selection, nth_of};
use crate::error::Result;
use crate::vector::wide;

/// 1 for the rows of the largest values, 0 for the others and for NaN, which nulls are here. `kept` says how many of how
/// many rows with a value; of equal values the first rows come first.
pub(super) fn largest(column: &Numbers<'_>, kept: impl Fn(usize) -> usize) -> Result<Vec<f64>> {
    let there = column.count_there();
    let kept = kept(there).min(there);
    let mut cut = Cut::of(kept, nth_largest(column, kept, there)?);
    column.mapped(f64::NAN, |block, out| cut.mark_block(block, out))
}

/// The key of the last that is kept, after a check of all.
fn nth_largest(column: &Numbers<'_>, kept: usize, there: usize) -> Result<Option<Nth>> {
    let mut keys = Vec::new();
    let Some(rank) = kept.checked_sub(1) else {
        column.each_filled_block(f64::NAN, Rule::Number, |_| ())?;
        return Ok(None);
    };
    if column.len() > DIRECT {
        let sample = column.sample(column.len() / SAMPLED).map(descending);
        let mut selection = Selection::new(sample.collect(), rank, there);
        column.each_filled_block(f64::NAN, Rule::Number, |block| {
            keys.clear();
            append_keys(block, &mut keys);
            selection.add(&keys);
        })?;
        if let Some(found) = selection.finish() {
            return Ok(Some(found));
        }
        keys.clear();
    }
    column.each_filled_block(f64::NAN, Rule::Number, |block| {
        append_keys(block, &mut keys)
    })?;
    Ok(Some(nth_of(&mut keys, rank)))
}

wide! {
    fn append_keys(values: &[f64], keys: &mut Vec<u64>) {
        keys.extend(values.iter().map(|&value| descending(value)));
    }
}

/// The same for each group.
pub(super) fn largest_of_groups(
    mut values: Vec<f64>,
    groups: &Codes,
    kept: impl Fn(usize) -> usize,
) -> Vec<f64> {
    let mut cuts: Vec<Cut> = ByGroup::new(&values, groups)
        .each()
        .map(|keys| {
            let kept = kept(keys.len()).min(keys.len());
            let rank = kept.checked_sub(1);
            Cut::of(kept, rank.map(|rank| nth_of(keys, rank)))
        })
        .collect();
    for (value, &group) in values.iter_mut().zip(groups.as_slice()) {
        *value = cuts[group as usize].mark(*value);
    }
    values
}

/// The keys of each group side by side.
struct ByGroup {
    keys: Vec<u64>,
    sizes: Vec<usize>,
}

impl ByGroup {
    /// A counting sort of the keys alone: rows are met again in their order when they are marked.
    fn new(values: &[f64], groups: &Codes) -> Self {
        let rows = || values.iter().zip(groups.as_slice());
        let mut sizes = vec![0; groups.bound()];
        for (value, &group) in rows() {
            sizes[group as usize] += usize::from(!value.is_nan());
        }
        let mut end = 0;
        let mut next: Vec<usize> = sizes
            .iter()
            .map(|size| {
                end += size;
                end - size
            })
            .collect();
        let mut keys = vec![0; end];
        for (&value, &group) in rows().filter(|(value, _)| !value.is_nan()) {
            let at = &mut next[group as usize];
            keys[*at] = descending(value);
            *at += 1;
        }
        Self { keys, sizes }
    }

    fn each(&mut self) -> impl Iterator<Item = &mut [u64]> {
        let mut rest = self.keys.as_mut_slice();
        self.sizes
            .iter()
            .map(move |&size| rest.split_off_mut(..size).unwrap_or_default())
    }
}

/// Integers in the opposite order of floats; 0.0 and -0.0 are one, and NaN comes last.
#[inline(always)]
fn descending(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    let flip = if bits >> 63 == 1 { 0 } else { u64::MAX >> 1 };
    if value.is_nan() {
        u64::MAX
    } else {
        bits ^ flip
    }
}

/// The float of [`descending`].
fn value_of(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 {
        key
    } else {
        key ^ u64::MAX >> 1
    })
}

/// Everything above a value is in, and the first few that are equal to it.
struct Cut {
    at: f64,
    ties: usize,
}

impl Cut {
    /// The cut after the last that is kept, nothing of none.
    fn of(kept: usize, last: Option<Nth>) -> Self {
        match last {
            None => Self {
                at: f64::INFINITY,
                ties: 0,
            },
            Some(last) => Self {
                at: value_of(last.value),
                ties: kept - last.smaller,
            },
        }
    }

    /// Marks of some values. Ties are few, so that most blocks have none and become vector instructions.
    fn mark_block(&mut self, values: &[f64], out: &mut Vec<f64>) {
        let at = self.at;
        if all_of(values, |value| value != at) {
            out.extend(
                values
                    .iter()
                    .map(|&value| if value > at { 1.0 } else { 0.0 }),
            );
        } else {
            out.extend(values.iter().map(|&value| self.mark(value)));
        }
    }

    #[inline(always)]
    fn mark(&mut self, value: f64) -> f64 {
        let mut marked = value > self.at;
        if value == self.at && self.ties > 0 {
            self.ties -= 1;
            marked = true;
        }
        f64::from(u8::from(marked))
    }
}
