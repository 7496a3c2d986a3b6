//! Bounded integers out of 128-bit blocks.

/// `(block * m) >> 128`: an integer below m, or 0 for m = 0.
///
/// Each value comes from floor or ceil of 2^128 / m of the 2^128 blocks, so its probability is off by less than
/// 2^-64 of itself. There is nothing to reject: a loop that did would be entered less than once in 2^64 draws, which
/// no test could reach.
#[inline(always)]
pub(crate) fn scale(block: u128, m: u64) -> u64 {
    // High half times m, plus what the low half carries over: below 2^128, since
    // (2^64 - 1)^2 + 2^64 - 1 = (2^64 - 1) * 2^64.
    let m = u128::from(m);
    let carried = (u128::from(low(block)) * m) >> 64;
    high(
        u128::from(high(block))
            .wrapping_mul(m)
            .wrapping_add(carried),
    )
}

/// The low 64 bits.
#[inline(always)]
pub(crate) fn low(x: u128) -> u64 {
    // Masked to 64 bits: nothing else is cut off.
    (x & 0xFFFF_FFFF_FFFF_FFFF) as u64
}

/// The high 64 bits.
#[inline(always)]
pub(crate) fn high(x: u128) -> u64 {
    // 64 bits are left after the shift: nothing is cut off.
    (x >> 64) as u64
}

/// `(x * m) >> 64`.
#[inline(always)]
pub(crate) fn scale_64(x: u64, m: u64) -> u64 {
    high(u128::from(x) * u128::from(m))
}

/// A row number or a count of rows as an index of memory.
///
/// Only for numbers below the length of a slice in memory, which a `usize` holds by definition.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // see above: never larger than some slice's length
pub(crate) fn index(row: u64) -> usize {
    row as usize
}

#[cfg(test)]
mod tests {
    use super::{scale, scale_64};

    /// Against (block * m) >> 128 taken apart in 32-bit digits by hand.
    fn long_multiplication(block: u128, m: u64) -> u64 {
        let digits = |x: u128| {
            [
                x & 0xFFFF_FFFF,
                x >> 32 & 0xFFFF_FFFF,
                x >> 64 & 0xFFFF_FFFF,
                x >> 96,
            ]
        };
        let (x, y) = (digits(block), digits(u128::from(m)));
        let mut sums = [0_u128; 7];
        for i in 0..4 {
            for j in 0..2 {
                sums[i + j] += x[i] * y[j];
            }
        }
        for i in 0..6 {
            sums[i + 1] += sums[i] >> 32;
            sums[i] &= 0xFFFF_FFFF;
        }
        u64::try_from(sums[4] | sums[5] << 32).unwrap()
    }

    #[test]
    fn scales_as_by_long_multiplication() {
        let words = [
            0,
            1,
            2,
            0xFFFF_FFFF,
            1 << 32,
            1 << 63,
            u64::MAX - 1,
            u64::MAX,
            0x0123_4567_89AB_CDEF,
        ];
        for high in words {
            for low in words {
                let block = u128::from(high) << 64 | u128::from(low);
                for m in words {
                    assert_eq!(
                        scale(block, m),
                        long_multiplication(block, m),
                        "{block} {m}"
                    );
                }
            }
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(scale(u128::MAX, 7), 6);
        assert_eq!(scale(0, 7), 0);
        assert_eq!(scale(u128::MAX, u64::MAX), u64::MAX - 1);
        assert_eq!(scale(u128::MAX / 3, 3), 0);
        assert_eq!(scale(u128::MAX / 3 + 1, 3), 1);
        assert_eq!(scale_64(u64::MAX, 5), 4);
    }
}
