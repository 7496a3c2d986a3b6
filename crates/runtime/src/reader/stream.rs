//! Blocks of samples for consumers: a window of a dataset, a list of samples, or one read at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::active::{ActiveTable, SampleRef};
use crate::error::{Error, Result};
use crate::sampler::Sampler;

use super::blocks::{BlockSource, Filled, Polled, Stream, StreamWaiter};
use super::columns::GatheredColumns;
use super::loaded::Loaded;
use super::record::Record;
use super::slots::{PayloadBuffers, Slots};
use super::texts::BlockColumns;

/// A block of samples that was read.
#[derive(Debug)]
pub struct Block<B> {
    /// Which samples, in order.
    pub samples: Vec<SampleRef>,
    /// Length of each payload in bytes; 0 for one that can't be read.
    pub lengths: Vec<u32>,
    /// The memory with the payloads.
    pub buffers: B,
    /// The samples that can't be read, by their place in the block, ascending.
    pub errors: Vec<(u32, Error)>,
    /// The metadata of all samples, when it was wanted and could be read whole.
    pub columns: Option<BlockColumns>,
}

/// A block between planning and delivery.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) samples: Vec<SampleRef>,
    pub(crate) lengths: Vec<u32>,
    /// What `lengths` speaks of; a sample with an error has an empty record.
    pub(crate) records: Vec<Record>,
    pub(crate) errors: Vec<(u32, Error)>,
    pub(crate) resident: bool,
    pub(crate) wants_columns: bool,
    pub(crate) columns: Option<BlockColumns>,
}

impl Work {
    fn into_block<B>(mut self, buffers: B) -> Block<B> {
        self.errors.sort_by_key(|(place, _)| *place);
        let Self {
            samples,
            lengths,
            errors,
            columns,
            ..
        } = self;
        Block {
            samples,
            lengths,
            buffers,
            errors,
            columns,
        }
    }
}

/// What a stream delivers.
pub(crate) enum Order {
    /// Positions of a sampler over a table.
    Drawn(Arc<ActiveTable>, Arc<Sampler>),
    /// Positions of a list.
    Listed(Arc<[SampleRef]>),
}

pub(crate) struct Source {
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) order: Order,
    /// Whether gathered texts are numbered, for consumers that make an object of each.
    pub(crate) numbers_texts: bool,
}

impl BlockSource for Source {
    type Work = Work;

    fn plan(&self, first: u64, count: u64, columns: bool) -> Work {
        let samples = match &self.order {
            Order::Drawn(table, sampler) => {
                let mut rows = vec![0; usize::try_from(count).unwrap_or(0)];
                sampler.fill(first, &mut rows);
                let mut samples = Vec::new();
                table.samples_of(&rows, &mut samples);
                samples
            }
            Order::Listed(list) => {
                let first = usize::try_from(first).unwrap_or(usize::MAX);
                let count = usize::try_from(count).unwrap_or(0);
                list.iter().skip(first).take(count).copied().collect()
            }
        };
        self.loaded.plan(samples, columns, true)
    }

    fn ahead_of(&self, position: u64) -> Option<u64> {
        match &self.order {
            Order::Drawn(_, sampler) => sampler.ahead_of(position),
            Order::Listed(_) => None,
        }
    }

    fn prepare(&self, position: u64) {
        if let Order::Drawn(_, sampler) = &self.order {
            sampler.prepare(position);
        }
    }

    fn plans_quickly(&self, first: u64, count: u64) -> bool {
        let drawn = match &self.order {
            Order::Drawn(_, sampler) => sampler.is_prepared(first, count),
            Order::Listed(_) => true,
        };
        drawn && self.loaded.is_warm()
    }

    fn lengths(work: &Work) -> &[u32] {
        &work.lengths
    }

    fn is_resident(work: &Work) -> bool {
        work.resident
    }

    fn fill(&self, work: &mut Work, buffers: &mut dyn PayloadBuffers, stop: &AtomicBool) {
        self.loaded.fill(work, buffers, Some(stop));
        if self.numbers_texts
            && let Some(columns) = &mut work.columns
        {
            columns.number_texts();
        }
    }

    fn fail(&self, work: &mut Work, message: &str) {
        fail(work, message);
    }
}

fn fail(work: &mut Work, message: &str) {
    work.errors.clear();
    for place in 0..work.samples.len() {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        work.errors
            .push((place, Error::Internal(message.to_owned())));
    }
}

impl Loaded {
    fn fill(&self, work: &mut Work, buffers: &mut dyn PayloadBuffers, stop: Option<&AtomicBool>) {
        let Work {
            lengths,
            records,
            errors,
            samples,
            ..
        } = work;
        let Some(mut slots) = Slots::new(buffers, lengths) else {
            return fail(work, "payload memory of other lengths than asked for");
        };
        self.read_records(samples, records, work.resident, &mut slots, errors, stop);
        if work.wants_columns {
            // Metadata that can't be read is an error of whoever asks for it, sample by sample.
            let columns = GatheredColumns::gather(self, samples).ok();
            work.columns = columns.map(BlockColumns::new);
        }
    }
}

/// A prefetching stream of blocks, in order.
pub struct BlockStream<B: PayloadBuffers>(Stream<Source, B>);

/// What [`BlockStream::poll`] found.
pub enum Poll<B> {
    /// The next block.
    Ready(Block<B>),
    /// The next block is not there yet: wait without holding anything, then poll again.
    Pending(Waiter),
    /// There are no more blocks.
    Done,
}

impl<B: PayloadBuffers> BlockStream<B> {
    pub(crate) fn new(stream: Stream<Source, B>) -> Self {
        Self(stream)
    }

    /// Takes the next block if it is ready, and gives memory to blocks that need it. Never waits.
    ///
    /// `allocate` makes memory for payloads of the given lengths; it may be called several times.
    ///
    /// # Errors
    /// Those of `allocate`, after which the stream may be polled again, and [`Error::Internal`].
    pub fn poll<E: From<Error>>(
        &mut self,
        allocate: &mut dyn FnMut(&[u32]) -> Result<B, E>,
    ) -> Result<Poll<B>, E> {
        Ok(match self.0.poll(allocate)? {
            Polled::Ready(Filled { work, buffers }) => Poll::Ready(work.into_block(buffers)),
            Polled::Pending(waiter) => Poll::Pending(Waiter(Box::new(waiter))),
            Polled::Done => Poll::Done,
        })
    }

    /// Samples that were not delivered yet.
    pub fn remaining(&self) -> u64 {
        self.0.remaining()
    }

    /// Whether blocks that are planned from now on come with their metadata; at first they don't.
    pub fn want_columns(&self, wanted: bool) {
        self.0.want_columns(wanted);
    }
}

impl<B: PayloadBuffers> std::fmt::Debug for BlockStream<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockStream").finish_non_exhaustive()
    }
}

/// Waits for a block, or does its work when nobody else has begun.
pub struct Waiter(Box<dyn Wait + Send + Sync>);

impl Waiter {
    /// Returns when the stream should be polled again, after `timeout` at the latest but for work at hand.
    pub fn wait(&self, timeout: Duration) {
        self.0.wait(timeout);
    }
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter").finish_non_exhaustive()
    }
}

trait Wait {
    fn wait(&self, timeout: Duration);
}

impl<B: PayloadBuffers> Wait for StreamWaiter<Source, B> {
    fn wait(&self, timeout: Duration) {
        StreamWaiter::wait(self, timeout);
    }
}

/// A direct read on the caller's thread: ask for the lengths, bring memory, fill it.
#[derive(Debug)]
pub struct ReadPlan {
    loaded: Arc<Loaded>,
    work: Work,
}

impl ReadPlan {
    pub(crate) fn new(loaded: Arc<Loaded>, work: Work) -> Self {
        Self { loaded, work }
    }

    /// Length of each payload in bytes; 0 for one that can't be read.
    pub fn lengths(&self) -> &[u32] {
        &self.work.lengths
    }

    /// Reads all payloads into memory that was made for [`ReadPlan::lengths`].
    pub fn fill<B: PayloadBuffers>(mut self, mut buffers: B) -> Block<B> {
        self.loaded.fill(&mut self.work, &mut buffers, None);
        self.work.into_block(buffers)
    }
}
