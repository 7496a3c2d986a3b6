//! `NativeDataset`: open caches, the active table and the sampling stream.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use dataset_rt_runtime::{BlockSizing, Cancel, Cursor, Dataset, Error, Pool, SampleRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrow::{NativeTable, import_stream};
use crate::batch::{NativeBatch, int64_values};
use crate::config::reader_options;
use crate::error::{CallError, IntoPyResult, to_py};
use crate::interrupt::detached;
use crate::iter::{NativeBatchIterator, NativeIterator};
use crate::metadata::{SampleSource, Vocabulary};
use crate::payload::{BatchPayloads, SinglePayload, release_abandoned};
use crate::sample::CachedSample;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a dataset and its iterators share.
pub(crate) struct Shared {
    pub(crate) dataset: Dataset,
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// Whether the last iterator's consumer looked at metadata: the next one's most likely does so too.
    pub(crate) wants_metadata: AtomicBool,
}

/// Open caches with their active table.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeDataset {
    shared: Arc<Shared>,
    /// Of samples that are read one by one.
    source: Py<SampleSource>,
    /// The table as the user gave it. Kept here, so that it changes in one step with what is drawn from: an interrupt
    /// can come after every call from Python. Locked only while the interpreter is held, and never for long.
    overlay: Mutex<Option<Py<PyAny>>>,
}

impl NativeDataset {
    pub(crate) fn open(
        py: Python<'_>,
        pool: &Pool,
        paths: Vec<PathBuf>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let options = reader_options(options)?;
        let pool = pool.clone();
        let dataset = detached(py, move |cancel: &Cancel| {
            Dataset::open(pool, paths, options, cancel)
        })?;
        let vocabulary = Arc::new(Vocabulary::new(py, &dataset));
        let source = SampleSource::new(py, vocabulary.clone())?;
        Ok(Self {
            shared: Arc::new(Shared {
                dataset,
                vocabulary,
                wants_metadata: AtomicBool::new(false),
            }),
            source,
            overlay: Mutex::new(None),
        })
    }

    fn dataset(&self) -> &Dataset {
        &self.shared.dataset
    }

    fn overlay(&self) -> std::sync::MutexGuard<'_, Option<Py<PyAny>>> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_one(&self, py: Python<'_>, sample: SampleRef) -> PyResult<CachedSample> {
        release_abandoned(py);
        let allocate = |len| Ok::<_, CallError>(SinglePayload::allocate(py, len)?);
        let payload = self
            .dataset()
            .read_one(sample, allocate)
            .map_err(|error| error.into_py(py))?;
        let SampleRef { cache, sample } = sample;
        let source = self.source.clone_ref(py);
        let data = payload.into_object();
        Ok(CachedSample::stored(data, source, cache, sample))
    }
}

#[pymethods]
impl NativeDataset {
    #[getter]
    fn cache_paths(&self) -> Vec<PathBuf> {
        self.dataset()
            .caches()
            .iter()
            .map(|cache| cache.path().to_owned())
            .collect()
    }

    fn cache_info<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.dataset()
            .caches()
            .iter()
            .map(|cache| {
                let manifest = cache.manifest();
                let info = PyDict::new(py);
                info.set_item("path", cache.path())?;
                info.set_item("name", &manifest.source.name)?;
                info.set_item("fingerprint", &manifest.source.fingerprint)?;
                info.set_item("created", &manifest.created)?;
                info.set_item("writer", &manifest.writer)?;
                info.set_item("samples", manifest.samples)?;
                info.set_item("payload_bytes", manifest.payload_bytes)?;
                info.set_item("stored_bytes", manifest.stored_bytes)?;
                info.set_item("codec", manifest.codec.name())?;
                info.set_item("shards", manifest.shards.len())?;
                info.set_item("identity", hex(&manifest.identity))?;
                info.set_item(
                    "fields",
                    cache
                        .fields()
                        .iter()
                        .map(|field| (field.name.clone(), field.field_type.name(), field.nullable))
                        .collect::<Vec<_>>(),
                )?;
                Ok(info)
            })
            .collect()
    }

    fn schema(&self) -> Vec<(String, &'static str, bool)> {
        self.dataset()
            .schema()
            .iter()
            .map(|field| (field.name.clone(), field.field_type.name(), field.nullable))
            .collect()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.dataset().len()).unwrap_or(usize::MAX)
    }

    #[getter]
    fn active_rows(&self) -> u64 {
        self.dataset().active_rows()
    }

    #[getter]
    fn epoch_len(&self) -> Option<u64> {
        self.dataset().epoch_len()
    }

    fn set_epoch_len(&self, py: Python<'_>, epoch_len: u64) -> PyResult<()> {
        self.dataset().set_epoch_len(epoch_len).into_py(py)
    }

    fn mode(&self) -> &'static str {
        self.dataset().mode().name()
    }

    fn iterate(&self, py: Python<'_>) -> PyResult<NativeIterator> {
        release_abandoned(py);
        let window = self.dataset().take_window().into_py(py)?;
        let stream = self.dataset().blocks(window, BlockSizing::Samples);
        NativeIterator::new(py, self.shared.clone(), stream)
    }

    fn iterate_batches(
        &self,
        py: Python<'_>,
        batch_size: u32,
        drop_last: bool,
    ) -> PyResult<NativeBatchIterator> {
        release_abandoned(py);
        let window = self.dataset().take_window().into_py(py)?;
        let size = u64::from(batch_size.max(1));
        let window = if drop_last {
            window.whole_batches(size)
        } else {
            window
        };
        let stream = self.dataset().blocks(window, BlockSizing::Batches(size));
        Ok(NativeBatchIterator::new(
            py,
            self.shared.clone(),
            stream,
            batch_size,
        ))
    }

    fn update(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        stream: u32,
        overlay: Py<PyAny>,
    ) -> PyResult<(u64, u64, u64)> {
        let batches = import_stream(table)?;
        let prepared = detached(py, |cancel| {
            self.dataset().prepare_update(&batches, stream, cancel)
        })?;
        // From here on nothing looks for signals. The state of a dataset is locked only while the interpreter is held,
        // so that no other thread has it at the moment of a fork.
        let committed = self.dataset().commit_update(prepared);
        let old = self.overlay().replace(overlay);
        drop(old);
        let report = py.detach(move || {
            drop(batches);
            committed.report()
        });
        Ok((report.kept, report.duplicated, report.dropped))
    }

    #[getter(overlay)]
    fn kept_overlay(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.overlay().as_ref().map(|overlay| overlay.clone_ref(py))
    }

    fn export(&self, py: Python<'_>) -> PyResult<NativeTable> {
        let table = self.dataset().table();
        let batches = detached(py, |cancel| self.dataset().export_table(&table, cancel))?;
        NativeTable::new(batches)
    }

    fn row(&self, py: Python<'_>, index: i64) -> PyResult<CachedSample> {
        let sample = self.dataset().active_sample(index).into_py(py)?;
        self.read_one(py, sample)
    }

    fn get_item(&self, py: Python<'_>, cache_id: u64, sample_id: u64) -> PyResult<CachedSample> {
        let sample = self.dataset().sample(cache_id, sample_id).into_py(py)?;
        self.read_one(py, sample)
    }

    fn take(&self, py: Python<'_>, rows: &Bound<'_, PyBytes>) -> PyResult<NativeBatch> {
        release_abandoned(py);
        let rows = int64_values(rows.as_bytes());
        let table = self.dataset().table();
        let plan = py
            .detach(|| {
                let samples = rows
                    .iter()
                    .map(|&row| {
                        let len = table.len();
                        let row =
                            u64::try_from(row).map_err(|_| Error::Index { index: row, len })?;
                        table.row(row)
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                self.dataset().read(samples, false)
            })
            .into_py(py)?;
        let payloads = BatchPayloads::allocate(py, plan.lengths(), rows.len())?;
        let mut block = py.detach(|| plan.fill(payloads));
        if !block.errors.is_empty() {
            let (_, error) = block.errors.swap_remove(0);
            return Err(to_py(py, error));
        }
        let payloads = block.buffers.take(py, 0)?;
        let (shared, asked) = (self.shared.clone(), Arc::default());
        Ok(NativeBatch::new(
            shared,
            block.samples,
            payloads,
            None,
            asked,
        ))
    }

    fn cursor(&self) -> (u64, Option<u64>, u32) {
        let cursor = self.dataset().cursor();
        (cursor.next, cursor.epoch_len, cursor.stream)
    }

    fn set_cursor(
        &self,
        py: Python<'_>,
        next_position: u64,
        epoch_len: Option<u64>,
        stream: u32,
    ) -> PyResult<()> {
        self.dataset()
            .set_cursor(Cursor {
                next: next_position,
                epoch_len,
                stream,
            })
            .into_py(py)
    }
}
