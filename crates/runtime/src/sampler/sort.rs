//! Puts rows in the order of their keys.
//!
//! Keys are dealt into buckets that follow each other, each small enough to be sorted in a processor's cache. The
//! borders of the buckets come from a sample: a bad guess costs time, never the order.

use super::draw::index;

/// Rows that are sorted at once, without buckets.
const DIRECT: usize = 4096;

/// Rows that a bucket has in the mean, while there are fewer than [`MAX_BUCKETS`].
const IN_A_BUCKET: usize = 1024;

/// More streams of writes would thrash the caches.
const MAX_BUCKETS: usize = 4096;

/// Keys that are looked at for the borders.
const SAMPLED: usize = 2048;

/// Buckets of equal width from a lowest key on; keys outside go to the first and the last.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    lowest: u64,
    shift: u32,
    count: usize,
}

impl Buckets {
    fn of(keys: &[u64]) -> Self {
        let count = (keys.len() / IN_A_BUCKET).clamp(1, MAX_BUCKETS);
        let mut sample: Vec<u64> = keys
            .iter()
            .step_by((keys.len() / SAMPLED).max(1))
            .copied()
            .collect();
        sample.sort_unstable();
        // Few keys are far below the others: the first bucket takes them.
        let lowest = sample.get(sample.len() / 1000).copied().unwrap_or(0);
        let width = sample.last().map_or(0, |highest| highest - lowest) / count as u64;
        // The next power of two: at most twice too wide.
        Self {
            lowest,
            shift: 64 - width.leading_zeros(),
            count,
        }
    }

    /// Never falls as the key rises.
    #[inline(always)]
    fn bucket(self, key: u64) -> usize {
        let offset = key
            .saturating_sub(self.lowest)
            .checked_shr(self.shift)
            .unwrap_or(0);
        index(offset.min(self.count as u64 - 1))
    }
}

/// Keys of the rows 0, 1, ... as `key * 2^64 + row`, ascending.
pub(super) fn by_key_and_row(keys: Vec<u64>) -> Vec<u128> {
    let race = |key: u64, row: usize| u128::from(key) << 64 | row as u128;
    if keys.len() <= DIRECT {
        let mut races: Vec<u128> = keys
            .iter()
            .zip(0..)
            .map(|(&key, row)| race(key, row))
            .collect();
        races.sort_unstable();
        return races;
    }
    let buckets = Buckets::of(&keys);
    let mut ends = vec![0; buckets.count];
    for &key in &keys {
        ends[buckets.bucket(key)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        // For now where the bucket starts; it moves on with every key that is dealt.
        sum += std::mem::replace(end, sum);
    }
    let mut races = vec![0; keys.len()];
    for (row, key) in keys.into_iter().enumerate() {
        let end = &mut ends[buckets.bucket(key)];
        races[*end] = race(key, row);
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        races[start..end].sort_unstable();
        start = end;
    }
    races
}

#[cfg(test)]
mod tests {
    use super::{Buckets, by_key_and_row};

    fn check(keys: Vec<u64>) {
        let mut expected: Vec<(u64, u64)> = keys.iter().copied().zip(0..).collect();
        expected.sort();
        let found: Vec<(u64, u64)> = by_key_and_row(keys)
            .into_iter()
            .map(|race| {
                (
                    u64::try_from(race >> 64).unwrap(),
                    u64::try_from(race & u128::from(u64::MAX)).unwrap(),
                )
            })
            .collect();
        assert!(found == expected);
    }

    /// Words that look random.
    fn words(len: usize) -> Vec<u64> {
        let mut x = 3_u64;
        let next = |_| {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        };
        (0..len).map(next).collect()
    }

    #[test]
    fn sorts_whatever_the_keys() {
        for len in [0, 1, 2, 100, 4096, 4097, 50_000] {
            let words = words(len);
            check(words.clone());
            check(vec![7; len]);
            check(vec![u64::MAX; len]);
            // Many ties, at both ends.
            check(words.iter().map(|word| word % 5).collect());
            check(words.iter().map(|word| u64::MAX - word % 5).collect());
            // Far clusters, and one key far from all.
            check(
                words
                    .iter()
                    .map(|word| (word % 3) << 62 | word >> 40)
                    .collect(),
            );
            check(
                words
                    .iter()
                    .map(|word| {
                        if word % 10_007 == 0 {
                            *word
                        } else {
                            word >> 50
                        }
                    })
                    .collect(),
            );
            let mut rising = words;
            rising.sort_unstable();
            check(rising.clone());
            rising.reverse();
            check(rising);
        }
    }

    #[test]
    fn buckets_are_even_for_even_keys() {
        let words = words(200_000);
        let buckets = Buckets::of(&words);
        let mut counts = vec![0; buckets.count];
        for word in words {
            counts[buckets.bucket(word)] += 1;
        }
        assert_eq!(buckets.count, 195);
        assert!(counts.iter().max().unwrap() < &4096, "{counts:?}");
    }
}
