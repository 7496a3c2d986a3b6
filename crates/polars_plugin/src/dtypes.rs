//! Output types of expressions: under the name of the first input.

use polars::prelude::*;

pub(crate) fn float64(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(named(inputs, DataType::Float64))
}

pub(crate) fn boolean(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(named(inputs, DataType::Boolean))
}

pub(crate) fn uint8(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(named(inputs, DataType::UInt8))
}

pub(crate) fn uint32(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(named(inputs, DataType::UInt32))
}

pub(crate) fn uint64(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(named(inputs, DataType::UInt64))
}

pub(crate) fn binary(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(named(inputs, DataType::Binary))
}

pub(crate) fn string(inputs: &[Field]) -> PolarsResult<Field> {
    Ok(named(inputs, DataType::String))
}

pub(crate) fn named(inputs: &[Field], dtype: DataType) -> Field {
    let name = inputs.first().map(|field| field.name().clone());
    Field::new(name.unwrap_or(PlSmallStr::EMPTY), dtype)
}
