//! Output types of expressions.

use polars::prelude::*;

/// Float64 under the name of the first input.
pub(crate) fn float64(inputs: &[Field]) -> PolarsResult<Field> {
    let name = inputs
        .first()
        .map_or(PlSmallStr::EMPTY, |field| field.name().clone());
    Ok(Field::new(name, DataType::Float64))
}
