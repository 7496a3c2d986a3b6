//! Shares that a mapping of Python gives to values of a column.

use dataset_rt_runtime::expr::Codes;
use polars::prelude::*;
use serde::Deserialize;

/// A key of the mapping: its kind and its text, which for a number is the shortest that gives it back.
#[derive(Deserialize)]
pub(crate) enum Key {
    #[serde(rename = "null")]
    Null(()),
    #[serde(rename = "bool")]
    Bool(bool),
    #[serde(rename = "int")]
    Int(String),
    #[serde(rename = "float")]
    Float(f64),
    #[serde(rename = "str")]
    Text(String),
}

impl Key {
    /// The key of a value of a column of some type; `None` if no key stands for values of it. The type of a value that is
    /// a category can't be asked for.
    fn of(value: &AnyValue<'_>, dtype: &DataType) -> Option<Self> {
        Some(match value {
            AnyValue::Null => Self::Null(()),
            AnyValue::Boolean(value) => Self::Bool(*value),
            // Any integer type, up to 128 bits wide.
            value if dtype.is_integer() => Self::Int(value.to_string()),
            value if dtype.is_float() => Self::Float(value.extract()?),
            value => Self::Text(value.get_str()?.to_owned()),
        })
    }

    /// 1 and 1.0 are one key, as in Python.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null(()), Self::Null(())) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Int(left), Self::Int(right)) | (Self::Text(left), Self::Text(right)) => {
                left == right
            }
            (Self::Float(left), Self::Float(right)) => {
                left == right || left.is_nan() && right.is_nan()
            }
            (Self::Int(integer), Self::Float(float)) | (Self::Float(float), Self::Int(integer)) => {
                integer.parse() == Ok(*float)
            }
            _ => false,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Null(()) => "None".to_owned(),
            Self::Bool(key) => if *key { "True" } else { "False" }.to_owned(),
            Self::Int(key) => key.clone(),
            Self::Float(key) => format!("{key:?}"),
            Self::Text(key) => format!("{key:?}"),
        }
    }
}

/// The share of each code. Every value must have a share, and every share above 0 a value.
pub(crate) fn shares_of(
    column: &Series,
    codes: &Codes,
    keys: &[(Key, f64)],
) -> PolarsResult<Vec<f64>> {
    // A column without a value says nothing about shares.
    let mut found = false;
    let mut used = vec![false; keys.len()];
    let mut shares = vec![0.0; codes.bound()];
    for (share, row) in shares.iter_mut().zip(codes.first_rows()) {
        let Some(row) = row else { continue };
        let value = column.get(row)?;
        let key = Key::of(&value, column.dtype());
        let wanted = |(known, _): &(Key, f64)| key.as_ref().is_some_and(|key| key.is(known));
        let Some(at) = keys.iter().position(wanted) else {
            polars_bail!(
                ComputeError: "shares has no share for the value {value} of row {row}; it has: {}", shown(keys)
            );
        };
        found = true;
        used[at] = true;
        *share = keys[at].1;
    }
    let unmet = keys
        .iter()
        .zip(used)
        .find(|((_, share), used)| *share > 0.0 && !used);
    if let Some(((key, share), _)) = unmet.filter(|_| found) {
        polars_bail!(
            ComputeError: "no row has the value {} that shares gives {share}", key.shown()
        );
    }
    Ok(shares)
}

fn shown(keys: &[(Key, f64)]) -> String {
    let mut texts: Vec<String> = keys.iter().take(20).map(|(key, _)| key.shown()).collect();
    if keys.len() > texts.len() {
        texts.push("...".to_owned());
    }
    texts.join(", ")
}
