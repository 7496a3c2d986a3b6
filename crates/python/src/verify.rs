//! `verify` and `repair`: the reports as dictionaries, which the Python layer makes objects of.

use std::path::PathBuf;

use dataset_rt_runtime::{CacheOptions, Problem, examine, repair as repair_cache};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interrupt::detached;

fn options(follow_links: bool) -> CacheOptions {
    CacheOptions {
        use_mmap: true,
        follow_links,
    }
}

fn problems<'py>(py: Python<'py>, problems: Vec<Problem>) -> PyResult<Vec<Bound<'py, PyDict>>> {
    problems
        .into_iter()
        .map(|problem| {
            let lost = problem.lost.iter().map(|range| (range.start, range.end));
            let made = PyDict::new(py);
            made.set_item("path", problem.path)?;
            made.set_item("code", problem.code)?;
            made.set_item("message", problem.message)?;
            made.set_item("offset", problem.offset)?;
            made.set_item("lost", lost.collect::<Vec<_>>())?;
            Ok(made)
        })
        .collect()
}

/// Looks at every byte of a cache.
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    path: PathBuf,
    follow_links: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let report = detached(py, |cancel| examine(&path, options(follow_links), cancel))?;
    let made = PyDict::new(py);
    made.set_item("path", report.path)?;
    made.set_item("samples", report.samples)?;
    made.set_item("readable", report.readable)?;
    made.set_item("problems", problems(py, report.problems)?)?;
    made.set_item("omitted", report.omitted)?;
    made.set_item("repairable", report.repairable)?;
    Ok(made)
}

/// Makes index and manifest again, in a new cache.
#[pyfunction]
pub(crate) fn repair(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
) -> PyResult<Bound<'_, PyDict>> {
    let report = detached(py, |cancel| {
        repair_cache(&path, &output, options(false), cancel)
    })?;
    let made = PyDict::new(py);
    made.set_item("path", report.path)?;
    made.set_item("samples", report.samples)?;
    made.set_item("problems", problems(py, report.problems)?)?;
    made.set_item("omitted", report.omitted)?;
    made.set_item("remade", report.remade)?;
    made.set_item("lost", report.lost)?;
    made.set_item("proven", report.proven)?;
    Ok(made)
}
