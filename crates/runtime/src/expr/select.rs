//! The largest values of a column, without a sort.

use super::codes::Codes;
use super::groups::RowsByCode;

/// 1 for the rows of the largest values of each group, 0 for the others and for NaN. `kept` says how many of how many
/// rows with a value; of equal values the first rows come first.
pub(super) fn largest(
    mut values: Vec<f64>,
    groups: Option<&Codes>,
    kept: impl Fn(usize) -> usize,
) -> Vec<f64> {
    let Some(groups) = groups else {
        let there = values.iter().filter(|value| !value.is_nan()).count();
        let cut = Cut::of_many(&values, kept(there).min(there));
        let mut ties = cut.ties;
        for value in &mut values {
            *value = cut.mark(*value, &mut ties);
        }
        return values;
    };
    let mut keys = Vec::new();
    for rows in RowsByCode::new(groups).iter() {
        keys.clear();
        let of_rows = rows.iter().map(|&row| values[row as usize]);
        keys.extend(of_rows.filter(|value| !value.is_nan()).map(ordered));
        let kept = kept(keys.len());
        let cut = Cut::of_few(&mut keys, kept);
        let mut ties = cut.ties;
        for &row in rows {
            let value = &mut values[row as usize];
            *value = cut.mark(*value, &mut ties);
        }
    }
    values
}

/// Integers in the order of floats; 0.0 and -0.0 are one.
#[inline(always)]
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
    bits ^ flip
}

/// Everything above a value is in, and the first few that are equal to it.
struct Cut {
    at: u64,
    ties: usize,
}

impl Cut {
    const NOTHING: Self = Self {
        at: u64::MAX,
        ties: 0,
    };

    fn of_few(keys: &mut [u64], kept: usize) -> Self {
        let kept = kept.min(keys.len());
        let Some(index) = keys.len().checked_sub(kept).filter(|_| kept > 0) else {
            return Self::NOTHING;
        };
        let (_, &mut at, above) = keys.select_nth_unstable(index);
        Self {
            at,
            ties: kept - above.iter().filter(|&&key| key > at).count(),
        }
    }

    /// Counts by the upper bits first, so that few keys are left to choose from.
    fn of_many(values: &[f64], kept: usize) -> Self {
        const SHIFT: u32 = 64 - 14;
        if kept == 0 {
            return Self::NOTHING;
        }
        let keys = || {
            let there = values.iter().filter(|value| !value.is_nan());
            there.map(|&value| ordered(value))
        };
        let mut counts = vec![0_usize; 1 << 14];
        #[allow(clippy::cast_possible_truncation)]
        let bucket_of = |key: u64| (key >> SHIFT) as usize;
        for key in keys() {
            counts[bucket_of(key)] += 1;
        }
        let mut above = 0;
        let mut bucket = counts.len();
        while above < kept && bucket > 0 {
            bucket -= 1;
            above += counts[bucket];
        }
        let left = kept - (above - counts[bucket]);
        let mut inside = Vec::with_capacity(counts[bucket]);
        inside.extend(keys().filter(|&key| bucket_of(key) == bucket));
        Self::of_few(&mut inside, left)
    }

    #[inline(always)]
    fn mark(&self, value: f64, ties: &mut usize) -> f64 {
        let key = ordered(value);
        if value.is_nan() || key < self.at {
            return 0.0;
        }
        if key == self.at {
            if *ties == 0 {
                return 0.0;
            }
            *ties -= 1;
        }
        1.0
    }
}
