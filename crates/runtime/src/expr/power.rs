//! One power of many numbers.
//!
//! Calls of `powf` one by one are most of the cost of the weights that need them. Here the power is computed as
//! `2^(exponent * log2(base))` without a branch or a call, so that the loop becomes vector instructions. The result is
//! within 1e-12 of the true one, relatively, for all results that are normal floats: an error of a few 2^-53 in an
//! exponent of at most 1074.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

use crate::vector::wide;

/// A power that is raised many times.
#[derive(Clone, Copy, Debug)]
pub(super) enum Power {
    /// Exponent 0.
    Zero,
    /// Exponent 1/2.
    Root,
    /// Exponent 1.
    One,
    /// Exponent 2.
    Two,
    /// Any other.
    Other(f64),
}

impl Power {
    /// The power of an exponent.
    pub(super) fn of(exponent: f64) -> Self {
        match exponent {
            0.0 => Self::Zero,
            0.5 => Self::Root,
            1.0 => Self::One,
            2.0 => Self::Two,
            _ => Self::Other(exponent),
        }
    }

    /// Raises numbers in place.
    pub(super) fn raise(self, values: &mut [f64]) {
        match self {
            Self::Zero => values.fill(1.0),
            Self::Root => values.iter_mut().for_each(|value| *value = value.sqrt()),
            Self::One => {}
            Self::Two => values.iter_mut().for_each(|value| *value *= *value),
            Self::Other(exponent) if exponent > 0.0 => {
                let mut raised = [0.0; BLOCK];
                for block in values.chunks_mut(BLOCK) {
                    let (raised, _) = raised.split_at_mut(block.len());
                    if !raise_block(block, exponent, raised) {
                        // One by one, so that a power depends on its base alone and not on its neighbours.
                        for (&base, out) in block.iter().zip(&mut *raised) {
                            if !is_computed(base, exponent * log2(base)) {
                                *out = base.powf(exponent);
                            }
                        }
                    }
                    block.copy_from_slice(raised);
                }
            }
            Self::Other(exponent) => {
                for value in values {
                    *value = value.powf(exponent);
                }
            }
        }
    }
}

/// Values that are raised at once.
const BLOCK: usize = 256;

wide! {
    /// Powers of numbers from 0 on, by an exponent above 0. `false`: some are not computed.
    fn raise_block(bases: &[f64], exponent: f64, raised: &mut [f64]) -> bool {
        let mut wrong = 0;
        for (&base, out) in bases.iter().zip(raised) {
            let power = exponent * log2(base);
            wrong |= u64::from(!is_computed(base, power));
            *out = if base == 0.0 { 0.0 } else { exp2(power) };
        }
        wrong == 0
    }
}

/// Whether the power of 2 is that of the base: both are normal floats, or the base is 0 and so is its power.
#[inline(always)]
#[allow(clippy::manual_range_contains, reason = "its `&&` is a branch")]
fn is_computed(base: f64, power: f64) -> bool {
    let is_in_range = (base >= f64::MIN_POSITIVE)
        & (base <= f64::MAX)
        & (power >= MIN_POWER)
        & (power <= MAX_POWER);
    (base == 0.0) | is_in_range
}

/// Results of powers of 2 between these are normal floats.
const MIN_POWER: f64 = -1021.0;
const MAX_POWER: f64 = 1022.0;
const MANTISSA_BITS: u32 = 52;

/// `1 / (2 k + 1)`.
const ARTANH: [f64; 16] = {
    let mut terms = [0.0; 16];
    let mut k = 0;
    while k < 11 {
        terms[k] = 1.0 / (2 * k + 1) as f64;
        k += 1;
    }
    terms
};

/// `1 / k!`.
const EXP: [f64; 16] = {
    let mut terms = [0.0; 16];
    let (mut k, mut factorial) = (0, 1.0);
    while k < 14 {
        terms[k] = 1.0 / factorial;
        k += 1;
        factorial *= k as f64;
    }
    terms
};

/// Sum of `terms[k] x^k`, in pairs and pairs of pairs (Estrin): in a chain each step would wait for the one before.
#[inline(always)]
fn polynomial(x: f64, terms: &[f64; 16]) -> f64 {
    let pair = |k: usize, x: f64, low: f64, high: f64| {
        // Terms of 0 cost nothing.
        if terms[k] == 0.0 { low } else { low + high * x }
    };
    let two = |k: usize| pair(k + 1, x, terms[k], terms[k + 1]);
    let (x2, x4, x8) = (
        x * x,
        (x * x) * (x * x),
        (x * x) * (x * x) * ((x * x) * (x * x)),
    );
    let four = |k: usize| pair(k + 2, x2, two(k), two(k + 2));
    let eight = |k: usize| pair(k + 4, x4, four(k), four(k + 4));
    pair(8, x8, eight(0), eight(8))
}

/// The binary logarithm of a normal float above 0: of its exponent and of its mantissa between `sqrt(1/2)` and `sqrt(2)`,
/// `ln(m) = 2 artanh((m - 1) / (m + 1))`. Anything for other floats.
#[inline(always)]
fn log2(value: f64) -> f64 {
    // 2^52, whose mantissa takes an integer as it is.
    const INTEGER: u64 = 0x4330_0000_0000_0000;
    const BIASED: f64 = 4_503_599_627_370_496.0 + 1023.0;
    let bits = value.to_bits();
    let exponent = f64::from_bits(bits >> MANTISSA_BITS | INTEGER) - BIASED;
    let mantissa = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 1.0_f64.to_bits());
    let is_large = mantissa > SQRT_2;
    let mantissa = if is_large { mantissa * 0.5 } else { mantissa };
    let exponent = if is_large { exponent + 1.0 } else { exponent };
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    // With |s| < 0.172 the next term is below 2^-55 of the sum.
    exponent + 2.0 * LOG2_E * s * polynomial(s * s, &ARTANH)
}

/// `2^power` between [`MIN_POWER`] and [`MAX_POWER`]: of the nearest integer, as the exponent of a float, and of the rest as
/// a Taylor series.
#[inline(always)]
fn exp2(power: f64) -> f64 {
    // 1.5 * 2^52: adding it rounds to an integer, which then stands in the lowest bits.
    const ROUNDING: f64 = 6_755_399_441_055_744.0;
    let rounded = power + ROUNDING;
    let rest = (power - (rounded - ROUNDING)) * LN_2;
    // The integer goes to the exponent's place; what stands above it is shifted out.
    let scale = (rounded.to_bits() << MANTISSA_BITS).wrapping_add(1.0_f64.to_bits());
    // With |rest| < 0.347 the next term is below 2^-57.
    polynomial(rest, &EXP) * f64::from_bits(scale)
}

#[cfg(test)]
mod tests {
    use super::Power;

    fn raised(mut values: Vec<f64>, exponent: f64) -> Vec<f64> {
        Power::of(exponent).raise(&mut values);
        values
    }

    /// Beside the C library's power, which is right to half a unit in the last place.
    #[test]
    fn powers_are_right_to_twelve_digits() {
        let mut bases: Vec<f64> = (-1000..1000).map(|e| 1.37_f64.powi(e)).collect();
        bases.extend((1..5000).map(|i| f64::from(i) / 2500.0));
        bases.extend([
            1.0,
            0.5,
            2.0,
            f64::MIN_POSITIVE,
            f64::MAX,
            1.0 + f64::EPSILON,
        ]);
        for exponent in [
            0.6, 0.3, 1.5, 0.1, 3.0, 0.999, 1e-3, 7.0, 40.0, -0.7, 0.0, 0.5, 1.0, 2.0,
        ] {
            for base in bases.iter().copied().filter(|base| base.is_normal()) {
                let found = raised(vec![base], exponent)[0];
                let right = base.powf(exponent);
                let near = (found - right).abs() <= 1e-12 * right.abs();
                assert!(
                    near || found == right,
                    "{base:e} ^ {exponent}: {found:e}, {right:e}"
                );
            }
        }
    }

    /// The same base has the same power, whatever stands beside it.
    #[test]
    fn a_power_depends_on_its_base_alone() {
        let bases: Vec<f64> = (1..200).map(|i| f64::from(i) / 77.0).collect();
        let alone = raised(bases.clone(), 0.6);
        for neighbour in [f64::NAN, 1e-310, f64::INFINITY, 0.0] {
            let beside = raised([bases.clone(), vec![neighbour]].concat(), 0.6);
            assert_eq!(beside[..alone.len()], alone);
        }
    }

    #[test]
    fn what_is_not_normal_is_as_the_library_has_it() {
        let values = [0.0, 5e-324, 1e-310, f64::INFINITY, 1e-300, 1e300, 0.5];
        for exponent in [0.6, 1.5, 3.0, -2.5] {
            for (found, base) in raised(values.to_vec(), exponent).into_iter().zip(values) {
                let right = base.powf(exponent);
                if base.is_normal() && right.is_normal() {
                    assert!(
                        (found - right).abs() <= 1e-12 * right,
                        "{base:e} ^ {exponent}"
                    );
                } else {
                    assert_eq!(found, right, "{base:e} ^ {exponent}");
                }
            }
        }
        assert!(raised(vec![f64::NAN], 0.6)[0].is_nan());
        assert!(raised(vec![-1.0], 0.6)[0].is_nan());
        assert_eq!(raised(vec![0.0, 0.25], 0.6)[0], 0.0);
        assert_eq!(raised(vec![], 0.6), Vec::<f64>::new());
    }
}
