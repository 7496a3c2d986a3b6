//! The last step of a source: its cache is finished and published, or all of it is discarded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dataset_rt_format::SourceInfo;

use crate::error::{Error, Result};
use crate::writer::commit::{Commit, Conclusion};
use crate::writer::policy::{Decision, Reuse};
use crate::writer::profile::{SourceOutcome, Stage};
use crate::writer::publish::{Published, publish_fresh, publish_over};
use crate::writer::session::{TARGET_CHANGES, restless};
use crate::writer::sink::Finished;
use crate::writer::source::{Status, Written};
use crate::writer::staging::Staging;

impl Commit {
    /// The last step. The outcome is told AFTER the staging folder is gone.
    pub(crate) fn conclude(self: &Arc<Self>, conclusion: Conclusion) {
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
                .look(
                    &self.path,
                    self.fingerprint.as_deref(),
                    &self.session.cancel,
                )
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
