//! The n-th smallest of many numbers, without sorting them, and the parts that such numbers cut a column into.

use super::memory::with_room;
use crate::vector::wide;

/// Numbers that are selected from at once.
pub(super) const DIRECT: usize = 1 << 14;

/// Numbers that are looked at first, to know where the wanted one lies about.
pub(super) const SAMPLED: usize = 1 << 14;

/// Ranks in the sample on either side of the wanted one: four standard deviations of the worst case.
const MARGIN: usize = 256;

/// Values that are worked on while they are in the cache.
const BLOCK: usize = 1024;

/// Limits that a value is compared with one by one.
const FEW: usize = 16;

/// More selections than this cost more than one sort.
const MANY: usize = 16;

/// A number of a certain rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nth {
    pub(super) value: u64,
    /// Numbers that are smaller.
    pub(super) smaller: usize,
    /// Numbers that are the same.
    same: usize,
}

/// The number of a rank, counted from 0, which must be below the length.
pub(super) fn nth_smallest(values: &[u64], rank: usize) -> Nth {
    if values.len() <= DIRECT {
        return nth_of(&mut values.to_vec(), rank);
    }
    let sample = values.iter().step_by(values.len() / SAMPLED).copied();
    let mut selection = Selection::new(sample.collect(), rank, values.len());
    selection.add(values);
    // What isn't found was in a pattern that the sample doesn't show.
    selection
        .finish()
        .unwrap_or_else(|| nth_of(&mut values.to_vec(), rank))
}

/// Finds the number of a rank among numbers that are shown once, after a sample of them.
pub(super) struct Selection {
    rank: usize,
    /// About where the number must be.
    low: u64,
    high: u64,
    below: usize,
    near: Vec<u64>,
}

impl Selection {
    /// The rank, counted from 0, is one of `of` numbers; the sample is some of them.
    pub(super) fn new(mut sample: Vec<u64>, rank: usize, of: usize) -> Self {
        sample.sort_unstable();
        let expected = rank as u128 * sample.len() as u128 / of.max(1) as u128;
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        let at = |place: Option<usize>| place.and_then(|place| sample.get(place)).copied();
        Self {
            rank,
            low: at(expected.checked_sub(MARGIN)).unwrap_or(0),
            high: at(expected.checked_add(MARGIN)).unwrap_or(u64::MAX),
            below: 0,
            near: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, values: &[u64]) {
        let (low, width) = (self.low, self.high - self.low);
        let mut places = [0; BLOCK];
        for block in values.chunks(BLOCK) {
            self.below += count_below(block, low);
            // Written always and kept where it is near: a branch would be guessed wrong for each that is.
            let mut found = 0;
            for &value in block {
                places[found] = value;
                found += usize::from(value.wrapping_sub(low) <= width);
            }
            self.near.extend_from_slice(&places[..found]);
        }
    }

    /// `None`: it isn't where the sample said.
    pub(super) fn finish(mut self) -> Option<Nth> {
        let rank = self.rank.checked_sub(self.below)?;
        if rank >= self.near.len() {
            return None;
        }
        let nth = nth_of(&mut self.near, rank);
        Some(Nth {
            smaller: self.below + nth.smaller,
            ..nth
        })
    }
}

wide! {
    fn count_below(values: &[u64], limit: u64) -> usize {
        values.iter().map(|&value| usize::from(value < limit)).sum()
    }
}

wide! {
    fn add_whether_above(values: &[u64], limit: u64, counts: &mut [u32]) {
        for (count, &value) in counts.iter_mut().zip(values) {
            *count += u32::from(value > limit);
        }
    }
}

wide! {
    fn append_whether_at_most(values: &[u64], limit: u64, out: &mut Vec<bool>) {
        out.extend(values.iter().map(|&value| value <= limit));
    }
}

/// The number of a rank, counted from 0, which must be below the length.
pub(super) fn nth_of(values: &mut [u64], rank: usize) -> Nth {
    let (left, &mut value, right) = values.select_nth_unstable(rank);
    let smaller = left.iter().filter(|&&other| other < value).count();
    let same = right.iter().filter(|&&other| other == value).count();
    Nth {
        value,
        smaller,
        same: rank - smaller + 1 + same,
    }
}

/// The numbers of several ascending ranks.
fn nth_smallest_of(values: &[u64], ranks: &[usize]) -> Vec<u64> {
    if ranks.len() <= MANY && values.len() > DIRECT {
        return ranks
            .iter()
            .map(|&rank| nth_smallest(values, rank).value)
            .collect();
    }
    nth_of_scratch(&mut values.to_vec(), ranks)
}

/// The numbers of several ascending ranks, which brings the others into another order.
fn nth_of_scratch(values: &mut [u64], ranks: &[usize]) -> Vec<u64> {
    if ranks.len() > MANY {
        values.sort_unstable();
        return ranks.iter().map(|&rank| values[rank]).collect();
    }
    // What comes from the last rank on is to the right of what was before it.
    let mut from = 0;
    let found = |&rank: &usize| {
        let (_, &mut value, _) = values[from..].select_nth_unstable(rank - from);
        from = rank;
        value
    };
    ranks.iter().map(found).collect()
}

/// Which of the values are the n smallest; of equal ones the first. All, where there are no more than n.
pub(super) fn smallest(values: &[u64], n: usize) -> Vec<bool> {
    let Some(rank) = n.min(values.len()).checked_sub(1) else {
        return vec![false; values.len()];
    };
    let last = nth_smallest(values, rank);
    let mut mask = with_room(values.len());
    if last.smaller + last.same == rank + 1 {
        append_whether_at_most(values, last.value, &mut mask);
        return mask;
    }
    let mut ties = rank + 1 - last.smaller;
    mask.extend(values.iter().map(|&value| {
        let is_tie = value == last.value && ties > 0;
        ties -= usize::from(is_tie);
        is_tie || value < last.value
    }));
    mask
}

/// Cuts of a column by rank: a value belongs to the part as many as there are ranks that at most so many smaller
/// values reach. So equal values are in one part, that of the first of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cuts {
    /// Ranks of 0: nothing comes before them.
    pub(super) passed: u32,
    /// A value above one of these is past its rank. Ascending.
    pub(super) limits: Vec<u64>,
}

impl Cuts {
    /// Cuts at ascending ranks.
    pub(super) fn new(values: &[u64], ranks: &[usize]) -> Self {
        Self::at(ranks, values.len(), |places| {
            nth_smallest_of(values, places)
        })
    }

    /// The same, which brings the values into another order.
    pub(super) fn of_scratch(values: &mut [u64], ranks: &[usize]) -> Self {
        Self::at(ranks, values.len(), |places| nth_of_scratch(values, places))
    }

    /// `nth` gives the values of ascending ranks.
    fn at(ranks: &[usize], values: usize, nth: impl FnOnce(&[usize]) -> Vec<u64>) -> Self {
        let zeros = ranks.partition_point(|&rank| rank == 0);
        let Some(last) = values.checked_sub(1) else {
            return Self {
                passed: super::hashed::narrow(zeros),
                limits: Vec::new(),
            };
        };
        let places: Vec<usize> = ranks[zeros..]
            .iter()
            .map(|&rank| (rank - 1).min(last))
            .collect();
        Self {
            passed: super::hashed::narrow(zeros),
            limits: nth(&places),
        }
    }

    /// The part of each of many values.
    pub(super) fn parts(&self, values: &[u64]) -> Vec<u32> {
        let mut parts = with_room(values.len());
        if self.limits.len() <= FEW {
            let mut of_block = [0; BLOCK];
            for block in values.chunks(BLOCK) {
                let of_block = &mut of_block[..block.len()];
                of_block.fill(self.passed);
                for &limit in &self.limits {
                    add_whether_above(block, limit, of_block);
                }
                parts.extend_from_slice(of_block);
            }
        } else {
            parts.extend(values.iter().map(|&value| self.part(value)));
        }
        parts
    }

    /// The part of a value.
    #[inline]
    pub(super) fn part(&self, value: u64) -> u32 {
        let past = if self.limits.len() <= FEW {
            self.limits
                .iter()
                .map(|&limit| u32::from(value > limit))
                .sum()
        } else {
            super::hashed::narrow(self.limits.partition_point(|&limit| limit < value))
        };
        self.passed + past
    }
}

#[cfg(test)]
mod tests {
    use super::{Cuts, Nth, nth_of_scratch, nth_smallest, nth_smallest_of, smallest};

    fn columns(len: usize) -> Vec<Vec<u64>> {
        let mut x = 3_u64;
        let words: Vec<u64> = (0..len)
            .map(|_| {
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
            })
            .collect();
        let stride = (len / 4096).max(1);
        vec![
            words.clone(),
            words.iter().map(|word| word % 3).collect(),
            vec![u64::MAX; len],
            (0..len as u64).collect(),
            (0..len as u64).rev().collect(),
            // What the sample sees is not what there is.
            (0..len)
                .map(|i| if i % stride == 0 { 0 } else { words[i] })
                .collect(),
        ]
    }

    #[test]
    fn ranks_are_those_of_a_sort() {
        for len in [1, 2, 100, 16_385, 50_000] {
            for values in columns(len) {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let ranks = [0, len / 1000, len / 3, len / 2, len - 1];
                for rank in ranks {
                    let value = sorted[rank];
                    let smaller = sorted.partition_point(|&other| other < value);
                    let same = sorted.partition_point(|&other| other <= value) - smaller;
                    let right = Nth {
                        value,
                        smaller,
                        same,
                    };
                    assert_eq!(nth_smallest(&values, rank), right);
                }
                for count in [2, 5, 16, 20] {
                    let many: Vec<usize> = (0..count).map(|i| i * len / count).collect();
                    let right: Vec<u64> = many.iter().map(|&rank| sorted[rank]).collect();
                    assert_eq!(nth_smallest_of(&values, &many), right);
                    assert_eq!(nth_of_scratch(&mut values.clone(), &many), right);
                }
            }
        }
    }

    #[test]
    fn the_smallest_and_of_equal_ones_the_first() {
        assert_eq!(
            smallest(&[5, 1, 5, 5, 9], 3),
            [true, true, true, false, false]
        );
        assert_eq!(smallest(&[2, 1], 0), [false, false]);
        assert_eq!(smallest(&[2, 1], 7), [true, true]);
        assert!(smallest(&[], 1).is_empty());
        for values in columns(20_000) {
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by_key(|&row| (values[row], row));
            let mask = smallest(&values, 7_000);
            assert!(
                order
                    .iter()
                    .enumerate()
                    .all(|(place, &row)| mask[row] == (place < 7_000))
            );
        }
    }

    #[test]
    fn equal_values_are_in_one_part() {
        let values = [10, 20, 20, 20, 30, 40];
        let cuts = Cuts::new(&values, &[0, 2, 4, 6]);
        let parts: Vec<u32> = values.iter().map(|&value| cuts.part(value)).collect();
        assert_eq!(cuts.parts(&values), parts);
        // Before the 20s comes one value, before 30 come four.
        assert_eq!(parts, [1, 1, 1, 1, 3, 3]);
        assert_eq!(Cuts::new(&[], &[0, 0]).part(1), 2);
    }
}
