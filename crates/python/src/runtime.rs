//! `NativeRuntime`: the worker pool, and what is called on it.

use std::path::PathBuf;

use dataset_rt_runtime::Pool;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dataset::NativeDataset;
use crate::ending::survive;
use crate::error::IntoPyResult;
use crate::write::{Callbacks, Job, NativeOutcome, write};

/// A fixed pool of worker threads.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeRuntime {
    pool: Pool,
}

#[pymethods]
impl NativeRuntime {
    #[new]
    fn new(py: Python<'_>, num_workers: usize) -> PyResult<Self> {
        Ok(Self {
            pool: Pool::new(num_workers).into_py(py)?,
        })
    }

    #[getter]
    fn num_workers(&self) -> usize {
        self.pool.num_workers()
    }

    fn open(
        &self,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<NativeDataset> {
        NativeDataset::open(py, &self.pool, paths, options)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "keyword arguments of the Python method"
    )]
    #[pyo3(signature = (jobs, base, options, *, create_or_reuse, on_progress, on_wait))]
    fn write(
        &self,
        py: Python<'_>,
        jobs: Vec<Job<'_>>,
        base: PathBuf,
        options: &Bound<'_, PyDict>,
        create_or_reuse: bool,
        on_progress: Option<Bound<'_, PyAny>>,
        on_wait: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<NativeOutcome>> {
        let callbacks = Callbacks {
            on_progress,
            on_wait,
        };
        survive(|| {
            write(
                py,
                &self.pool,
                &jobs,
                base,
                options,
                create_or_reuse,
                &callbacks,
            )
        })
    }
}
