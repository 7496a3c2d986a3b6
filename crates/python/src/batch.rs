//! Several samples at once: one payload buffer with offsets, metadata as Arrow columns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use dataset_rt_runtime::{BlockColumns, SampleRef};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};

use crate::arrow::{NativeBinary, NativeTable};
use crate::dataset::Shared;
use crate::error::IntoPyResult;
use crate::gil_cell::GilCell;
use crate::metadata::SampleSource;
use crate::sample::CachedSample;

/// Native-endian 64-bit integers out of bytes that NumPy or a pickle hands over.
#[allow(
    clippy::host_endian_bytes,
    reason = "from this machine's memory, never from the disk"
)]
pub(crate) fn int64_values(bytes: &[u8]) -> Vec<i64> {
    bytes
        .chunks_exact(8)
        .map(|chunk| {
            let mut value = [0; 8];
            value.copy_from_slice(chunk);
            i64::from_ne_bytes(value)
        })
        .collect()
}

/// Whether the consumer of an iterator looks at the metadata of its batches: then workers gather it ahead.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Batches to come that are gathered ahead, unless the metadata of one of them is asked for.
    left: AtomicU32,
}

impl Asked {
    /// So many batches in a row whose metadata nobody looks at, and it is gathered when asked for again.
    const PATIENCE: u32 = 32;

    pub(crate) fn ask(&self) {
        self.left.store(Self::PATIENCE, Ordering::Relaxed);
    }

    /// Whether metadata was asked for lately; counts as one batch.
    pub(crate) fn lately(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }
}

/// The metadata of all batches of a block, gathered together by a worker. To make a data frame of a batch's own takes a
/// good part of the time that reading the batch takes; here it is made once, and each batch is a slice of it.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeBlockTable {
    shared: Arc<Shared>,
    columns: GilCell<Option<BlockColumns>>,
    table: PyOnceLock<RecordBatch>,
    frame: PyOnceLock<Py<PyAny>>,
}

impl NativeBlockTable {
    pub(crate) fn new(
        py: Python<'_>,
        shared: Arc<Shared>,
        columns: BlockColumns,
    ) -> PyResult<Py<Self>> {
        let table = Self {
            shared,
            columns: GilCell::new(Some(columns)),
            table: PyOnceLock::new(),
            frame: PyOnceLock::new(),
        };
        Py::new(py, table)
    }

    fn exported(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        let columns = self.columns.borrow(py)?.take();
        let columns = columns.ok_or_else(|| PyValueError::new_err("a table was taken twice"))?;
        self.shared.dataset.export_columns(columns).into_py(py)
    }
}

#[pymethods]
impl NativeBlockTable {
    fn table(&self, py: Python<'_>) -> PyResult<NativeTable> {
        let table = self.table.get_or_try_init(py, || self.exported(py))?;
        Ok(NativeTable::single(table.clone()))
    }

    #[getter]
    fn frame(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.frame.get(py).map(|frame| frame.clone_ref(py))
    }

    fn keep(&self, py: Python<'_>, frame: Py<PyAny>) -> Py<PyAny> {
        self.frame.get_or_init(py, || frame).clone_ref(py)
    }
}

/// Samples whose payloads lie in one buffer.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeBatch {
    shared: Arc<Shared>,
    asked: Arc<Asked>,
    samples: Vec<SampleRef>,
    /// Where the metadata was gathered ahead: a table, and the first sample's row in it.
    gathered: Option<(Py<NativeBlockTable>, usize)>,
    buffer: Py<PyBytes>,
    offsets: Vec<i64>,
    source: PyOnceLock<Py<SampleSource>>,
}

impl NativeBatch {
    /// A batch of samples and their payloads.
    pub(crate) fn new(
        shared: Arc<Shared>,
        samples: Vec<SampleRef>,
        (buffer, offsets): (Py<PyBytes>, Vec<i64>),
        gathered: Option<(Py<NativeBlockTable>, usize)>,
        asked: Arc<Asked>,
    ) -> Self {
        Self {
            shared,
            asked,
            samples,
            gathered,
            buffer,
            offsets,
            source: PyOnceLock::new(),
        }
    }

    fn range(&self, index: usize) -> PyResult<std::ops::Range<usize>> {
        let bounds = self.offsets.get(index).zip(self.offsets.get(index + 1));
        bounds
            .and_then(|(start, end)| {
                Some(usize::try_from(*start).ok()?..usize::try_from(*end).ok()?)
            })
            .ok_or_else(|| {
                PyIndexError::new_err(format!(
                    "index {index} is out of range for {} samples",
                    self.samples.len()
                ))
            })
    }

    fn ids(&self, name: &str, id: impl Fn(&SampleRef) -> u64) -> PyResult<NativeTable> {
        let ids = UInt64Array::from_iter_values(self.samples.iter().map(id));
        let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::UInt64, false)]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(ids)])
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(NativeTable::single(batch))
    }
}

#[pymethods]
impl NativeBatch {
    fn __len__(&self) -> usize {
        self.samples.len()
    }

    #[getter]
    fn buffer(&self, py: Python<'_>) -> Py<PyBytes> {
        self.buffer.clone_ref(py)
    }

    #[getter]
    #[allow(
        clippy::host_endian_bytes,
        reason = "for NumPy on this machine, never for the disk"
    )]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.offsets.len() * 8, |bytes| {
            for (slot, offset) in bytes.chunks_exact_mut(8).zip(&self.offsets) {
                slot.copy_from_slice(&offset.to_ne_bytes());
            }
            Ok(())
        })
    }

    fn payload<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyBytes>> {
        let range = self.range(index)?;
        Ok(PyBytes::new(py, &self.buffer.bind(py).as_bytes()[range]))
    }

    fn payloads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let content = self.buffer.bind(py).as_bytes();
        let list = PyList::empty(py);
        for index in 0..self.samples.len() {
            list.append(PyBytes::new(py, &content[self.range(index)?]))?;
        }
        Ok(list)
    }

    fn binary(&self, py: Python<'_>) -> PyResult<NativeBinary> {
        NativeBinary::new(py, &self.buffer, &self.offsets)
    }

    fn sample(&self, py: Python<'_>, index: usize) -> PyResult<CachedSample> {
        let data = self.payload(py, index)?.into_any().unbind();
        let vocabulary = || self.shared.vocabulary.clone();
        let source = self
            .source
            .get_or_try_init(py, || SampleSource::new(py, vocabulary()))?;
        let SampleRef { cache, sample } = self.samples[index];
        Ok(CachedSample::stored(
            data,
            source.clone_ref(py),
            cache,
            sample,
        ))
    }

    fn cache_ids(&self) -> PyResult<NativeTable> {
        self.ids("cache_id", |sample| u64::from(sample.cache))
    }

    fn sample_ids(&self) -> PyResult<NativeTable> {
        self.ids("sample_id", |sample| sample.sample)
    }

    fn gathered(&self, py: Python<'_>) -> Option<(Py<NativeBlockTable>, usize)> {
        self.asked.ask();
        self.shared.wants_metadata.store(true, Ordering::Relaxed);
        let (table, first) = self.gathered.as_ref()?;
        Some((table.clone_ref(py), *first))
    }

    fn metadata(&self, py: Python<'_>) -> PyResult<NativeTable> {
        let dataset = &self.shared.dataset;
        let gathered = py.detach(|| dataset.export_samples(&self.samples));
        Ok(NativeTable::single(gathered.into_py(py)?))
    }
}
