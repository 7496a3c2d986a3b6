//! `CachedSample`: what iteration yields.
//!
//! Behaves like a named tuple of four fields without being one: a native class is cheaper to make, and the metadata
//! dictionary is built only when somebody asks for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dataset_rt_format::Value;
use dataset_rt_runtime::{Cache, GatheredColumns};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::error::IntoPyResult;

const FIELDS: [&str; 4] = ["data", "metadata", "cache_id", "sample_id"];

/// What turns stored values into Python objects for one dataset: the caches, their interned keys, and recent strings.
pub(crate) struct Vocabulary {
    caches: Vec<Arc<Cache>>,
    /// Keys per cache, in the order of its fields.
    keys: Vec<Vec<Py<PyString>>>,
    strings: Mutex<Vec<Option<KeptString>>>,
}

type KeptString = (Box<str>, Py<PyString>);

/// Slots for recent strings; a power of two.
const STRING_SLOTS: usize = 512;
/// Longer strings are not worth keeping: they seldom repeat, and comparing them costs.
const MAX_KEPT_STRING: usize = 48;

impl Vocabulary {
    pub(crate) fn new(py: Python<'_>, caches: &[Arc<Cache>]) -> Self {
        let keys = caches
            .iter()
            .map(|cache| {
                let fields = cache.fields();
                fields
                    .iter()
                    .map(|field| PyString::intern(py, &field.name).unbind())
                    .collect()
            })
            .collect();
        let strings = Mutex::new((0..STRING_SLOTS).map(|_| None).collect());
        Self {
            caches: caches.to_vec(),
            keys,
            strings,
        }
    }

    fn string<'py>(&self, py: Python<'py>, text: &str) -> Bound<'py, PyString> {
        if text.len() > MAX_KEPT_STRING {
            return PyString::new(py, text);
        }
        // FNV-1a: short strings, and a clash costs no more than a new object.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let slot = usize::try_from((hash ^ (hash >> 32)) & (STRING_SLOTS as u64 - 1)).unwrap_or(0);
        // Never wait here: the interpreter is held.
        let Ok(mut strings) = self.strings.try_lock() else {
            return PyString::new(py, text);
        };
        match &mut strings[slot] {
            Some((kept, object)) if **kept == *text => object.bind(py).clone(),
            entry => {
                let made = PyString::new(py, text);
                let replaced = entry.replace((text.into(), made.clone().unbind()));
                drop(strings);
                drop(replaced);
                made
            }
        }
    }

    fn value<'py>(&self, py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            Value::Null => py.None().into_bound(py),
            Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
            Value::Int64(value) => PyInt::new(py, value).into_any(),
            Value::Float64(value) => PyFloat::new(py, value).into_any(),
            Value::Utf8(value) => self.string(py, value).into_any(),
        })
    }
}

/// What the samples of one block share.
pub(crate) struct BlockContext {
    vocabulary: Arc<Vocabulary>,
    /// The block's metadata, gathered by a worker. Taken away when the iterator moves on, so that a sample that is
    /// kept doesn't keep the metadata of its whole block; after that values come from the cache itself.
    columns: Mutex<Option<Arc<GatheredColumns>>>,
    touched: AtomicBool,
}

impl BlockContext {
    pub(crate) fn new(
        vocabulary: Arc<Vocabulary>,
        columns: Option<Arc<GatheredColumns>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            vocabulary,
            columns: Mutex::new(columns),
            touched: AtomicBool::new(false),
        })
    }

    /// Whether the metadata of any sample was asked for.
    pub(crate) fn touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }

    /// Gives up the gathered metadata.
    pub(crate) fn retire(&self) {
        if let Ok(mut columns) = self.columns.lock() {
            *columns = None;
        }
    }

    fn metadata(&self, py: Python<'_>, stored: &Stored) -> PyResult<Py<PyDict>> {
        self.touched.store(true, Ordering::Relaxed);
        let dict = PyDict::new(py);
        let cache_position = stored.cache_id as usize;
        let keys = &self.vocabulary.keys[cache_position];
        let cache = &self.vocabulary.caches[cache_position];
        // The lock is not held while objects are made: making one may run a finaliser that comes back here.
        let columns = self.columns.lock().ok().and_then(|columns| columns.clone());
        match columns {
            Some(columns) => {
                for (field, key) in keys.iter().enumerate() {
                    let value = match columns.value(stored.row as usize, field) {
                        Some(value) => value,
                        // Not gathered, since it could not be read: asking the cache says why.
                        None => cache.value(field, stored.sample_id).into_py(py)?,
                    };
                    dict.set_item(key.bind(py), self.vocabulary.value(py, value)?)?;
                }
            }
            None => {
                for (field, key) in keys.iter().enumerate() {
                    let value = cache.value(field, stored.sample_id).into_py(py)?;
                    dict.set_item(key.bind(py), self.vocabulary.value(py, value)?)?;
                }
            }
        }
        Ok(dict.unbind())
    }
}

/// A sample as it was read.
struct Stored {
    context: Arc<BlockContext>,
    /// Row in the block.
    row: u32,
    cache_id: u32,
    sample_id: u64,
    metadata: PyOnceLock<Py<PyDict>>,
}

enum Fields {
    Stored(Stored),
    /// Made from Python: by a copy, a pickle, or a collate function that puts anything in the fields.
    Given {
        metadata: Py<PyAny>,
        cache_id: Py<PyAny>,
        sample_id: Py<PyAny>,
    },
}

/// One sample: payload bytes, metadata and identity.
#[pyclass(frozen, module = "dataset_rt", freelist = 1024)]
pub(crate) struct CachedSample {
    data: Py<PyAny>,
    fields: Fields,
}

impl CachedSample {
    /// A sample that was read from a cache.
    #[inline]
    pub(crate) fn stored(
        data: Py<PyAny>,
        context: Arc<BlockContext>,
        row: u32,
        cache_id: u32,
        sample_id: u64,
    ) -> Self {
        let metadata = PyOnceLock::new();
        Self {
            data,
            fields: Fields::Stored(Stored {
                context,
                row,
                cache_id,
                sample_id,
                metadata,
            }),
        }
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            [
                self.data(py),
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
    fn data(&self, py: Python<'_>) -> Py<PyAny> {
        self.data.clone_ref(py)
    }

    #[getter]
    fn metadata(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match &self.fields {
            Fields::Stored(stored) => stored
                .metadata
                .get_or_try_init(py, || stored.context.metadata(py, stored))
                .map(|dict| dict.clone_ref(py).into_any()),
            Fields::Given { metadata, .. } => Ok(metadata.clone_ref(py)),
        }
    }

    #[getter]
    fn cache_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.fields {
            Fields::Stored(stored) => PyInt::new(py, stored.cache_id).into_any(),
            Fields::Given { cache_id, .. } => cache_id.bind(py).clone(),
        }
    }

    #[getter]
    fn sample_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.fields {
            Fields::Stored(stored) => PyInt::new(py, stored.sample_id).into_any(),
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
