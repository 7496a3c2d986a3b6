//! Long native work on the calling thread that Ctrl-C can end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dataset_rt_runtime::{Cancel, Error};
use pyo3::prelude::*;

use crate::error::CallError;

/// How often a wait looks for signals.
pub(crate) const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` without holding the interpreter. Between its steps the work checks its [`Cancel`], which attaches for a
/// moment to run signal handlers; what a handler raises ends the work and is raised here.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancel) -> Result<T, Error> + Send,
) -> PyResult<T> {
    interruptible(py, work).map_err(|error| error.into_py(py))
}

/// As [`detached`], but tells what a signal handler raised from what went wrong.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancel) -> Result<T, Error> + Send,
) -> Result<T, CallError> {
    let raised = Arc::new(Mutex::new(None::<PyErr>));
    let seen = raised.clone();
    let cancel = Cancel::with_probe(move || {
        Python::attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(error) => {
                if let Ok(mut seen) = seen.lock() {
                    *seen = Some(error);
                }
                true
            }
        })
    });
    py.detach(|| work(&cancel)).map_err(|error| {
        let raised = raised.lock().ok().and_then(|mut raised| raised.take());
        raised.map_or(CallError::Runtime(error), CallError::Python)
    })
}
