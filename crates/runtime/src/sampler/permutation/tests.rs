//! Permutations: each row once, an inverse that is one, and no visible unevenness.

use super::{FACTORIALS, Network, Permutation};

fn pass(permutation: &Permutation, rows: u64, pass: u64) -> Vec<u64> {
    let mut out = vec![u64::MAX; usize::try_from(rows).unwrap()];
    permutation.fill(pass * rows, &mut out);
    out
}

#[test]
fn each_row_once_and_back() {
    for rows in (1..200).chain([255, 256, 257, 1000, 4096, 10_007]) {
        for (seed, stream, number) in [(0, 0, 0), (u64::MAX, u32::MAX, 1 << 32), (42, 1, 3)] {
            let permutation = Permutation::new(seed, stream, rows);
            let order = pass(&permutation, rows, number);
            let mut seen = vec![false; order.len()];
            for (place, &row) in (0..).zip(&order) {
                assert!(
                    !std::mem::replace(&mut seen[usize::try_from(row).unwrap()], true),
                    "{rows}"
                );
                assert_eq!(permutation.place(number, row), place, "{rows} rows");
            }
        }
    }
}

#[test]
fn places_of_large_tables_and_back() {
    for rows in [
        (1 << 32) - 1,
        1 << 32,
        (1 << 32) + 1,
        (1 << 53) + 1,
        (1 << 62) - 1,
        1 << 62,
    ] {
        let permutation = Permutation::new(9, 0, rows);
        for start in [0, 12_345, rows / 2, rows - 500] {
            let mut order = [0; 500];
            permutation.fill(start, &mut order);
            for (place, row) in (start..).zip(order) {
                assert!(row < rows);
                assert_eq!(permutation.place(0, row), place, "{rows} rows");
            }
            let mut distinct = order.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), order.len());
        }
    }
}

#[test]
fn sides_of_the_rectangle() {
    for n in (21..5000).chain([
        (1 << 32) - 1,
        1 << 32,
        (1 << 52) + 1,
        (1 << 53) + 1,
        1 << 62,
    ]) {
        let Network { a, b, .. } = Network::new(0, 0, n);
        let [a, b, n] = [a, b, n].map(u128::from);
        assert!(
            a % 2 == 0 && a * a >= n && (a - 2) * (a - 2) < n,
            "{n}: {a}"
        );
        assert!(a * b >= n && a * (b - 1) < n, "{n}: {a} * {b}");
        assert!(a * b * 5 <= n * 6, "{n}: {a} * {b} leaves long walks");
    }
}

#[test]
fn factorials() {
    assert_eq!(FACTORIALS[..6], [1, 1, 2, 6, 24, 120]);
    assert_eq!(FACTORIALS[20], 2_432_902_008_176_640_000);
}

/// Sum over the cells of (found - expected)^2 / expected, as a number of standard deviations from its mean.
fn chi_square(counts: &[u64], expected: f64) -> f64 {
    let freedom = (counts.len() - 1) as f64;
    let sum: f64 = counts
        .iter()
        .map(|&count| (count as f64 - expected).powi(2) / expected)
        .sum();
    (sum - freedom) / (2.0 * freedom).sqrt()
}

/// All 120 orders of 5 rows, over consecutive passes. A network with too few rounds fails here.
#[test]
fn all_orders_of_few_rows() {
    let permutation = Permutation::new(1, 0, 5);
    let mut counts = [0; 3125];
    let passes = 120_000;
    for number in 0..passes {
        let order = pass(&permutation, 5, number);
        counts[order
            .iter()
            .fold(0, |sum, &row| sum * 5 + usize::try_from(row).unwrap())] += 1;
    }
    let found: Vec<u64> = counts.into_iter().filter(|&count| count > 0).collect();
    assert_eq!(found.len(), 120);
    let z = chi_square(&found, passes as f64 / 120.0);
    assert!(z.abs() < 4.0, "{z}");
}

/// Rows at the first two places of a network, over consecutive passes and over consecutive seeds.
#[test]
fn pairs_of_a_network() {
    for rows in [21_u64, 37] {
        let cells = usize::try_from(rows).unwrap();
        let of_passes = Permutation::new(3, 0, rows);
        let (mut by_pass, mut by_seed) = (vec![0; cells * cells], vec![0; cells * cells]);
        let runs = 200_000;
        for run in 0..runs {
            let mut pair = [0; 2];
            let cell = |pair: [u64; 2]| usize::try_from(pair[0] * rows + pair[1]).unwrap();
            of_passes.fill(run * rows, &mut pair);
            by_pass[cell(pair)] += 1;
            Permutation::new(run, 0, rows).fill(0, &mut pair);
            by_seed[cell(pair)] += 1;
        }
        for counts in [by_pass, by_seed] {
            let found: Vec<u64> = counts.into_iter().filter(|&count| count > 0).collect();
            assert_eq!(found.len(), cells * (cells - 1));
            let z = chi_square(&found, runs as f64 / (rows * (rows - 1)) as f64);
            assert!(z.abs() < 4.0, "{rows} rows: {z}");
        }
    }
}
