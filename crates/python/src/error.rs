//! Runtime errors as exceptions of `dataset_rt.errors`: one class per kind, the parts as attributes.

use dataset_rt_format::FormatError;
use dataset_rt_runtime::{Error, Fault};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyTuple};

use crate::ending::call;

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

fn errors_module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    Ok(ERRORS
        .get_or_try_init(py, || py.import("dataset_rt.errors").map(Bound::unbind))?
        .bind(py))
}

/// An exception of `dataset_rt.errors` with a message and keyword attributes.
pub(crate) fn exception(
    py: Python<'_>,
    class: &str,
    message: &str,
    attributes: &Bound<'_, PyDict>,
) -> PyErr {
    let made = errors_module(py)
        .and_then(|module| module.getattr(class))
        .and_then(|class| call(&class, &PyTuple::new(py, [message])?, Some(attributes)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(failure) => failure,
    }
}

/// The exception for an error of the runtime. Needs the interpreter, so convert after re-attaching.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    match convert(py, error) {
        Ok(converted) | Err(converted) => converted,
    }
}

#[allow(
    clippy::too_many_lines,
    reason = "one arm per variant; splitting would hide that it is a table"
)]
fn convert(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let message = error.to_string();
    let attributes = PyDict::new(py);
    let class = match error {
        Error::Argument { argument, .. } => {
            attributes.set_item("argument", argument)?;
            "InvalidArgumentError"
        }
        Error::SourceName { name, reason } => {
            attributes.set_item("name", name)?;
            attributes.set_item("reason", reason)?;
            "SourceNameError"
        }
        Error::EmptySource { source_name } => {
            attributes.set_item("source", source_name)?;
            "EmptySourceError"
        }
        Error::Exists { path, .. } => {
            attributes.set_item("path", path)?;
            "CacheExistsError"
        }
        Error::Mismatch { path, .. } => {
            attributes.set_item("path", path)?;
            "CacheMismatchError"
        }
        Error::NotFound { path, .. } => {
            attributes.set_item("path", path)?;
            "CacheNotFoundError"
        }
        Error::Damaged {
            path,
            sample,
            offset,
            source,
        } => {
            attributes.set_item("path", path)?;
            match source {
                FormatError::VersionUnsupported { found, supported } => {
                    attributes.set_item("found", found)?;
                    attributes.set_item("supported", supported)?;
                    "CacheVersionError"
                }
                FormatError::FeatureUnsupported { features } => {
                    attributes.set_item("features", features)?;
                    "CacheFeatureError"
                }
                source => {
                    attributes.set_item("code", source.code())?;
                    attributes.set_item("offset", offset)?;
                    attributes.set_item("cache_id", sample.map(|(cache, _)| cache))?;
                    attributes.set_item("sample_id", sample.map(|(_, sample)| sample))?;
                    attributes.set_item("detail", source.to_string())?;
                    "CacheDamagedError"
                }
            }
        }
        Error::SchemaConflict {
            field,
            first,
            second,
            ..
        } => {
            attributes.set_item("field", field)?;
            attributes.set_item("first", first)?;
            attributes.set_item("second", second)?;
            "SchemaConflictError"
        }
        Error::Io { path, source, .. } => {
            attributes.set_item("errno", source.raw_os_error())?;
            attributes.set_item("path", path)?;
            "StorageError"
        }
        Error::Table {
            fault, column, row, ..
        } => {
            attributes.set_item("column", column)?;
            attributes.set_item("row", row)?;
            match fault {
                Fault::Type => "MetadataTableTypeError",
                Fault::Value => "MetadataTableError",
            }
        }
        Error::UnknownSample {
            cache_id,
            sample_id,
            ..
        } => {
            attributes.set_item("cache_id", cache_id)?;
            attributes.set_item("sample_id", sample_id)?;
            "UnknownSampleError"
        }
        Error::Index { index, len } => {
            attributes.set_item("index", index)?;
            attributes.set_item("length", len)?;
            "SampleIndexError"
        }
        Error::Interrupted => return Ok(PyKeyboardInterrupt::new_err(())),
        _ => "InternalError",
    };
    Ok(exception(py, class, &message, &attributes))
}

/// `Result` of the runtime to `PyResult`.
pub(crate) trait IntoPyResult<T> {
    /// Converts the error; needs the interpreter.
    fn into_py(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> IntoPyResult<T> for Result<T, Error> {
    fn into_py(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_py(py, error))
    }
}

/// What a call may meet that needs the interpreter and the runtime both.
pub(crate) enum CallError {
    /// An exception that is on its way already.
    Python(PyErr),
    /// An error of the runtime.
    Runtime(Error),
}

impl CallError {
    pub(crate) fn into_py(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Python(error) => error,
            Self::Runtime(error) => to_py(py, error),
        }
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<PyErr> for CallError {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}
