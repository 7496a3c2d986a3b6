//! Payloads of rows: `cache_id` and `sample_id` columns in, what the caches hold for them out.

use std::path::PathBuf;

use dataset_rt_runtime::expr::{self, Ids, Unreadable};
use dataset_rt_runtime::{Caches, PayloadFacts};
use polars::prelude::*;
use pyo3_polars::derive::polars_expr;
use serde::Deserialize;

use crate::columns::{Inputs, failed};
use crate::dtypes::{binary, string, uint32, uint64};

#[derive(Deserialize)]
struct Where {
    paths: Vec<PathBuf>,
    strict: bool,
}

/// Opened caches, and the ids of each row.
struct Rows {
    caches: Caches,
    name: PlSmallStr,
    ids: Vec<Ids>,
    unreadable: Unreadable,
}

impl Rows {
    fn new(inputs: &[Series], paths: &[PathBuf], strict: bool) -> PolarsResult<Self> {
        let inputs = Inputs::new(inputs, 0, 2)?.exactly(2)?;
        let [caches, samples] = inputs.columns() else {
            polars_bail!(ComputeError: "cache_id and sample_id are needed");
        };
        let (caches, samples) = (
            integers(caches, "cache_id")?,
            integers(samples, "sample_id")?,
        );
        let pairs = caches.i128()?.iter().zip(samples.i128()?.iter());
        let ids = pairs.map(|(cache, sample)| cache.zip(sample)).collect();
        Ok(Self {
            caches: Caches::kept(paths).map_err(failed)?,
            name: inputs.columns()[0].name().clone(),
            ids,
            unreadable: if strict {
                Unreadable::Error
            } else {
                Unreadable::Null
            },
        })
    }

    fn facts(&self) -> PolarsResult<Vec<Option<PayloadFacts>>> {
        let ids = self.ids.iter().copied();
        expr::payload_facts(&self.caches, ids, self.unreadable).map_err(failed)
    }

    fn heads(&self, n: u32) -> impl Iterator<Item = PolarsResult<Option<Vec<u8>>>> {
        let ids = self.ids.iter().copied();
        expr::payload_heads(&self.caches, ids, n, self.unreadable).map(|head| head.map_err(failed))
    }
}

fn integers(column: &Series, argument: &str) -> PolarsResult<Series> {
    match column.dtype() {
        DataType::Null => column.cast(&DataType::Int128),
        dtype if dtype.is_integer() => column.cast(&DataType::Int128),
        dtype => polars_bail!(
            ComputeError: "{argument} must be a column of integers, found {dtype} in column {:?}", column.name()
        ),
    }
}

#[polars_expr(output_type_func=uint64)]
fn payload_size(inputs: &[Series], kwargs: Where) -> PolarsResult<Series> {
    let rows = Rows::new(inputs, &kwargs.paths, kwargs.strict)?;
    let facts = rows.facts()?.into_iter();
    let sizes = facts.map(|facts| facts.map(|facts| u64::from(facts.len)));
    Ok(UInt64Chunked::from_iter_options(rows.name, sizes).into_series())
}

#[polars_expr(output_type_func=uint32)]
fn payload_crc(inputs: &[Series], kwargs: Where) -> PolarsResult<Series> {
    let rows = Rows::new(inputs, &kwargs.paths, kwargs.strict)?;
    let facts = rows.facts()?.into_iter();
    let sums = facts.map(|facts| facts.map(|facts| facts.crc));
    Ok(UInt32Chunked::from_iter_options(rows.name, sums).into_series())
}

#[derive(Deserialize)]
struct Head {
    n: u32,
    paths: Vec<PathBuf>,
    strict: bool,
}

#[polars_expr(output_type_func=binary)]
fn payload_head(inputs: &[Series], kwargs: Head) -> PolarsResult<Series> {
    let rows = Rows::new(inputs, &kwargs.paths, kwargs.strict)?;
    let mut heads = BinaryChunkedBuilder::new(rows.name.clone(), rows.ids.len());
    for head in rows.heads(kwargs.n) {
        heads.append_option(head?);
    }
    Ok(heads.finish().into_series())
}

#[polars_expr(output_type_func=string)]
fn payload_mime(inputs: &[Series], kwargs: Where) -> PolarsResult<Series> {
    let rows = Rows::new(inputs, &kwargs.paths, kwargs.strict)?;
    let mut names = StringChunkedBuilder::new(rows.name.clone(), rows.ids.len());
    for head in rows.heads(expr::HEAD_LEN) {
        names.append_option(head?.map(|head| expr::mime(&head)));
    }
    Ok(names.finish().into_series())
}

#[derive(Deserialize)]
struct Whole {
    max_bytes: u64,
    paths: Vec<PathBuf>,
    strict: bool,
}

#[polars_expr(output_type_func=binary)]
fn payload(inputs: &[Series], kwargs: Whole) -> PolarsResult<Series> {
    let rows = Rows::new(inputs, &kwargs.paths, kwargs.strict)?;
    let mut payloads = BinaryChunkedBuilder::new(rows.name.clone(), rows.ids.len());
    expr::payloads(
        &rows.caches,
        &rows.ids,
        kwargs.max_bytes,
        rows.unreadable,
        |payload| payloads.append_option(payload),
    )
    .map_err(failed)?;
    Ok(payloads.finish().into_series())
}
