//! One source on its way: blocks in, in any order of completion; a published cache or nothing out.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dataset_rt_format::{Schema, SourceInfo};

use crate::error::{Error, Result};
use crate::writer::encode::{Body, EncodedBlock, InputBlock, encode};
use crate::writer::policy::{Decision, Reuse};
use crate::writer::profile::{SourceOutcome, Stage};
use crate::writer::publish::{Published, publish_fresh, publish_over};
use crate::writer::session::{Shared, TARGET_CHANGES, restless};
use crate::writer::shard::{ClosedShard, FullShard};
use crate::writer::sink::{Finished, Sink};
use crate::writer::staging::Staging;

/// Full shards that wait for their close at most; beyond it the appending job closes them itself, so that small shards
/// can't use up file descriptors.
const MAX_CLOSING: usize = 4;
/// Buffers kept for coming blocks, and the largest that is worth keeping.
const KEPT_BUFFERS: usize = 8;
const KEPT_BUFFER_BYTES: usize = 4 << 20;

/// What a stored source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was written, and nothing stood there before.
    Written,
    /// Another process was first, and its cache is used by the rules of `from_cache_sources`.
    Reused,
    /// It was written and took the place of another cache.
    Rebuilt,
}

impl Status {
    /// "written", "reused" or "rebuilt".
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Reused => "reused",
            Self::Rebuilt => "rebuilt",
        }
    }
}

/// A source whose cache stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Where it stands.
    pub path: PathBuf,
    /// How it came about.
    pub status: Status,
    /// Why it was written, rebuilt or reused.
    pub reason: String,
    /// When it was written, RFC 3339 in UTC.
    pub created: String,
    /// Only for [`Status::Reused`]: the source has no fingerprint.
    pub by_name_only: bool,
    /// Only for [`Status::Reused`]: the fingerprints differ, and `on_mismatch` says reuse.
    pub mismatch: bool,
    /// Samples in the cache.
    pub samples: u64,
    /// Their payloads in bytes.
    pub payload_bytes: u64,
    /// What is stored of the payloads, in bytes.
    pub stored_bytes: u64,
}

/// The writer of one source. Dropped without [`finish`](Self::finish) it gives up, and nothing is left of it.
pub struct SourceWriter {
    inner: Arc<Inner>,
}

struct Inner {
    session: Arc<Shared>,
    name: String,
    fingerprint: Option<String>,
    path: PathBuf,
    /// The process that began; one forked from it must leave all this alone.
    pid: u32,
    /// Row in the profile.
    row: usize,
    /// Set with the first error, so that jobs that have not run yet do nothing.
    stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    decision: Option<Decision>,
    schema: Option<Schema>,
    staging: Option<Staging>,
    /// Made by the first block; away while a job appends.
    sink: Option<Box<Sink>>,
    appending: bool,
    /// Encoded blocks that are not next yet, by their number.
    waiting: BTreeMap<u64, EncodedBlock>,
    /// Blocks submitted, and the number of the next one to append.
    submitted: u64,
    next: u64,
    samples: u64,
    /// Jobs queued or running.
    jobs: usize,
    /// Full shards that are being closed, and those that are.
    closing: usize,
    closed: Vec<ClosedShard>,
    /// `finish` was called.
    ended: bool,
    /// The last step, publishing or giving up, has begun.
    concluding: bool,
    failure: Option<Error>,
    /// Why the caller gave up, where no error came before.
    aborted: Option<String>,
    outcome: Option<Result<Written>>,
}

/// The last step of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conclusion {
    Publish,
    Discard,
}

impl SourceWriter {
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
            samples: 0,
            jobs: 0,
            closing: 0,
            closed: Vec::new(),
            ended: false,
            concluding: false,
            failure: None,
            aborted: None,
            outcome: None,
        };
        let inner = Inner {
            session,
            name: name.to_owned(),
            fingerprint: fingerprint.map(str::to_owned),
            path,
            pid: std::process::id(),
            row,
            stop: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Says which fields the samples have. Called once, before the first block.
    ///
    /// # Errors
    /// [`Error::Internal`] when called twice.
    pub fn start(&self, schema: Schema) -> Result<()> {
        let mut state = self.inner.lock();
        if state.schema.is_some() {
            return Err(Error::Internal("a source was started twice".to_owned()));
        }
        state.schema = Some(schema);
        Ok(())
    }

    /// Whether another block may be submitted now. The room is shared by all sources of the session.
    pub fn has_room(&self) -> bool {
        self.inner.session.flow.has_room()
    }

    /// Waits for room, at most `timeout`; whether there is some.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        self.inner.session.flow.wait_for_room(timeout)
    }

    /// Queues a block. Never waits; the caller asks for room before. After a failure blocks are dropped unseen.
    ///
    /// # Errors
    /// [`Error::Internal`] for a block that is not of the schema, or after [`finish`](Self::finish).
    pub fn submit(&self, block: InputBlock) -> Result<()> {
        if self.failed() {
            return Ok(());
        }
        let rows = block.columns.rows();
        if block.payloads.len() != rows {
            let payloads = block.payloads.len();
            let message = format!("a block of {payloads} payloads and {rows} rows of metadata");
            return Err(Error::Internal(message));
        }
        if rows == 0 {
            return Ok(());
        }
        let permit = self.inner.session.flow.enter(block.bytes());
        let number = {
            let mut state = self.inner.lock();
            let fits = state
                .schema
                .as_ref()
                .is_some_and(|schema| block.columns.fits(schema));
            if !fits || state.ended {
                return Err(Error::Internal(
                    "a block of other fields, or out of order".to_owned(),
                ));
            }
            state.submitted += 1;
            state.samples += rows as u64;
            state.submitted - 1
        };
        self.inner.spawn(move |inner| {
            let session = &inner.session;
            let buffer = lock(&session.buffers).pop().unwrap_or_default();
            let encoded = encode(
                block,
                session.options.codec,
                permit,
                buffer,
                &session.profile,
            )?;
            inner.lock().waiting.insert(number, encoded);
            inner.append_ready()
        });
        Ok(())
    }

    /// Whether an error was met: there is no use in pulling more samples. [`wait`](Self::wait) says which.
    pub fn failed(&self) -> bool {
        self.inner.stopped().is_err()
    }

    /// Says that there are no more blocks; the last job then publishes the cache. Without a block it is an
    /// [`Error::EmptySource`].
    pub fn finish(&self) {
        let mut state = self.inner.lock();
        if state.submitted == 0 {
            self.inner.fail(
                &mut state,
                Error::EmptySource {
                    source_name: self.inner.name.clone(),
                },
            );
        }
        state.ended = true;
        self.inner.conclude_elsewhere(state);
    }

    /// Gives up; `why` goes into the profile. What was written is removed once the jobs under way have ended;
    /// [`wait`](Self::wait) tells when. Does nothing once the cache stands.
    pub fn abort(&self, why: &str) {
        let mut state = self.inner.lock();
        if state.failure.is_none() {
            state.aborted = Some(why.to_owned());
        }
        self.inner.fail(&mut state, Error::Interrupted);
        self.inner.conclude_elsewhere(state);
    }

    /// The outcome, once: waits for it at most `timeout`, and `None` is "not yet" or "told before".
    pub fn wait(&self, timeout: Duration) -> Option<Result<Written>> {
        let state = self.inner.lock();
        let waited = self
            .inner
            .changed
            .wait_timeout_while(state, timeout, |state| state.outcome.is_none());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.outcome.take()
    }
}

impl Drop for SourceWriter {
    fn drop(&mut self) {
        // In a forked child the lock may be held for ever, and the folder is the parent's.
        if self.inner.pid == std::process::id() && !self.inner.lock().ended {
            self.abort("dropped");
        }
    }
}

impl std::fmt::Debug for SourceWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceWriter")
            .field("path", &self.inner.path)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a job down, also when it is dropped without having run.
struct Job {
    inner: Arc<Inner>,
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

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn stopped(&self) -> Result<()> {
        if self.stop.load(Ordering::Acquire) {
            return Err(Error::Interrupted);
        }
        self.session.cancel.check()
    }

    /// Keeps the first error.
    fn fail(&self, state: &mut State, error: Error) {
        self.stop.store(true, Ordering::Release);
        if state.failure.is_none() {
            state.failure = Some(error);
        }
    }

    /// Queues a job of this source.
    fn spawn(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) -> Result<()> + Send + 'static) {
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
    fn conclude_elsewhere(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
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
    fn append_ready(self: &Arc<Self>) -> Result<()> {
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
            let mut buffers = lock(&session.buffers);
            if bytes.capacity() <= KEPT_BUFFER_BYTES && buffers.len() < KEPT_BUFFERS {
                buffers.push(bytes);
            }
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

    /// The last step. The outcome is told AFTER the staging folder is gone.
    fn conclude(self: &Arc<Self>, conclusion: Conclusion) {
        let caught = catch_unwind(AssertUnwindSafe(|| match conclusion {
            Conclusion::Publish => self.publish(),
            Conclusion::Discard => Err(Error::Interrupted),
        }));
        let panicked = |_| Err(Error::Internal("publishing panicked".to_owned()));
        let mut outcome = caught.unwrap_or_else(panicked);
        self.stop.store(true, Ordering::Release);
        let mut state = self.lock();
        let (sink, staging) = (state.sink.take(), state.staging.take());
        let (waiting, failure) = (std::mem::take(&mut state.waiting), state.failure.take());
        let aborted = state.aborted.take();
        drop(state);
        // Files are closed before they are removed: network file systems keep open ones under other names.
        drop((sink, waiting));
        drop(staging);
        if let (Err(error), Some(failure)) = (&mut outcome, failure) {
            *error = failure;
        }
        self.record(&outcome, aborted);
        self.lock().outcome = Some(outcome);
        self.changed.notify_all();
    }

    fn record(&self, outcome: &Result<Written>, aborted: Option<String>) {
        let session = &self.session;
        let row = match (outcome, aborted) {
            (Ok(written), _) => {
                session.counters.published.fetch_add(1, Ordering::Relaxed);
                SourceOutcome {
                    outcome: written.status.name(),
                    reason: written.reason.clone(),
                    samples: written.samples,
                    payload_bytes: written.payload_bytes,
                    stored_bytes: written.stored_bytes,
                }
            }
            (Err(Error::Interrupted), Some(why)) => SourceOutcome::without_data("aborted", why),
            (Err(error), _) => SourceOutcome::failed(error),
        };
        session.profile.close_source(self.row, row);
    }

    fn publish(self: &Arc<Self>) -> Result<Written> {
        let mut state = self.lock();
        let parts = (
            state.sink.take(),
            state.staging.take(),
            state.decision.take(),
        );
        let closed = std::mem::take(&mut state.closed);
        drop(state);
        let (Some(sink), Some(staging), Some(decision)) = parts else {
            return Err(Error::Internal("nothing to publish".to_owned()));
        };
        let profile = &self.session.profile;
        let source = SourceInfo {
            name: self.name.clone(),
            fingerprint: self.fingerprint.clone(),
        };
        let finished = sink.finish(closed, source, profile, &|| self.stopped())?;
        self.stopped()?;
        profile.time(Stage::Publish, || {
            self.make_visible(&staging, decision, &finished)
        })
    }

    /// Publishes, and where another process was first, goes by the rules for what it stored.
    fn make_visible(
        &self,
        staging: &Staging,
        mut decision: Decision,
        finished: &Finished,
    ) -> Result<Written> {
        for _ in 0..TARGET_CHANGES {
            let (published, status, reason) = match decision {
                Decision::Reuse(reuse) => return Ok(self.reused(reuse)),
                Decision::Fresh(reason) => {
                    (publish_fresh(staging, &self.path)?, Status::Written, reason)
                }
                Decision::Rebuild(place, reason) => (
                    publish_over(staging, &self.path, place)?,
                    Status::Rebuilt,
                    reason,
                ),
            };
            if published == Published::Done {
                return Ok(Written {
                    path: self.path.clone(),
                    status,
                    reason,
                    created: finished.created.clone(),
                    by_name_only: false,
                    mismatch: false,
                    samples: finished.samples,
                    payload_bytes: finished.payload_bytes,
                    stored_bytes: finished.stored_bytes,
                });
            }
            if !self.session.options.create_or_reuse {
                return Err(Error::Exists {
                    path: self.path.clone(),
                    message:
                        "another process stored something there while this source was written; \
                              the data of this call was not stored"
                            .to_owned(),
                });
            }
            decision = self
                .session
                .look(&self.path, self.fingerprint.as_deref())
                .map_err(not_stored)?;
        }
        Err(restless(&self.path))
    }

    fn reused(&self, reuse: Reuse) -> Written {
        let Reuse {
            created,
            reason,
            by_name_only,
            mismatch,
            ..
        } = reuse;
        Written {
            path: self.path.clone(),
            status: Status::Reused,
            reason: format!("another process stored it first; {reason}"),
            created,
            by_name_only,
            mismatch,
            samples: reuse.samples,
            payload_bytes: reuse.payload_bytes,
            stored_bytes: reuse.stored_bytes,
        }
    }
}

/// Adds to an error about another process's cache what became of ours.
fn not_stored(error: Error) -> Error {
    let note = "another process was first, and the data of this call was not stored";
    match error {
        Error::Exists { path, message } => Error::Exists {
            path,
            message: format!("{message}; {note}"),
        },
        Error::Mismatch { path, message } => Error::Mismatch {
            path,
            message: format!("{message}; {note}"),
        },
        other => other,
    }
}
