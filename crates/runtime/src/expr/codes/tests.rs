use super::{Chunk, Codes, NO_CLASS, Nulls, Validity, Word, packed};

/// Codes are right when equal codes mean equal values, both ways, and all are below the bound.
fn check<T: PartialEq + std::fmt::Debug>(codes: &Codes, values: &[T]) {
    assert_eq!(codes.len(), values.len());
    for (&a, left) in codes.as_slice().iter().zip(values) {
        assert!((a as usize) < codes.bound());
        for (&b, right) in codes.as_slice().iter().zip(values) {
            assert_eq!(a == b, left == right, "{left:?} {right:?}");
        }
    }
    assert_eq!(codes.counts().iter().sum::<u64>(), values.len() as u64);
}

fn whole<T>(values: &[T]) -> Chunk<'_, T> {
    Chunk {
        values,
        validity: None,
    }
}

#[test]
fn integers() {
    let near = [5_i64, -3, 5, 0, -3, 100];
    check(
        &Codes::of_words(&[whole(&near)], Nulls::Value).unwrap(),
        &near,
    );
    let far = [i64::MIN, i64::MAX, 0, i64::MIN, -1, 0];
    check(
        &Codes::of_words(&[whole(&far)], Nulls::Value).unwrap(),
        &far,
    );
    let far = [u64::MAX, 0, 1 << 40, 0];
    check(
        &Codes::of_words(&[whole(&far)], Nulls::Value).unwrap(),
        &far,
    );
    let wide = [i128::MIN, i128::MAX, 0, 1 << 64, i128::MIN];
    check(
        &Codes::of_wide_words(&[whole(&wide)], Nulls::Value).unwrap(),
        &wide,
    );
}

#[test]
fn floats_have_one_nan_and_one_zero() {
    let other = f64::from_bits(f64::NAN.to_bits() ^ 1 | 1 << 63);
    assert!(other.is_nan());
    let values = [0.0, -0.0, f64::NAN, other, 1.5, f64::INFINITY];
    let codes = Codes::of_words(&[whole(&values)], Nulls::Value).unwrap();
    check(&codes, &[0, 0, 1, 1, 2, 3]);
    assert_eq!((-0.0_f32).word(), 0.0_f32.word());
    assert_eq!(f32::NAN.word(), (-f32::NAN).word());
}

#[test]
fn bytes_differ_by_content_and_length() {
    let mut texts: Vec<Vec<u8>> = (0..40).map(|len| vec![0; len]).collect();
    texts.extend((0..40).map(|len| vec![b'x'; len]));
    texts.extend((1..40).map(|len| {
        let mut text = vec![b'x'; len];
        text[len / 2] = b'y';
        text
    }));
    texts.extend(texts.clone());
    let rows = texts.iter().map(|text| Some(text.as_slice()));
    check(
        &Codes::of_bytes(texts.len(), rows, Nulls::Value).unwrap(),
        &texts,
    );
    assert_eq!(packed(&[1; 16]), None);
    assert_eq!(
        packed(b"abcdefghijklmno").unwrap().to_le_bytes(),
        *b"abcdefghijklmno\x0f"
    );
    assert_eq!(packed(b"abcde").unwrap().to_le_bytes()[..6], *b"abcde\0");
}

#[test]
fn nulls_are_a_class_or_none() {
    let chunk = Chunk {
        values: &[7_i32, 7, 1, 9],
        validity: Some(Validity {
            bytes: &[0b0010_1000, 0b1],
            offset: 3,
        }),
    };
    // Rows 0 and 2 are there; bits are taken from the fourth on.
    let codes = Codes::of_words(&[chunk, whole(&[1])], Nulls::Value).unwrap();
    check(&codes, &[Some(7), None, Some(1), None, Some(1)]);
    assert_eq!(codes.first_without(), None);
    let codes = Codes::of_words(&[chunk, whole(&[1])], Nulls::NoClass).unwrap();
    assert_eq!(codes.as_slice()[1], NO_CLASS);
    assert_eq!(codes.first_without(), Some(1));
    assert_eq!(
        codes.look_up(&vec![2.0; codes.bound()], 0.0),
        [2.0, 0.0, 2.0, 0.0, 2.0]
    );
    let first = codes.first_rows();
    assert_eq!(first.iter().flatten().count(), 2);
    assert_eq!(first[codes.as_slice()[4] as usize], Some(2));
}

#[test]
fn pairs() {
    // Few codes are multiplied, many are looked up.
    for spread in [1_u64, 1 << 40] {
        let left: Vec<u64> = (0..600).map(|i| (i % 7) * spread).collect();
        let right: Vec<u64> = (0..600).map(|i| (i % 300) * spread).collect();
        let codes =
            [&left, &right].map(|side| Codes::of_words(&[whole(side)], Nulls::Value).unwrap());
        let pairs: Vec<(u64, u64)> = left.iter().copied().zip(right.iter().copied()).collect();
        let (joint, parts) = Codes::pairs(&codes[0], &codes[1]).unwrap();
        check(&joint, &pairs);
        assert_eq!(parts.len(), joint.bound());
        for (row, code) in joint.as_slice().iter().enumerate() {
            let part = codes.each_ref().map(|side| side.as_slice()[row]);
            assert_eq!(parts[*code as usize], part);
        }
    }
    let left = Codes::one_class(3).unwrap();
    let chunk = Chunk {
        values: &[1_u8, 2, 1],
        validity: Some(Validity {
            bytes: &[0b101],
            offset: 0,
        }),
    };
    let right = Codes::of_words(&[chunk], Nulls::NoClass).unwrap();
    assert_eq!(
        Codes::of_pairs(&left, &right).unwrap().first_without(),
        Some(1)
    );
}

#[test]
fn no_rows() {
    let empty = Codes::of_words::<u8>(&[], Nulls::Value).unwrap();
    assert!(empty.is_empty());
    assert!(Codes::of_pairs(&empty, &empty).unwrap().is_empty());
    assert!(empty.look_up::<f64>(&[], 0.0).is_empty());
}
