//! Polars expression shells.
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;

fn same_as_input(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(inputs[0].clone())
}

#[polars_expr(output_type_func=same_as_input)]
fn probe(inputs: &[Series]) -> PolarsResult<Series> {
    Ok(inputs[0].clone())
}
