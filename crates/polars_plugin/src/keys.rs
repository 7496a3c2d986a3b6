//! Hashes of key columns, and numbers as integers of their order.

use dataset_rt_runtime::expr::{
    Groups, KeyType, TupleHasher, hash_bytes, hash_integer, ordered_float, ordered_integer,
};
use polars::chunked_array::ops::arity::unary_elementwise_values;
use polars::prelude::*;
use pyo3_polars::export::polars_arrow::array::{Array, PrimitiveArray};
use pyo3_polars::export::polars_arrow::bitmap::Bitmap;
use pyo3_polars::export::polars_arrow::types::NativeType;

use crate::columns::{Inputs, failed, first_nan};

/// What a null in a key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// The key is null.
    Spread,
    /// A value: so in groups.
    Value,
}

/// The seed of 64 bits: options of Python come as signed integers.
pub(crate) fn seed(option: i64) -> u64 {
    option.cast_unsigned()
}

/// Takes as many columns as an argument has off the front.
pub(crate) fn take<'a>(columns: &mut &'a [Series], count: usize) -> PolarsResult<&'a [Series]> {
    let Some((taken, rest)) = columns.split_at_checked(count) else {
        polars_bail!(ComputeError: "{count} more columns are needed, found {}", columns.len());
    };
    *columns = rest;
    Ok(taken)
}

/// All columns must have been taken.
pub(crate) fn none_left(columns: &[Series]) -> PolarsResult<()> {
    polars_ensure!(columns.is_empty(), ComputeError: "{} columns too many", columns.len());
    Ok(())
}

/// A number for the hash of each row's key, null where a value of the key is.
pub(crate) fn map_keys<V>(
    columns: &[Series],
    seed: u64,
    of_hash: impl Fn(u64) -> V::Native,
) -> PolarsResult<ChunkedArray<V>>
where
    V: PolarsNumericType,
    V::Array: ArrayFromIter<V::Native>,
{
    match columns {
        [] => polars_bail!(ComputeError: "at least one key column is needed"),
        [column] => map_key(column, seed, of_hash),
        columns => {
            let hashes = tuple_hashes(columns, seed, Nulls::Spread)?;
            Ok(unary_elementwise_values(&hashes, of_hash))
        }
    }
}

/// The hash of each row's key, null where a value of the key is.
pub(crate) fn hashes(columns: &[Series], seed: u64) -> PolarsResult<UInt64Chunked> {
    map_keys(columns, seed, |hash| hash)
}

/// The hashes of keys of which none may be null.
pub(crate) fn whole_hashes(columns: &[Series], seed: u64, what: &str) -> PolarsResult<Vec<u64>> {
    match columns {
        // Without a column of hashes, which would be copied.
        [column] if column.null_count() == 0 => {
            let mut hashes = Vec::with_capacity(column.len());
            hash_key(column, seed, &mut hashes)?;
            Ok(hashes)
        }
        columns => without_nulls(&hashes(columns, seed)?, what),
    }
}

/// The groups that the group columns make; a null is a group.
pub(crate) fn groups(inputs: &Inputs) -> PolarsResult<Option<Groups>> {
    let hashes = match inputs.group_columns() {
        [] => return Ok(None),
        [column] => {
            let missing = KeyType::Null.seed(0);
            let hashes = map_key::<UInt64Type>(column, 0, |hash| hash)?;
            let of_null = hash_bytes(&[], missing);
            hashes.iter().map(|hash| hash.unwrap_or(of_null)).collect()
        }
        columns => {
            let hashes = tuple_hashes(columns, 0, Nulls::Value)?;
            without_nulls(&hashes, "group")?
        }
    };
    Groups::new(&hashes).map(Some).map_err(failed)
}

/// The error of a null where none may be.
pub(crate) fn null_in(row: usize, what: &str) -> PolarsError {
    polars_err!(ComputeError: "the {what} of row {row} is null; fill nulls or filter them first")
}

/// The values of a column that has no nulls.
pub(crate) fn without_nulls(column: &UInt64Chunked, what: &str) -> PolarsResult<Vec<u64>> {
    if column.null_count() > 0 {
        let row = column.iter().position(|value| value.is_none());
        return Err(null_in(row.unwrap_or_default(), what));
    }
    let mut values = Vec::with_capacity(column.len());
    for chunk in column.downcast_iter() {
        values.extend_from_slice(chunk.values());
    }
    Ok(values)
}

/// Numbers and times as integers of the same order, null where they are.
pub(crate) fn ordered(column: &Series, what: &str) -> PolarsResult<UInt64Chunked> {
    let physical = match column.dtype() {
        dtype if dtype.is_temporal() => column.to_physical_repr().into_owned(),
        _ => column.clone(),
    };
    match physical.dtype() {
        DataType::UInt64 => Ok(physical.u64()?.clone()),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let floats = physical.cast(&DataType::Float64)?;
            let floats = floats.f64()?;
            if let Some(row) = first_nan(floats) {
                polars_bail!(ComputeError: "the {what} of row {row} is NaN, which has no place in an order");
            }
            Ok(unary_elementwise_values(floats, |value| {
                ordered_float(value).unwrap_or_default()
            }))
        }
        dtype if is_small_integer(dtype) || *dtype == DataType::Int64 => {
            let integers = physical.cast(&DataType::Int64)?;
            Ok(unary_elementwise_values(integers.i64()?, ordered_integer))
        }
        DataType::Null => Ok(UInt64Chunked::full_null(
            column.name().clone(),
            column.len(),
        )),
        dtype => polars_bail!(
            ComputeError: "the {what} must be an integer, a float or a time, found {dtype} in column {:?}", column.name()
        ),
    }
}

fn is_small_integer(dtype: &DataType) -> bool {
    matches!(
        dtype,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
    )
}

/// The column as one of the few types that are hashed, and which type of key it is.
fn prepared(column: &Series) -> PolarsResult<(KeyType, Series)> {
    Ok(match column.dtype() {
        DataType::Int64 | DataType::UInt64 => (KeyType::Integer, column.clone()),
        dtype if is_small_integer(dtype) => (KeyType::Integer, column.cast(&DataType::Int64)?),
        DataType::Date => {
            let days = column.to_physical_repr().cast(&DataType::Int64)?;
            (KeyType::Date, days)
        }
        DataType::String => (KeyType::Text, column.clone()),
        DataType::Categorical(..) | DataType::Enum(..) => {
            (KeyType::Text, column.cast(&DataType::String)?)
        }
        DataType::Binary => (KeyType::Binary, column.clone()),
        DataType::Boolean => (KeyType::Boolean, column.clone()),
        DataType::Null => (KeyType::Null, column.clone()),
        dtype => polars_bail!(
            ComputeError: "a key must be an integer of up to 64 bits, text, categories, bytes, Boolean or Date, \
            found {dtype} in column {:?}; cast it, or take its text", column.name()
        ),
    })
}

/// Takes the hashes of a key column.
trait TakeHashes {
    /// Those of a chunk, also of its nulls, and which are none.
    fn chunk(&mut self, hashes: impl Iterator<Item = u64>, validity: Option<&Bitmap>);
}

impl TakeHashes for Vec<u64> {
    fn chunk(&mut self, hashes: impl Iterator<Item = u64>, _validity: Option<&Bitmap>) {
        // Not `extend`, whose loop calls the iterator for each value.
        hashes.for_each(|hash| self.push(hash));
    }
}

/// Makes a column of numbers for hashes.
struct Mapped<V: NativeType, F> {
    of_hash: F,
    chunks: Vec<PrimitiveArray<V>>,
}

impl<V: NativeType, F: Fn(u64) -> V> TakeHashes for Mapped<V, F> {
    fn chunk(&mut self, hashes: impl Iterator<Item = u64>, validity: Option<&Bitmap>) {
        let mut numbers = Vec::with_capacity(hashes.size_hint().0);
        hashes.for_each(|hash| numbers.push((self.of_hash)(hash)));
        let chunk = PrimitiveArray::from_vec(numbers);
        self.chunks.push(chunk.with_validity(validity.cloned()));
    }
}

fn map_key<V>(
    column: &Series,
    seed: u64,
    of_hash: impl Fn(u64) -> V::Native,
) -> PolarsResult<ChunkedArray<V>>
where
    V: PolarsNumericType,
{
    let name = column.name().clone();
    if *column.dtype() == DataType::Null {
        return Ok(ChunkedArray::full_null(name, column.len()));
    }
    let mut mapped = Mapped {
        of_hash,
        chunks: Vec::new(),
    };
    hash_key(column, seed, &mut mapped)?;
    Ok(ChunkedArray::from_chunk_iter(name, mapped.chunks))
}

/// Hashes a key column chunk by chunk. One that `prepared` makes nothing but nulls of gives no chunk.
fn hash_key(column: &Series, seed: u64, to: &mut impl TakeHashes) -> PolarsResult<()> {
    let (kind, column) = prepared(column)?;
    let seed = kind.seed(seed);
    match column.dtype() {
        DataType::Int64 => {
            for chunk in column.i64()?.downcast_iter() {
                let words = chunk.values_iter().map(|value| value.cast_unsigned());
                to.chunk(words.map(|word| hash_integer(word, seed)), chunk.validity());
            }
        }
        DataType::UInt64 => {
            for chunk in column.u64()?.downcast_iter() {
                let words = chunk.values_iter();
                to.chunk(
                    words.map(|&word| hash_integer(word, seed)),
                    chunk.validity(),
                );
            }
        }
        DataType::String => {
            for chunk in column.str()?.downcast_iter() {
                let texts = chunk.values_iter();
                to.chunk(
                    texts.map(|text| hash_bytes(text.as_bytes(), seed)),
                    chunk.validity(),
                );
            }
        }
        DataType::Binary => {
            for chunk in column.binary()?.downcast_iter() {
                let values = chunk.values_iter();
                to.chunk(
                    values.map(|bytes| hash_bytes(bytes, seed)),
                    chunk.validity(),
                );
            }
        }
        DataType::Boolean => {
            for chunk in column.bool()?.downcast_iter() {
                let bytes = chunk.values_iter().map(|value| [u8::from(value)]);
                to.chunk(bytes.map(|byte| hash_bytes(&byte, seed)), chunk.validity());
            }
        }
        // Of no value: there are no rows, or all are null.
        _ => {}
    }
    Ok(())
}

/// A value of a key in a row.
enum Piece<'a> {
    Word([u8; 8]),
    Byte([u8; 1]),
    Bytes(&'a [u8]),
}

impl Piece<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Word(bytes) => bytes,
            Self::Byte(bytes) => bytes,
            Self::Bytes(bytes) => bytes,
        }
    }
}

type Pieces<'a> = Box<dyn Iterator<Item = Option<Piece<'a>>> + 'a>;

fn pieces(column: &Series) -> PolarsResult<Pieces<'_>> {
    Ok(match column.dtype() {
        DataType::Int64 => {
            let values = column.i64()?.iter();
            Box::new(values.map(|value| value.map(|value| Piece::Word(value.to_le_bytes()))))
        }
        DataType::UInt64 => {
            let values = column.u64()?.iter();
            Box::new(values.map(|value| value.map(|value| Piece::Word(value.to_le_bytes()))))
        }
        DataType::String => {
            let values = column.str()?.iter();
            Box::new(values.map(|text| text.map(|text| Piece::Bytes(text.as_bytes()))))
        }
        DataType::Binary => Box::new(column.binary()?.iter().map(|bytes| bytes.map(Piece::Bytes))),
        DataType::Boolean => {
            let values = column.bool()?.iter();
            Box::new(values.map(|value| value.map(|value| Piece::Byte([u8::from(value)]))))
        }
        _ => Box::new(std::iter::repeat_with(|| None).take(column.len())),
    })
}

fn tuple_hashes(columns: &[Series], seed: u64, nulls: Nulls) -> PolarsResult<UInt64Chunked> {
    let prepared: Vec<(KeyType, Series)> =
        columns.iter().map(prepared).collect::<PolarsResult<_>>()?;
    let mut iterators: Vec<(KeyType, Pieces<'_>)> = prepared
        .iter()
        .map(|(kind, column)| Ok((*kind, pieces(column)?)))
        .collect::<PolarsResult<_>>()?;
    let rows = columns.first().map_or(0, |column| column.len());
    let mut hasher = TupleHasher::new(seed);
    let hashes = (0..rows).map(|_| {
        let mut missing = false;
        for (kind, pieces) in &mut iterators {
            match pieces.next().flatten() {
                Some(piece) => hasher.push(*kind, piece.bytes()),
                None => {
                    missing |= nulls == Nulls::Spread;
                    hasher.push(KeyType::Null, &[]);
                }
            }
        }
        let hash = hasher.finish();
        (!missing).then_some(hash)
    });
    let name = columns
        .first()
        .map_or(PlSmallStr::EMPTY, |column| column.name().clone());
    Ok(UInt64Chunked::from_iter_options(name, hashes))
}
