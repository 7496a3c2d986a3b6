//! One source as its caller sees it: start, submit blocks, finish or give up, and wait for the outcome.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dataset_rt_format::Schema;

use crate::error::{Error, Result};
use crate::writer::commit::Commit;
use crate::writer::encode::{InputBlock, encode};
use crate::writer::policy::Decision;
use crate::writer::session::Shared;
use crate::writer::staging::Staging;

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
    inner: Arc<Commit>,
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
        let commit = Commit::new(session, name, fingerprint, path, decision, staging);
        Self {
            inner: Arc::new(commit),
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
            state.submitted - 1
        };
        self.inner.spawn(move |inner| {
            let session = &inner.session;
            let encoded = encode(
                &inner.path,
                block,
                session.options.codec,
                permit,
                &session.buffers,
                &session.profile,
            )?;
            inner.lock().waiting.insert(number, encoded);
            inner.append_ready()
        });
        Ok(())
    }

    /// Memory for [`PayloadList::take_laid`](crate::PayloadList::take_laid): an empty buffer that a stored block has
    /// left behind, or one of no capacity.
    pub fn spare_buffer(&self) -> Vec<u8> {
        self.inner.session.buffers.take()
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
