//! Weights from a number a row: the column of numbers in, then group columns.

use dataset_rt_runtime::expr;
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
use serde::Deserialize;

use crate::columns::{Inputs, map, numbers, numeric};
use crate::dtypes::float64;
use crate::kwargs::{NullClass, NullNumber};

#[derive(Deserialize)]
struct Focal {
    gamma: f64,
}

#[polars_expr(output_type_func=float64)]
fn focal_weight(inputs: &[Series], kwargs: Focal) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?.exactly(1)?;
    let p_true = numeric(&inputs.columns()[0], "p_true")?;
    Ok(map(&p_true, |p| expr::focal_weight(p, kwargs.gamma)))
}

#[derive(Deserialize)]
struct Clip {
    lower: f64,
    upper: f64,
}

#[polars_expr(output_type_func=float64)]
fn clip_weight(inputs: &[Series], kwargs: Clip) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?.exactly(1)?;
    let weight = numeric(&inputs.columns()[0], "weight")?;
    let clip = |weight: &[f64]| expr::clip_weight(weight, kwargs.lower, kwargs.upper);
    Ok(map(&weight, clip))
}

#[derive(Deserialize)]
struct Normalize {
    null: NullNumber,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn normalize_weight(inputs: &[Series], kwargs: Normalize) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let weight = numeric(&inputs.columns()[0], "weight")?;
    let weight = numbers(&weight, "weight", kwargs.null.into());
    inputs.float64(expr::normalize_weight(&weight, inputs.groups()?.as_ref()))
}

#[derive(Deserialize)]
struct HardExample {
    fraction: f64,
    null: NullNumber,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn hard_example_weight(inputs: &[Series], kwargs: HardExample) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let loss = numeric(&inputs.columns()[0], "loss")?;
    let loss = numbers(&loss, "loss", kwargs.null.into());
    let groups = inputs.groups()?;
    inputs.float64(expr::hard_example_weight(
        &loss,
        kwargs.fraction,
        groups.as_ref(),
    ))
}

#[derive(Deserialize)]
struct Prioritized {
    alpha: f64,
    null: NullNumber,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn prioritized_weight(inputs: &[Series], kwargs: Prioritized) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let priority = numeric(&inputs.columns()[0], "priority")?;
    let priority = numbers(&priority, "priority", kwargs.null.into());
    let groups = inputs.groups()?;
    inputs.float64(expr::prioritized_weight(
        &priority,
        kwargs.alpha,
        groups.as_ref(),
    ))
}

#[derive(Deserialize)]
struct Correction {
    alpha: f64,
    beta: f64,
    null: NullNumber,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn prioritized_correction(inputs: &[Series], kwargs: Correction) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let priority = numeric(&inputs.columns()[0], "priority")?;
    let priority = numbers(&priority, "priority", kwargs.null.into());
    let (alpha, beta, groups) = (kwargs.alpha, kwargs.beta, inputs.groups()?);
    inputs.float64(expr::prioritized_correction(
        &priority,
        alpha,
        beta,
        groups.as_ref(),
    ))
}

#[derive(Deserialize)]
struct Doremi {
    eta: f64,
    c: f64,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn doremi_weight(inputs: &[Series], kwargs: Doremi) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 2)?.exactly(2)?;
    let alpha = numeric(&inputs.columns()[0], "alpha")?;
    let alpha = numbers(&alpha, "alpha", expr::NullNumber::Error);
    let excess = numeric(&inputs.columns()[1], "excess")?;
    let excess = numbers(&excess, "excess", expr::NullNumber::Error);
    let (eta, c, groups) = (kwargs.eta, kwargs.c, inputs.groups()?);
    inputs.float64(expr::doremi_weight(
        &alpha,
        &excess,
        eta,
        c,
        groups.as_ref(),
    ))
}

#[derive(Deserialize)]
struct ExpectedShare {
    null: NullClass,
    over: usize,
}

/// The weight comes first, then the class columns.
#[polars_expr(output_type_func=float64)]
fn expected_share(inputs: &[Series], kwargs: ExpectedShare) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 2)?;
    let weight = numeric(&inputs.columns()[0], "weight")?;
    let weight = numbers(&weight, "weight", expr::NullNumber::Error);
    let classes = inputs.classes(1, kwargs.null.into())?;
    inputs.float64(expr::expected_share(&classes, &weight))
}

#[derive(Deserialize)]
struct SampleSize {
    over: usize,
}

/// One value.
#[polars_expr(output_type_func=float64)]
fn effective_sample_size(inputs: &[Series], kwargs: SampleSize) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let weight = numeric(&inputs.columns()[0], "weight")?;
    let weight = numbers(&weight, "weight", expr::NullNumber::Zero);
    inputs.float64(expr::effective_sample_size(&weight).map(|size| vec![size]))
}
