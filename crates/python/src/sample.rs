//! `CachedSample`: what iteration yields.
//!
//! Behaves like a named tuple of four fields without being one: a native class is cheaper to make, and the metadata
//! dictionary is built only when somebody asks for it.

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyTuple, PyType};

use crate::metadata::SampleSource;

const FIELDS: [&str; 4] = ["data", "metadata", "cache_id", "sample_id"];

enum Fields {
    /// Read, with its metadata.
    Whole {
        metadata: Py<PyDict>,
        cache_id: u32,
        sample_id: u64,
    },
    /// Read, without its metadata so far.
    Stored {
        source: Py<SampleSource>,
        metadata: PyOnceLock<Py<PyDict>>,
        cache_id: u32,
        sample_id: u64,
    },
    /// Made from Python: by a copy, a pickle, or a collate function that puts anything in the fields.
    Given {
        metadata: Py<PyAny>,
        cache_id: Py<PyAny>,
        sample_id: Py<PyAny>,
    },
}

/// One sample: payload bytes, metadata and identity.
#[pyclass(frozen, module = "dataset_rt")]
pub(crate) struct CachedSample {
    // A member of the class, not a property: the interpreter reads those without a call.
    #[pyo3(get)]
    data: Py<PyAny>,
    fields: Fields,
}

impl CachedSample {
    /// A sample that was read with its metadata.
    #[inline]
    pub(crate) fn whole(
        data: Py<PyAny>,
        metadata: Py<PyDict>,
        cache_id: u32,
        sample_id: u64,
    ) -> Self {
        let fields = Fields::Whole {
            metadata,
            cache_id,
            sample_id,
        };
        Self { data, fields }
    }

    /// A sample whose metadata is read when it is asked for.
    #[inline]
    pub(crate) fn stored(
        data: Py<PyAny>,
        source: Py<SampleSource>,
        cache_id: u32,
        sample_id: u64,
    ) -> Self {
        let fields = Fields::Stored {
            source,
            metadata: PyOnceLock::new(),
            cache_id,
            sample_id,
        };
        Self { data, fields }
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            [
                self.data.clone_ref(py),
                self.metadata(py)?,
                self.cache_id(py).unbind(),
                self.sample_id(py).unbind(),
            ],
        )
    }
}

#[pymethods]
impl CachedSample {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    fn match_args(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, FIELDS)
    }

    #[classattr]
    #[pyo3(name = "_fields")]
    fn field_names(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, FIELDS)
    }

    #[new]
    fn new(
        data: Py<PyAny>,
        metadata: Py<PyAny>,
        cache_id: Py<PyAny>,
        sample_id: Py<PyAny>,
    ) -> Self {
        Self {
            data,
            fields: Fields::Given {
                metadata,
                cache_id,
                sample_id,
            },
        }
    }

    #[getter]
    fn metadata(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match &self.fields {
            Fields::Whole { metadata, .. } => Ok(metadata.clone_ref(py).into_any()),
            Fields::Stored {
                source,
                metadata,
                cache_id,
                sample_id,
            } => metadata
                .get_or_try_init(py, || source.get().read(py, *cache_id, *sample_id))
                .map(|dict| dict.clone_ref(py).into_any()),
            Fields::Given { metadata, .. } => Ok(metadata.clone_ref(py)),
        }
    }

    #[getter]
    fn cache_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.fields {
            Fields::Whole { cache_id, .. } | Fields::Stored { cache_id, .. } => {
                PyInt::new(py, *cache_id).into_any()
            }
            Fields::Given { cache_id, .. } => cache_id.bind(py).clone(),
        }
    }

    #[getter]
    fn sample_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.fields {
            Fields::Whole { sample_id, .. } | Fields::Stored { sample_id, .. } => {
                PyInt::new(py, *sample_id).into_any()
            }
            Fields::Given { sample_id, .. } => sample_id.bind(py).clone(),
        }
    }

    #[classmethod]
    #[pyo3(name = "_make")]
    fn make<'py>(
        class: &Bound<'py, PyType>,
        iterable: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let values = iterable.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        if values.len() != FIELDS.len() {
            return Err(PyTypeError::new_err(format!(
                "expected {} values, found {}",
                FIELDS.len(),
                values.len()
            )));
        }
        class.call1(PyTuple::new(class.py(), values)?)
    }

    #[pyo3(name = "_asdict")]
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in FIELDS.iter().zip(self.tuple(py)?) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    #[pyo3(name = "_replace", signature = (**changes))]
    fn replace(&self, py: Python<'_>, changes: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut values = self
            .tuple(py)?
            .iter()
            .map(Bound::unbind)
            .collect::<Vec<_>>();
        for (name, value) in changes.into_iter().flatten() {
            let name = name.extract::<String>()?;
            match FIELDS.iter().position(|field| *field == name) {
                Some(position) => values[position] = value.unbind(),
                None => {
                    return Err(PyValueError::new_err(format!(
                        "unexpected field {name:?}; the fields are {FIELDS:?}"
                    )));
                }
            }
        }
        let [data, metadata, cache_id, sample_id] =
            <[Py<PyAny>; 4]>::try_from(values).map_err(|_| PyValueError::new_err("four fields"))?;
        Ok(Self::new(data, metadata, cache_id, sample_id))
    }

    #[pyo3(signature = (value, /))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.tuple(py)?.call_method1("count", (value,))
    }

    #[pyo3(signature = (*arguments))]
    fn index<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.tuple(py)?.call_method1("index", arguments.clone())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.tuple(py)?.try_iter()?.into_any())
    }

    #[allow(clippy::unused_self, reason = "the protocol wants a method")]
    fn __len__(&self) -> usize {
        FIELDS.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.tuple(py)?.as_any().get_item(index)
    }

    fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.tuple(py)?.contains(value)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.tuple(py)?.hash()
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let other = match other.cast::<Self>() {
            Ok(sample) => sample.get().tuple(py)?.into_any(),
            Err(_) if other.is_instance_of::<PyTuple>() => other.clone(),
            Err(_) => return Ok(py.NotImplemented().into_bound(py)),
        };
        self.tuple(py)?.as_any().rich_compare(other, operator)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut parts = Vec::with_capacity(FIELDS.len());
        for (name, value) in FIELDS.iter().zip(self.tuple(py)?) {
            let text = match value.cast::<pyo3::types::PyBytes>() {
                // A repr is for people: a payload can be gigabytes.
                Ok(bytes) if bytes.as_bytes().len() > 40 => {
                    let head = pyo3::types::PyBytes::new(py, &bytes.as_bytes()[..24]);
                    format!("<{} bytes, {}...>", bytes.as_bytes().len(), head.repr()?)
                }
                _ => value.repr()?.to_string(),
            };
            parts.push(format!("{name}={text}"));
        }
        Ok(format!("CachedSample({})", parts.join(", ")))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type(), slf.get().tuple(slf.py())?))
    }
}
