//! Functions of rows with a label or several.

use dataset_rt_runtime::expr;
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
use serde::Deserialize;

use crate::columns::{Inputs, codes};
use crate::dtypes::{boolean, float64};
use crate::kwargs::NullClass;

#[derive(Deserialize)]
struct RepeatFactor {
    threshold: f64,
    over: usize,
}

#[polars_expr(output_type_func=float64)]
fn repeat_factor(inputs: &[Series], kwargs: RepeatFactor) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let labels = &inputs.columns()[0];
    let (starts, labels) = match labels.dtype() {
        DataType::List(_) => lists(labels).map(|(starts, labels)| (Some(starts), labels))?,
        DataType::Array(inner, _) => {
            let (starts, labels) = lists(&labels.cast(&DataType::List(inner.clone()))?)?;
            (Some(starts), labels)
        }
        _ => (None, labels.clone()),
    };
    let labels = codes(&[labels], expr::Nulls::NoClass)?;
    let (starts, groups) = (starts.as_deref(), inputs.groups()?);
    inputs.float64(expr::repeat_factor(
        &labels,
        starts,
        groups.as_ref(),
        kwargs.threshold,
    ))
}

/// Where each list begins, with the end of the last, and the values of all.
fn lists(column: &Series) -> PolarsResult<(Vec<usize>, Series)> {
    // A null list may have values behind it, which then are null too: they are no labels.
    let column = column.propagate_nulls().unwrap_or_else(|| column.clone());
    let trimmed = column.trim_lists_to_normalized_offsets();
    let lists = trimmed.unwrap_or(column).list()?.rechunk().into_owned();
    let mut starts = vec![0];
    for chunk in lists.downcast_iter() {
        let offsets = chunk.offsets().as_slice().iter().skip(1);
        starts.extend(offsets.map(|&end| usize::try_from(end).unwrap_or_default()));
    }
    Ok((starts, lists.get_inner()))
}

#[derive(Deserialize)]
struct Cap {
    n: u64,
    null: NullClass,
    over: usize,
}

#[polars_expr(output_type_func=boolean)]
fn cap_per_class(inputs: &[Series], kwargs: Cap) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let classes = inputs.classes(0, kwargs.null.into())?;
    Ok(inputs.boolean(&expr::cap_per_class(classes.codes(), kwargs.n)))
}
