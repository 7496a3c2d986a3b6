//! Fingerprints of texts, and the number of a row among its duplicates.

use dataset_rt_runtime::expr::{self, MinHash, ShingleUnit, Shingles};
use polars::chunked_array::ops::arity::unary_elementwise_values;
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
use pyo3_polars::export::polars_arrow::array::{FixedSizeListArray, PrimitiveArray};
use pyo3_polars::export::polars_arrow::bitmap::Bitmap;
use pyo3_polars::export::polars_arrow::types::NativeType;
use serde::Deserialize;

use crate::columns::{Inputs, failed};
use crate::dtypes::{float64, named, uint32, uint64};
use crate::keys::{groups, hashes, none_left, ordered, seed, take, without_nulls};

#[derive(Deserialize)]
struct ContentHash {
    seed: i64,
}

#[polars_expr(output_type_func=uint64)]
fn content_hash(inputs: &[Series], kwargs: ContentHash) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?;
    let found = hashes(inputs.columns(), seed(kwargs.seed))?;
    Ok(found.with_name(inputs.name().clone()).into_series())
}

/// How texts are cut into shingles.
#[derive(Deserialize)]
struct Cut {
    seed: i64,
    unit: String,
    shingle: usize,
}

impl Cut {
    fn shingles(&self) -> PolarsResult<Shingles> {
        let unit = match self.unit.as_str() {
            "char" => ShingleUnit::Char,
            "word" => ShingleUnit::Word,
            other => {
                polars_bail!(ComputeError: "unit must be \"char\" or \"word\", found {other:?}")
            }
        };
        Shingles::new(unit, self.shingle, seed(self.seed)).map_err(failed)
    }
}

/// The texts of the only column.
fn texts(inputs: &Inputs) -> PolarsResult<StringChunked> {
    let column = &inputs.columns()[0];
    match column.dtype() {
        DataType::String => Ok(column.str()?.clone()),
        DataType::Categorical(..) | DataType::Enum(..) | DataType::Null => {
            Ok(column.cast(&DataType::String)?.str()?.clone())
        }
        dtype => polars_bail!(
            ComputeError: "shingles are cut from text, found {dtype} in column {:?}", column.name()
        ),
    }
}

#[derive(Deserialize)]
struct Signature {
    #[serde(flatten)]
    cut: Cut,
    k: u32,
}

fn signature_type(inputs: &[Field], kwargs: Signature) -> PolarsResult<Field> {
    Ok(named(
        inputs,
        DataType::Array(Box::new(DataType::UInt32), kwargs.k as usize),
    ))
}

#[polars_expr(output_type_func_with_kwargs=signature_type)]
fn minhash(inputs: &[Series], kwargs: Signature) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?.exactly(1)?;
    let texts = texts(&inputs)?;
    let mut maker =
        MinHash::new(kwargs.cut.shingles()?, kwargs.k, seed(kwargs.cut.seed)).map_err(failed)?;
    let width = kwargs.k as usize;
    let mut values = Vec::with_capacity(texts.len() * width);
    for text in texts.iter() {
        match text {
            Some(text) => maker.extend(text, &mut values),
            None => values.resize(values.len() + width, 0),
        }
    }
    Ok(array(&inputs, values, width, texts.rechunk_validity()))
}

/// Rows of as many values each.
fn array<T: NativeType>(
    inputs: &Inputs,
    values: Vec<T>,
    width: usize,
    validity: Option<Bitmap>,
) -> Series {
    let values = PrimitiveArray::from_vec(values);
    let item = ArrowField::new(
        PlSmallStr::from_static("item"),
        values.dtype().clone(),
        true,
    );
    let rows = FixedSizeListArray::new(
        ArrowDataType::FixedSizeList(Box::new(item), width),
        inputs.rows(),
        values.boxed(),
        validity,
    );
    ArrayChunked::with_chunk(inputs.name().clone(), rows).into_series()
}

#[derive(Deserialize)]
struct Bands {
    bands: usize,
}

fn bands_type(inputs: &[Field], kwargs: Bands) -> PolarsResult<Field> {
    Ok(named(
        inputs,
        DataType::Array(Box::new(DataType::UInt64), kwargs.bands),
    ))
}

/// The values of a column of signatures, row after row, how many each has, and which rows there are.
struct Signatures {
    values: UInt32Chunked,
    width: usize,
    validity: Option<Bitmap>,
}

impl Signatures {
    fn new(column: &Series) -> PolarsResult<Self> {
        let DataType::Array(inner, width) = column.dtype() else {
            return Err(Self::refused(column));
        };
        if **inner != DataType::UInt32 || *width == 0 {
            return Err(Self::refused(column));
        }
        let rows = column.array()?.rechunk();
        let values = rows.get_inner().u32()?.rechunk().into_owned();
        let validity = rows.rechunk_validity();
        if values.null_count() > 0 {
            // A null row may have nulls below it; no other has.
            let there = |row: usize| validity.as_ref().is_none_or(|bits| bits.get_bit(row));
            let missing = values
                .iter()
                .enumerate()
                .filter(|(_, value)| value.is_none());
            if let Some((place, _)) = missing.into_iter().find(|(place, _)| there(place / width)) {
                polars_bail!(ComputeError: "the signature of row {} has a null in it", place / width);
            }
        }
        Ok(Self {
            values,
            width: *width,
            validity,
        })
    }

    fn refused(column: &Series) -> PolarsError {
        polars_err!(
            ComputeError: "signatures are arrays of UInt32 as minhash gives them, found {} in column {:?}",
            column.dtype(),
            column.name()
        )
    }

    /// The signatures; what a null row holds means nothing.
    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let chunks = self
            .values
            .downcast_iter()
            .map(|chunk| chunk.values().as_slice());
        chunks.flat_map(|values| values.chunks_exact(self.width))
    }
}

#[polars_expr(output_type_func_with_kwargs=bands_type)]
fn minhash_band(inputs: &[Series], kwargs: Bands) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?.exactly(1)?;
    let signatures = Signatures::new(&inputs.columns()[0])?;
    let (width, bands) = (signatures.width, kwargs.bands);
    polars_ensure!(
        bands > 0 && width % bands == 0,
        ComputeError: "bands must divide the {width} values of a signature, found {bands}"
    );
    let mut written = Vec::new();
    let mut out = Vec::with_capacity(inputs.rows() * bands);
    for signature in signatures.iter() {
        expr::band_hashes(signature, bands, &mut written, &mut out);
    }
    Ok(array(&inputs, out, bands, signatures.validity))
}

#[derive(Deserialize)]
struct Similarity {
    elementwise: bool,
}

/// The share of equal values of two signatures.
#[polars_expr(output_type_func=float64)]
fn minhash_similarity(inputs: &[Series], kwargs: Similarity) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 2)?.exactly(2)?;
    polars_ensure!(kwargs.elementwise, ComputeError: "each row is computed by itself");
    let [left, right] = inputs.columns() else {
        polars_bail!(ComputeError: "two columns of signatures are needed");
    };
    let (missing_left, missing_right) = (left.is_null(), right.is_null());
    let (left, right) = (Signatures::new(left)?, Signatures::new(right)?);
    polars_ensure!(
        left.width == right.width,
        ComputeError: "signatures must have as many values on both sides, found {} and {}", left.width, right.width
    );
    let missing = missing_left.iter().zip(missing_right.iter());
    let shares = left
        .iter()
        .zip(right.iter())
        .zip(missing)
        .map(|((left, right), missing)| {
            let equal = left
                .iter()
                .zip(right)
                .filter(|(left, right)| left == right)
                .count();
            (missing == (Some(false), Some(false))).then_some(equal as f64 / left.len() as f64)
        });
    Ok(Float64Chunked::from_iter_options(inputs.name().clone(), shares).into_series())
}

#[polars_expr(output_type_func=uint64)]
fn simhash(inputs: &[Series], kwargs: Cut) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?.exactly(1)?;
    let mut shingles = kwargs.shingles()?;
    let texts = texts(&inputs)?;
    let found: UInt64Chunked =
        unary_elementwise_values(&texts, |text: &str| expr::simhash(&mut shingles, text));
    Ok(found.with_name(inputs.name().clone()).into_series())
}

#[derive(Deserialize)]
struct DuplicateRank {
    keys: usize,
    over: usize,
}

/// Key columns, then at most one that orders the rows.
#[polars_expr(output_type_func=uint32)]
fn duplicate_rank(inputs: &[Series], kwargs: DuplicateRank) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let mut columns = inputs.columns();
    let keys = hashes(take(&mut columns, kwargs.keys)?, 0)?;
    let ordering = columns.len().min(1);
    let order = match take(&mut columns, ordering)? {
        [column] => Some(without_nulls(&ordered(column, "order")?, "order")?),
        _ => None,
    };
    none_left(columns)?;
    let there = keys.is_not_null();
    let mut found: Vec<u64> = keys.iter().map(Option::unwrap_or_default).collect();
    if let Some(groups) = groups(&inputs)? {
        // A duplicate is one within its group.
        for (hash, code) in found.iter_mut().zip(groups.codes()) {
            *hash = expr::hash_integer(*hash, groups.hashes()[*code as usize]);
        }
    }
    let mask: Vec<bool> = there.iter().map(|there| there == Some(true)).collect();
    let ranks = expr::duplicate_ranks(&found, order.as_deref(), |row| mask[row]).map_err(failed)?;
    Ok(UInt32Chunked::from_vec(inputs.name().clone(), ranks).into_series())
}
