use super::{
    Drawing, draw_counts, per_class, repeat_counts, sample_with_replacement,
    sample_without_replacement, shuffle_key, shuffle_keys,
};
use crate::expr::hash::hash_integer;
use crate::expr::hashed::Groups;
use crate::sampler::{Sampler, SamplerConfig};

const ROUNDS: u64 = 40_000;

fn plain(seed: u64) -> Drawing<'static> {
    Drawing {
        seed,
        keys: None,
        groups: None,
    }
}

fn hashes(values: impl IntoIterator<Item = u64>) -> Vec<u64> {
    values
        .into_iter()
        .map(|value| hash_integer(value, 5))
        .collect()
}

/// Sum of (found - expected)^2 / expected.
fn chi_square(found: &[u64], expected: &[f64]) -> f64 {
    found
        .iter()
        .zip(expected)
        .map(|(&found, expected)| (found as f64 - expected).powi(2) / expected)
        .sum()
}

/// The chances of pairs of weights 1, 2, 3, 4 under successive draws.
#[test]
fn pairs_have_their_chances() {
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let chances = [
        0.047_222, 0.076_19, 0.111_111, 0.160_714, 0.233_333, 0.371_429,
    ];
    let keys = hashes(0..4);
    for keys in [None, Some(&keys[..])] {
        let mut found = [0; 6];
        for seed in 0..ROUNDS {
            let drawing = Drawing {
                keys,
                ..plain(seed)
            };
            let mask = sample_without_replacement(&[1.0, 2.0, 3.0, 4.0], 2, &drawing).unwrap();
            let at = pairs.iter().position(|&(a, b)| mask[a] && mask[b]).unwrap();
            assert_eq!(mask.iter().filter(|taken| **taken).count(), 2);
            found[at] += 1;
        }
        let expected = chances.map(|chance| chance * ROUNDS as f64);
        // Five degrees of freedom: 25.7 is passed once in ten thousand times.
        let chi = chi_square(&found, &expected);
        assert!(chi < 25.7, "{chi} {found:?}");
    }
}

#[test]
fn counts_have_their_chances() {
    let weights = [1.0, 0.0, 2.0, 5.0, 1e-300];
    let mut found = [0; 3];
    for seed in 0..100 {
        let counts = sample_with_replacement(&weights, 400, &plain(seed)).unwrap();
        assert_eq!(counts.iter().sum::<u32>(), 400);
        assert_eq!((counts[1], counts[4]), (0, 0));
        for (sum, at) in found.iter_mut().zip([0, 2, 3]) {
            *sum += u64::from(counts[at]);
        }
    }
    let chi = chi_square(&found, &[5_000.0, 10_000.0, 25_000.0]);
    assert!(chi < 18.5, "{chi} {found:?}");
}

#[test]
fn groups_are_drawn_by_themselves() {
    let weights: Vec<f64> = (0..3000_u32).map(|i| f64::from(i % 5 + 1)).collect();
    let of_rows = hashes((0..3000).map(|i| i * 7 % 3));
    let groups = Groups::new(&of_rows).unwrap();
    let grouped = Drawing {
        groups: Some(&groups),
        ..plain(9)
    };
    let mask = sample_without_replacement(&weights, 100, &grouped).unwrap();
    let counts = sample_with_replacement(&weights, 100, &grouped).unwrap();
    let shuffled = shuffle_keys(3000, &grouped);
    let mut places = Vec::new();
    for (rows, &hash) in groups.iter().zip(groups.hashes()) {
        let rows: Vec<usize> = rows.iter().map(|&row| row as usize).collect();
        let of_group: Vec<f64> = rows.iter().map(|&row| weights[row]).collect();
        let alone = plain(super::group_seed(9, hash));
        let expected = sample_without_replacement(&of_group, 100, &alone).unwrap();
        assert_eq!(
            rows.iter().map(|&row| mask[row]).collect::<Vec<_>>(),
            expected
        );
        let expected = sample_with_replacement(&of_group, 100, &alone).unwrap();
        assert_eq!(
            rows.iter().map(|&row| counts[row]).collect::<Vec<_>>(),
            expected
        );
        let expected = shuffle_keys(rows.len(), &alone);
        assert_eq!(
            rows.iter().map(|&row| shuffled[row]).collect::<Vec<_>>(),
            expected
        );
        places.push(expected);
    }
    // And no two groups draw alike.
    assert!(places[0] != places[1] && places[1] != places[2]);
}

#[test]
fn keys_make_draws_independent_of_the_order() {
    let order: Vec<usize> = (0..1000).map(|i| i * 371 % 1000).collect();
    let weights: Vec<f64> = (0..1000_u32).map(|i| f64::from(i % 7)).collect();
    let keys = hashes(0..1000);
    let moved_weights: Vec<f64> = order.iter().map(|&row| weights[row]).collect();
    let moved_keys: Vec<u64> = order.iter().map(|&row| keys[row]).collect();
    let drawing = |keys| Drawing {
        keys: Some(keys),
        ..plain(3)
    };
    let mask = sample_without_replacement(&weights, 300, &drawing(&keys)).unwrap();
    let moved = sample_without_replacement(&moved_weights, 300, &drawing(&moved_keys)).unwrap();
    assert!(
        order
            .iter()
            .zip(moved)
            .all(|(&row, taken)| mask[row] == taken)
    );
    let counts = sample_with_replacement(&weights, 300, &drawing(&keys)).unwrap();
    let moved = sample_with_replacement(&moved_weights, 300, &drawing(&moved_keys)).unwrap();
    assert!(
        order
            .iter()
            .zip(moved)
            .all(|(&row, count)| counts[row] == count)
    );
}

#[test]
fn counts_are_the_samplers() {
    let weights: Vec<f64> = (0..500_u32).map(|i| f64::from(i * i % 11)).collect();
    let kept: Vec<usize> = (0..500).filter(|&row| weights[row] > 0.0).collect();
    for replacement in [true, false] {
        let config = SamplerConfig {
            shuffle: true,
            replacement,
            seed: 42,
            stream: 7,
        };
        let of_rows = kept.iter().map(|&row| weights[row]).collect();
        let sampler = Sampler::new(config, kept.len() as u64, Some(of_rows)).unwrap();
        let mut drawn = vec![0; 10_000];
        sampler.fill(0, &mut drawn);
        let mut expected = vec![0; 500];
        for row in drawn {
            expected[kept[usize::try_from(row).unwrap()]] += 1;
        }
        assert_eq!(
            draw_counts(&weights, 10_000, config, None).unwrap(),
            expected
        );
    }
}

#[test]
fn classes_are_taken_m_times() {
    let labels = hashes([0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    let classes = Groups::new(&labels).unwrap();
    let mut found = [0; 10];
    for seed in 0..4000 {
        let counts = per_class(&classes, 3, &plain(seed));
        assert_eq!(counts[0], 3);
        assert_eq!(counts[1] + counts[2], 3);
        assert!(counts[1] == 1 || counts[1] == 2);
        assert_eq!(counts[3..].iter().sum::<u32>(), 3);
        for (sum, &count) in found.iter_mut().zip(&counts[3..]) {
            assert!(count < 2);
            *sum += u64::from(count);
        }
    }
    // Nine degrees of freedom; draws without replacement vary less still.
    let chi = chi_square(&found, &[1200.0; 10]);
    assert!(chi < 33.7, "{chi} {found:?}");
}

#[test]
fn shuffled_keys_are_words_of_rows() {
    let keys = shuffle_keys(200, &plain(5));
    assert!((0..200).all(|row| keys[row] == shuffle_key(5, row as u64)));
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 200);
    assert_ne!(keys, shuffle_keys(200, &plain(6)));
}

#[test]
fn factors_are_rounded_at_random() {
    let factors = [0.0, 0.25, 1.0, 2.75, 1.5];
    let mut sums = [0; 5];
    for seed in 0..ROUNDS {
        let counts = repeat_counts(&factors, &plain(seed)).unwrap();
        for ((sum, &count), factor) in sums.iter_mut().zip(&counts).zip(factors) {
            assert!(f64::from(count) == factor.floor() || f64::from(count) == factor.ceil());
            *sum += u64::from(count);
        }
    }
    for (sum, factor) in sums.into_iter().zip(factors) {
        // Five standard errors of a fair coin.
        assert!(
            (sum as f64 / ROUNDS as f64 - factor).abs() < 0.0125,
            "{sum} {factor}"
        );
    }
    for wrong in [-0.5, f64::NAN, 4_294_967_295.0] {
        assert!(repeat_counts(&[wrong], &plain(0)).is_err());
    }
}

#[test]
fn what_is_refused() {
    for wrong in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let weights = [1.0, wrong];
        let error = sample_without_replacement(&weights, 1, &plain(0)).unwrap_err();
        assert!(error.to_string().contains("row 1"), "{error}");
        assert!(sample_with_replacement(&weights, 1, &plain(0)).is_err());
        assert!(draw_counts(&weights, 1, SamplerConfig::default(), None).is_err());
    }
    let error = sample_without_replacement(&[1.0, 0.0], 2, &plain(0)).unwrap_err();
    assert!(error.to_string().contains("n = 2"), "{error}");
    let groups = Groups::new(&[1, 1, 2]).unwrap();
    let drawing = Drawing {
        groups: Some(&groups),
        ..plain(0)
    };
    let error = sample_without_replacement(&[1.0; 3], 2, &drawing).unwrap_err();
    assert!(error.to_string().contains("group of row 2"), "{error}");
    assert!(sample_with_replacement(&[0.0], 1, &plain(0)).is_err());
    assert!(sample_with_replacement(&[0.0], 0, &plain(0)).is_ok());
    assert!(
        sample_without_replacement(&[], 5, &plain(0))
            .unwrap()
            .is_empty()
    );
    assert!(
        sample_with_replacement(&[], 5, &plain(0))
            .unwrap()
            .is_empty()
    );
}
