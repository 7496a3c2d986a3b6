//! Weighting expressions.

use polars::prelude::*;
use pyo3_polars::derive::polars_expr;

use crate::dtypes::float64;
use crate::kwargs::BalancedWeight;

/// One column of class codes in, one weight a row out.
#[polars_expr(output_type_func=float64)]
fn balanced_weight(inputs: &[Series], kwargs: BalancedWeight) -> PolarsResult<Series> {
    let [codes] = inputs else {
        polars_bail!(InvalidOperation: "balanced_weight takes one column, found {}", inputs.len());
    };
    let classes: Vec<Option<u32>> = codes.u32()?.iter().collect();
    let weights = dataset_rt_runtime::balanced_weight(
        &classes,
        kwargs.normalization()?,
        kwargs.null_class()?,
    )
    .map_err(|error| polars_err!(ComputeError: "{error}"))?;
    Ok(Series::new(codes.name().clone(), weights))
}
