//! From series to what the runtime takes: columns of one length, chunks as slices, classes as codes.

use dataset_rt_runtime as runtime;
use dataset_rt_runtime::expr::{
    Chunk, Classes, Codes, NullClass, NullNumber, Nulls, Numbers, Validity, Word,
};
use polars::chunked_array::ops::row_encode::encode_rows_unordered;
use polars::prelude::*;
use pyo3_polars::export::polars_arrow::array::{Array, PrimitiveArray};
use pyo3_polars::export::polars_arrow::bitmap::Bitmap;
use pyo3_polars::export::polars_arrow::types::NativeType;

/// The inputs of an expression, all of one length. The last ones may name groups.
pub(crate) struct Inputs {
    name: PlSmallStr,
    columns: Vec<Series>,
    groups: Vec<Series>,
}

impl Inputs {
    /// Takes the inputs apart; the last `over` of them are group columns, and at least `least` stand before them.
    ///
    /// Polars broadcasts nothing into a plugin: a literal arrives with length 1 beside columns of another.
    pub(crate) fn new(inputs: &[Series], over: usize, least: usize) -> PolarsResult<Self> {
        let (Some(first), Some(own)) = (
            inputs.first(),
            inputs.len().checked_sub(over).filter(|&own| own >= least),
        ) else {
            polars_bail!(
                ComputeError: "the function takes at least {least} columns and {over} group columns, found {} in all",
                inputs.len()
            );
        };
        let rows = inputs
            .iter()
            .map(|column| column.len())
            .find(|&len| len != 1)
            .unwrap_or(1);
        let mut columns = Vec::with_capacity(inputs.len());
        for column in inputs {
            columns.push(match column.len() {
                len if len == rows => column.clone(),
                1 => column.new_from_index(0, rows),
                len => polars_bail!(
                    ComputeError: "column {:?} has {len} rows where others have {rows}", column.name()
                ),
            });
        }
        let groups = columns.split_off(own);
        Ok(Self {
            name: first.name().clone(),
            columns,
            groups,
        })
    }

    /// Refuses other numbers of columns before the group columns.
    pub(crate) fn exactly(self, columns: usize) -> PolarsResult<Self> {
        if self.columns.len() != columns {
            polars_bail!(
                ComputeError: "the function takes {columns} columns, found {}", self.columns.len()
            );
        }
        Ok(self)
    }

    /// The name of the result: that of the first input.
    pub(crate) fn name(&self) -> &PlSmallStr {
        &self.name
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    /// The columns that are no group columns.
    pub(crate) fn columns(&self) -> &[Series] {
        &self.columns
    }

    /// The group columns.
    pub(crate) fn group_columns(&self) -> &[Series] {
        &self.groups
    }

    /// The group of each row; `None` when all are one. A null is a group.
    pub(crate) fn groups(&self) -> PolarsResult<Option<Codes>> {
        match self.group_columns() {
            [] => Ok(None),
            columns => codes(columns, Nulls::Value).map(Some),
        }
    }

    /// The codes that the columns from `first` on make together.
    pub(crate) fn codes(&self, first: usize, nulls: Nulls) -> PolarsResult<Codes> {
        codes(&self.columns[first..], nulls)
    }

    /// The classes that the columns from `first` on make together.
    pub(crate) fn classes(&self, first: usize, null: NullClass) -> PolarsResult<Classes> {
        self.in_groups(self.codes(first, null.nulls())?, null)
    }

    /// Classes from codes that were made with the nulls of `null`.
    pub(crate) fn in_groups(&self, codes: Codes, null: NullClass) -> PolarsResult<Classes> {
        Classes::new(codes, self.groups()?.as_ref(), null).map_err(failed)
    }

    /// The result as a column, under the name of the first input.
    pub(crate) fn float64(&self, values: runtime::Result<Vec<f64>>) -> PolarsResult<Series> {
        let values = values.map_err(failed)?;
        Ok(Float64Chunked::from_vec(self.name.clone(), values).into_series())
    }

    /// The result as a column, under the name of the first input.
    pub(crate) fn boolean(&self, values: &[bool]) -> Series {
        BooleanChunked::from_bitmap(self.name.clone(), bits(values)).into_series()
    }
}

/// Truth values as bits, eight at a time: Polars collects them one by one.
fn bits(values: &[bool]) -> Bitmap {
    let (eights, rest) = values.as_chunks::<8>();
    let mut bytes = Vec::with_capacity(values.len().div_ceil(8));
    bytes.extend(eights.iter().map(|eight| {
        // Byte i, times 2^(56 - 7 i), is bit i of the highest byte; no two of the others meet.
        let word = u64::from_le_bytes(eight.map(u8::from));
        word.wrapping_mul(0x0102_0408_1020_4080).to_le_bytes()[7]
    }));
    if !rest.is_empty() {
        let bit = |byte, (at, &value): (usize, &bool)| byte | u8::from(value) << at;
        bytes.push(rest.iter().enumerate().fold(0, bit));
    }
    Bitmap::from_u8_vec(bytes, values.len())
}

/// A column of numbers as Float64.
pub(crate) fn numeric(column: &Series, argument: &str) -> PolarsResult<Float64Chunked> {
    match column.dtype() {
        DataType::Float64 => Ok(column.f64()?.clone()),
        dtype if is_number(dtype) => Ok(column.cast(&DataType::Float64)?.f64()?.clone()),
        dtype => polars_bail!(
            ComputeError:
            "{argument} must be an integer or float of at most 64 bits, found {dtype} in column {:?}; use \
             .cast(pl.Float64) if that is what you mean", column.name()
        ),
    }
}

fn is_number(dtype: &DataType) -> bool {
    use DataType::*;
    // A column of nulls alone has no other type after a way through CSV or pandas.
    matches!(
        dtype,
        Null | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float16 | Float32
    )
}

/// The first row whose number is NaN.
pub(crate) fn first_nan(column: &Float64Chunked) -> Option<usize> {
    // What nulls hold is of no meaning, but seldom NaN: most columns are told by this alone.
    let may_have_nan =
        |values: &[f64]| values.iter().fold(false, |any, value| any | value.is_nan());
    let mut chunks = column.downcast_iter();
    if !chunks.any(|chunk| may_have_nan(chunk.values())) {
        return None;
    }
    column
        .iter()
        .position(|value| value.is_some_and(f64::is_nan))
}

/// A function of each number, given for many at once; nulls stay.
pub(crate) fn map(column: &Float64Chunked, function: impl Fn(&[f64]) -> Vec<f64>) -> Series {
    let chunks = column.downcast_iter().map(|chunk| {
        let values = function(chunk.values().as_slice());
        PrimitiveArray::from_vec(values).with_validity(chunk.validity().cloned())
    });
    Float64Chunked::from_chunk_iter(column.name().clone(), chunks).into_series()
}

/// The numbers of a column in the form that the runtime takes.
pub(crate) fn numbers<'a>(
    column: &'a Float64Chunked,
    name: &'static str,
    null: NullNumber,
) -> Numbers<'a> {
    Numbers {
        name,
        chunks: column.downcast_iter().map(chunk).collect(),
        null,
    }
}

/// The runtime's error as one of Polars.
pub(crate) fn failed(error: runtime::Error) -> PolarsError {
    polars_err!(ComputeError: "{error}")
}

/// The code of each row: one a combination of the columns' values.
pub(crate) fn codes(columns: &[Series], nulls: Nulls) -> PolarsResult<Codes> {
    let mut all: Option<Codes> = None;
    for column in columns {
        let codes = codes_of(column, nulls)?;
        all = Some(match all {
            None => codes,
            Some(left) => Codes::of_pairs(&left, &codes).map_err(failed)?,
        });
    }
    all.ok_or_else(|| polars_err!(ComputeError: "at least one class column is needed"))
}

/// The code of each row: equal for equal values. NaN is one value, and so are 0.0 and -0.0.
fn codes_of(column: &Series, nulls: Nulls) -> PolarsResult<Codes> {
    let physical = column.to_storage().to_physical_repr();
    let column = physical.as_ref();
    let made = match column.dtype() {
        DataType::UInt8 => of_words(column.u8()?, nulls),
        DataType::UInt16 => of_words(column.u16()?, nulls),
        DataType::UInt32 => of_words(column.u32()?, nulls),
        DataType::UInt64 => of_words(column.u64()?, nulls),
        DataType::Int8 => of_words(column.i8()?, nulls),
        DataType::Int16 => of_words(column.i16()?, nulls),
        DataType::Int32 => of_words(column.i32()?, nulls),
        DataType::Int64 => of_words(column.i64()?, nulls),
        DataType::Float32 => of_words(column.f32()?, nulls),
        DataType::Float64 => of_words(column.f64()?, nulls),
        DataType::Int128 => {
            let chunks: Vec<_> = column.i128()?.downcast_iter().map(chunk).collect();
            Codes::of_wide_words(&chunks, nulls)
        }
        DataType::Float16 => return codes_of(&column.cast(&DataType::Float32)?, nulls),
        DataType::Boolean => return codes_of(&column.cast(&DataType::UInt8)?, nulls),
        DataType::String => {
            let values = column.str()?.iter().map(|text| text.map(str::as_bytes));
            Codes::of_bytes(column.len(), values, nulls)
        }
        DataType::Binary => Codes::of_bytes(column.len(), column.binary()?.iter(), nulls),
        DataType::Object(_) | DataType::Unknown(_) => polars_bail!(
            ComputeError: "column {:?} is of type {}, whose values can't be compared", column.name(), column.dtype()
        ),
        _ => return codes_of_encoded(column, nulls),
    };
    made.map_err(failed)
}

/// Codes of nested and rare types, by way of a text that is equal for equal rows.
fn codes_of_encoded(column: &Series, nulls: Nulls) -> PolarsResult<Codes> {
    let encoded = encode_rows_unordered(&[column.clone().into_column()])?;
    let missing = column.is_null();
    let values = encoded
        .iter()
        .zip(missing.iter())
        .map(|(row, missing)| row.filter(|_| missing != Some(true)));
    Codes::of_bytes(column.len(), values, nulls).map_err(failed)
}

fn of_words<T>(column: &ChunkedArray<T>, nulls: Nulls) -> runtime::Result<Codes>
where
    T: PolarsNumericType,
    T::Native: Word,
{
    let chunks: Vec<_> = column.downcast_iter().map(chunk).collect();
    Codes::of_words(&chunks, nulls)
}

/// A chunk as it lies in memory.
pub(crate) fn chunk<T: NativeType>(array: &PrimitiveArray<T>) -> Chunk<'_, T> {
    Chunk {
        values: array.values().as_slice(),
        validity: array
            .validity()
            .filter(|_| array.null_count() > 0)
            .map(validity),
    }
}

fn validity(bits: &Bitmap) -> Validity<'_> {
    let (bytes, offset, _) = bits.as_slice();
    Validity { bytes, offset }
}
