//! Fingerprints of texts, and the number of a row among its duplicates.

use dataset_rt_runtime::expr::{self, MinHash, ShingleUnit, Shingles};
use polars::chunked_array::ops::arity::unary_elementwise_values;
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
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
    for text in &texts {
        match text {
            Some(text) => maker.extend(text, &mut values),
            None => values.resize(values.len() + width, 0),
        }
    }
    let values = UInt32Chunked::from_vec(PlSmallStr::EMPTY, values).into_series();
    array(&inputs, values, width, &texts.is_null())
}

/// Rows of as many values each, null where the mask says so.
fn array(
    inputs: &Inputs,
    values: Series,
    width: usize,
    missing: &BooleanChunked,
) -> PolarsResult<Series> {
    let rows = values.reshape_array(&[
        ReshapeDimension::new(i64::try_from(missing.len()).unwrap_or(i64::MAX)),
        ReshapeDimension::new(i64::try_from(width).unwrap_or(i64::MAX)),
    ])?;
    let rows = if missing.any() {
        let null = Series::full_null(PlSmallStr::EMPTY, 1, rows.dtype());
        null.zip_with(missing, &rows)?
    } else {
        rows
    };
    Ok(rows.with_name(inputs.name().clone()))
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

/// The values of a column of signatures, row after row, and how many each has.
fn signatures(column: &Series) -> PolarsResult<(UInt32Chunked, usize)> {
    match column.dtype() {
        DataType::Array(inner, width) if **inner == DataType::UInt32 => {
            let values = column.array()?.rechunk().get_inner();
            polars_ensure!(
                values.null_count() == 0,
                ComputeError: "a signature in column {:?} has nulls within", column.name()
            );
            Ok((values.u32()?.rechunk().into_owned(), *width))
        }
        dtype => polars_bail!(
            ComputeError: "signatures are arrays of UInt32 as minhash gives them, found {dtype} in column {:?}",
            column.name()
        ),
    }
}

#[polars_expr(output_type_func_with_kwargs=bands_type)]
fn minhash_band(inputs: &[Series], kwargs: Bands) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?.exactly(1)?;
    let column = &inputs.columns()[0];
    let (values, width) = signatures(column)?;
    let bands = kwargs.bands;
    polars_ensure!(
        bands > 0 && width > 0 && width % bands == 0,
        ComputeError: "bands must divide the {width} values of a signature, found {bands}"
    );
    let mut written = Vec::new();
    let mut out = Vec::with_capacity(column.len() * bands);
    for signature in values.cont_slice()?.chunks_exact(width) {
        expr::band_hashes(signature, bands, &mut written, &mut out);
    }
    let out = UInt64Chunked::from_vec(PlSmallStr::EMPTY, out).into_series();
    array(&inputs, out, bands, &column.is_null())
}

#[derive(Deserialize)]
struct Similarity {
    #[serde(rename = "elementwise")]
    _elementwise: bool,
}

/// The share of equal values of two signatures.
#[polars_expr(output_type_func=float64)]
fn minhash_similarity(inputs: &[Series], _kwargs: Similarity) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 2)?.exactly(2)?;
    let [left, right] = inputs.columns() else {
        polars_bail!(ComputeError: "two columns of signatures are needed");
    };
    let (missing_left, missing_right) = (left.is_null(), right.is_null());
    let ((left, width), (right, other)) = (signatures(left)?, signatures(right)?);
    polars_ensure!(
        width == other && width > 0,
        ComputeError: "signatures must have as many values on both sides, found {width} and {other}"
    );
    let pairs = left
        .cont_slice()?
        .chunks_exact(width)
        .zip(right.cont_slice()?.chunks_exact(width));
    let missing = missing_left.iter().zip(missing_right.iter());
    let shares = pairs.zip(missing).map(|((left, right), missing)| {
        let equal = left
            .iter()
            .zip(right)
            .filter(|(left, right)| left == right)
            .count();
        (missing == (Some(false), Some(false))).then_some(equal as f64 / width as f64)
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
    let order = match take(&mut columns, columns.len().min(1))? {
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
