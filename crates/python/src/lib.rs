//! The Python extension module `dataset_rt._native`: parse arguments, let go of the interpreter, call the runtime,
//! wrap the result. No logic of its own.
#![deny(unsafe_code)]

mod arrow;
mod batch;
mod config;
mod dataset;
mod ending;
mod entries;
mod error;
mod gil_cell;
mod interrupt;
mod iter;
mod metadata;
mod payload;
mod runtime;
mod sample;
mod scan;
mod schema;
mod source;
mod verify;
mod write;

// Naming the crate links it: without this line every `_polars_plugin_*` symbol vanishes without a warning.
extern crate dataset_rt_polars as _;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::IntoPyResult;

/// Columns change hands with Polars all the time: what one frees the other uses again, instead of each going to the
/// system for fresh pages, whose clearing is a good part of the cost of a simple expression.
#[global_allocator]
static ALLOCATOR: pyo3_polars::PolarsAllocator = pyo3_polars::PolarsAllocator::new();

/// Raises `SourceNameError` unless `name` may name a cache.
#[pyfunction]
fn check_source_name(py: Python<'_>, name: &str) -> PyResult<()> {
    dataset_rt_runtime::check_source_name(name).into_py(py)
}

/// The form under which two names may be one folder on some file system.
#[pyfunction]
fn fold_source_name(name: &str) -> String {
    dataset_rt_runtime::fold_source_name(name)
}

/// Payloads of a batch that went through a pickle, as Arrow sees them.
#[pyfunction]
fn large_binary(
    py: Python<'_>,
    buffer: &Bound<'_, PyBytes>,
    offsets: &Bound<'_, PyBytes>,
) -> PyResult<arrow::NativeBinary> {
    let offsets = batch::int64_values(offsets.as_bytes());
    arrow::NativeBinary::new(py, buffer.as_unbound(), &offsets)
}

/// The module.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add(
        "build_profile",
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    )?;
    module.add_class::<arrow::NativeBinary>()?;
    module.add_class::<arrow::NativeTable>()?;
    module.add_class::<batch::NativeBatch>()?;
    module.add_class::<batch::NativeBlockTable>()?;
    module.add_class::<dataset::NativeDataset>()?;
    module.add_class::<iter::NativeBatchIterator>()?;
    module.add_class::<iter::NativeIterator>()?;
    module.add_class::<runtime::NativeRuntime>()?;
    module.add_class::<sample::CachedSample>()?;
    module.add_class::<scan::NativePayloads>()?;
    module.add_class::<scan::NativeScan>()?;
    module.add_class::<write::NativeOutcome>()?;
    module.add_function(wrap_pyfunction!(check_source_name, module)?)?;
    module.add_function(wrap_pyfunction!(fold_source_name, module)?)?;
    module.add_function(wrap_pyfunction!(large_binary, module)?)?;
    module.add_function(wrap_pyfunction!(verify::verify, module)?)?;
    module.add_function(wrap_pyfunction!(verify::repair, module)?)?;
    Ok(())
}
