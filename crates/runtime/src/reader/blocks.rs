//! The prefetching stream of blocks: one hand-off a block of samples, not one a sample.
//!
//! A block goes through planning (which samples, where, how long), allocation of its payload memory by the consumer,
//! filling, and delivery in order. Planning and filling are tasks that a worker takes. The consumer takes the task of
//! the front block itself when nobody has and it is a matter of memory alone; what may have to wait for a disk is for
//! the workers, since a consumer that hangs in a read can't look for signals. No task waits for another.
//!
//! How many blocks are in flight adapts: few while the consumer finds its blocks ready or in memory (which then stays
//! warm in the processor's cache), up to the limit once the consumer has had to wait for slow storage.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::forked;
use crate::mapped;
use crate::pool::Pool;

use super::slots::PayloadBuffers;
use state::{Cut, Entry, Stage, State};

mod state;

/// Payload bytes in flight at most, but for one block.
pub const MAX_PREFETCH_BYTES: u64 = 64 << 20;
/// Most samples of an adaptive block.
pub const MAX_BLOCK_SAMPLES: u64 = 512;
/// Most samples of a block of several batches.
pub const MAX_BATCHES_SAMPLES: u64 = 2048;
/// Payload bytes that an adaptive block aims at.
pub const MAX_BLOCK_BYTES: u64 = 1 << 20;
/// A consumer that slept this long for a disk would have been served by more blocks in flight.
const STARVED: Duration = Duration::from_millis(1);
/// So many blocks delivered without a sleep, and fewer are kept in flight again.
const CALM_BLOCKS: u32 = 1024;

/// How a stream is cut into blocks. No influence on what it delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSizing {
    /// Small first blocks, then at most [`MAX_BLOCK_SAMPLES`] samples and about [`MAX_BLOCK_BYTES`].
    Samples,
    /// Exactly so many samples (at least 1) a block, the last block what is left.
    Exact(u64),
    /// Whole batches of so many samples (at least 1): one in the first block, then more, while they have at most
    /// [`MAX_BATCHES_SAMPLES`] samples and about [`MAX_BLOCK_BYTES`] together. The last batch is what is left.
    Batches(u64),
}

impl BlockSizing {
    /// Most samples of an adaptive block.
    pub(crate) fn most(self) -> u64 {
        match self {
            Self::Batches(_) => MAX_BATCHES_SAMPLES,
            Self::Samples | Self::Exact(_) => MAX_BLOCK_SAMPLES,
        }
    }
}

/// Where blocks come from.
pub(crate) trait BlockSource: Send + Sync + 'static {
    /// A planned block.
    type Work: Send + 'static;

    /// Finds the samples of positions `first .. first + count` of the stream. Problems are part of the work.
    fn plan(&self, first: u64, count: u64, columns: bool) -> Self::Work;
    /// A position beyond `position`, the planning of which needs long work that can be done now, by
    /// [`BlockSource::prepare`]. Never waits.
    fn ahead_of(&self, position: u64) -> Option<u64>;
    /// Does that work.
    fn prepare(&self, position: u64);
    /// Whether planning these positions will most likely be quick, so that the consumer may do it.
    fn plans_quickly(&self, first: u64, count: u64) -> bool;
    /// Payload lengths of a planned block; 0 for a sample that can't be read.
    fn lengths(work: &Self::Work) -> &[u32];
    /// Whether filling the block is copying alone, so that the consumer may do it.
    fn is_resident(work: &Self::Work) -> bool;
    /// Reads all payloads. `stop` asks to leave early: nobody wants the block any more.
    fn fill(&self, work: &mut Self::Work, buffers: &mut dyn PayloadBuffers, stop: &AtomicBool);
    /// Notes that something went wrong with the whole block. (After a fork the child goes on with the same source,
    /// which therefore holds no lock that another thread could have taken.)
    fn fail(&self, work: &mut Self::Work, message: &str);
}

/// A block that was read: the work of its source and the memory with its payloads.
pub(crate) struct Filled<W, B> {
    pub(crate) work: W,
    pub(crate) buffers: B,
}

/// What [`Stream::poll`] found.
pub(crate) enum Polled<S: BlockSource, B: PayloadBuffers> {
    Ready(Filled<S::Work, B>),
    Pending(StreamWaiter<S, B>),
    Done,
}

struct Shared<S: BlockSource, B: PayloadBuffers> {
    source: Arc<S>,
    pool: Pool,
    state: Mutex<State<S::Work, B>>,
    changed: Condvar,
    /// The stream was dropped.
    stopped: AtomicBool,
    columns: AtomicBool,
    min_depth: usize,
    max_depth: usize,
}

enum Task<W, B> {
    Plan { number: u64, first: u64, count: u64 },
    Fill { number: u64, work: W, buffers: B },
}

impl<S: BlockSource, B: PayloadBuffers> Shared<S, B> {
    fn lock(&self) -> MutexGuard<'_, State<S::Work, B>> {
        // Nothing is left half done under this lock, so a poisoned one is as good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most urgent task that nobody has: the first block that can be filled, else the first to plan. But each
    /// worker should find a block to fill when it is done with this one, and a planned block gets its memory only
    /// when the consumer comes by: so blocks are planned before that.
    fn take_task(&self, state: &mut State<S::Work, B>) -> Option<Task<S::Work, B>> {
        let entries = &state.entries;
        let fill = entries
            .iter()
            .position(|e| matches!(e.stage, Stage::Allocated(..)));
        let plan = entries
            .iter()
            .position(|e| matches!(e.stage, Stage::Unplanned));
        let planned = entries
            .iter()
            .filter(|e| matches!(e.stage, Stage::Planned(_) | Stage::Allocated(..)))
            .count();
        let at = match (fill, plan) {
            (Some(fill), Some(plan)) if fill > 0 && planned <= self.pool.num_workers() => plan,
            (Some(at), _) | (None, Some(at)) => at,
            (None, None) => return None,
        };
        Self::claim(state.entries.get_mut(at)?)
    }

    fn claim(entry: &mut Entry<S::Work, B>) -> Option<Task<S::Work, B>> {
        match std::mem::replace(&mut entry.stage, Stage::Taken) {
            Stage::Unplanned => Some(Task::Plan {
                number: entry.number,
                first: entry.first,
                count: entry.count,
            }),
            Stage::Allocated(work, buffers) => Some(Task::Fill {
                number: entry.number,
                work,
                buffers,
            }),
            other => {
                entry.stage = other;
                None
            }
        }
    }

    /// Runs a task and puts its result in place. A panic of the source loses the block, never the consumer.
    fn run(&self, task: Task<S::Work, B>) {
        let (number, stage) = match task {
            Task::Plan {
                number,
                first,
                count,
            } => {
                let columns = self.columns.load(Ordering::Relaxed);
                let plan = || self.source.plan(first, count, columns);
                (
                    number,
                    catch_unwind(AssertUnwindSafe(plan)).map_or(Stage::Lost, Stage::Planned),
                )
            }
            Task::Fill {
                number,
                mut work,
                mut buffers,
            } => {
                let fill = || self.source.fill(&mut work, &mut buffers, &self.stopped);
                if catch_unwind(AssertUnwindSafe(fill)).is_err() {
                    self.source
                        .fail(&mut work, "reading a block of samples panicked");
                }
                (number, Stage::Ready(Filled { work, buffers }))
            }
        };
        let planned = match &stage {
            Stage::Planned(work) => {
                let lengths = S::lengths(work).iter();
                let bytes = lengths.map(|&len| u64::from(len)).sum::<u64>();
                Some((bytes, !S::is_resident(work)))
            }
            _ => None,
        };
        let mut state = self.lock();
        if self.stopped.load(Ordering::Relaxed) {
            drop(state);
            drop(stage);
            return;
        }
        let is_front = state
            .entries
            .front()
            .is_some_and(|front| front.number == number);
        if let Some(entry) = state
            .entries
            .iter_mut()
            .find(|entry| entry.number == number)
        {
            entry.stage = stage;
            if let Some((bytes, is_cold)) = planned {
                entry.bytes = bytes;
                state.cold = is_cold;
            }
        }
        let wake = is_front && state.waiting > 0;
        drop(state);
        if wake {
            self.changed.notify_all();
        }
    }

    /// Puts jobs in the pool's queue for the tasks that there are. Waking a worker costs as much as some samples: as
    /// long as enough blocks are ready nobody is woken, and then one worker, who goes on until all is done. Only when
    /// the consumer has to wait, or had to lately, all come.
    fn schedule(self: &Arc<Self>, state: &mut State<S::Work, B>) -> Result<()> {
        let tasks = state.entries.iter().filter(|entry| entry.is_task()).count();
        let ready = state.entries.iter().take_while(|entry| entry.is_ready());
        let wanted = match ready.count() {
            0 => self.pool.num_workers(),
            _ if state.depth > self.min_depth => self.pool.num_workers(),
            ready if ready * 2 < state.depth => 1,
            _ => 0,
        };
        self.submit(state, wanted.min(tasks))
    }

    fn submit(self: &Arc<Self>, state: &mut State<S::Work, B>, jobs: usize) -> Result<()> {
        while state.jobs < jobs {
            let shared = self.clone();
            self.pool.submit(move || shared.work())?;
            state.jobs += 1;
        }
        Ok(())
    }

    /// A job: some tasks, then back to the end of the queue, so that streams share the pool fairly.
    fn work(self: Arc<Self>) {
        mapped::ensure_guard();
        for _ in 0..4 {
            let mut state = self.lock();
            let task = match self.stopped.load(Ordering::Relaxed) {
                true => None,
                false => self.take_task(&mut state),
            };
            let Some(task) = task else {
                state.jobs -= 1;
                return;
            };
            drop(state);
            self.run(task);
        }
        let mut state = self.lock();
        state.jobs -= 1;
        if !self.stopped.load(Ordering::Relaxed) && state.entries.iter().any(Entry::is_task) {
            let jobs = state.jobs + 1;
            // A pool that has ended has no queue to come back to; the consumer then does the tasks itself.
            let _ = self.submit(&mut state, jobs);
        }
    }
}

/// An ordered, prefetching stream of blocks.
pub(crate) struct Stream<S: BlockSource, B: PayloadBuffers> {
    shared: ManuallyDrop<Arc<Shared<S, B>>>,
    generation: u64,
    /// What a forked child needs to go on; kept outside of the lock, which a thread of the parent may hold.
    delivered: u64,
    end: u64,
    /// Everything before this position was prepared, or is about to be.
    prepared_to: u64,
    sizing: BlockSizing,
    usual: u64,
}

impl<S: BlockSource, B: PayloadBuffers> Stream<S, B> {
    /// A stream of `positions`. `usual` is the size of an adaptive block.
    pub(crate) fn new(
        pool: &Pool,
        source: Arc<S>,
        positions: Range<u64>,
        sizing: BlockSizing,
        usual: u64,
        prefetch_size: usize,
    ) -> Self {
        let max_depth = prefetch_size.max(1);
        let min_depth = pool.num_workers().saturating_add(4).min(max_depth);
        let end = positions.end.max(positions.start);
        let usual = usual.clamp(1, sizing.most());
        let state = State {
            entries: VecDeque::new(),
            cut: Cut {
                sizing,
                usual,
                number: 0,
                next: positions.start,
                end,
            },
            depth: min_depth,
            calm: 0,
            cold: false,
            allocated: 0,
            jobs: 0,
            waiting: 0,
        };
        let shared = Shared {
            source,
            pool: pool.clone(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            columns: AtomicBool::new(false),
            min_depth,
            max_depth,
        };
        Self {
            shared: ManuallyDrop::new(Arc::new(shared)),
            generation: forked::generation(),
            delivered: positions.start,
            end,
            prepared_to: 0,
            sizing,
            usual,
        }
    }

    /// Whether blocks planned from now on come with their metadata columns.
    pub(crate) fn want_columns(&self, wanted: bool) {
        self.shared.columns.store(wanted, Ordering::Relaxed);
    }

    /// Positions that were not delivered yet.
    pub(crate) fn remaining(&self) -> u64 {
        self.end - self.delivered
    }

    /// Takes the next block if it is ready. Never waits; `allocate` makes memory for payloads of given lengths.
    ///
    /// # Errors
    /// Those of `allocate`, after which the stream may be polled again; [`Error::Internal`] for a fault of ours.
    pub(crate) fn poll<E: From<Error>>(
        &mut self,
        allocate: &mut dyn FnMut(&[u32]) -> Result<B, E>,
    ) -> Result<Polled<S, B>, E> {
        self.leave_parent();
        let shared = &*self.shared;
        let mut state = shared.lock();
        state.top_up();
        state = Self::allocate_planned(shared, state, allocate)?;
        let Some(front) = state.entries.front() else {
            return Ok(Polled::Done);
        };
        if !matches!(front.stage, Stage::Ready(_) | Stage::Lost) {
            shared.schedule(&mut state)?;
            return Ok(Polled::Pending(StreamWaiter {
                shared: Arc::downgrade(shared),
            }));
        }
        let Some(front) = state.entries.pop_front() else {
            return Ok(Polled::Done);
        };
        state.allocated = state.allocated.saturating_sub(front.bytes);
        self.delivered = front.first + front.count;
        state.calm += 1;
        if state.calm >= CALM_BLOCKS {
            state.calm = 0;
            state.depth = (state.depth / 2).max(shared.min_depth);
        }
        state.top_up();
        shared.schedule(&mut state)?;
        drop(state);
        self.prepare_ahead()?;
        match front.stage {
            Stage::Ready(filled) => Ok(Polled::Ready(filled)),
            _ => Err(Error::Internal("planning a block of samples panicked".to_owned()).into()),
        }
    }

    /// Has a worker do what planning would have to wait for later, once for each such position.
    fn prepare_ahead(&mut self) -> Result<()> {
        let last = self.delivered.saturating_sub(1);
        let Some(position) = self.shared.source.ahead_of(last) else {
            return Ok(());
        };
        if self.prepared_to < position {
            self.prepared_to = position;
            let source = self.shared.source.clone();
            self.shared.pool.submit(move || source.prepare(position))?;
        }
        Ok(())
    }

    /// Gives memory to planned blocks, in order, as far as the byte bound allows; the front block always gets its
    /// own, or nothing would ever be delivered. The lock is released meanwhile.
    fn allocate_planned<'a, E: From<Error>>(
        shared: &'a Shared<S, B>,
        mut state: MutexGuard<'a, State<S::Work, B>>,
        allocate: &mut dyn FnMut(&[u32]) -> Result<B, E>,
    ) -> Result<MutexGuard<'a, State<S::Work, B>>, E> {
        loop {
            let place = state
                .entries
                .iter()
                .position(|e| matches!(e.stage, Stage::Planned(_)));
            let Some(place) = place else { return Ok(state) };
            let allocated = state.allocated;
            let Some(entry) = state.entries.get_mut(place) else {
                return Ok(state);
            };
            if place > 0 && allocated.saturating_add(entry.bytes) > MAX_PREFETCH_BYTES {
                return Ok(state);
            }
            let (number, bytes) = (entry.number, entry.bytes);
            let work = match std::mem::replace(&mut entry.stage, Stage::Taken) {
                Stage::Planned(work) => work,
                other => {
                    entry.stage = other;
                    return Ok(state);
                }
            };
            drop(state);
            let buffers = allocate(S::lengths(&work));
            state = shared.lock();
            let Some(entry) = state
                .entries
                .iter_mut()
                .find(|entry| entry.number == number)
            else {
                return Err(Error::Internal("a block vanished".to_owned()).into());
            };
            match buffers {
                Ok(buffers) => {
                    entry.stage = Stage::Allocated(work, buffers);
                    state.allocated = state.allocated.saturating_add(bytes);
                }
                Err(error) => {
                    entry.stage = Stage::Planned(work);
                    return Err(error);
                }
            }
        }
    }

    /// In a forked child: forgets what was in flight, whose locks may be held by threads that are gone, and goes on
    /// from the first position that was not delivered.
    fn leave_parent(&mut self) {
        if forked::generation() == self.generation {
            return;
        }
        let old = &*self.shared;
        let fresh = Self::new(
            &old.pool,
            old.source.clone(),
            self.delivered..self.end,
            self.sizing,
            self.usual,
            old.max_depth,
        );
        fresh.want_columns(old.columns.load(Ordering::Relaxed));
        // Dropping the old value leaks what it shares, see there.
        *self = fresh;
    }
}

impl<S: BlockSource, B: PayloadBuffers> Drop for Stream<S, B> {
    fn drop(&mut self) {
        if forked::generation() != self.generation {
            // Inherited through a fork: its lock may never open, its memory is a copy nobody else sees.
            return;
        }
        self.shared.stopped.store(true, Ordering::Relaxed);
        let entries = std::mem::take(&mut self.shared.lock().entries);
        drop(entries);
        // The one way to keep a field from being dropped in the branch above.
        #[allow(unsafe_code)]
        // SAFETY: not used again, this is the drop.
        unsafe {
            ManuallyDrop::drop(&mut self.shared);
        }
    }
}

/// Waits for the front block of a stream, or does its work.
pub(crate) struct StreamWaiter<S: BlockSource, B: PayloadBuffers> {
    /// Weak, so that a waiter that is kept does not keep a dropped stream's blocks.
    shared: Weak<Shared<S, B>>,
}

impl<S: BlockSource, B: PayloadBuffers> StreamWaiter<S, B> {
    /// Returns once the front block needs the consumer, or after `timeout`. A front block that nobody has taken yet
    /// is planned or filled right here if that asks nothing of a disk.
    pub(crate) fn wait(&self, timeout: Duration) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let deadline = Instant::now() + timeout;
        let mut state = shared.lock();
        let mut slept = Duration::ZERO;
        while !shared.stopped.load(Ordering::Relaxed) {
            let Some(front) = state.entries.front_mut() else {
                break;
            };
            let quick = match &front.stage {
                Stage::Ready(_) | Stage::Lost | Stage::Planned(_) => break,
                Stage::Taken => false,
                Stage::Unplanned => shared.source.plans_quickly(front.first, front.count),
                Stage::Allocated(work, _) => S::is_resident(work),
            };
            if quick && let Some(task) = Shared::<S, B>::claim(front) {
                drop(state);
                mapped::ensure_guard();
                shared.run(task);
                return;
            }
            let now = Instant::now();
            let Some(left) = deadline
                .checked_duration_since(now)
                .filter(|left| !left.is_zero())
            else {
                break;
            };
            state.waiting += 1;
            let waited = shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
            slept += now.elapsed();
        }
        // What waits for a processor is not served by more blocks in flight: they would only leave its cache.
        if slept >= STARVED && state.cold {
            state.depth = (state.depth * 2).min(shared.max_depth);
            state.calm = 0;
        }
    }
}

#[cfg(test)]
mod tests;
