//! `NativeScan`: metadata and payloads of caches for lazy scans, on the calling thread.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{LargeBinaryArray, RecordBatch};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use dataset_rt_runtime::{CacheOptions, Caches, Error, JoinedBuffers, SampleRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::{NativeTable, import_stream};
use crate::error::IntoPyResult;
use crate::interrupt::detached;

/// Caches that scans read. There are no worker threads.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeScan {
    caches: Caches,
}

#[pymethods]
impl NativeScan {
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        let options = CacheOptions {
            use_mmap: true,
            follow_links: false,
        };
        let caches = detached(py, |cancel| Caches::open(&paths, options, cancel))?;
        Ok(Self { caches })
    }

    fn schema(&self) -> Vec<(String, &'static str, bool)> {
        let fields = self.caches.fields().iter();
        fields
            .map(|field| (field.name.clone(), field.field_type.name(), field.nullable))
            .collect()
    }

    fn samples(&self) -> Vec<u64> {
        let caches = self.caches.caches().iter();
        caches.map(|cache| cache.samples()).collect()
    }

    fn metadata(
        &self,
        py: Python<'_>,
        cache_id: u32,
        first: u64,
        count: usize,
        fields: Vec<usize>,
    ) -> PyResult<NativeTable> {
        let sample = SampleRef {
            cache: cache_id,
            sample: first,
        };
        let batches = py
            .detach(|| self.caches.metadata(sample, count, &fields))
            .into_py(py)?;
        NativeTable::new(batches)
    }

    /// How many of the samples from `first` on have payloads that make at most `max_bytes`; at least one.
    fn fitting(
        &self,
        py: Python<'_>,
        cache_id: u32,
        first: u64,
        count: u32,
        max_bytes: u64,
    ) -> usize {
        let first = SampleRef {
            cache: cache_id,
            sample: first,
        };
        // What the index doesn't tell is an error to those who read these payloads, and to no others.
        py.detach(|| self.caches.fitting_from(first, count.into(), max_bytes))
            .unwrap_or(count as usize)
    }

    fn payloads(&self, ids: &Bound<'_, PyAny>, max_bytes: u64) -> PyResult<NativePayloads> {
        let mut samples = Vec::new();
        for batch in import_stream(ids)? {
            let column = |place: usize| {
                let column = batch.columns().get(place);
                column
                    .and_then(|column| column.as_primitive_opt::<UInt64Type>())
                    .ok_or_else(|| PyValueError::new_err("ids must be two UInt64 columns"))
            };
            for (&cache, &sample) in column(0)?.values().iter().zip(column(1)?.values()) {
                samples.push(self.caches.sample(cache, sample).into_py(ids.py())?);
            }
        }
        Ok(NativePayloads {
            caches: self.caches.clone(),
            samples,
            next: Mutex::new(0),
            max_bytes,
        })
    }
}

/// The payloads of some samples in tables of bounded size: an iterator.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativePayloads {
    caches: Caches,
    samples: Vec<SampleRef>,
    next: Mutex<usize>,
    max_bytes: u64,
}

#[pymethods]
impl NativePayloads {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<NativeTable>> {
        // Locked without the interpreter held: another thread's turn may be a long read.
        let table = py
            .detach(|| {
                let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
                let rest = self.samples.get(*next..).unwrap_or_default();
                if rest.is_empty() {
                    return Ok(None);
                }
                let count = self.caches.fitting(rest, self.max_bytes)?;
                *next += count;
                self.read(rest.get(..count).unwrap_or_default()).map(Some)
            })
            .into_py(py)?;
        Ok(table.map(NativeTable::single))
    }
}

impl NativePayloads {
    fn read(&self, samples: &[SampleRef]) -> Result<RecordBatch, Error> {
        let plan = self.caches.read(samples.to_vec())?;
        let buffers = JoinedBuffers::allocate(plan.lengths());
        let mut block = plan.fill(buffers);
        if !block.errors.is_empty() {
            return Err(block.errors.swap_remove(0).1);
        }
        let failed = |error| Error::Internal(format!("payloads as a table: {error}"));
        let (bytes, offsets) = block.buffers.into_parts();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let values = Buffer::from_vec(bytes);
        let payloads = LargeBinaryArray::try_new(offsets, values, None).map_err(failed)?;
        let field = Field::new("payload", DataType::LargeBinary, false);
        let schema = Arc::new(Schema::new(vec![field]));
        RecordBatch::try_new(schema, vec![Arc::new(payloads)]).map_err(failed)
    }
}
