use super::{
    clip_weight, doremi_weight, effective_sample_size, expected_share, focal_weight,
    hard_example_weight, normalize_weight,
};
use crate::error::Result;
use crate::expr::priorities::{prioritized_correction, prioritized_weight};
use crate::expr::{Chunk, Classes, Codes, NullClass, NullNumber, Nulls, Numbers, Validity};

fn column(values: &[f64]) -> Numbers<'_> {
    Numbers {
        name: "x",
        chunks: vec![Chunk {
            values,
            validity: None,
        }],
        null: NullNumber::Error,
    }
}

/// The second of three values is null.
fn with_null(values: &[f64; 3], null: NullNumber) -> Numbers<'_> {
    let validity = Some(Validity {
        bytes: &[0b101],
        offset: 0,
    });
    Numbers {
        name: "x",
        chunks: vec![Chunk { values, validity }],
        null,
    }
}

fn codes(values: &[u8]) -> Codes {
    let chunk = Chunk {
        values,
        validity: None,
    };
    Codes::of_words(&[chunk], Nulls::Value).unwrap()
}

fn close(found: &[f64], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= within * expected.abs(),
            "{found} {expected}"
        );
    }
}

#[test]
fn prioritized_published_values() {
    let priority = [1.0, 2.0, 4.0];
    let found = prioritized_weight(&column(&priority), 0.6, None).unwrap();
    close(&found, &[0.207_766, 0.314_914, 0.477_32], 2e-6);
    let found = prioritized_correction(&column(&priority), 0.6, 0.4, None).unwrap();
    close(&found, &[1.0, 0.846_745, 0.716_978], 2e-6);
}

#[test]
fn priorities_of_zero_are_not_drawn() {
    let priority = [0.0, 1.0, 3.0];
    let found = prioritized_weight(&column(&priority), 1.0, None).unwrap();
    assert_eq!(found, [0.0, 0.25, 0.75]);
    let found = prioritized_correction(&column(&priority), 1.0, 1.0, None).unwrap();
    assert_eq!(found, [0.0, 1.0, 1.0 / 3.0]);
    // An exponent of 0 makes all equal.
    let found = prioritized_weight(&column(&priority), 0.0, None).unwrap();
    close(&found, &[1.0 / 3.0; 3], 1e-15);
    assert_eq!(
        prioritized_correction(&column(&priority), 0.0, 1.0, None).unwrap(),
        [1.0; 3]
    );
    let error = prioritized_weight(&column(&[0.0, 0.0]), 1.0, None).unwrap_err();
    assert!(error.to_string().contains("are 0"), "{error}");
    let groups = codes(&[1, 2, 2]);
    let error = prioritized_weight(&column(&priority), 1.0, Some(&groups)).unwrap_err();
    assert!(error.to_string().contains("row 0"), "{error}");
}

#[test]
fn vanishing_weights_are_refused() {
    let wide = [1e-300, 1e300];
    let error = prioritized_weight(&column(&wide), 2.0, None).unwrap_err();
    assert!(error.to_string().contains("row 0"), "{error}");
    let error = prioritized_correction(&column(&wide), 2.0, 1.0, None).unwrap_err();
    assert!(error.to_string().contains("row 1"), "{error}");
    let error = normalize_weight(&column(&wide), None).unwrap_err();
    assert!(error.to_string().contains("row 0"), "{error}");
}

/// Columns without groups are read another way than grouped ones.
#[test]
fn one_group_is_no_group() {
    let many: Vec<f64> = (0..5000).map(|i| f64::from(i % 97) / 3.0).collect();
    let columns: &[&[f64]] = &[
        &[],
        &[0.0, -0.0, 1.0, 3.0],
        &[1e-300, 1.0],
        &[5e-324, 1.0],
        &[5e-324, 5e-324, 0.0],
        &[1e308, 1e308, 0.0],
        &[1e308, 1e-10],
        &[0.0, 0.0],
        &[1.0, -1.0],
        &[1.0, f64::NAN],
        &[f64::INFINITY],
        &many,
    ];
    for &values in columns {
        let group = codes(&vec![0; values.len()]);
        let weight = column(values);
        for alpha in [0.0, 0.4, 1.0, 2.0] {
            let alone = prioritized_weight(&weight, alpha, None);
            let grouped = prioritized_weight(&weight, alpha, Some(&group));
            same(alone, grouped, values);
        }
        same(
            normalize_weight(&weight, None),
            normalize_weight(&weight, Some(&group)),
            values,
        );
    }
}

fn same(alone: Result<Vec<f64>>, grouped: Result<Vec<f64>>, values: &[f64]) {
    match (alone, grouped) {
        (Ok(alone), Ok(grouped)) => close(&alone, &grouped, 1e-12),
        (alone, grouped) => {
            let messages = (
                alone.map_err(|error| error.to_string()),
                grouped.map_err(|error| error.to_string()),
            );
            assert!(
                messages.0.is_err() && messages.0 == messages.1,
                "{values:?}: {messages:?}"
            );
        }
    }
}

#[test]
fn normalized() {
    let found = normalize_weight(&column(&[0.0, 1.0, 3.0]), None).unwrap();
    assert_eq!(found, [0.0, 0.5, 1.5]);
    let huge = normalize_weight(&column(&[f64::MAX, f64::MAX, f64::MAX / 2.0]), None).unwrap();
    close(&huge, &[1.2, 1.2, 0.6], 1e-15);
    let groups = codes(&[1, 2, 2]);
    let found = normalize_weight(&column(&[5.0, 1.0, 3.0]), Some(&groups)).unwrap();
    assert_eq!(found, [1.0, 0.5, 1.5]);
    assert_eq!(normalize_weight(&column(&[0.0]), None).unwrap(), [0.0]);
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let error = normalize_weight(&column(&[1.0, wrong]), None).unwrap_err();
        assert!(error.to_string().contains("row 1"), "{error}");
    }
}

#[test]
fn nulls_weigh_nothing_or_are_refused() {
    let zero = with_null(&[1.0, f64::NAN, 3.0], NullNumber::Zero);
    assert_eq!(normalize_weight(&zero, None).unwrap(), [0.5, 0.0, 1.5]);
    assert_eq!(
        prioritized_weight(&zero, 1.0, None).unwrap(),
        [0.25, 0.0, 0.75]
    );
    assert_eq!(
        prioritized_weight(&zero, 0.0, None).unwrap(),
        [0.5, 0.0, 0.5]
    );
    assert_eq!(
        hard_example_weight(&zero, 0.5, None).unwrap(),
        [0.0, 0.0, 1.0]
    );
    let refused = with_null(&[1.0, 2.0, 3.0], NullNumber::Error);
    let error = normalize_weight(&refused, None).unwrap_err();
    assert!(error.to_string().contains("row 1"), "{error}");
}

/// The definition: a stable sort.
#[allow(clippy::cast_possible_truncation)]
fn hardest(values: &[f64], fraction: f64) -> Vec<f64> {
    let mut rows: Vec<usize> = (0..values.len()).collect();
    rows.sort_by(|&a, &b| values[b].partial_cmp(&values[a]).unwrap());
    let kept = ((fraction * values.len() as f64 + 0.5).floor() as usize).max(1);
    let mut marks = vec![0.0; values.len()];
    rows.into_iter().take(kept).for_each(|row| marks[row] = 1.0);
    marks
}

#[test]
fn hard_examples() {
    let mut values: Vec<f64> = (0..1000_u32)
        .map(|i| f64::from(i * 7919 % 503) - 250.0)
        .collect();
    values.extend([f64::INFINITY, -f64::INFINITY, 0.0, -0.0, 1e300, 1e-300]);
    let groups = codes(&[3; 1006]);
    for fraction in [1e-9, 0.01, 0.25, 0.5, 0.77, 1.0] {
        let expected = hardest(&values, fraction);
        assert_eq!(
            hard_example_weight(&column(&values), fraction, None).unwrap(),
            expected
        );
        let found = hard_example_weight(&column(&values), fraction, Some(&groups)).unwrap();
        assert_eq!(found, expected);
    }
    assert!(
        hard_example_weight(&column(&[]), 0.5, None)
            .unwrap()
            .is_empty()
    );
    for wrong in [0.0, 1.1, f64::NAN] {
        hard_example_weight(&column(&values), wrong, None).unwrap_err();
    }
    hard_example_weight(&column(&[f64::NAN]), 0.5, None).unwrap_err();
}

/// Columns long enough that a sample says where to look, also where it says something wrong.
#[test]
fn hard_examples_of_many() {
    const ROWS: usize = 50_000;
    let mixed = |i: usize| (i * 7919 % ROWS) as f64 - 20_000.0;
    let stride = ROWS / (1 << 14);
    let columns: [Vec<f64>; 5] = [
        (0..ROWS).map(mixed).collect(),
        (0..ROWS).map(|i| mixed(i % 40)).collect(),
        vec![-0.0; ROWS],
        (0..ROWS)
            .map(|i| if i % stride == 0 { 1e9 } else { mixed(i) })
            .collect(),
        (0..ROWS)
            .map(|i| if i % 3 == 0 { f64::INFINITY } else { -mixed(i) })
            .collect(),
    ];
    for values in &columns {
        for fraction in [1e-5, 0.1, 0.5, 0.999, 1.0] {
            let found = hard_example_weight(&column(values), fraction, None).unwrap();
            assert_eq!(found, hardest(values, fraction));
        }
    }
    // In pieces, every fourth row null.
    let bits = vec![0b0111_0111; ROWS / 8];
    let mut pieces = column(&columns[0]);
    pieces.null = NullNumber::Zero;
    pieces.chunks = columns[0]
        .chunks(8 * 700)
        .map(|values| Chunk {
            values,
            validity: Some(Validity {
                bytes: &bits,
                offset: 0,
            }),
        })
        .collect();
    let there: Vec<f64> = (0..ROWS)
        .filter(|row| row % 4 != 3)
        .map(|row| columns[0][row])
        .collect();
    let mut right = hardest(&there, 0.3).into_iter();
    let right: Vec<f64> = (0..ROWS)
        .map(|row| {
            if row % 4 == 3 {
                0.0
            } else {
                right.next().unwrap()
            }
        })
        .collect();
    assert_eq!(hard_example_weight(&pieces, 0.3, None).unwrap(), right);
    pieces.null = NullNumber::Error;
    let error = hard_example_weight(&pieces, 0.3, None).unwrap_err();
    assert!(error.to_string().contains("row 3"), "{error}");
    let mut wrong = columns[0].clone();
    wrong[40_000] = f64::NAN;
    let error = hard_example_weight(&column(&wrong), 0.3, None).unwrap_err();
    assert!(error.to_string().contains("row 40000"), "{error}");
}

#[test]
fn doremi_published_values() {
    let found = doremi_weight(
        &column(&[0.5, 0.3, 0.2]),
        &column(&[0.2, 0.0, 0.4]),
        1.0,
        1e-3,
        None,
    );
    close(&found.unwrap(), &[0.504_93, 0.248_211, 0.246_86], 2e-6);
    let far = doremi_weight(
        &column(&[0.5, 0.5, 0.0]),
        &column(&[1e6, -1.0, 1.0]),
        1.0,
        0.0,
        None,
    );
    assert_eq!(far.unwrap(), [1.0, 0.0, 0.0]);
    let groups = codes(&[0, 1, 1]);
    let found = doremi_weight(
        &column(&[0.5, 0.5, 0.0]),
        &column(&[0.0, 1.0, 1.0]),
        1.0,
        0.5,
        Some(&groups),
    );
    close(&found.unwrap(), &[1.0, 0.75, 0.25], 1e-15);
    let zero = doremi_weight(&column(&[0.0, 0.0]), &column(&[0.0, 1.0]), 1.0, 0.1, None);
    zero.unwrap_err();
}

#[test]
fn shares() {
    let classes = |groups: Option<&Codes>| {
        Classes::new(codes(&[0, 0, 1, 1]), groups, NullClass::Error).unwrap()
    };
    let weight = [1.0, 1.0, 2.0, 4.0];
    let found = expected_share(&classes(None), &column(&weight)).unwrap();
    assert_eq!(found, [0.25, 0.25, 0.75, 0.75]);
    let groups = codes(&[0, 1, 0, 1]);
    let found = expected_share(&classes(Some(&groups)), &column(&weight)).unwrap();
    close(&found, &[1.0 / 3.0, 0.2, 2.0 / 3.0, 0.8], 1e-15);
    let found = expected_share(&classes(None), &column(&[f64::MAX; 4])).unwrap();
    assert_eq!(found, [0.5; 4]);
    expected_share(&classes(None), &column(&[0.0; 4])).unwrap_err();
}

#[test]
fn focal_values() {
    let p = [0.25, 1.5, -0.5, f64::NAN];
    let found = focal_weight(&p, 2.0);
    assert_eq!(found[..3], [0.5625, 0.0, 1.0]);
    assert!(found[3].is_nan());
    let found = focal_weight(&p, 1.5);
    close(&found[..3], &[0.75_f64.powf(1.5), 0.0, 1.0], 1e-15);
    assert_eq!(focal_weight(&[1.0, 0.5], 0.0), [1.0, 1.0]);
}

#[test]
fn clipped() {
    let weight = [0.0, 0.1, 1.5, 9.0, f64::NAN];
    let found = clip_weight(&weight, 1.0, 2.0);
    assert_eq!(found[..4], [0.0, 1.0, 1.5, 2.0]);
    assert!(found[4].is_nan());
}

#[test]
fn sample_sizes() {
    let size = |values: &[f64]| effective_sample_size(&column(values)).unwrap();
    assert_eq!(size(&[2.0, 1.0, 1.0, 0.0]), 16.0 / 6.0);
    assert_eq!(size(&[]), 0.0);
    assert_eq!(size(&[0.0]), 0.0);
    for value in [f64::MAX, 1e200, 1e-200, f64::MIN_POSITIVE, 5e-324] {
        close(&[size(&[value; 5000])], &[5000.0], 1e-12);
    }
    assert_eq!(size(&[-0.0, 2.0, 2.0]), 2.0);
    let long: Vec<f64> = (0..5003).map(|i| f64::from(i % 7)).collect();
    // Sums of whole numbers are exact in any order.
    let sum: f64 = long.iter().sum();
    let squares: f64 = long.iter().map(|value| value * value).sum();
    assert_eq!(size(&long), sum * sum / squares);
    for wrong in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut wrongs = long.clone();
        wrongs[5001] = wrong;
        let error = effective_sample_size(&column(&wrongs)).unwrap_err();
        assert!(error.to_string().contains("row 5001"), "{error}");
    }
    let null = with_null(&[1.0, f64::NAN, 1.0], NullNumber::Zero);
    assert_eq!(effective_sample_size(&null).unwrap(), 2.0);
    let error = effective_sample_size(&column(&[1.0, 1.0, -1.0])).unwrap_err();
    assert!(error.to_string().contains("row 2"), "{error}");
}
