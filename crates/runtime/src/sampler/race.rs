//! Keys of a weighted order: an exponential variate divided by the weight, in arithmetic that gives the same bits on
//! every machine. Successive draws without replacement, each proportional to the weights that are left, have the same
//! law as the ascending order of the keys (Efraimidis and Spirakis 2006).
//!
//! Each operation is a binary64 operation rounded to nearest, and no product is followed by a sum unless the product
//! is exact, so that a fused multiply-add could not change a bit. A library's logarithm won't do: they differ.

use crate::vector::wide;

/// ln 2 rounded to 47 binary places: times a whole number of up to 6 bits it is exact.
const LN_2: f64 = 97_551_793_252_584.0 / 140_737_488_355_328.0;

/// Above this the mantissa is halved, so that it lies around 1.
const SQRT_2: f64 = std::f64::consts::SQRT_2;

/// 2^52: the lowest bit of the exponent of a binary64.
const EXPONENT_ONE: u64 = 1 << 52;

const FRACTION: u64 = EXPONENT_ONE - 1;

/// Keys that are computed together.
pub(crate) const BATCH: usize = 64;

/// A number U in (0, 1] out of a random word, ((x >> 11) + 1) / 2^53, as m and k: U = m * 2^-k, with m around 1.
#[inline(always)]
fn uniform(x: u64) -> (f64, i32) {
    // At most 2^53: exact. It is normal, so its bits are mantissa and exponent.
    let bits = (((x >> 11) + 1) as f64).to_bits();
    let m = f64::from_bits(bits & FRACTION | 1023 << 52);
    // The exponent field is below 2^11; that of 2^53 stands for U = 1.
    let k = 1023 + 53 - (bits >> 52) as i32;
    if m > SQRT_2 { (m / 2.0, k - 1) } else { (m, k) }
}

/// An exponential variate, -ln(m * 2^-k), within 8e-15 of itself: k ln 2 - ln m, and the logarithm by the continued
/// fraction of the inverse hyperbolic tangent, ln m = -2 artanh((1 - m) / (1 + m)).
#[inline(always)]
fn exponential(m: f64, k: f64) -> f64 {
    let s = (1.0 - m) / (1.0 + m);
    let z = s * s;
    let mut t = 325.0 / 256.0;
    t = 704.0 / 225.0 - z / t;
    t = 81.0 / 64.0 - z / t;
    t = 28.0 / 9.0 - z / t;
    t = 5.0 / 4.0 - z / t;
    t = 3.0 - z / t;
    t = 1.0 - z / t;
    k * LN_2 + 2.0 * (s / t)
}

/// Appends the keys of weights under random words, the low halves of blocks; at most [`BATCH`] of each.
pub(crate) fn keys(words: &[u64], weights: &[f64], out: &mut Vec<u64>) {
    let mut keys = [0; BATCH];
    batch(words, weights, &mut keys);
    out.extend_from_slice(&keys[..words.len().min(weights.len())]);
}

wide! {
    /// In steps over the whole batch, which become vector instructions.
    fn batch(words: &[u64], weights: &[f64], keys: &mut [u64; BATCH]) {
        let mut mantissas = [0.0; BATCH];
        let mut exponents = [0.0; BATCH];
        for ((m, k), &word) in mantissas.iter_mut().zip(&mut exponents).zip(words) {
            let parts = uniform(word);
            (*m, *k) = (parts.0, f64::from(parts.1));
        }
        for (m, &k) in mantissas.iter_mut().zip(&exponents) {
            *m = exponential(*m, k);
        }
        for ((key, &variate), &weight) in keys.iter_mut().zip(&mantissas).zip(weights) {
            *key = race(variate, weight);
        }
    }
}

/// Mantissa in [0.5, 1) and exponent of a positive finite float, subnormals too.
#[inline(always)]
fn parts(x: f64) -> (f64, u64) {
    // Subnormals times 2^54 are normal, and exact.
    let is_small = x < f64::MIN_POSITIVE;
    let normal = if is_small {
        x * 18_014_398_509_481_984.0
    } else {
        x
    };
    let lift = if is_small { 54 } else { 0 };
    let bits = normal.to_bits();
    (
        f64::from_bits(bits & FRACTION | 1022 << 52),
        (bits >> 52).wrapping_sub(1022 + lift),
    )
}

/// The variate divided by the weight, as an integer that orders like the quotient: its mantissa's bits under an
/// exponent wide enough that nothing overflows at 5e-324 or underflows at 1e308.
#[inline(always)]
fn race(exponential: f64, weight: f64) -> u64 {
    let (m1, e1) = parts(exponential);
    let (m2, e2) = parts(weight);
    // Exponents are two's complement here. The sum stays in range: e1 is -52 to 6, e2 is -1073 to 1024, and the
    // quotient's own exponent field is 1022 or 1023.
    let exponent = e1.wrapping_sub(e2).wrapping_add(64);
    let key = (m1 / m2)
        .to_bits()
        .wrapping_add(exponent.wrapping_mul(EXPONENT_ONE));
    if exponential == 0.0 { 0 } else { key }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, keys, race, uniform};
    use crate::sampler::golden;

    fn exponential(x: u64) -> f64 {
        let (m, k) = uniform(x);
        super::exponential(m, f64::from(k))
    }

    #[test]
    fn bits_are_those_of_the_definition() {
        for &(x, bits, keys) in golden::RACES {
            let e = exponential(x);
            assert_eq!(e.to_bits(), bits, "{x}");
            let weights = [1.0, 0.3, 5e-324, 1e308, f64::MIN_POSITIVE];
            assert_eq!(weights.map(|weight| race(e, weight)), keys, "{x}");
        }
    }

    #[test]
    fn many_keys_are_the_single_ones() {
        let weights = [1.0, 0.3, 5e-324, 1e308, f64::MIN_POSITIVE];
        let words: Vec<u64> = golden::RACES.iter().map(|race| race.0).collect();
        for (at, &weight) in weights.iter().enumerate() {
            let mut out = vec![1];
            for words in words.chunks(BATCH) {
                keys(words, &[weight; BATCH][..words.len()], &mut out);
            }
            assert_eq!(out[0], 1);
            assert_eq!(
                out[1..],
                golden::RACES
                    .iter()
                    .map(|race| race.2[at])
                    .collect::<Vec<_>>()
            );
        }
    }

    /// The definition spells its constants as numbers; these are their bits.
    #[test]
    fn constants() {
        assert_eq!(super::SQRT_2.to_bits(), 0x3FF6_A09E_667F_3BCD);
        assert_eq!(super::LN_2 * 2.0_f64.powi(47), 97_551_793_252_584.0);
        assert!((super::LN_2 - std::f64::consts::LN_2).abs() < 2.0_f64.powi(-48));
    }

    #[test]
    fn close_to_the_logarithm() {
        assert_eq!(exponential(u64::MAX).to_bits(), 0);
        assert!((exponential(0) - 53.0 * std::f64::consts::LN_2).abs() < 1e-12);
        let mut x = 1_u64;
        for _ in 0..100_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let u = ((x >> 11) + 1) as f64 / 9_007_199_254_740_992.0;
            let (e, exact) = (exponential(x), -u.ln());
            assert!((e - exact).abs() <= 2e-14 * exact, "{x}: {e} {exact}");
        }
    }

    /// a/b < c/d exactly when a*d < c*b, in whole numbers where both sides stay exact.
    #[test]
    fn keys_order_as_the_quotients() {
        let mut x = 7_u64;
        let mut next = || {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            x >> 40
        };
        for _ in 0..100_000 {
            let [a, b, c, d] = [next() + 1, next() + 1, next() + 1, next() + 1];
            let keys = (race(a as f64, b as f64), race(c as f64, d as f64));
            // Quotients of 24-bit numbers differ by more than the rounding when they differ.
            assert_eq!(
                keys.0.cmp(&keys.1),
                (a * d).cmp(&(c * b)),
                "{a}/{b} {c}/{d}"
            );
        }
    }

    #[test]
    fn neither_overflows_nor_underflows() {
        let low = race(
            f64::from_bits(exponential(u64::MAX - (1 << 11)).to_bits()),
            f64::MAX,
        );
        let high = race(exponential(0), 5e-324);
        assert!(0 < low && low < race(1.0, 1.0) && race(1.0, 1.0) < high);
        assert!(race(1.0, f64::MAX) < race(1.0, 1e308));
        assert!(race(1.0, 1e-323) < race(1.0, 5e-324));
        assert!(race(1.0, f64::MIN_POSITIVE) < race(1.0, f64::MIN_POSITIVE / 2.0));
    }
}
