use super::{
    Normalize, balanced_weight, effective_number_weight, mixture_weight, temperature_weight,
    unimax_weight,
};
use crate::expr::{Chunk, Classes, Codes, NullClass, Validity};

/// Ten rows with 6, 3 and 1 of three classes, shuffled; there is no class 2.
const LABELS: [u8; 10] = [0, 1, 0, 3, 0, 1, 0, 1, 0, 0];

const SCALES: [Normalize; 3] = [Normalize::Raw, Normalize::Rows, Normalize::Classes];

fn classes(labels: &[u8]) -> Classes {
    let chunk = Chunk {
        values: labels,
        validity: None,
    };
    let codes = Codes::of_words(&[chunk], NullClass::Error.nulls()).unwrap();
    Classes::new(codes, None, NullClass::Error).unwrap()
}

/// Row 1 is null.
fn with_null(null: NullClass) -> crate::Result<Classes> {
    let chunk = Chunk {
        values: &[0_u8, 9, 0, 1],
        validity: Some(Validity {
            bytes: &[0b1101],
            offset: 0,
        }),
    };
    Classes::new(Codes::of_words(&[chunk], null.nulls())?, None, null)
}

fn by_class(weights: &[f64]) -> [f64; 3] {
    assert_eq!(weights.len(), LABELS.len());
    [0, 1, 3].map(|class| {
        let mut found = LABELS.iter().zip(weights).filter(|(l, _)| **l == class);
        let first = *found.next().unwrap().1;
        assert!(found.all(|(_, weight)| weight.to_bits() == first.to_bits()));
        first
    })
}

fn assert_close(found: [f64; 3], expected: [f64; 3]) {
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() < 5e-9, "{found} {expected}");
    }
}

#[test]
fn balanced_published_values() {
    for normalize in [Normalize::Raw, Normalize::Rows] {
        let weights = balanced_weight(&classes(&LABELS), normalize).unwrap();
        assert_close(
            by_class(&weights),
            [0.555_555_56, 1.111_111_11, 3.333_333_33],
        );
    }
    let weights = balanced_weight(&classes(&LABELS), Normalize::Classes).unwrap();
    assert_close(by_class(&weights), [1.0 / 3.0, 2.0 / 3.0, 2.0]);
}

#[test]
fn no_rows() {
    for normalize in SCALES {
        assert!(
            balanced_weight(&classes(&[]), normalize)
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn null_classes() {
    let error = with_null(NullClass::Error).unwrap_err();
    assert!(error.to_string().contains("row 1"), "{error}");
    let weigh = |null| balanced_weight(&with_null(null).unwrap(), Normalize::Raw).unwrap();
    assert_eq!(
        weigh(NullClass::Class),
        [4.0 / 6.0, 4.0 / 3.0, 4.0 / 6.0, 4.0 / 3.0]
    );
    assert_eq!(weigh(NullClass::Zero), [0.75, 0.0, 0.75, 1.5]);
}

#[test]
fn groups_are_on_their_own() {
    let chunk = |values| {
        Codes::of_words(
            &[Chunk::<'_, u8> {
                values,
                validity: None,
            }],
            NullClass::Error.nulls(),
        )
        .unwrap()
    };
    let groups = chunk(&[5, 7, 5, 7, 5]);
    let codes = chunk(&[1, 1, 1, 2, 2]);
    let classes = Classes::new(codes, Some(&groups), NullClass::Error).unwrap();
    assert_eq!(
        balanced_weight(&classes, Normalize::Raw).unwrap(),
        [0.75, 1.0, 0.75, 1.0, 1.5]
    );
}

/// The shares that raw weights give the classes.
fn shares(weights: &[f64]) -> [f64; 3] {
    let [a, b, c] = by_class(weights);
    [6.0 * a, 3.0 * b, c]
}

#[test]
fn effective_number_published_values() {
    let weigh = |beta, normalize| effective_number_weight(&classes(&LABELS), beta, normalize);
    let weights = weigh(0.999, Normalize::Classes).unwrap();
    assert_close(
        by_class(&weights),
        [0.334_000_48, 0.666_999_96, 1.998_999_56],
    );
    // Near 1 the formula as written has lost its digits; the limit is 1 / n.
    let weights = weigh(1.0 - 1e-15, Normalize::Raw).unwrap();
    assert_close(by_class(&weights), [1.0 / 6.0, 1.0 / 3.0, 1.0]);
    assert_eq!(by_class(&weigh(0.0, Normalize::Raw).unwrap()), [1.0; 3]);
    for wrong in [-0.1, 1.0, f64::NAN] {
        weigh(wrong, Normalize::Raw).unwrap_err();
    }
}

#[test]
fn temperature_published_values() {
    let weigh =
        |alpha, limit| temperature_weight(&classes(&LABELS), alpha, limit, Normalize::Raw).unwrap();
    let close = |found: [f64; 3], expected: [f64; 3]| {
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 5e-7, "{found} {expected}");
        }
    };
    close(shares(&weigh(0.5, None)), [0.472_734, 0.334_273, 0.192_993]);
    close(shares(&weigh(0.3, None)), [0.417_285, 0.338_941, 0.243_774]);
    close(shares(&weigh(0.7, None)), [0.526_076, 0.323_838, 0.150_087]);
    close(shares(&weigh(1.0, Some(4.0))), [0.5, 0.375, 0.125]);
    // The largest power of all is beyond a float, the shares aren't.
    close(shares(&weigh(400.0, Some(1.0))), [1.0 / 3.0; 3]);
    let error = temperature_weight(&classes(&LABELS), 1e4, None, Normalize::Rows).unwrap_err();
    assert!(error.to_string().contains("row 1"), "{error}");
    for (alpha, limit) in [(f64::NAN, None), (1.0, Some(0.0)), (f64::INFINITY, None)] {
        temperature_weight(&classes(&LABELS), alpha, limit, Normalize::Raw).unwrap_err();
    }
}

#[test]
fn unimax_by_hand() {
    let weigh = |budget, epochs| {
        let weights = unimax_weight(&classes(&LABELS), budget, epochs, Normalize::Raw).unwrap();
        shares(&weights)
    };
    // Enough rows for all: equal shares.
    assert_close(weigh(3.0, 1.0), [1.0 / 3.0; 3]);
    // 1 of the smallest, then 4 each are left of 9: all 3 of the second, 5 of the largest.
    assert_close(weigh(9.0, 1.0), [5.0 / 9.0, 3.0 / 9.0, 1.0 / 9.0]);
    // More than all: every row as often as allowed.
    assert_close(weigh(1e6, 2.0), [0.6, 0.3, 0.1]);
    unimax_weight(&classes(&LABELS), 0.0, 1.0, Normalize::Raw).unwrap_err();
    unimax_weight(&classes(&LABELS), 1.0, f64::NAN, Normalize::Raw).unwrap_err();
}

#[test]
fn mixtures() {
    let of_code = [0.5, 0.3, 0.0, 0.2];
    let weights = mixture_weight(&classes(&LABELS), &of_code, Normalize::Raw).unwrap();
    assert_close(shares(&weights), [0.5, 0.3, 0.2]);
    let zero = mixture_weight(&classes(&LABELS), &[1.0, 0.0, 0.0, 0.0], Normalize::Rows).unwrap();
    assert_close(by_class(&zero), [10.0 / 6.0, 0.0, 0.0]);
    mixture_weight(&classes(&LABELS), &[0.0, 0.0, 1.0, 0.0], Normalize::Rows).unwrap_err();
}
