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

    fn payloads(
        &self,
        cache_id: u32,
        sample_ids: &Bound<'_, PyAny>,
        max_bytes: u64,
    ) -> PyResult<NativePayloads> {
        let mut samples = Vec::new();
        for batch in import_stream(sample_ids)? {
            let ids = batch
                .columns()
                .first()
                .and_then(|column| column.as_primitive_opt::<UInt64Type>())
                .ok_or_else(|| PyValueError::new_err("sample ids must be one UInt64 column"))?;
            samples.extend(ids.values().iter().map(|&sample| SampleRef {
                cache: cache_id,
                sample,
            }));
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
                let count = self.fitting(rest)?;
                *next += count;
                self.read(rest.get(..count).unwrap_or_default()).map(Some)
            })
            .into_py(py)?;
        Ok(table.map(NativeTable::single))
    }
}

impl NativePayloads {
    /// How many of the next samples fit; at least one.
    fn fitting(&self, samples: &[SampleRef]) -> Result<usize, Error> {
        let mut bytes = 0_u64;
        for (i, &sample) in samples.iter().enumerate() {
            bytes += u64::from(self.caches.facts(sample)?.len);
            if bytes > self.max_bytes {
                return Ok(i.max(1));
            }
        }
        Ok(samples.len())
    }

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
