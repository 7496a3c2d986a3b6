//! Shares of a whole in whole numbers, so that a split is the same on every machine.

use crate::error::{Error, Result};

/// 2^64: the whole that shares given as numbers are parts of.
const WHOLE: u128 = 1 << 64;

/// How far the shares may be from 1 together.
const TOLERANCE: f64 = 1e-9;

/// Parts that a hash is compared with one by one.
const FEW: usize = 16;

/// Rows that are nearer than this to a whole number are that number, in units of WHOLE for each row: a share is a
/// binary64, whose last bit stands for up to 2^11 of them.
const ROUNDING_BITS: u32 = 12;

/// The shares of the parts of a split.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Where each part ends; the last at `whole`.
    ends: Vec<u128>,
    whole: u128,
    /// The ends that a hash can reach.
    reached: Vec<u64>,
}

impl Shares {
    /// Shares as numbers above 0 that make 1 within 1e-9: part j ends at the sum of floor(share * 2^64) up to it, the
    /// last at 2^64.
    ///
    /// # Errors
    /// [`Error::Argument`] for shares that don't.
    pub fn new(shares: &[f64]) -> Result<Self> {
        let refused = |message| {
            Err(Error::Argument {
                argument: "shares",
                message,
            })
        };
        if shares.is_empty() {
            return refused("shares are empty: a split has at least one part".to_owned());
        }
        if let Some((part, share)) = shares
            .iter()
            .enumerate()
            .find(|(_, share)| !(**share > 0.0 && **share < 2.0))
        {
            return refused(format!(
                "every share must be above 0, found {share} for part {part}"
            ));
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > TOLERANCE {
            return refused(format!(
                "shares must make 1 within {TOLERANCE:e}, found {sum}"
            ));
        }
        let mut end = 0;
        let mut ends: Vec<u128> = shares
            .iter()
            .map(|share| {
                // Times a power of two is exact, and the cast rounds down.
                #[allow(clippy::cast_possible_truncation)]
                let width = (share * 18_446_744_073_709_551_616.0) as u128;
                end = (end + width).min(WHOLE);
                end
            })
            .collect();
        if let Some(last) = ends.last_mut() {
            *last = WHOLE;
        }
        Ok(Self::of(ends, WHOLE))
    }

    /// k equal shares.
    ///
    /// # Errors
    /// [`Error::Argument`] for k = 0.
    pub fn equal(k: u32) -> Result<Self> {
        if k == 0 {
            return Err(Error::Argument {
                argument: "k",
                message: "k must be at least 1, found 0".to_owned(),
            });
        }
        Ok(Self::of((1..=u128::from(k)).collect(), u128::from(k)))
    }

    fn of(ends: Vec<u128>, whole: u128) -> Self {
        let first = |end: u128| {
            if whole == WHOLE {
                end
            } else {
                (end * WHOLE).div_ceil(whole)
            }
        };
        let inner = &ends[..ends.len() - 1];
        // The first hash of each next part; no hash reaches 2^64.
        let reached = inner
            .iter()
            .filter_map(|&end| u64::try_from(first(end)).ok())
            .collect();
        Self {
            ends,
            whole,
            reached,
        }
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.ends.len()
    }

    /// The first hash of each part but the first. A part that has no hash has none here.
    pub fn reached(&self) -> &[u64] {
        &self.reached
    }

    /// The part of a hash: the first that ends above it.
    #[inline(always)]
    pub fn part(&self, hash: u64) -> u32 {
        if self.reached.len() < FEW {
            self.reached.iter().map(|&end| u32::from(hash >= end)).sum()
        } else {
            super::hashed::narrow(self.reached.partition_point(|&end| end <= hash))
        }
    }

    /// The ranks at which each part but the last ends among n rows, to the nearest.
    pub(super) fn ranks(&self, n: usize) -> Vec<usize> {
        let inner = &self.ends[..self.ends.len() - 1];
        inner
            .iter()
            .map(|end| (n as u128 * end + self.whole / 2) / self.whole)
            .map(|rank| usize::try_from(rank).map_or(n, |rank| rank.min(n)))
            .collect()
    }

    /// Of n rows: the whole ones of each part, and the fraction of one row that is left to each.
    pub(super) fn rows_of(&self, n: usize) -> Vec<(usize, f64)> {
        let mut start = 0;
        let near = if self.whole == WHOLE {
            (n as u128) << ROUNDING_BITS
        } else {
            0
        };
        self.ends
            .iter()
            .map(|end| {
                let product = n as u128 * (end - start);
                start = *end;
                let (mut rows, mut rest) = (product / self.whole, product % self.whole);
                if self.whole - rest < near {
                    (rows, rest) = (rows + 1, 0);
                } else if rest < near {
                    rest = 0;
                }
                let rows = usize::try_from(rows).map_or(n, |rows| rows.min(n));
                (rows, rest as f64 / self.whole as f64)
            })
            .collect()
    }

    /// The share of each part.
    pub(super) fn fractions(&self) -> Vec<f64> {
        let mut start = 0;
        self.ends
            .iter()
            .map(|end| {
                let share = (end - start) as f64 / self.whole as f64;
                start = *end;
                share
            })
            .collect()
    }
}

/// The fold of a hash: floor(hash * k / 2^64), below k.
#[inline(always)]
pub fn fold(hash: u64, k: u32) -> u32 {
    // The upper half of the product, which is below k.
    ((u128::from(hash) * u128::from(k)) >> 64 & 0xFFFF_FFFF) as u32
}

#[cfg(test)]
mod tests {
    use super::{Shares, fold};

    #[test]
    fn a_hash_goes_to_the_first_part_that_ends_above_it() {
        let shares = Shares::new(&[0.5, 0.25, 0.25]).unwrap();
        let ends = [(0, 0), ((1 << 63) - 1, 0), (1 << 63, 1), (3 << 62, 2)];
        for (hash, part) in ends {
            assert_eq!(shares.part(hash), part);
        }
        assert_eq!(shares.part((3 << 62) - 1), 1);
        assert_eq!(shares.part(u64::MAX), 2);
        assert_eq!(Shares::new(&[1.0]).unwrap().part(u64::MAX), 0);
        // floor(0.1 * 2^64), computed from the binary64 by hand.
        let tenth = Shares::new(&[0.1, 0.9]).unwrap();
        assert_eq!(tenth.part(1_844_674_407_370_955_263), 0);
        assert_eq!(tenth.part(1_844_674_407_370_955_264), 1);
    }

    #[test]
    fn many_parts_are_searched_alike() {
        let shares = Shares::equal(100).unwrap();
        for i in 0..10_000_u64 {
            let hash = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let expected = (u128::from(hash) * 100) >> 64;
            assert_eq!(u128::from(shares.part(hash)), expected);
            assert_eq!(fold(hash, 100), shares.part(hash));
        }
        let three = Shares::equal(3).unwrap();
        assert_eq!(three.part(6_148_914_691_236_517_205), 0);
        assert_eq!(three.part(6_148_914_691_236_517_206), 1);
    }

    #[test]
    fn whole_rows_and_what_is_left() {
        let shares = Shares::new(&[0.8, 0.1, 0.1]).unwrap();
        let rows: Vec<usize> = shares.rows_of(10).iter().map(|part| part.0).collect();
        assert_eq!(rows, [8, 1, 1]);
        assert!(shares.rows_of(10).iter().all(|part| part.1 == 0.0));
        let rest = shares.rows_of(11);
        assert_eq!(rest.iter().map(|part| part.0).sum::<usize>(), 10);
        assert!((rest.iter().map(|part| part.1).sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(Shares::equal(3).unwrap().rows_of(8), [(2, 2.0 / 3.0); 3]);
        assert_eq!(shares.ranks(10), [8, 9]);
        assert_eq!(shares.ranks(0), [0, 0]);
    }

    #[test]
    fn shares_that_are_refused() {
        for wrong in [
            &[][..],
            &[0.5],
            &[0.5, 0.5, 1e-8],
            &[1.0, 0.0],
            &[1.5, -0.5],
            &[f64::NAN, 1.0],
            &[f64::INFINITY],
        ] {
            assert!(Shares::new(wrong).is_err(), "{wrong:?}");
        }
        assert!(Shares::new(&[0.7, 0.2, 0.1]).is_ok());
        assert!(Shares::new(&[0.5, 0.5, 1e-10]).is_ok());
        assert!(Shares::equal(0).is_err());
    }
}
