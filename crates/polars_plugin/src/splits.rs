//! Splits and folds. Columns come argument by argument: the options say how many each has.

use dataset_rt_runtime::expr::{self, GroupCodes, Nulls, Shares};
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
use serde::Deserialize;

use crate::columns::{Inputs, codes, failed};
use crate::dtypes::{boolean, uint8, uint32};
use crate::keys::{
    groups, hashes, map_keys, none_left, null_in, ordered, seed, take, whole_hashes, without_nulls,
};

/// The most parts: their numbers are 8 bits wide. Python makes an Enum of them, which costs less than one that crosses
/// the boundary: there it would be a dictionary, looked up value by value on the other side.
const MOST_PARTS: usize = 255;

fn shares(of_parts: &[f64]) -> PolarsResult<Shares> {
    polars_ensure!(
        of_parts.len() <= MOST_PARTS,
        ComputeError: "a split has at most {MOST_PARTS} parts, found {}", of_parts.len()
    );
    Shares::new(of_parts).map_err(failed)
}

/// A number of a part, which are at most 255.
fn byte(part: u32) -> u8 {
    (part & 0xFF) as u8
}

fn bytes(inputs: &Inputs, parts: &[u32]) -> Series {
    let parts = parts.iter().copied().map(byte).collect();
    UInt8Chunked::from_vec(inputs.name().clone(), parts).into_series()
}

#[derive(Deserialize)]
struct HashSplit {
    shares: Vec<f64>,
    seed: i64,
    keys: usize,
}

/// Key columns, then group columns.
#[polars_expr(output_type_func=uint8)]
fn hash_split(inputs: &[Series], kwargs: HashSplit) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?;
    let shares = shares(&kwargs.shares)?;
    let (keys, seed) = (kwargs.keys, seed(kwargs.seed));
    let parts = match *shares.reached() {
        // The usual splits, in two and three, without a loop for each row.
        [second] => by_hash::<UInt8Type>(&inputs, keys, seed, |hash| u8::from(hash >= second)),
        [second, third] => by_hash::<UInt8Type>(&inputs, keys, seed, |hash| {
            u8::from(hash >= second) + u8::from(hash >= third)
        }),
        _ => by_hash::<UInt8Type>(&inputs, keys, seed, |hash| byte(shares.part(hash))),
    };
    Ok(parts?.into_series())
}

#[derive(Deserialize)]
struct HashFold {
    seed: i64,
    keys: usize,
    k: u32,
}

/// Key columns, then group columns.
#[polars_expr(output_type_func=uint32)]
fn hash_fold(inputs: &[Series], kwargs: HashFold) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?;
    let folds = by_hash::<UInt32Type>(&inputs, kwargs.keys, seed(kwargs.seed), |hash| {
        expr::fold(hash, kwargs.k)
    })?;
    Ok(folds.into_series())
}

/// A number for the hash of each row's group, or of its key where there is no group.
fn by_hash<V>(
    inputs: &Inputs,
    keys: usize,
    seed: u64,
    of_hash: impl Fn(u64) -> V::Native,
) -> PolarsResult<ChunkedArray<V>>
where
    V: PolarsNumericType,
    V::Array: ArrayFromIter<V::Native>,
{
    let mut columns = inputs.columns();
    let keys = take(&mut columns, keys)?;
    let mut parts = if columns.is_empty() {
        map_keys::<V>(keys, seed, of_hash)?
    } else {
        let by_group = hashes(columns, seed)?;
        let all = if by_group.null_count() == 0 {
            by_group
        } else {
            by_group.zip_with(&by_group.is_not_null(), &hashes(keys, seed)?)?
        };
        polars::chunked_array::ops::arity::unary_elementwise_values(&all, of_hash)
    };
    parts.rename(inputs.name().clone());
    Ok(parts)
}

/// How many columns label, key and group have, in this order.
#[derive(Deserialize)]
struct Stratified {
    seed: i64,
    labels: usize,
    keys: usize,
    groups: usize,
    over: usize,
}

/// Classes and keys, or classes and groups, to parts.
type Stratify = fn(&GroupCodes, &[u64], &Shares) -> dataset_rt_runtime::Result<Vec<u32>>;

/// The classes that label columns make, each known by the hash of its label. Numbers of labels are quicker to find than
/// hashes of all rows, so only one row of each class is hashed.
fn classes(labels: &[Series], seed: u64) -> PolarsResult<GroupCodes> {
    // Says which types may be labels.
    let none: Vec<Series> = labels.iter().map(Series::clear).collect();
    whole_hashes(&none, seed, "label")?;
    let codes = codes(labels, Nulls::NoClass)?;
    if let Some(row) = codes.first_without() {
        return Err(null_in(row, "label"));
    }
    let first_rows = codes.first_rows();
    // Fewer than 2^32, as all that is coded.
    let row_number = |&row: &usize| IdxSize::try_from(row).unwrap_or(IdxSize::MAX);
    let rows = first_rows.iter().flatten().map(row_number).collect();
    let rows = IdxCa::from_vec(PlSmallStr::EMPTY, rows);
    let firsts = labels.iter().map(|label| label.take(&rows));
    let firsts = firsts.collect::<PolarsResult<Vec<_>>>()?;
    let mut hashes = whole_hashes(&firsts, seed, "label")?.into_iter();
    let of_codes = first_rows
        .iter()
        .map(|row| row.and_then(|_| hashes.next()).unwrap_or_default())
        .collect();
    GroupCodes::of_codes(codes, of_codes).map_err(failed)
}

impl Stratified {
    fn parts(&self, inputs: &Inputs, shares: &Shares) -> PolarsResult<Vec<u32>> {
        let seed = seed(self.seed);
        let mut columns = inputs.columns();
        let labels = take(&mut columns, self.labels)?;
        let keys = whole_hashes(take(&mut columns, self.keys)?, seed, "key")?;
        let group = take(&mut columns, self.groups)?;
        none_left(columns)?;
        let over = groups(inputs)?;
        let (units, stratify): (Vec<u64>, Stratify) = if group.is_empty() {
            (keys, expr::stratified)
        } else {
            // A row without a group is a group of its own, which goes by its key.
            let own = hashes(group, seed)?;
            let units = own.iter().zip(keys).map(|(own, key)| own.unwrap_or(key));
            (units.collect(), expr::stratified_groups)
        };
        let Some(over) = over else {
            return stratify(&classes(labels, seed)?, &units, shares).map_err(failed);
        };
        let labels = whole_hashes(labels, seed, "label")?;
        let rows: Vec<(u64, u64)> = labels.into_iter().zip(units).collect();
        expr::by_group(&rows, &over, |rows| {
            let (labels, units): (Vec<u64>, Vec<u64>) = rows.iter().copied().unzip();
            stratify(&GroupCodes::new(&labels)?, &units, shares)
        })
        .map_err(failed)
    }
}

/// Computes a column group by group, or at once where there are none.
fn in_groups<T: Copy, R: Copy + Default>(
    rows: &[T],
    groups: Option<&expr::Groups>,
    mut of_rows: impl FnMut(&[T]) -> dataset_rt_runtime::Result<Vec<R>>,
) -> PolarsResult<Vec<R>> {
    match groups {
        None => of_rows(rows),
        Some(groups) => expr::by_group(rows, groups, of_rows),
    }
    .map_err(failed)
}

#[derive(Deserialize)]
struct StratifiedSplit {
    shares: Vec<f64>,
    #[serde(flatten)]
    columns: Stratified,
}

#[polars_expr(output_type_func=uint8)]
fn stratified_split(inputs: &[Series], kwargs: StratifiedSplit) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.columns.over, 2)?;
    let parts = kwargs.columns.parts(&inputs, &shares(&kwargs.shares)?)?;
    Ok(bytes(&inputs, &parts))
}

#[derive(Deserialize)]
struct StratifiedFold {
    #[serde(flatten)]
    columns: Stratified,
    k: u32,
}

#[polars_expr(output_type_func=uint32)]
fn stratified_fold(inputs: &[Series], kwargs: StratifiedFold) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.columns.over, 2)?;
    let shares = Shares::equal(kwargs.k).map_err(failed)?;
    let folds = kwargs.columns.parts(&inputs, &shares)?;
    Ok(UInt32Chunked::from_vec(inputs.name().clone(), folds).into_series())
}

#[derive(Deserialize)]
struct TimeSplit {
    shares: Vec<f64>,
    over: usize,
}

#[polars_expr(output_type_func=uint8)]
fn time_split(inputs: &[Series], kwargs: TimeSplit) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let shares = shares(&kwargs.shares)?;
    let times = without_nulls(&ordered(&inputs.columns()[0], "time")?, "time")?;
    let parts = in_groups(&times, groups(&inputs)?.as_ref(), |times| {
        Ok(expr::by_rank(times, &shares))
    })?;
    Ok(bytes(&inputs, &parts))
}

#[derive(Deserialize)]
struct SplitLeaks {
    keys: usize,
    over: usize,
}

/// The split, then key columns.
#[polars_expr(output_type_func=boolean)]
fn split_leaks(inputs: &[Series], kwargs: SplitLeaks) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 2)?;
    let mut columns = inputs.columns();
    let parts = hashes(take(&mut columns, 1)?, 0)?;
    let keys = hashes(take(&mut columns, kwargs.keys)?, 0)?;
    none_left(columns)?;
    let rows: Vec<(Option<u64>, Option<u64>)> = parts.iter().zip(keys.iter()).collect();
    let mask = in_groups(&rows, groups(&inputs)?.as_ref(), |rows| {
        let parts: Vec<u64> = rows.iter().map(|row| row.0.unwrap_or_default()).collect();
        let keys: Vec<u64> = rows.iter().map(|row| row.1.unwrap_or_default()).collect();
        Ok(expr::leaks(&parts, &keys, |row| {
            rows[row].0.is_some() && rows[row].1.is_some()
        }))
    })?;
    Ok(inputs.boolean(&mask))
}
