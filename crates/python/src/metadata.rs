//! Metadata dictionaries: stored values as Python objects.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use dataset_rt_format::Value;
use dataset_rt_runtime::{BlockColumns, Cache, Dataset};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::error::CallError;

/// What turns stored values into Python objects for one dataset: the caches, their interned keys, and recent strings.
pub(crate) struct Vocabulary {
    caches: Vec<CacheKeys>,
    strings: Mutex<Vec<Option<KeptString>>>,
}

struct CacheKeys {
    cache: Arc<Cache>,
    /// In the order of the cache's own fields.
    keys: Vec<Key>,
}

struct Key {
    name: Py<PyString>,
    /// Place of the field in the dataset's schema, by which gathered columns go.
    column: usize,
}

type KeptString = (Box<str>, Py<PyString>);

/// Slots for recent strings; a power of two.
const STRING_SLOTS: usize = 512;
/// Longer strings are not worth keeping: they seldom repeat, and comparing them costs.
const MAX_KEPT_STRING: usize = 48;

impl Vocabulary {
    pub(crate) fn new(py: Python<'_>, dataset: &Dataset) -> Self {
        let caches = (0..).zip(dataset.caches()).map(|(id, cache)| {
            let mut columns = vec![usize::MAX; cache.fields().len()];
            for (column, own) in dataset.cache_fields(id).iter().enumerate() {
                if let Some(slot) = own.and_then(|own| columns.get_mut(own)) {
                    *slot = column;
                }
            }
            let keys = cache.fields().iter().zip(columns);
            let keys = keys.map(|(field, column)| Key {
                name: PyString::intern(py, &field.name).unbind(),
                column,
            });
            CacheKeys {
                cache: cache.clone(),
                keys: keys.collect(),
            }
        });
        Self {
            caches: caches.collect(),
            strings: Mutex::new((0..STRING_SLOTS).map(|_| None).collect()),
        }
    }

    /// The metadata of a sample, out of the cache itself.
    pub(crate) fn read(&self, py: Python<'_>, cache: u32, sample: u64) -> PyResult<Py<PyDict>> {
        let CacheKeys { cache, keys } = &self.caches[cache as usize];
        let dict = PyDict::new(py);
        let mut keys = keys.iter();
        let put = |_, value: Value<'_>| {
            let Some(key) = keys.next() else {
                return Ok(());
            };
            let object = self.object(py, value)?;
            Ok::<_, CallError>(dict.set_item(key.name.bind(py), object)?)
        };
        cache
            .values(sample, put)
            .map_err(|error| error.into_py(py))?;
        Ok(dict.unbind())
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

    #[inline]
    fn object<'py>(&self, py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            Value::Null => py.None().into_bound(py),
            Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
            Value::Int64(value) => PyInt::new(py, value).into_any(),
            Value::Float64(value) => PyFloat::new(py, value).into_any(),
            Value::Utf8(value) => self.string(py, value).into_any(),
        })
    }
}

/// The gathered metadata of one block. Reference counts of Python objects cost a fraction of an `Arc`'s, and one is
/// taken a sample.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct BlockMetadata {
    vocabulary: Arc<Vocabulary>,
    columns: BlockColumns,
    /// The different texts of each column, where they are few.
    texts: Vec<Vec<PyOnceLock<Py<PyString>>>>,
}

impl BlockMetadata {
    pub(crate) fn new(
        py: Python<'_>,
        vocabulary: Arc<Vocabulary>,
        columns: BlockColumns,
    ) -> PyResult<Py<Self>> {
        let texts = columns
            .distinct_texts()
            .map(|texts| (0..texts).map(|_| PyOnceLock::new()).collect())
            .collect();
        let block = Self {
            vocabulary,
            columns,
            texts,
        };
        Py::new(py, block)
    }

    /// The metadata of a row of the block, whose sample is in `cache`. `None`: it is not all there.
    #[inline]
    pub(crate) fn dict(
        &self,
        py: Python<'_>,
        cache: u32,
        row: usize,
    ) -> PyResult<Option<Py<PyDict>>> {
        let dict = PyDict::new(py);
        for key in &self.vocabulary.caches[cache as usize].keys {
            let Some(value) = self.columns.value(row, key.column) else {
                return Ok(None);
            };
            let name = key.name.bind(py);
            match (value, self.text(row, key.column)) {
                (Value::Utf8(text), Some(object)) => {
                    let make = || self.vocabulary.string(py, text).unbind();
                    dict.set_item(name, object.get_or_init(py, make))?;
                }
                (value, _) => dict.set_item(name, self.vocabulary.object(py, value)?)?,
            }
        }
        Ok(Some(dict.unbind()))
    }

    fn text(&self, row: usize, column: usize) -> Option<&PyOnceLock<Py<PyString>>> {
        let texts = self.texts.get(column).filter(|texts| !texts.is_empty())?;
        texts.get(self.columns.text_number(row, column)?)
    }
}

/// What samples hold on to whose metadata was not asked for yet: they read it from their cache then.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct SampleSource {
    vocabulary: Arc<Vocabulary>,
    asked: AtomicU32,
}

impl SampleSource {
    pub(crate) fn new(py: Python<'_>, vocabulary: Arc<Vocabulary>) -> PyResult<Py<Self>> {
        let asked = AtomicU32::new(0);
        Py::new(py, Self { vocabulary, asked })
    }

    pub(crate) fn read(&self, py: Python<'_>, cache: u32, sample: u64) -> PyResult<Py<PyDict>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.vocabulary.read(py, cache, sample)
    }

    /// How many samples were asked for their metadata since the last call.
    pub(crate) fn take_asked(&self) -> u32 {
        self.asked.swap(0, Ordering::Relaxed)
    }
}
