//! One call of `write_cache` or `from_cache_sources`: what its sources share, and what happens to each before it is
//! read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dataset_rt_format::Codec;
use dataset_rt_format::constants::SHARD_SIZE_LIMIT;

use crate::cancel::Cancel;
use crate::disk;
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::writer::buffers::Buffers;
use crate::writer::flow::Flow;
use crate::writer::names::{check_source_name, fold_source_name};
use crate::writer::neighbours::Neighbours;
use crate::writer::policy::{Decision, OnMismatch, Reuse, decide, decide_fresh};
use crate::writer::profile::{Profile, SourceOutcome, Stage, Totals};
use crate::writer::source::SourceWriter;
use crate::writer::staging::{Staging, Tmp, clean_up};
use crate::writer::target::{Place, inspect};

/// Blocks under way at most, unless said otherwise.
pub const DEFAULT_PREFETCH_SIZE: usize = 64;
/// Bytes of a finished shard at most, unless said otherwise or a single record is longer.
pub const DEFAULT_MAX_SHARD_BYTES: u64 = 64 << 20;

/// With less free space than this the sources of a call are to be written one after the other. What is under way when
/// a source begins, at most [`MAX_QUEUED_BYTES`](crate::writer::flow::MAX_QUEUED_BYTES) and the ends of files, fits
/// into it with room to spare.
const AMPLE_SPACE: u64 = 1 << 30;

/// How often what stands at a target may change under our eyes before that is an error.
pub(crate) const TARGET_CHANGES: usize = 16;

/// How to write.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Blocks under way at most; at least 1. [`DEFAULT_PREFETCH_SIZE`].
    pub prefetch_size: usize,
    /// A shard ends before the record that would make its file longer than this, but has at least one record; 1 to
    /// 2^40 - 1. [`DEFAULT_MAX_SHARD_BYTES`].
    pub max_shard_bytes: u64,
    /// How each record is stored.
    pub codec: Codec,
    /// Whether a cache is reused only after each of its files was read and compared with its checksum.
    pub validate_cache: bool,
    /// What `from_cache_sources` does with a cache that is not the source's.
    pub on_mismatch: OnMismatch,
    /// Whether this is `from_cache_sources`, which reuses what stands, or `write_cache`, which refuses.
    pub create_or_reuse: bool,
    /// Whether time is measured; without it the summary's stages are zero.
    pub profile: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            prefetch_size: DEFAULT_PREFETCH_SIZE,
            max_shard_bytes: DEFAULT_MAX_SHARD_BYTES,
            codec: Codec::None,
            validate_cache: false,
            on_mismatch: OnMismatch::Error,
            create_or_reuse: false,
            profile: false,
        }
    }
}

/// What the sources of a call share.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) base: PathBuf,
    pub(crate) options: WriteOptions,
    pub(crate) cancel: Cancel,
    pub(crate) flow: Arc<Flow>,
    pub(crate) profile: Profile,
    pub(crate) counters: Counters,
    /// A source met a full disk or a used-up quota, which free space does not always show.
    pub(crate) full: AtomicBool,
    /// Buffers of blocks that were stored, for the next ones.
    pub(crate) buffers: Buffers,
    /// What stands in `base`.
    neighbours: Mutex<Neighbours>,
    /// Source names seen, by their folded form.
    names: Mutex<HashMap<String, String>>,
}

/// Totals over all sources, in the order of what is stored.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) samples: AtomicU64,
    pub(crate) payload_bytes: AtomicU64,
    pub(crate) stored_bytes: AtomicU64,
    pub(crate) published: AtomicU64,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Samples that were stored.
    pub samples: u64,
    /// Their payloads in bytes.
    pub payload_bytes: u64,
    /// What was written for these payloads, in bytes.
    pub stored_bytes: u64,
    /// Sources whose caches stand.
    pub committed: u64,
}

/// What to do with a source.
#[derive(Debug)]
pub enum Begin {
    /// Read it and write it.
    Write(SourceWriter),
    /// A cache stands and is to be used; the source need not be read.
    Reuse(Reused),
    /// A live writer is at work on the same cache: ask again. `from_cache_sources` only.
    Wait {
        /// Who it is, for people.
        holder: String,
    },
}

/// A cache that is used instead of being written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reused {
    /// Where it stands.
    pub path: PathBuf,
    /// When it was written, RFC 3339 in UTC.
    pub created: String,
    /// Why it is used.
    pub reason: String,
    /// The source has no fingerprint: nothing says that the content is the same.
    pub by_name_only: bool,
    /// The fingerprints differ, or the cache has none, and `on_mismatch` says reuse.
    pub mismatch: bool,
    /// Samples in it.
    pub samples: u64,
}

impl Reused {
    fn new(path: &Path, reuse: Reuse) -> Self {
        let Reuse {
            created,
            reason,
            by_name_only,
            mismatch,
            samples,
            ..
        } = reuse;
        Self {
            path: path.to_path_buf(),
            created,
            reason,
            by_name_only,
            mismatch,
            samples,
        }
    }
}

/// One call of `write_cache` or `from_cache_sources`.
pub struct WriteSession {
    shared: Arc<Shared>,
}

impl WriteSession {
    /// Checks the options and removes what dead writers left below `base`. `base` is made, with its parents, when the
    /// first source is about to be written.
    ///
    /// # Errors
    /// [`Error::Argument`] for options out of range, [`Error::Io`] where `base` is no directory.
    pub fn new(pool: Pool, base: PathBuf, options: WriteOptions, cancel: Cancel) -> Result<Self> {
        if options.prefetch_size == 0 {
            return Err(Error::Argument {
                argument: "prefetch_size",
                message: "prefetch_size must be at least 1, found 0".to_owned(),
            });
        }
        if !(1..SHARD_SIZE_LIMIT).contains(&options.max_shard_bytes) {
            return Err(Error::Argument {
                argument: "max_shard_bytes",
                message: format!(
                    "max_shard_bytes must be 1 to {}, found {}",
                    SHARD_SIZE_LIMIT - 1,
                    options.max_shard_bytes
                ),
            });
        }
        // A relative path means the directory of now, wherever the process goes while the sources are read.
        let base =
            std::path::absolute(&base).map_err(|source| Error::io("resolve", base, source))?;
        match std::fs::metadata(&base) {
            Ok(found) if !found.is_dir() => {
                let source = std::io::Error::from(std::io::ErrorKind::NotADirectory);
                return Err(Error::io("write caches into", base, source));
            }
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("look at", base, source));
            }
            _ => {}
        }
        clean_up(&base);
        let shared = Shared {
            flow: Flow::new(options.prefetch_size),
            profile: Profile::new(options.profile),
            pool,
            base,
            options,
            cancel,
            counters: Counters::default(),
            full: AtomicBool::new(false),
            buffers: Buffers::default(),
            neighbours: Mutex::default(),
            names: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Decides about a source, before anything of it is read. Does not wait for other writers; with `validate_cache` it
    /// reads the whole cache that stands.
    ///
    /// # Errors
    /// [`Error::SourceName`], also for the second source of a name in one write and for a name that differs from a
    /// standing cache's in case or Unicode form alone; [`Error::Exists`] and [`Error::Mismatch`] for what stands
    /// there; [`Error::Damaged`] for a cache of a later version; [`Error::Io`]; [`Error::Interrupted`].
    pub fn begin(&self, name: &str, fingerprint: Option<&str>) -> Result<Begin> {
        self.begin_with(name, fingerprint, &self.shared.cancel)
    }

    /// As [`begin`](Self::begin), with a flag of its own for what is done on the caller's thread.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin).
    pub fn begin_with(
        &self,
        name: &str,
        fingerprint: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Begin> {
        let begun = self.decide(name, fingerprint, cancel);
        match &begun {
            Ok(Begin::Write(_) | Begin::Wait { .. }) => {}
            Ok(Begin::Reuse(reused)) => {
                let row = self.shared.profile.open_source(name);
                let outcome = SourceOutcome::without_data("reused", reused.reason.clone());
                self.shared.profile.close_source(row, outcome);
            }
            Err(error) => self.record_failure(name, error),
        }
        begun
    }

    fn decide(&self, name: &str, fingerprint: Option<&str>, cancel: &Cancel) -> Result<Begin> {
        self.shared.cancel.check()?;
        check_source_name(name)?;
        self.enter_name(name)?;
        let begun = self.shared.begin(name, fingerprint, cancel);
        if let Ok(Begin::Wait { .. }) = begun {
            // The same source will ask again.
            self.names().remove(&fold_source_name(name));
        }
        begun
    }

    fn names(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.shared
            .names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn enter_name(&self, name: &str) -> Result<()> {
        let folded = fold_source_name(name);
        let mut names = self.names();
        if let Some(other) = names.get(&folded) {
            let reason = if other == name {
                "an earlier source of this call has the same name".to_owned()
            } else {
                format!(
                    "it differs from the name of an earlier source of this call, {other:?}, in case or \
                     Unicode form alone, and both are one folder on some file systems"
                )
            };
            return Err(Error::SourceName {
                name: name.to_owned(),
                reason,
            });
        }
        names.insert(folded, name.to_owned());
        Ok(())
    }

    /// Whether another block may be submitted, to whichever source.
    pub fn has_room(&self) -> bool {
        self.shared.flow.has_room()
    }

    /// Whether space is so short that a source may use up what another one of the call needs, or gives back when it
    /// fails. Then no source should begin, or take more samples, before those ahead of it have their outcome.
    pub fn is_short_of_space(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed)
            || disk::free_bytes(&self.shared.base).is_some_and(|free| free < AMPLE_SPACE)
    }

    /// How far the call is; cheap enough to be asked at any time.
    pub fn progress(&self) -> Progress {
        let counters = &self.shared.counters;
        Progress {
            samples: counters.samples.load(Ordering::Relaxed),
            payload_bytes: counters.payload_bytes.load(Ordering::Relaxed),
            stored_bytes: counters.stored_bytes.load(Ordering::Relaxed),
            committed: counters.published.load(Ordering::Relaxed),
        }
    }

    /// Adds time that the caller spent in a stage, in `count` steps.
    pub fn profile_add(&self, stage: Stage, time: Duration, count: u64) {
        self.shared.profile.add(stage, time, count);
    }

    /// Puts a source into the summary that failed outside of the session, such as one without a usable name.
    pub fn record_failure(&self, name: &str, error: &Error) {
        let row = self.shared.profile.open_source(name);
        self.shared
            .profile
            .close_source(row, SourceOutcome::failed(error));
    }

    /// The summary so far as JSON.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub fn profile_json(&self) -> Result<String> {
        let progress = self.progress();
        self.shared.profile.to_json(&Totals {
            options: &self.shared.options,
            num_workers: self.shared.pool.num_workers(),
            interrupted: self.shared.cancel.is_cancelled(),
            samples: progress.samples,
            payload_bytes: progress.payload_bytes,
            stored_bytes: progress.stored_bytes,
        })
    }

    /// Writes the summary so far to `path`, over what is there.
    ///
    /// # Errors
    /// [`Error::Io`] when the file can't be written.
    pub fn write_profile(&self, path: &Path) -> Result<()> {
        disk::replace_file(path, self.profile_json()?.as_bytes())
    }
}

impl std::fmt::Debug for WriteSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteSession")
            .field("base", &self.shared.base)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn begin(
        self: &Arc<Self>,
        name: &str,
        fingerprint: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Begin> {
        let path = self.base.join(name);
        let mut neighbours = self
            .neighbours
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = neighbours.clash(&self.base, name, cancel)? {
            return Err(Error::SourceName {
                name: name.to_owned(),
                reason: format!(
                    "the cache {other:?} stands in {}, and both names are one folder on some file systems",
                    self.base.display()
                ),
            });
        }
        drop(neighbours);
        for _ in 0..TARGET_CHANGES {
            let decision = self.look(&path, fingerprint, cancel)?;
            if let Decision::Reuse(reuse) = decision {
                return Ok(Begin::Reuse(Reused::new(&path, reuse)));
            }
            match self.stage(name, &path, &decision)? {
                Staged::Changed => {}
                Staged::Held(holder) => return Ok(Begin::Wait { holder }),
                Staged::Ready(staging) => {
                    let writer =
                        SourceWriter::new(self.clone(), name, fingerprint, path, decision, staging);
                    return Ok(Begin::Write(writer));
                }
            }
        }
        Err(restless(&path))
    }

    /// Looks at a target and decides.
    pub(crate) fn look(
        &self,
        path: &Path,
        fingerprint: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Decision> {
        let reuse = self.options.create_or_reuse;
        let target = inspect(path, reuse && self.options.validate_cache, cancel)?;
        if reuse {
            decide(path, target, fingerprint, self.options.on_mismatch)
        } else {
            decide_fresh(path, target)
        }
    }

    fn stage(&self, name: &str, path: &Path, decision: &Decision) -> Result<Staged> {
        disk::create_dir_all(&self.base)?;
        let Some(tmp) = Tmp::enter(&self.base, true)? else {
            return Err(Error::Internal("tmp was not made".to_owned()));
        };
        let live = tmp.clean();
        let holder = live.into_iter().find(|holder| holder.writes(name));
        let staged = match holder {
            Some(holder) if self.options.create_or_reuse => Ok(Staged::Held(holder.description)),
            // A writer that ended since we looked has published before it gave up its folder; so what stands is looked
            // at AFTER the folders.
            _ if !still_stands(path, decision) => Ok(Staged::Changed),
            _ => tmp.stage(&self.base, name).map(Staged::Ready),
        };
        if !matches!(staged, Ok(Staged::Ready(_))) {
            tmp.leave();
        }
        staged
    }
}

enum Staged {
    /// What stands is not what was decided about.
    Changed,
    /// A live writer is at work.
    Held(String),
    Ready(Staging),
}

fn still_stands(path: &Path, decision: &Decision) -> bool {
    match decision {
        Decision::Fresh(_) => path.symlink_metadata().is_err(),
        Decision::Rebuild(place, _) => Place::of(path) == Some(*place),
        Decision::Reuse(_) => true,
    }
}

/// The error for a target that others change faster than it can be looked at.
pub(crate) fn restless(path: &Path) -> Error {
    Error::Exists {
        path: path.to_path_buf(),
        message: "other processes keep replacing what stands there; nothing was stored".to_owned(),
    }
}
