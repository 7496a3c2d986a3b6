//! Weights of classes, for samplers that draw by weight.

use crate::error::{Error, Result};

/// What the mean of weights is brought to 1 over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Normalize {
    /// Nothing: weights are as the formula gives them.
    #[default]
    Raw,
    /// The rows.
    Rows,
    /// The classes that have rows, each counted once.
    Classes,
}

impl Normalize {
    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Rows => "rows",
            Self::Classes => "classes",
        }
    }

    /// The option of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Raw, Self::Rows, Self::Classes]
            .into_iter()
            .find(|option| option.name() == name)
    }
}

/// A weight a row by which each class that has rows is drawn equally often: `N / (K * n_c)` for N rows, K classes with
/// rows and `n_c` rows of the row's class (the inverse frequencies of King and Zeng 2001).
///
/// `codes` holds the class of each row, below `classes`; classes without rows count for nothing. The formula has mean 1
/// over the rows already, so [`Normalize::Raw`] and [`Normalize::Rows`] give the same.
///
/// # Errors
/// [`Error::Argument`] when a code is not below `classes`.
///
/// ```
/// use dataset_rt_runtime::{Normalize, balanced_weight};
///
/// let weights = balanced_weight(&[0, 0, 0, 1], 2, Normalize::Raw)?;
/// assert_eq!(weights, [4.0 / 6.0, 4.0 / 6.0, 4.0 / 6.0, 2.0]);
/// # Ok::<(), dataset_rt_runtime::Error>(())
/// ```
pub fn balanced_weight(codes: &[u32], classes: usize, normalize: Normalize) -> Result<Vec<f64>> {
    let mut counts = vec![0_u64; classes];
    for (row, &code) in codes.iter().enumerate() {
        match counts.get_mut(code as usize) {
            Some(count) => *count += 1,
            None => {
                let message = format!("class {code} at row {row}, there are {classes} classes");
                return Err(Error::Argument {
                    argument: "codes",
                    message,
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
        Normalize::Raw | Normalize::Rows => codes.len() as f64 / present().count() as f64,
        // The mean over the classes of 1 / n_c goes to 1.
        Normalize::Classes => {
            present().count() as f64 / present().map(|count| 1.0 / count).sum::<f64>()
        }
    };
    let of_class: Vec<f64> = counts
        .iter()
        .map(|&count| numerator / count as f64)
        .collect();
    Ok(codes.iter().map(|&code| of_class[code as usize]).collect())
}

#[cfg(test)]
mod tests {
    use super::{Normalize, balanced_weight};

    /// Ten rows with 6, 3 and 1 of three classes, shuffled; a fourth class has none.
    const CODES: [u32; 10] = [0, 1, 0, 3, 0, 1, 0, 1, 0, 0];

    fn by_class(normalize: Normalize) -> [f64; 3] {
        let weights = balanced_weight(&CODES, 4, normalize).unwrap();
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
        let rows = balanced_weight(&CODES, 4, Normalize::Rows).unwrap();
        assert!((rows.iter().sum::<f64>() / 10.0 - 1.0).abs() < 1e-15);
        let classes = by_class(Normalize::Classes);
        assert!((classes.iter().sum::<f64>() / 3.0 - 1.0).abs() < 1e-15);
    }

    #[test]
    fn ends() {
        assert!(balanced_weight(&[], 0, Normalize::Raw).unwrap().is_empty());
        assert!(
            balanced_weight(&[], 3, Normalize::Classes)
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            balanced_weight(&[2, 2], 3, Normalize::Classes).unwrap(),
            [1.0, 1.0]
        );
        let error = balanced_weight(&[0, 3], 3, Normalize::Raw).unwrap_err();
        assert_eq!(error.to_string(), "class 3 at row 1, there are 3 classes");
    }

    #[test]
    fn options_by_name() {
        for normalize in [Normalize::Raw, Normalize::Rows, Normalize::Classes] {
            assert_eq!(Normalize::from_name(normalize.name()), Some(normalize));
        }
        assert_eq!(Normalize::from_name("mean"), None);
    }
}
