//! Keyword arguments of expressions, as Python sends them.

use dataset_rt_runtime::{Normalize, NullClass};
use polars::prelude::*;
use serde::Deserialize;

/// Arguments of `balanced_weight`.
#[derive(Deserialize)]
pub(crate) struct BalancedWeight {
    normalize: String,
    null: String,
}

impl BalancedWeight {
    pub(crate) fn normalization(&self) -> PolarsResult<Normalize> {
        match self.normalize.as_str() {
            "rows" => Ok(Normalize::Rows),
            "classes" => Ok(Normalize::Classes),
            "none" => Ok(Normalize::Raw),
            other => polars_bail!(
                InvalidOperation: "normalize must be \"rows\", \"classes\" or None, found {other:?}"
            ),
        }
    }

    pub(crate) fn null_class(&self) -> PolarsResult<NullClass> {
        match self.null.as_str() {
            "error" => Ok(NullClass::Error),
            "class" => Ok(NullClass::Class),
            "zero" => Ok(NullClass::Zero),
            other => polars_bail!(
                InvalidOperation: "null must be \"error\", \"class\" or \"zero\", found {other:?}"
            ),
        }
    }
}
