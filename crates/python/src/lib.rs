//! The Python extension module `dataset_rt._native`.
extern crate dataset_rt_polars as _;
use pyo3::prelude::*;

/// The module.
#[pymodule(gil_used = false)]
fn _native(_m: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
