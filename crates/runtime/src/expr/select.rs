//! The largest values of a column, without a sort.

use super::codes::Codes;
use super::numbers::{Numbers, Rule, all_of};
use crate::error::Result;

/// 1 for the rows of the largest values, 0 for the others and for NaN, which nulls are here. `kept` says how many of how
/// many rows with a value; of equal values the first rows come first.
pub(super) fn largest(column: &Numbers<'_>, kept: impl Fn(usize) -> usize) -> Result<Vec<f64>> {
    let mut counts = Counts::new();
    column.each_filled_block(f64::NAN, Rule::Number, |block| counts.add(block))?;
    let there = counts.rows();
    let mut cut = counts.cut(column, kept(there).min(there))?;
    column.mapped(f64::NAN, |block, out| cut.mark_block(block, out))
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
            let kept = kept(keys.len());
            Cut::of_few(keys, kept)
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
            keys[*at] = ordered(value);
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

/// Integers in the order of floats; 0.0 and -0.0 are one.
#[inline(always)]
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
    bits ^ flip
}

/// The float of [`ordered`].
fn value_of(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key ^ 1 << 63 } else { !key })
}

/// Everything above a value is in, and the first few that are equal to it.
struct Cut {
    at: f64,
    ties: usize,
}

impl Cut {
    const NOTHING: Self = Self {
        at: f64::INFINITY,
        ties: 0,
    };

    fn of_few(keys: &mut [u64], kept: usize) -> Self {
        let kept = kept.min(keys.len());
        let Some(index) = keys.len().checked_sub(kept).filter(|_| kept > 0) else {
            return Self::NOTHING;
        };
        let (_, &mut at, above) = keys.select_nth_unstable(index);
        Self {
            at: value_of(at),
            ties: kept - above.iter().filter(|&&key| key > at).count(),
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

/// How many values there are by the upper bits of their keys, so that few are left to choose from.
struct Counts(Vec<u32>);

impl Counts {
    const SHIFT: u32 = 64 - 14;

    fn new() -> Self {
        Self(vec![0; 1 << (64 - Self::SHIFT)])
    }

    /// Counts all but NaN.
    fn add(&mut self, values: &[f64]) {
        for &value in values.iter().filter(|value| !value.is_nan()) {
            self.0[Self::bucket(ordered(value))] += 1;
        }
    }

    fn rows(&self) -> usize {
        self.0.iter().map(|&count| count as usize).sum()
    }

    #[allow(clippy::cast_possible_truncation)]
    fn bucket(key: u64) -> usize {
        (key >> Self::SHIFT) as usize
    }

    /// The cut of the values that were counted.
    fn cut(&self, column: &Numbers<'_>, kept: usize) -> Result<Cut> {
        if kept == 0 {
            return Ok(Cut::NOTHING);
        }
        let mut above = 0;
        let mut bucket = self.0.len();
        while above < kept && bucket > 0 {
            bucket -= 1;
            above += self.0[bucket] as usize;
        }
        let size = self.0[bucket] as usize;
        let mut inside = Vec::with_capacity(size);
        column.each_filled_block(f64::NAN, Rule::Any, |block| {
            let there = block.iter().filter(|value| !value.is_nan());
            let keys = there.map(|&value| ordered(value));
            inside.extend(keys.filter(|&key| Self::bucket(key) == bucket));
        })?;
        Ok(Cut::of_few(&mut inside, kept - (above - size)))
    }
}
