//! Iterators over one window: samples one by one, or batches.
//!
//! The lock of an iterator is never held while this thread waits or while code of the user may run (signal
//! handlers, finalisers): another thread of the interpreter may want the same iterator at that moment.

use std::sync::{Arc, Mutex};

use dataset_rt_runtime::{Block, BlockStream, Poll};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::batch::NativeBatch;
use crate::dataset::Shared;
use crate::error::{CallError, to_py};
use crate::interrupt::SIGNAL_INTERVAL;
use crate::payload::{BatchPayloads, SamplePayloads, release_abandoned};
use crate::sample::{BlockContext, CachedSample};

/// Refuses pickling, with what to do instead.
fn refuse_pickling() -> PyErr {
    PyTypeError::new_err(
        "an iterator can't be pickled or copied: it belongs to one pass in one process; pickle the dataset, which \
         keeps its position in the stream, and call iter() there",
    )
}

/// The block that samples are taken from.
struct Current {
    block: Block<SamplePayloads>,
    context: Arc<BlockContext>,
    next: usize,
    /// Index into `block.errors`, which are in order of position.
    next_error: usize,
}

struct SampleState {
    stream: BlockStream<SamplePayloads>,
    current: Option<Current>,
}

enum Step {
    Sample(CachedSample),
    Failed(dataset_rt_runtime::Error),
    NextBlock,
}

impl SampleState {
    fn step(&mut self) -> Step {
        let Some(current) = &mut self.current else {
            return Step::NextBlock;
        };
        let index = current.next;
        if index == current.block.samples.len() {
            // What the last block's samples were asked for tells whether gathering metadata ahead is worth it.
            self.stream.want_columns(current.context.touched());
            current.context.retire();
            self.current = None;
            return Step::NextBlock;
        }
        current.next += 1;
        let failed = current.block.errors.get_mut(current.next_error);
        if let Some((at, error)) = failed
            && *at as usize == index
        {
            current.next_error += 1;
            let placeholder = dataset_rt_runtime::Error::Internal("error taken twice".to_owned());
            return Step::Failed(std::mem::replace(error, placeholder));
        }
        let sample = current.block.samples[index];
        match current.block.buffers.take(index) {
            Some(data) => Step::Sample(CachedSample::stored(
                data,
                current.context.clone(),
                u32::try_from(index).unwrap_or(u32::MAX),
                sample.cache,
                sample.sample,
            )),
            None => Step::Failed(dataset_rt_runtime::Error::Internal(
                "a payload was delivered twice".to_owned(),
            )),
        }
    }
}

impl Drop for SampleState {
    fn drop(&mut self) {
        if let Some(current) = &self.current {
            current.context.retire();
        }
    }
}

/// One window of samples.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeIterator {
    shared: Arc<Shared>,
    state: Mutex<SampleState>,
}

impl NativeIterator {
    pub(crate) fn new(shared: Arc<Shared>, stream: BlockStream<SamplePayloads>) -> Self {
        Self {
            shared,
            state: Mutex::new(SampleState {
                stream,
                current: None,
            }),
        }
    }
}

fn poisoned<T>(_: T) -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err("the iterator broke in an earlier call")
}

#[pymethods]
impl NativeIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<CachedSample>> {
        loop {
            let mut state = self.state.lock_py_attached(py).map_err(poisoned)?;
            match state.step() {
                Step::Sample(sample) => return Ok(Some(sample)),
                Step::Failed(error) => {
                    drop(state);
                    return Err(to_py(py, error));
                }
                Step::NextBlock => {}
            }
            let poll = state
                .stream
                .poll(&mut |lengths| Ok::<_, CallError>(SamplePayloads::allocate(py, lengths)?))
                .map_err(|error| error.into_py(py))?;
            match poll {
                Poll::Ready(block) => {
                    let columns = block.columns.clone();
                    let context = BlockContext::new(self.shared.vocabulary.clone(), columns);
                    state.current = Some(Current {
                        block,
                        context,
                        next: 0,
                        next_error: 0,
                    });
                    drop(state);
                    release_abandoned(py);
                }
                Poll::Done => return Ok(None),
                Poll::Pending(waiter) => {
                    drop(state);
                    py.detach(|| waiter.wait(SIGNAL_INTERVAL));
                    py.check_signals()?;
                }
            }
        }
    }

    #[getter]
    fn remaining(&self, py: Python<'_>) -> PyResult<u64> {
        let state = self.state.lock_py_attached(py).map_err(poisoned)?;
        let current = state.current.as_ref();
        let held = current.map_or(0, |current| current.block.samples.len() - current.next);
        Ok(state.stream.remaining() + held as u64)
    }

    fn __length_hint__(&self, py: Python<'_>) -> PyResult<u64> {
        self.remaining(py)
    }

    #[allow(clippy::unused_self, reason = "the protocol wants a method")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(refuse_pickling())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<dataset_rt sample iterator, {} samples left>",
            self.remaining(py)?
        ))
    }
}

/// One window of batches.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeBatchIterator {
    shared: Arc<Shared>,
    batch_size: u64,
    stream: Mutex<BlockStream<BatchPayloads>>,
}

impl NativeBatchIterator {
    pub(crate) fn new(
        shared: Arc<Shared>,
        stream: BlockStream<BatchPayloads>,
        batch_size: u64,
    ) -> Self {
        Self {
            shared,
            batch_size,
            stream: Mutex::new(stream),
        }
    }
}

#[pymethods]
impl NativeBatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<NativeBatch>> {
        loop {
            let mut stream = self.stream.lock_py_attached(py).map_err(poisoned)?;
            let poll = stream
                .poll(&mut |lengths| Ok::<_, CallError>(BatchPayloads::allocate(py, lengths)?))
                .map_err(|error| error.into_py(py))?;
            drop(stream);
            release_abandoned(py);
            match poll {
                Poll::Ready(mut block) => {
                    if !block.errors.is_empty() {
                        let (_, error) = block.errors.swap_remove(0);
                        return Err(to_py(py, error));
                    }
                    let batch =
                        NativeBatch::new(py, self.shared.clone(), block.samples, block.buffers)?;
                    return Ok(Some(batch));
                }
                Poll::Done => return Ok(None),
                Poll::Pending(waiter) => {
                    py.detach(|| waiter.wait(SIGNAL_INTERVAL));
                    py.check_signals()?;
                }
            }
        }
    }

    fn __length_hint__(&self, py: Python<'_>) -> PyResult<u64> {
        let stream = self.stream.lock_py_attached(py).map_err(poisoned)?;
        Ok(stream.remaining().div_ceil(self.batch_size))
    }

    #[allow(clippy::unused_self, reason = "the protocol wants a method")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(refuse_pickling())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<dataset_rt batch iterator, {} batches left>",
            self.__length_hint__(py)?
        ))
    }
}
