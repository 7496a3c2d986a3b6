//! Iterators over one window: samples one by one, or batches.
//!
//! The state of an iterator is never borrowed while this thread waits or while code of the user may run (signal
//! handlers, finalisers): another thread of the interpreter may want the same iterator at that moment.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dataset_rt_runtime::{Block, BlockStream, Poll, SampleRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::batch::{Asked, NativeBatch, NativeBlockTable};
use crate::dataset::Shared;
use crate::error::{CallError, to_py};
use crate::gil_cell::GilCell;
use crate::interrupt::SIGNAL_INTERVAL;
use crate::metadata::{BlockMetadata, SampleSource};
use crate::payload::{BatchPayloads, SamplePayloads, keep_freed_memory, release_abandoned};
use crate::sample::CachedSample;

/// Refuses pickling, with what to do instead.
fn refuse_pickling() -> PyErr {
    PyTypeError::new_err(
        "an iterator can't be pickled or copied: it belongs to one pass in one process; pickle the dataset, which \
         keeps its position in the stream, and call iter() there",
    )
}

/// In blocks that come with their metadata, one sample in so many is delivered without: whether it is asked for it
/// tells whether gathering is still worth it. The first of a block always is.
const PROBE: usize = 256;
/// So much of what earlier blocks told is kept with each further block. Consumers that take many samples before they
/// look at the first one come over as bursts.
const MEMORY: f32 = 7.0 / 8.0;
/// Share of samples asked for metadata from which on it is gathered ahead.
const WORTH_GATHERING: f32 = 0.25;

/// The block that samples are taken from.
struct Current {
    block: Block<SamplePayloads>,
    metadata: Option<Py<BlockMetadata>>,
    next: usize,
    /// Index into `block.errors`, which are in order of position.
    next_error: usize,
}

struct SampleState {
    stream: BlockStream<SamplePayloads>,
    current: Option<Current>,
    /// Samples delivered without metadata, and those of them that were asked for it, lately.
    bare: f32,
    asked: f32,
}

/// What is left to do for a sample once the lock is open.
enum Step {
    Sample {
        data: Py<PyAny>,
        sample: SampleRef,
        /// Where its metadata is: a row of a block.
        gathered: Option<(Py<BlockMetadata>, usize)>,
    },
    Failed(Box<dataset_rt_runtime::Error>),
    NextBlock,
}

impl SampleState {
    #[inline]
    fn step(&mut self, py: Python<'_>, source: &SampleSource, shared: &Shared) -> Step {
        let Some(current) = &mut self.current else {
            return Step::NextBlock;
        };
        let index = current.next;
        let Some(&sample) = current.block.samples.get(index) else {
            self.finish_block(source, shared);
            return Step::NextBlock;
        };
        current.next += 1;
        if let Some(error) = current.error_at(index) {
            return Step::Failed(error);
        }
        let Some(data) = current.block.buffers.take(index) else {
            let error = dataset_rt_runtime::Error::Internal("a payload came twice".to_owned());
            return Step::Failed(Box::new(error));
        };
        let gathered = match &current.metadata {
            Some(block) if !index.is_multiple_of(PROBE) => Some((block.clone_ref(py), index)),
            _ => None,
        };
        Step::Sample {
            data,
            sample,
            gathered,
        }
    }

    /// Looks at how much metadata was asked for, and decides whether to gather it ahead.
    #[cold]
    fn finish_block(&mut self, source: &SampleSource, shared: &Shared) {
        if let Some(current) = self.current.take() {
            let samples = current.block.samples.len();
            let bare = match current.metadata {
                Some(_) => samples.div_ceil(PROBE),
                None => samples,
            };
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            {
                self.bare = self.bare * MEMORY + bare as f32;
                self.asked = self.asked * MEMORY + source.take_asked() as f32;
            }
            let wanted = self.asked >= self.bare * WORTH_GATHERING;
            self.stream.want_columns(wanted);
            shared.wants_metadata.store(wanted, Ordering::Relaxed);
        }
    }
}

impl Current {
    #[inline]
    fn error_at(&mut self, index: usize) -> Option<Box<dataset_rt_runtime::Error>> {
        let (at, error) = self.block.errors.get_mut(self.next_error)?;
        if *at as usize != index {
            return None;
        }
        self.next_error += 1;
        let placeholder = dataset_rt_runtime::Error::Internal("error taken twice".to_owned());
        Some(Box::new(std::mem::replace(error, placeholder)))
    }
}

/// One window of samples.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeIterator {
    shared: Arc<Shared>,
    source: Py<SampleSource>,
    state: GilCell<SampleState>,
}

impl NativeIterator {
    pub(crate) fn new(
        py: Python<'_>,
        shared: Arc<Shared>,
        stream: BlockStream<SamplePayloads>,
    ) -> PyResult<Self> {
        keep_freed_memory(py);
        let source = SampleSource::new(py, shared.vocabulary.clone())?;
        stream.want_columns(shared.wants_metadata.load(Ordering::Relaxed));
        Ok(Self {
            shared,
            source,
            state: GilCell::new(SampleState {
                stream,
                current: None,
                bare: 0.0,
                asked: 0.0,
            }),
        })
    }

    /// The sample itself. Making a dictionary may run the garbage collector and with it code of the user, so no lock
    /// is held here.
    #[inline]
    fn sample(
        &self,
        py: Python<'_>,
        data: Py<PyAny>,
        sample: SampleRef,
        gathered: Option<(Py<BlockMetadata>, usize)>,
    ) -> PyResult<CachedSample> {
        let SampleRef { cache, sample } = sample;
        if let Some((block, row)) = gathered
            && let Some(metadata) = block.get().dict(py, cache, row)?
        {
            return Ok(CachedSample::whole(data, metadata, cache, sample));
        }
        let source = self.source.clone_ref(py);
        Ok(CachedSample::stored(data, source, cache, sample))
    }
}

#[pymethods]
impl NativeIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<CachedSample>> {
        loop {
            let mut state = self.state.borrow(py)?;
            match state.step(py, self.source.get(), &self.shared) {
                Step::Sample {
                    data,
                    sample,
                    gathered,
                } => {
                    drop(state);
                    return self.sample(py, data, sample, gathered).map(Some);
                }
                Step::Failed(error) => {
                    drop(state);
                    return Err(to_py(py, *error));
                }
                Step::NextBlock => {}
            }
            let poll = state
                .stream
                .poll(&mut |lengths| Ok::<_, CallError>(SamplePayloads::allocate(py, lengths)?))
                .map_err(|error| error.into_py(py))?;
            match poll {
                Poll::Ready(mut block) => {
                    let columns = block.columns.take();
                    let vocabulary = || self.shared.vocabulary.clone();
                    let metadata = columns
                        .map(|columns| BlockMetadata::new(py, vocabulary(), columns))
                        .transpose()?;
                    state.current = Some(Current {
                        block,
                        metadata,
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
        let state = self.state.borrow(py)?;
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

/// The block that batches are taken from.
struct CurrentBatches {
    block: Block<BatchPayloads>,
    table: Option<Py<NativeBlockTable>>,
    /// Batches that were taken.
    taken: usize,
}

struct BatchState {
    stream: BlockStream<BatchPayloads>,
    current: Option<CurrentBatches>,
}

/// What a block has for its consumer.
enum BatchStep {
    Batch(Box<NativeBatch>),
    Failed(Box<dataset_rt_runtime::Error>),
}

/// One window of batches.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeBatchIterator {
    shared: Arc<Shared>,
    batch_size: usize,
    asked: Arc<Asked>,
    state: GilCell<BatchState>,
}

impl NativeBatchIterator {
    pub(crate) fn new(
        py: Python<'_>,
        shared: Arc<Shared>,
        stream: BlockStream<BatchPayloads>,
        batch_size: u32,
    ) -> Self {
        keep_freed_memory(py);
        let asked = Arc::<Asked>::default();
        if shared.wants_metadata.load(Ordering::Relaxed) {
            asked.ask();
        }
        Self {
            shared,
            batch_size: (batch_size as usize).max(1),
            asked,
            state: GilCell::new(BatchState {
                stream,
                current: None,
            }),
        }
    }

    /// The next batch of a block, `None` when it has no more.
    fn step(&self, py: Python<'_>, current: &mut CurrentBatches) -> PyResult<Option<BatchStep>> {
        let first = current.taken * self.batch_size;
        let samples = current.block.samples.get(first..).unwrap_or_default();
        let samples = &samples[..samples.len().min(self.batch_size)];
        if samples.is_empty() {
            return Ok(None);
        }
        let batch = current.taken;
        current.taken += 1;
        let places = first..first + samples.len();
        let errors = &mut current.block.errors;
        let failed = errors
            .iter()
            .position(|(place, _)| places.contains(&(*place as usize)));
        if let Some(failed) = failed {
            return Ok(Some(BatchStep::Failed(Box::new(errors.remove(failed).1))));
        }
        let payloads = current.block.buffers.take(py, batch)?;
        let table = current.table.as_ref();
        Ok(Some(BatchStep::Batch(Box::new(NativeBatch::new(
            self.shared.clone(),
            samples.to_vec(),
            payloads,
            table.map(|table| (table.clone_ref(py), first)),
            self.asked.clone(),
        )))))
    }
}

#[pymethods]
impl NativeBatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<NativeBatch>> {
        let wanted = self.asked.lately();
        loop {
            let mut state = self.state.borrow(py)?;
            state.stream.want_columns(wanted);
            if let Some(current) = &mut state.current {
                match self.step(py, current)? {
                    Some(BatchStep::Batch(batch)) => return Ok(Some(*batch)),
                    Some(BatchStep::Failed(error)) => {
                        drop(state);
                        return Err(to_py(py, *error));
                    }
                    None => {
                        let spent = state.current.take();
                        drop(state);
                        drop(spent);
                        continue;
                    }
                }
            }
            let size = self.batch_size;
            let mut allocate =
                |lengths: &[u32]| Ok::<_, CallError>(BatchPayloads::allocate(py, lengths, size)?);
            let poll = state
                .stream
                .poll(&mut allocate)
                .map_err(|error| error.into_py(py))?;
            match poll {
                Poll::Ready(mut block) => {
                    let shared = || self.shared.clone();
                    let columns = block.columns.take();
                    let table = columns
                        .map(|columns| NativeBlockTable::new(py, shared(), columns))
                        .transpose()?;
                    state.current = Some(CurrentBatches {
                        block,
                        table,
                        taken: 0,
                    });
                    drop(state);
                    release_abandoned(py);
                }
                Poll::Done => {
                    drop(state);
                    self.shared.wants_metadata.store(wanted, Ordering::Relaxed);
                    return Ok(None);
                }
                Poll::Pending(waiter) => {
                    drop(state);
                    release_abandoned(py);
                    py.detach(|| waiter.wait(SIGNAL_INTERVAL));
                    py.check_signals()?;
                }
            }
        }
    }

    fn __length_hint__(&self, py: Python<'_>) -> PyResult<u64> {
        let state = self.state.borrow(py)?;
        let size = self.batch_size as u64;
        let held = state.current.as_ref().map_or(0, |current| {
            let taken = current.taken * self.batch_size;
            current.block.samples.len().saturating_sub(taken) as u64
        });
        Ok((state.stream.remaining() + held).div_ceil(size))
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
