//! Weights of classes, for samplers that draw by weight.

use crate::error::{Error, Fault, Result};

/// What the mean of weights is brought to 1 over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Normalize {
    /// Nothing: weights are as the formula gives them.
    #[default]
    Raw,
    /// The rows that have a class.
    Rows,
    /// The classes that have rows, each counted once.
    Classes,
}

/// What becomes of rows whose class is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NullClass {
    /// They are refused.
    #[default]
    Error,
    /// They are a class of their own.
    Class,
    /// They weigh nothing and count for nothing.
    Zero,
}

/// A weight a row by which each class that has rows is drawn equally often: `N / (K * n_c)` for N rows, K classes with
/// rows and `n_c` rows of the row's class (the inverse frequencies of King and Zeng 2001).
///
/// `codes` holds the class of each row; codes should be dense, since memory goes with the largest. The formula has mean
/// 1 over the rows already, so [`Normalize::Raw`] and [`Normalize::Rows`] give the same.
///
/// # Errors
/// [`Error::Table`] for a null class under [`NullClass::Error`].
///
/// ```
/// use dataset_rt_runtime::{Normalize, NullClass, balanced_weight};
///
/// let classes = [Some(0), Some(0), Some(0), Some(1)];
/// let weights = balanced_weight(&classes, Normalize::Raw, NullClass::Error)?;
/// assert_eq!(weights, [4.0 / 6.0, 4.0 / 6.0, 4.0 / 6.0, 2.0]);
/// # Ok::<(), dataset_rt_runtime::Error>(())
/// ```
pub fn balanced_weight(
    codes: &[Option<u32>],
    normalize: Normalize,
    null: NullClass,
) -> Result<Vec<f64>> {
    let classes = codes
        .iter()
        .flatten()
        .max()
        .map_or(0, |&largest| largest as usize + 1);
    // The last slot is that of the null class.
    let mut counts = vec![0_u64; classes + 1];
    for (row, code) in codes.iter().enumerate() {
        match (code, null) {
            (Some(code), _) => counts[*code as usize] += 1,
            (None, NullClass::Class) => counts[classes] += 1,
            (None, NullClass::Zero) => {}
            (None, NullClass::Error) => {
                return Err(Error::Table {
                    fault: Fault::Value,
                    column: "by".to_owned(),
                    row: Some(row as u64),
                    message: format!(
                        "the class of row {row} is null; say null=\"class\" to make nulls a class of their own, \
                         or null=\"zero\" to give them no weight"
                    ),
                });
            }
        }
    }
    let present = || {
        counts
            .iter()
            .filter(|&&count| count > 0)
            .map(|&count| count as f64)
    };
    let numerator = match normalize {
        // N / K.
        Normalize::Raw | Normalize::Rows => present().sum::<f64>() / present().count() as f64,
        // The mean over the classes of 1 / n_c goes to 1.
        Normalize::Classes => {
            present().count() as f64 / present().map(|count| 1.0 / count).sum::<f64>()
        }
    };
    let of_class: Vec<f64> = counts
        .iter()
        .map(|&count| numerator / count as f64)
        .collect();
    let of_null = if null == NullClass::Class {
        of_class[classes]
    } else {
        0.0
    };
    Ok(codes
        .iter()
        .map(|code| code.map_or(of_null, |code| of_class[code as usize]))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{Normalize, NullClass, balanced_weight};

    /// Ten rows with 6, 3 and 1 of three classes, shuffled; a fourth class has none.
    const CODES: [u32; 10] = [0, 1, 0, 3, 0, 1, 0, 1, 0, 0];

    fn codes() -> Vec<Option<u32>> {
        CODES.iter().copied().map(Some).collect()
    }

    fn by_class(normalize: Normalize) -> [f64; 3] {
        let weights = balanced_weight(&codes(), normalize, NullClass::Error).unwrap();
        assert_eq!(weights.len(), CODES.len());
        let of = |class| {
            let mut found = CODES
                .iter()
                .zip(&weights)
                .filter(|(code, _)| **code == class);
            let first = *found.next().unwrap().1;
            assert!(found.all(|(_, weight)| weight.to_bits() == first.to_bits()));
            first
        };
        [of(0), of(1), of(3)]
    }

    fn assert_close(found: [f64; 3], expected: [f64; 3]) {
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 5e-9, "{found} {expected}");
        }
    }

    #[test]
    fn published_values() {
        for normalize in [Normalize::Raw, Normalize::Rows] {
            assert_close(
                by_class(normalize),
                [0.555_555_56, 1.111_111_11, 3.333_333_33],
            );
        }
        assert_close(by_class(Normalize::Classes), [1.0 / 3.0, 2.0 / 3.0, 2.0]);
    }

    #[test]
    fn means_are_one() {
        let rows = balanced_weight(&codes(), Normalize::Rows, NullClass::Error).unwrap();
        assert!((rows.iter().sum::<f64>() / 10.0 - 1.0).abs() < 1e-15);
        let classes = by_class(Normalize::Classes);
        assert!((classes.iter().sum::<f64>() / 3.0 - 1.0).abs() < 1e-15);
    }

    #[test]
    fn no_rows() {
        for normalize in [Normalize::Raw, Normalize::Rows, Normalize::Classes] {
            assert!(
                balanced_weight(&[], normalize, NullClass::Error)
                    .unwrap()
                    .is_empty()
            );
        }
    }

    #[test]
    fn null_classes() {
        let classes = [Some(0), None, Some(0), Some(1)];
        let error = balanced_weight(&classes, Normalize::Raw, NullClass::Error).unwrap_err();
        assert!(error.to_string().contains("row 1"), "{error}");
        let weights = balanced_weight(&classes, Normalize::Raw, NullClass::Class).unwrap();
        assert_eq!(weights, [4.0 / 6.0, 4.0 / 3.0, 4.0 / 6.0, 4.0 / 3.0]);
        let weights = balanced_weight(&classes, Normalize::Raw, NullClass::Zero).unwrap();
        assert_eq!(weights, [0.75, 0.0, 0.75, 1.5]);
        let weights = balanced_weight(&[None, None], Normalize::Rows, NullClass::Zero).unwrap();
        assert_eq!(weights, [0.0, 0.0]);
        let weights = balanced_weight(&[None, None], Normalize::Rows, NullClass::Class).unwrap();
        assert_eq!(weights, [1.0, 1.0]);
    }
}
