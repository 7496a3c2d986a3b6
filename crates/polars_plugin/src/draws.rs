//! Draws: the weight or class first, then key columns.

use dataset_rt_runtime::SamplerConfig;
use dataset_rt_runtime::expr::{self, Drawing, Groups};
use polars::chunked_array::ops::arity::unary_elementwise_values;
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
use serde::Deserialize;

use crate::columns::{Inputs, failed, first_nan, numeric};
use crate::dtypes::{boolean, uint32, uint64};
use crate::keys::{groups, map_keys, none_left, null_in, seed, take, whole_hashes, without_nulls};

/// What all draws are told.
#[derive(Deserialize)]
struct Draw {
    seed: i64,
    keys: usize,
    over: usize,
}

impl Draw {
    /// Calls with what is drawn by; `keys` are the columns that are left.
    fn with<R>(
        &self,
        inputs: &Inputs,
        columns: &[Series],
        draw: impl FnOnce(&Drawing<'_>) -> PolarsResult<R>,
    ) -> PolarsResult<R> {
        polars_ensure!(
            columns.len() == self.keys,
            ComputeError: "{} key columns are needed, found {}", self.keys, columns.len()
        );
        let keys = match columns {
            [] => None,
            columns => Some(whole_hashes(columns, 0, "key")?),
        };
        let groups = groups(inputs)?;
        draw(&Drawing {
            seed: seed(self.seed),
            keys: keys.as_deref(),
            groups: groups.as_ref(),
        })
    }
}

/// The numbers of the first column, in one piece and without nulls.
fn numbers(columns: &mut &[Series], what: &str) -> PolarsResult<Float64Chunked> {
    let column = numeric(&take(columns, 1)?[0], what)?;
    if column.null_count() > 0 {
        let row = column.iter().position(|value| value.is_none());
        return Err(null_in(row.unwrap_or_default(), what));
    }
    Ok(column.rechunk().into_owned())
}

fn counts(inputs: &Inputs, counts: Vec<u32>) -> Series {
    UInt32Chunked::from_vec(inputs.name().clone(), counts).into_series()
}

#[derive(Deserialize)]
struct SampleWeighted {
    #[serde(flatten)]
    draw: Draw,
    n: u32,
}

#[polars_expr(output_type_func=boolean)]
fn sample_mask(inputs: &[Series], kwargs: SampleWeighted) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.draw.over, 1)?;
    let mut columns = inputs.columns();
    let weights = numbers(&mut columns, "weight")?;
    let weights = weights.cont_slice()?;
    let mask = kwargs.draw.with(&inputs, columns, |drawing| {
        expr::sample_without_replacement(weights, kwargs.n as usize, drawing).map_err(failed)
    })?;
    Ok(inputs.boolean(&mask))
}

#[polars_expr(output_type_func=uint32)]
fn sample_counts(inputs: &[Series], kwargs: SampleWeighted) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.draw.over, 1)?;
    let mut columns = inputs.columns();
    let weights = numbers(&mut columns, "weight")?;
    let weights = weights.cont_slice()?;
    let drawn = kwargs.draw.with(&inputs, columns, |drawing| {
        expr::sample_with_replacement(weights, kwargs.n, drawing).map_err(failed)
    })?;
    Ok(counts(&inputs, drawn))
}

#[derive(Deserialize)]
struct DrawCounts {
    seed: i64,
    stream: u32,
    replacement: bool,
    n: u32,
    over: usize,
}

#[polars_expr(output_type_func=uint32)]
fn draw_counts(inputs: &[Series], kwargs: DrawCounts) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let weights = numbers(&mut inputs.columns(), "weight")?;
    let weights = weights.cont_slice()?;
    let config = SamplerConfig {
        shuffle: true,
        replacement: kwargs.replacement,
        seed: seed(kwargs.seed),
        stream: kwargs.stream,
    };
    let groups = groups(&inputs)?;
    let drawn = expr::draw_counts(weights, kwargs.n, config, groups.as_ref()).map_err(failed)?;
    Ok(counts(&inputs, drawn))
}

#[derive(Deserialize)]
struct ShuffleKey {
    seed: i64,
    keys: usize,
}

/// Words of keys: each row by itself.
#[polars_expr(output_type_func=uint64)]
fn shuffle_key(inputs: &[Series], kwargs: ShuffleKey) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?;
    let mut columns = inputs.columns();
    let keys = take(&mut columns, kwargs.keys)?;
    none_left(columns)?;
    let seed = seed(kwargs.seed);
    let words = map_keys::<UInt64Type>(keys, 0, |hash| expr::shuffle_key(seed, hash))?;
    Ok(words.into_series())
}

/// Words of rows by their numbers, or in groups. The first column is the number of each row.
#[polars_expr(output_type_func=uint64)]
fn shuffle_rows(inputs: &[Series], kwargs: Draw) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let mut columns = inputs.columns();
    take(&mut columns, 1)?;
    let words = kwargs.with(&inputs, columns, |drawing| {
        Ok(expr::shuffle_keys(inputs.rows(), drawing))
    })?;
    Ok(UInt64Chunked::from_vec(inputs.name().clone(), words).into_series())
}

#[derive(Deserialize)]
struct PerClass {
    #[serde(flatten)]
    draw: Draw,
    labels: usize,
    m: u32,
}

/// Label columns, then key columns.
#[polars_expr(output_type_func=uint32)]
fn m_per_class(inputs: &[Series], kwargs: PerClass) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.draw.over, 1)?;
    let mut columns = inputs.columns();
    let labels = whole_hashes(take(&mut columns, kwargs.labels)?, 0, "label")?;
    let drawn = kwargs.draw.with(&inputs, columns, |drawing| {
        // A class is one group's own.
        let labels = match drawing.groups {
            None => labels,
            Some(groups) => within(&labels, groups),
        };
        let classes = Groups::new(&labels).map_err(failed)?;
        Ok(expr::per_class(&classes, kwargs.m, drawing))
    })?;
    Ok(counts(&inputs, drawn))
}

/// Hashes of labels within groups.
fn within(labels: &[u64], groups: &Groups) -> Vec<u64> {
    let pairs = labels.iter().zip(groups.codes());
    pairs
        .map(|(label, code)| expr::hash_integer(*label, groups.hashes()[*code as usize]))
        .collect()
}

/// The factor, then key columns.
#[polars_expr(output_type_func=uint32)]
fn repeat_count(inputs: &[Series], kwargs: Draw) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?;
    let mut columns = inputs.columns();
    let factors = numbers(&mut columns, "factor")?;
    let factors = factors.cont_slice()?;
    let drawn = kwargs.with(&inputs, columns, |drawing| {
        expr::repeat_counts(factors, drawing).map_err(failed)
    })?;
    Ok(counts(&inputs, drawn))
}

#[derive(Deserialize)]
struct Curriculum {
    competence: f64,
    over: usize,
}

#[polars_expr(output_type_func=boolean)]
fn curriculum_mask(inputs: &[Series], kwargs: Curriculum) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let column = crate::keys::ordered(&inputs.columns()[0], "difficulty")?;
    let values = without_nulls(&column, "difficulty")?;
    let of_rows = |values: &[u64]| expr::curriculum(values, kwargs.competence);
    let mask = match groups(&inputs)? {
        None => of_rows(&values),
        Some(groups) => expr::by_group(&values, &groups, of_rows),
    };
    let mask = mask.map_err(failed)?;
    Ok(inputs.boolean(&mask))
}

#[derive(Deserialize)]
struct LengthGroup {
    batch_size: usize,
    over: usize,
}

/// The length, then the order.
#[polars_expr(output_type_func=uint64)]
fn length_group_key(inputs: &[Series], kwargs: LengthGroup) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 2)?.exactly(2)?;
    let column = |number: usize, what| {
        without_nulls(
            &crate::keys::ordered(&inputs.columns()[number], what)?,
            what,
        )
    };
    let rows: Vec<(u64, u64)> = column(0, "length")?
        .into_iter()
        .zip(column(1, "order")?)
        .collect();
    let of_rows = |rows: &[(u64, u64)]| {
        let (lengths, order): (Vec<u64>, Vec<u64>) = rows.iter().copied().unzip();
        expr::length_group_keys(&lengths, kwargs.batch_size, &order)
    };
    let places = match groups(&inputs)? {
        None => of_rows(&rows),
        Some(groups) => expr::by_group(&rows, &groups, of_rows),
    };
    let places = places.map_err(failed)?;
    Ok(UInt64Chunked::from_vec(inputs.name().clone(), places).into_series())
}

#[derive(Deserialize)]
struct BucketEdges {
    edges: Vec<f64>,
}

#[polars_expr(output_type_func=uint32)]
fn bucket_edges(inputs: &[Series], kwargs: BucketEdges) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, 0, 1)?.exactly(1)?;
    let edges = kwargs.edges;
    expr::check_edges(&edges).map_err(failed)?;
    let values = numeric(&inputs.columns()[0], "value")?;
    if let Some(row) = first_nan(&values) {
        polars_bail!(ComputeError: "the value of row {row} is NaN, which is in no bucket");
    }
    let buckets: UInt32Chunked =
        unary_elementwise_values(&values, |value| expr::bucket_of(value, &edges));
    Ok(buckets.with_name(inputs.name().clone()).into_series())
}

#[derive(Deserialize)]
struct BucketCount {
    n: u32,
    over: usize,
}

/// Nulls are in no bucket and count for none.
#[polars_expr(output_type_func=uint32)]
fn bucket_count(inputs: &[Series], kwargs: BucketCount) -> PolarsResult<Series> {
    let inputs = Inputs::new(inputs, kwargs.over, 1)?.exactly(1)?;
    let ordered = crate::keys::ordered(&inputs.columns()[0], "value")?;
    let groups = groups(&inputs)?;
    if ordered.null_count() == 0 && groups.is_none() {
        let values = without_nulls(&ordered, "value")?;
        return Ok(counts(
            &inputs,
            expr::buckets(&values, kwargs.n).map_err(failed)?,
        ));
    }
    let values: Vec<Option<u64>> = ordered.iter().collect();
    let of_rows = |values: &[Option<u64>]| -> dataset_rt_runtime::Result<Vec<Option<u32>>> {
        let there: Vec<u64> = values.iter().copied().flatten().collect();
        let mut buckets = expr::buckets(&there, kwargs.n)?.into_iter();
        Ok(values
            .iter()
            .map(|value| value.and_then(|_| buckets.next()))
            .collect())
    };
    let buckets: Vec<Option<u32>> = match groups {
        None => of_rows(&values),
        Some(groups) => expr::by_group(&values, &groups, of_rows),
    }
    .map_err(failed)?;
    Ok(UInt32Chunked::from_iter_options(inputs.name().clone(), buckets.into_iter()).into_series())
}
