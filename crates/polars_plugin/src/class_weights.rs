//! Weights that depend on how many rows a class has: `by` columns in, then group columns.

use dataset_rt_runtime::expr;
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
use serde::Deserialize;

use crate::columns::Inputs;
use crate::dtypes::float64;
use crate::kwargs::{Normalize, NullClass};
use crate::shares::{Key, shares_of};

#[derive(Deserialize)]
struct Balanced {
    normalize: Normalize,
    null: NullClass,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn balanced_weight(inputs: &[Series], kwargs: Balanced) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let classes = inputs.classes(0, kwargs.null.into())?;
    inputs.float64(expr::balanced_weight(&classes, kwargs.normalize.into()))
}

#[derive(Deserialize)]
struct EffectiveNumber {
    beta: f64,
    normalize: Normalize,
    null: NullClass,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn effective_number_weight(inputs: &[Series], kwargs: EffectiveNumber) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let classes = inputs.classes(0, kwargs.null.into())?;
    let normalize = kwargs.normalize.into();
    inputs.float64(expr::effective_number_weight(
        &classes,
        kwargs.beta,
        normalize,
    ))
}

#[derive(Deserialize)]
struct Temperature {
    alpha: f64,
    limit: Option<f64>,
    normalize: Normalize,
    null: NullClass,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn temperature_weight(inputs: &[Series], kwargs: Temperature) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let classes = inputs.classes(0, kwargs.null.into())?;
    let (alpha, limit, normalize) = (kwargs.alpha, kwargs.limit, kwargs.normalize.into());
    inputs.float64(expr::temperature_weight(&classes, alpha, limit, normalize))
}

#[derive(Deserialize)]
struct Unimax {
    budget: f64,
    max_epochs: f64,
    normalize: Normalize,
    null: NullClass,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn unimax_weight(inputs: &[Series], kwargs: Unimax) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let classes = inputs.classes(0, kwargs.null.into())?;
    let (budget, epochs, normalize) = (kwargs.budget, kwargs.max_epochs, kwargs.normalize.into());
    inputs.float64(expr::unimax_weight(&classes, budget, epochs, normalize))
}

#[derive(Deserialize)]
struct Mixture {
    shares: Vec<(Key, f64)>,
    normalize: Normalize,
    null: NullClass,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn mixture_weight(inputs: &[Series], kwargs: Mixture) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let codes = inputs.codes(0, expr::NullClass::from(kwargs.null).nulls())?;
    let shares = shares_of(&inputs.columns()[0], &codes, &kwargs.shares)?;
    let classes = inputs.in_groups(codes, kwargs.null.into())?;
    inputs.float64(expr::mixture_weight(
        &classes,
        &shares,
        kwargs.normalize.into(),
    ))
}
