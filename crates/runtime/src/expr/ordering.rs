//! Ranks and buckets: curricula, batches of like lengths, edges.

use super::hashed::{check_rows, narrow};
use super::smallest::{Cuts, nth_smallest};
use crate::error::{Error, Result};

/// The most batches that [`length_group_keys`] sorts together.
const MEGA_BATCHES: usize = 50;

/// Buckets that are told by their borders; more are counted out for each value.
const CUTS: u32 = 1024;

/// A signed integer as an unsigned one of the same order.
#[inline(always)]
pub fn ordered_integer(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

/// A float as an integer of the same order; None for NaN, which has no place. 0.0 and -0.0 are one.
#[inline(always)]
pub fn ordered_float(value: f64) -> Option<u64> {
    let bits = (value + 0.0).to_bits();
    (!value.is_nan()).then_some(if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    })
}

/// Which rows are among the easiest: those whose difficulty is so low that the share of rows no harder than it is at
/// most the competence (Platanios and others 2019, where that share is the cumulative density of the difficulty). Equal
/// ones come in together.
///
/// # Errors
/// [`Error::Argument`] unless 0 <= competence <= 1.
pub fn curriculum(difficulties: &[u64], competence: f64) -> Result<Vec<bool>> {
    if !(0.0..=1.0).contains(&competence) {
        return Err(Error::Argument {
            argument: "competence",
            message: format!("competence must be 0 to 1, found {competence}"),
        });
    }
    let rows = difficulties.len();
    // The largest m with m / rows <= competence. The product is off by one at most.
    #[allow(clippy::cast_possible_truncation)]
    let guess = (rows as f64 * competence) as u64;
    let guess = usize::try_from(guess).map_or(rows, |guess| guess.min(rows));
    let fits = |m: usize| m as f64 / rows as f64 <= competence;
    let taken = match guess {
        m if m < rows && fits(m + 1) => m + 1,
        m if m > 0 && !fits(m) => m - 1,
        m => m,
    };
    if taken == rows {
        return Ok(vec![true; rows]);
    }
    let limit = nth_smallest(difficulties, taken).value;
    Ok(difficulties.iter().map(|&value| value < limit).collect())
}

/// The bucket of a value between ascending edges: how many edges are at most the value.
#[inline]
pub fn bucket_of(value: f64, edges: &[f64]) -> u32 {
    narrow(edges.partition_point(|&edge| edge <= value))
}

/// Checks edges of buckets.
///
/// # Errors
/// [`Error::Argument`] unless they are numbers and ascend, each above the one before.
pub fn check_edges(edges: &[f64]) -> Result<()> {
    let rising = edges.windows(2).all(|pair| pair[0] < pair[1]);
    if edges.is_empty() || !rising || edges.iter().any(|edge| edge.is_nan()) {
        return Err(Error::Argument {
            argument: "edges",
            message: format!(
                "edges must be at least one number, each above the one before, found {edges:?}"
            ),
        });
    }
    Ok(())
}

/// n buckets of as many rows each: floor(n * smaller / rows) for as many smaller values. Equal values share a bucket.
///
/// # Errors
/// [`Error::Argument`] for n = 0.
pub fn buckets(values: &[u64], n: u32) -> Result<Vec<u32>> {
    if n == 0 {
        return Err(Error::Argument {
            argument: "n",
            message: "n must be at least 1, found 0".to_owned(),
        });
    }
    let rows = values.len() as u64;
    if n > CUTS {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let of_value = |&value: &u64| {
            let smaller = sorted.partition_point(|&other| other < value);
            // Below n, as fewer than all are smaller.
            ((smaller as u128 * u128::from(n) / u128::from(rows)) & 0xFFFF_FFFF) as u32
        };
        return Ok(values.iter().map(of_value).collect());
    }
    // smaller * n / rows >= j from the rank ceil(j * rows / n) on.
    let ranks: Vec<usize> = (1..u64::from(n))
        .map(|j| (u128::from(j) * u128::from(rows)).div_ceil(u128::from(n)))
        .map(|rank| usize::try_from(rank).unwrap_or(usize::MAX))
        .collect();
    Ok(Cuts::new(values, &ranks).parts(values))
}

/// The place of each row in an order whose batches hold rows of like length: rows go by `order` (of equal ones the
/// first), are cut into runs of m batches, and each run is sorted from long to short, of equal lengths in the order
/// before; m is rows / (4 batch_size), at least 1 and at most 50. Then the longest row changes places with the first of
/// all, so that what needs most memory comes first. This is the grouping by length of the transformers library.
///
/// # Errors
/// [`Error::Argument`] for a batch of no rows, or 2^32 rows or more.
pub fn length_group_keys(lengths: &[u64], batch_size: usize, order: &[u64]) -> Result<Vec<u64>> {
    if batch_size == 0 {
        return Err(Error::Argument {
            argument: "batch_size",
            message: "batch_size must be at least 1, found 0".to_owned(),
        });
    }
    check_rows(lengths.len())?;
    let batches = (lengths.len() / batch_size.saturating_mul(4)).clamp(1, MEGA_BATCHES);
    let mut ordered: Vec<(u64, u32)> = order.iter().copied().zip(0..).collect();
    ordered.sort_unstable();
    // A run never needs to be longer than the column.
    let run = batch_size.saturating_mul(batches).min(lengths.len().max(1));
    let mut longest: Option<(u64, usize)> = None;
    for (number, rows) in ordered.chunks_mut(run).enumerate() {
        rows.sort_by(|a, b| lengths[b.1 as usize].cmp(&lengths[a.1 as usize]));
        let length = lengths[rows[0].1 as usize];
        if longest.is_none_or(|found| length > found.0) {
            longest = Some((length, number * run));
        }
    }
    if let Some((_, place)) = longest {
        ordered.swap(0, place);
    }
    let mut places = vec![0; lengths.len()];
    for (place, &(_, row)) in (0..).zip(&ordered) {
        places[row as usize] = place;
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::{
        bucket_of, buckets, check_edges, curriculum, length_group_keys, ordered_float,
        ordered_integer,
    };

    #[test]
    fn orders_are_kept() {
        let integers = [i64::MIN, -5, -1, 0, 1, i64::MAX].map(ordered_integer);
        assert!(integers.is_sorted_by(|a, b| a < b));
        let floats = [
            f64::NEG_INFINITY,
            -1e300,
            -5e-324,
            0.0,
            5e-324,
            1.0,
            f64::INFINITY,
        ];
        assert!(floats.map(ordered_float).is_sorted_by(|a, b| a < b));
        assert_eq!(ordered_float(0.0), ordered_float(-0.0));
        assert_eq!(ordered_float(f64::NAN), None);
    }

    #[test]
    fn curriculum_by_the_cumulative_density() {
        let values = [5, 1, 1, 9, 3];
        for competence in [0.0, 0.2, 0.4, 0.5, 0.6, 0.79, 0.8, 1.0] {
            let expected: Vec<bool> = values
                .iter()
                .map(|value| {
                    let easier = values.iter().filter(|other| *other <= value).count();
                    easier as f64 / 5.0 <= competence
                })
                .collect();
            assert_eq!(curriculum(&values, competence).unwrap(), expected);
        }
        let all: Vec<u64> = (0..100).collect();
        for i in 0..=100_u32 {
            let mask = curriculum(&all, f64::from(i) / 100.0).unwrap();
            assert_eq!(mask.iter().filter(|taken| **taken).count(), i as usize);
        }
        assert!(curriculum(&[], 0.5).unwrap().is_empty());
        assert!(curriculum(&[1], 1.1).is_err());
        assert!(curriculum(&[1], f64::NAN).is_err());
    }

    #[test]
    fn buckets_by_edges_and_by_rank() {
        let edges = [0.0, 1.0, 10.0];
        let found = [-1.0, 0.0, 0.5, 1.0, 10.0, 1e9].map(|value| bucket_of(value, &edges));
        assert_eq!(found, [0, 1, 1, 2, 3, 3]);
        assert!(check_edges(&edges).is_ok());
        for wrong in [
            &[][..],
            &[1.0, 1.0],
            &[2.0, 1.0],
            &[f64::NAN],
            &[0.0, f64::NAN],
        ] {
            assert!(check_edges(wrong).is_err());
        }
        let values: Vec<u64> = (0..997).map(|i| i * i % 101).collect();
        for n in [1, 2, 7, 50, 2000] {
            let expected: Vec<u32> = values
                .iter()
                .map(|value| {
                    let smaller = values.iter().filter(|other| *other < value).count();
                    u32::try_from(smaller * n / 997).unwrap()
                })
                .collect();
            assert_eq!(
                buckets(&values, u32::try_from(n).unwrap()).unwrap(),
                expected
            );
        }
        assert!(buckets(&values, 0).is_err());
        assert!(buckets(&[], 3).unwrap().is_empty());
    }

    #[test]
    fn runs_are_sorted_and_the_longest_is_first() {
        // 16 rows, batches of 2: runs of 4 rows.
        let lengths = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3];
        let order: Vec<u64> = (0..16).collect();
        let places = length_group_keys(&lengths, 2, &order).unwrap();
        let mut rows: Vec<usize> = (0..16).collect();
        rows.sort_by_key(|&row| places[row]);
        // Sorted: 2 0 1 3 | 5 7 4 6 | 11 8 10 9 | 12 14 13 15; then row 5, the first 9, goes to the front.
        assert_eq!(rows, [5, 0, 1, 3, 2, 7, 4, 6, 11, 8, 10, 9, 12, 14, 13, 15]);
        assert!(length_group_keys(&[], 2, &[]).unwrap().is_empty());
        assert_eq!(
            length_group_keys(&[1, 2], usize::MAX, &[0, 0]).unwrap(),
            [1, 0]
        );
        assert!(length_group_keys(&[1], 0, &[0]).is_err());
    }
}
