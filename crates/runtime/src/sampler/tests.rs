//! Streams as a whole: the rows of the definition, and rows that depend on nothing else.

use std::sync::Arc;
use std::thread;

use super::{MAX_ROWS, Mode, Sampler, SamplerConfig, golden};
use crate::error::Error;

const MODES: [(bool, bool); 3] = [(false, false), (true, true), (true, false)];

fn sampler(replacement: bool, seed: u64, stream: u32, weights: &[f64]) -> Sampler {
    let config = SamplerConfig {
        shuffle: true,
        replacement,
        seed,
        stream,
    };
    Sampler::new(config, weights.len() as u64, Some(weights.into())).unwrap()
}

fn alike(replacement: bool, seed: u64, stream: u32, rows: u64) -> Sampler {
    let config = SamplerConfig {
        shuffle: true,
        replacement,
        seed,
        stream,
    };
    Sampler::new(config, rows, None).unwrap()
}

fn rows(sampler: &Sampler, start: u64, len: usize) -> Vec<u64> {
    let mut out = vec![u64::MAX; len];
    sampler.fill(start, &mut out);
    out
}

/// Weights that make a fair mix of sizes.
fn uneven(rows: u32) -> Vec<f64> {
    (0..rows)
        .map(|i| f64::from(i % 97 + 1).powi(3) / 7.0)
        .collect()
}

#[test]
fn rows_of_the_definition_with_equal_weights() {
    for (replacement, sized, mode) in [
        (true, golden::UNIFORM, Mode::Weighted),
        (false, golden::PERMUTATION, Mode::Permutation),
    ] {
        for &(n, stretches) in sized {
            for &(seed, stream, start, expected) in stretches {
                let sampler = alike(replacement, seed, stream, n);
                assert_eq!(sampler.mode(), mode);
                assert_eq!(
                    rows(&sampler, start, 4),
                    expected,
                    "{mode:?} {n} {seed} {stream} {start}"
                );
            }
        }
    }
}

#[test]
fn rows_of_the_definition_by_weight() {
    let many = uneven(5000);
    for (weights, weighted, order) in [
        (
            golden::COUNTED,
            golden::COUNTED_WEIGHTED,
            golden::COUNTED_ORDER,
        ),
        (
            golden::FRACTIONS,
            golden::FRACTIONS_WEIGHTED,
            golden::FRACTIONS_ORDER,
        ),
        (
            golden::FAR_APART,
            golden::FAR_APART_WEIGHTED,
            golden::FAR_APART_ORDER,
        ),
        (
            golden::NEARLY_NONE,
            golden::NEARLY_NONE_WEIGHTED,
            golden::NEARLY_NONE_ORDER,
        ),
        (
            golden::SUBNORMAL,
            golden::SUBNORMAL_WEIGHTED,
            golden::SUBNORMAL_ORDER,
        ),
        (
            golden::LARGEST,
            golden::LARGEST_WEIGHTED,
            golden::LARGEST_ORDER,
        ),
        (&many, golden::MANY_WEIGHTED, golden::MANY_ORDER),
    ] {
        for (replacement, stretches) in [(true, weighted), (false, order)] {
            for &(seed, stream, start, expected) in stretches {
                let sampler = sampler(replacement, seed, stream, weights);
                assert_eq!(
                    rows(&sampler, start, 4),
                    expected,
                    "{weights:?} {seed} {stream} {start}"
                );
            }
        }
    }
}

#[test]
fn table_order_over_and_over() {
    let config = SamplerConfig {
        seed: 5,
        ..SamplerConfig::default()
    };
    let sampler = Sampler::new(config, 3, Some(Arc::new([1.0, f64::NAN]))).unwrap();
    assert_eq!(sampler.mode(), Mode::Ordered);
    assert_eq!(rows(&sampler, 0, 7), [0, 1, 2, 0, 1, 2, 0]);
    // 2^63 - 4 is 1 modulo 3.
    assert_eq!(rows(&sampler, (1 << 63) - 4, 4), [1, 2, 0, 1]);
    assert_eq!(sampler.place(9, 2), Some(2));
    let largest = Sampler::new(config, MAX_ROWS, None).unwrap();
    assert_eq!(rows(&largest, MAX_ROWS - 1, 2), [MAX_ROWS - 1, 0]);
}

#[test]
fn a_range_gives_the_same_rows_however_it_is_cut() {
    let weights = uneven(300);
    for n in [1, 2, 7, 20, 21, 26, 300] {
        for (shuffle, replacement) in MODES {
            for weights in [None, Some(Arc::from(&weights[..n]))] {
                let config = SamplerConfig {
                    shuffle,
                    replacement,
                    seed: 11,
                    stream: 2,
                };
                let sampler = Sampler::new(config, n as u64, weights).unwrap();
                let start = (1 << 40) + 5;
                let whole = rows(&sampler, start, 1100);
                for size in [1, 2, 3, 8, 100, 127, 128, 129, 999] {
                    let mut cut = Vec::new();
                    while cut.len() < whole.len() {
                        let len = size.min(whole.len() - cut.len());
                        cut.extend(rows(&sampler, start + cut.len() as u64, len));
                    }
                    assert_eq!(cut, whole, "{:?}, {n} rows, by {size}", sampler.mode());
                }
            }
        }
    }
}

#[test]
fn each_row_once_a_pass() {
    let weights = uneven(5000);
    for n in [1_usize, 2, 3, 20, 21, 64, 65, 1000, 5000] {
        for sampler in [
            alike(false, 6, 0, n as u64),
            sampler(false, 6, 0, &weights[..n]),
        ] {
            for pass in [0, 1, 1 << 40] {
                let order = rows(&sampler, pass * n as u64, n);
                for place in [0, n / 2, n - 1] {
                    assert_eq!(sampler.place(pass, order[place]), Some(place as u64));
                }
                let mut sorted = order;
                sorted.sort_unstable();
                assert_eq!(
                    sorted,
                    (0..n as u64).collect::<Vec<_>>(),
                    "{:?}",
                    sampler.mode()
                );
            }
            assert_eq!(sampler.place(0, n as u64), None);
        }
    }
    assert_eq!(alike(true, 6, 0, 5).place(0, 1), None);
}

#[test]
fn equal_means_equal_bits() {
    for n in [1, 2, 20, 21, 1000] {
        for weight in [1.0, 0.1, 5e-324, f64::MAX] {
            for replacement in [true, false] {
                let given = sampler(replacement, 3, 4, &vec![weight; n]);
                let none = alike(replacement, 3, 4, n as u64);
                assert_eq!(given.mode(), none.mode());
                assert_eq!(rows(&given, 7, 500), rows(&none, 7, 500));
            }
        }
    }
    let nearly = [1.0, 1.0, 1.0 + f64::EPSILON];
    assert_eq!(sampler(false, 0, 0, &nearly).mode(), Mode::WeightedOrder);
    assert_eq!(sampler(false, 0, 0, &nearly[..2]).mode(), Mode::Permutation);
    assert_eq!(sampler(true, 0, 0, &nearly).mode(), Mode::Weighted);
}

#[test]
fn powers_of_two_change_nothing() {
    let weights = uneven(200);
    for factor in [2.0_f64.powi(-900), 0.5, 4.0, 2.0_f64.powi(900)] {
        let scaled: Vec<f64> = weights.iter().map(|weight| weight * factor).collect();
        for replacement in [true, false] {
            let one = sampler(replacement, 8, 0, &weights);
            let other = sampler(replacement, 8, 0, &scaled);
            assert_eq!(rows(&one, 0, 1000), rows(&other, 0, 1000), "{factor}");
        }
    }
}

#[test]
fn seed_and_stream_tell_streams_apart() {
    let weights = uneven(100);
    for replacement in [true, false] {
        for weights in [&weights[..], &[1.0; 100], &[1.0; 15]] {
            let of = |seed, stream| rows(&sampler(replacement, seed, stream, weights), 0, 60);
            let base = of(1, 0);
            assert_eq!(of(1, 0), base);
            for (seed, stream) in [(2, 0), (1 << 32 | 1, 0), (1, 1), (1, 1 << 31)] {
                assert_ne!(of(seed, stream), base, "{seed} {stream}");
            }
        }
    }
}

/// Draws of ten rows of weights 1 to 10, as a chi-square of 9 degrees of freedom: 45.1 has p = 9e-7.
#[test]
fn frequencies_follow_the_weights() {
    let weights: Vec<f64> = (1..=10).map(f64::from).collect();
    for (sampler, share) in [
        (sampler(true, 1, 0, &weights), 1.0 / 55.0),
        (alike(true, 1, 0, 10), 0.1),
    ] {
        let draws = 1_000_000;
        let mut counts = [0_u32; 10];
        for row in rows(&sampler, 0, draws) {
            counts[usize::try_from(row).unwrap()] += 1;
        }
        let chi: f64 = (0..10)
            .map(|row| {
                let weight = if share == 0.1 { 1.0 } else { weights[row] };
                let expected = draws as f64 * weight * share;
                (f64::from(counts[row]) - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 45.1, "{chi} {counts:?}");
    }
}

#[test]
fn extreme_weights_draw_without_fault() {
    let draws = |weights: &[f64]| {
        let mut counts = vec![0; weights.len()];
        for row in rows(&sampler(true, 2, 0, weights), 0, 60_000) {
            counts[usize::try_from(row).unwrap()] += 1;
        }
        counts
    };
    assert_eq!(draws(&[1e308, 5e-324]), [60_000, 0]);
    assert_eq!(draws(&[1e-300, 1.0]), [0, 60_000]);
    let counts = draws(&[5e-324, 1e-323, 1.5e-323]);
    for (count, expected) in counts.into_iter().zip([10_000.0, 20_000.0, 30_000.0]) {
        // Five standard deviations of the largest cell.
        assert!(
            (f64::from(count) - expected).abs() < 620.0,
            "{count} {expected}"
        );
    }
    // A weight of next to nothing comes last in nearly every pass, but it comes.
    let order = sampler(false, 2, 0, &[5e-324, 1e308, 1e308]);
    for pass in 0..100 {
        assert_eq!(rows(&order, pass * 3, 3)[2], 0);
    }
}

/// How often each row is among the first two of a pass, for weights 1, 2, 3, 4: the exact values are sums of
/// w_i / 10 * w_j / (10 - w_i).
#[test]
fn weighted_order_follows_successive_draws() {
    let order = sampler(false, 12, 0, &[1.0, 2.0, 3.0, 4.0]);
    let passes = 400_000;
    let mut included = [0_u32; 4];
    let mut pairs = [[0_u32; 4]; 4];
    let all = rows(&order, 0, 4 * passes);
    for pass in all.chunks(4) {
        let [a, b] = [pass[0], pass[1]].map(|row| usize::try_from(row).unwrap());
        included[a] += 1;
        included[b] += 1;
        pairs[a.min(b)][a.max(b)] += 1;
    }
    let check = |count: u32, p: f64| {
        let deviation =
            (f64::from(count) - passes as f64 * p) / (passes as f64 * p * (1.0 - p)).sqrt();
        assert!(deviation.abs() < 4.0, "{count}, {p}: {deviation}");
    };
    for (count, p) in included
        .into_iter()
        .zip([0.234_524, 0.441_27, 0.608_333, 0.715_873])
    {
        check(count, p);
    }
    for (a, b, p) in [
        (0, 1, 0.047_222),
        (0, 2, 0.076_19),
        (0, 3, 0.111_111),
        (1, 2, 0.160_714),
        (1, 3, 0.233_333),
        (2, 3, 0.371_429),
    ] {
        check(pairs[a][b], p);
    }
}

/// Threads that ask for many passes at once, more than are kept, all get the right rows.
#[test]
fn threads_share_the_orders() {
    let weights = uneven(2000);
    let shared = sampler(false, 4, 0, &weights);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (shared, weights) = (&shared, &weights);
            scope.spawn(move || {
                for step in 0..12_u64 {
                    let pass = (step + thread) % 5;
                    shared.prepare(pass * 2000);
                    let alone = sampler(false, 4, 0, weights);
                    let start = pass * 2000 + 1990;
                    assert_eq!(rows(shared, start, 20), rows(&alone, start, 20));
                }
            });
        }
    });
}

#[test]
fn wrong_tables_are_refused() {
    let config = SamplerConfig {
        shuffle: true,
        ..SamplerConfig::default()
    };
    let refused =
        |rows, weights: Option<&[f64]>| match Sampler::new(config, rows, weights.map(Arc::from)) {
            Err(Error::Argument { argument, message }) => (argument, message),
            other => panic!("{other:?}"),
        };
    assert_eq!(refused(0, None).0, "rows");
    assert_eq!(refused(MAX_ROWS + 1, None).0, "rows");
    assert_eq!(
        refused(2, Some(&[1.0])).1,
        "1 weights for 2 rows, there must be one a row"
    );
    for wrong in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY] {
        let (argument, message) = refused(3, Some(&[1.0, wrong, 1.0]));
        assert_eq!(argument, "weights");
        assert!(
            message.ends_with(&format!("found {wrong} at row 1")),
            "{message}"
        );
    }
}

#[test]
fn modes_by_name() {
    for mode in [
        Mode::Ordered,
        Mode::Weighted,
        Mode::Permutation,
        Mode::WeightedOrder,
    ] {
        assert_eq!(Mode::from_name(mode.name()), Some(mode));
    }
    assert_eq!(Mode::from_name("shuffled"), None);
}
