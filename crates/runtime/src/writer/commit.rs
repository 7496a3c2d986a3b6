//! What happens to the blocks of a source: encoded by many jobs at once, appended one after the other in the order of
//! the samples, and concluded by whichever job is the last.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use dataset_rt_format::Schema;

use crate::disk;
use crate::error::{Error, Result};
use crate::writer::encode::{Body, EncodedBlock};
use crate::writer::policy::Decision;
use crate::writer::session::Shared;
use crate::writer::shard::{ClosedShard, FullShard};
use crate::writer::sink::Sink;
use crate::writer::source::Written;
use crate::writer::staging::Staging;

/// Full shards that wait for their close at most; beyond it the appending job closes them itself, so that small shards
/// can't use up file descriptors.
const MAX_CLOSING: usize = 4;

/// A source under way.
pub(crate) struct Commit {
    pub(crate) session: Arc<Shared>,
    pub(crate) name: String,
    pub(crate) fingerprint: Option<String>,
    pub(crate) path: PathBuf,
    /// The process that began; one forked from it must leave all this alone.
    pub(crate) pid: u32,
    /// Row in the profile.
    pub(crate) row: usize,
    /// Set with the first error, so that jobs that have not run yet do nothing.
    pub(crate) stop: AtomicBool,
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

/// What its jobs share.
pub(crate) struct State {
    pub(crate) decision: Option<Decision>,
    pub(crate) schema: Option<Schema>,
    pub(crate) staging: Option<Staging>,
    /// Made by the first block; away while a job appends.
    pub(crate) sink: Option<Box<Sink>>,
    pub(crate) appending: bool,
    /// Encoded blocks that are not next yet, by their number.
    pub(crate) waiting: BTreeMap<u64, EncodedBlock>,
    /// Blocks submitted, and the number of the next one to append.
    pub(crate) submitted: u64,
    pub(crate) next: u64,
    /// Jobs queued or running.
    pub(crate) jobs: usize,
    /// Full shards that are being closed, and those that are.
    pub(crate) closing: usize,
    pub(crate) closed: Vec<ClosedShard>,
    /// `finish` was called.
    pub(crate) ended: bool,
    /// The last step, publishing or giving up, has begun.
    pub(crate) concluding: bool,
    pub(crate) failure: Option<Error>,
    /// Why the caller gave up, where no error came before.
    pub(crate) aborted: Option<String>,
    pub(crate) outcome: Option<Result<Written>>,
}

/// The last step of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conclusion {
    Publish,
    Discard,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a job down, also when it is dropped without having run.
struct Job {
    inner: Arc<Commit>,
    result: Option<Result<()>>,
}

impl Job {
    fn end(mut self, result: Result<()>) {
        self.result = Some(result);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.inner.pid != std::process::id() {
            return;
        }
        let result = self.result.take();
        let ended_early = || {
            Err(Error::Internal(
                "a job of the writer did not end".to_owned(),
            ))
        };
        self.inner.settle(result.unwrap_or_else(ended_early));
    }
}

impl Commit {
    pub(crate) fn new(
        session: Arc<Shared>,
        name: &str,
        fingerprint: Option<&str>,
        path: PathBuf,
        decision: Decision,
        staging: Staging,
    ) -> Self {
        let row = session.profile.open_source(name);
        let state = State {
            decision: Some(decision),
            schema: None,
            staging: Some(staging),
            sink: None,
            appending: false,
            waiting: BTreeMap::new(),
            submitted: 0,
            next: 0,
            jobs: 0,
            closing: 0,
            closed: Vec::new(),
            ended: false,
            concluding: false,
            failure: None,
            aborted: None,
            outcome: None,
        };
        Self {
            session,
            name: name.to_owned(),
            fingerprint: fingerprint.map(str::to_owned),
            path,
            pid: std::process::id(),
            row,
            stop: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn stopped(&self) -> Result<()> {
        if self.stop.load(Ordering::Acquire) {
            return Err(Error::Interrupted);
        }
        self.session.cancel.check()
    }

    /// Keeps the first error.
    pub(crate) fn fail(&self, state: &mut State, error: Error) {
        self.stop.store(true, Ordering::Release);
        if let Error::Io { source, .. } = &error
            && disk::is_full(source)
        {
            self.session.full.store(true, Ordering::Relaxed);
        }
        if state.failure.is_none() {
            state.failure = Some(error);
        }
    }

    /// Queues a job of this source.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Result<()> + Send + 'static,
    ) {
        self.lock().jobs += 1;
        let job = Job {
            inner: self.clone(),
            result: None,
        };
        // Should the pool refuse, the job is dropped, which is an error of the source.
        let _ = self.session.pool.submit(move || {
            let inner = job.inner.clone();
            // A panic must not leave the source without an outcome. What it may have left half done is not used again:
            // after an error everything is discarded.
            let caught = catch_unwind(AssertUnwindSafe(|| {
                inner.stopped()?;
                work(&inner)
            }));
            let panicked = |_| Err(Error::Internal("a job of the writer panicked".to_owned()));
            job.end(caught.unwrap_or_else(panicked));
        });
    }

    /// The end of a job. The last one concludes.
    fn settle(self: &Arc<Self>, result: Result<()>) {
        let mut state = self.lock();
        state.jobs -= 1;
        if let Err(error) = result {
            self.fail(&mut state, error);
        }
        let conclusion = Self::next_conclusion(&mut state);
        drop(state);
        if let Some(conclusion) = conclusion {
            self.conclude(conclusion);
        }
    }

    /// Whether the last step is due; then it is the caller's to take.
    fn next_conclusion(state: &mut State) -> Option<Conclusion> {
        if state.jobs > 0 || state.concluding {
            return None;
        }
        let conclusion = match (&state.failure, state.ended) {
            (Some(_), _) => Conclusion::Discard,
            (None, true) => Conclusion::Publish,
            (None, false) => return None,
        };
        state.concluding = true;
        Some(conclusion)
    }

    /// Takes the last step, if it is due, on a worker: the caller must not wait for the disk.
    pub(crate) fn conclude_elsewhere(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let Some(conclusion) = Self::next_conclusion(&mut state) else {
            return;
        };
        drop(state);
        let inner = self.clone();
        if self
            .session
            .pool
            .submit(move || inner.conclude(conclusion))
            .is_err()
        {
            self.conclude(conclusion);
        }
    }

    /// Appends the blocks whose turn it is, unless another job is at it: that one will see them.
    pub(crate) fn append_ready(self: &Arc<Self>) -> Result<()> {
        loop {
            self.stopped()?;
            let mut state = self.lock();
            if state.appending {
                return Ok(());
            }
            let next = state.next;
            let Some(block) = state.waiting.remove(&next) else {
                return Ok(());
            };
            state.appending = true;
            let sink = state.sink.take();
            let places = state
                .staging
                .as_ref()
                .map(|staging| (staging.cache(), staging.spill()));
            let schema = if sink.is_none() {
                state.schema.clone()
            } else {
                None
            };
            drop(state);
            let mut sink = match (sink, schema, places) {
                (Some(sink), _, _) => sink,
                (None, Some(schema), Some((cache, spill))) => {
                    let options = &self.session.options;
                    let (codec, limit) = (options.codec, options.max_shard_bytes);
                    Box::new(Sink::create(cache, spill, schema, codec, limit)?)
                }
                _ => return Err(Error::Internal("a block before the start".to_owned())),
            };
            let appended = self.append(&mut sink, block);
            let mut state = self.lock();
            state.sink = Some(sink);
            state.appending = false;
            state.next += 1;
            drop(state);
            appended?;
        }
    }

    fn append(self: &Arc<Self>, sink: &mut Sink, block: EncodedBlock) -> Result<()> {
        let session = &self.session;
        sink.append(&block, &session.profile, &mut |full| self.close_shard(full))?;
        let counters = &session.counters;
        counters
            .samples
            .fetch_add(block.records.len() as u64, Ordering::Relaxed);
        counters
            .payload_bytes
            .fetch_add(block.payload_bytes, Ordering::Relaxed);
        counters
            .stored_bytes
            .fetch_add(block.stored_bytes(), Ordering::Relaxed);
        if let Body::Laid { bytes, .. } = block.body {
            session.buffers.give(bytes);
        }
        Ok(())
    }

    /// Closes a full shard, on another worker while there are few.
    fn close_shard(self: &Arc<Self>, full: FullShard) -> Result<()> {
        let mut state = self.lock();
        if state.closing < MAX_CLOSING && self.session.pool.num_workers() > 1 {
            state.closing += 1;
            drop(state);
            self.spawn(move |inner| {
                let closed = full.close(false, &inner.session.profile)?;
                let mut state = inner.lock();
                state.closing -= 1;
                state.closed.push(closed);
                Ok(())
            });
        } else {
            drop(state);
            let closed = full.close(false, &self.session.profile)?;
            self.lock().closed.push(closed);
        }
        Ok(())
    }
}
