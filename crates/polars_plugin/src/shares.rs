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
    fn is(&self, value: &AnyValue<'_>) -> bool {
        match (self, value) {
            (Self::Null(()), AnyValue::Null) => true,
            (Self::Bool(key), AnyValue::Boolean(value)) => key == value,
            (Self::Text(key), _) => value.get_str() == Some(key),
            // Any integer type, 128 bits wide at most; 1 and 1.0 are one key, as in Python.
            (Self::Int(key), _) if value.dtype().is_integer() => *key == value.to_string(),
            (Self::Int(key), _) if value.dtype().is_float() => key
                .parse::<f64>()
                .ok()
                .is_some_and(|key| float(value) == Some(key)),
            (Self::Float(key), _) if value.dtype().is_float() => {
                float(value).is_some_and(|value| value == *key || value.is_nan() && key.is_nan())
            }
            (Self::Float(key), _) if value.dtype().is_integer() => float(value) == Some(*key),
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

fn float(value: &AnyValue<'_>) -> Option<f64> {
    value.extract::<f64>()
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
        let Some(at) = keys.iter().position(|(key, _)| key.is(&value)) else {
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
