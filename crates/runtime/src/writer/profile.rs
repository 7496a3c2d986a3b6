//! Where the time of a write goes, as a JSON summary.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::writer::session::WriteOptions;

/// A stage of a write. Stages of several threads run side by side, so that their times can add up to more than the
/// wall clock's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The source's iterator, called for its next sample.
    PythonNext,
    /// Taking payload and metadata out of Python objects.
    PythonExtract,
    /// Waiting because enough blocks are under way.
    IngressWait,
    /// Metadata batches, index entries and the content digest.
    Metadata,
    /// Compression, or the copy in its place, of records.
    Compress,
    /// Checksums of payloads and blocks.
    Checksum,
    /// Writing to files.
    Write,
    /// Waiting until files and directories are on the disk.
    Sync,
    /// The ends of the files and the manifest.
    Finish,
    /// Making the cache visible.
    Publish,
}

impl Stage {
    /// All stages in the order in which a sample meets them.
    pub const ALL: [Self; 10] = [
        Self::PythonNext,
        Self::PythonExtract,
        Self::IngressWait,
        Self::Metadata,
        Self::Compress,
        Self::Checksum,
        Self::Write,
        Self::Sync,
        Self::Finish,
        Self::Publish,
    ];

    /// The stage's name in the summary.
    pub fn name(self) -> &'static str {
        match self {
            Self::PythonNext => "python_next",
            Self::PythonExtract => "python_extract",
            Self::IngressWait => "ingress_wait",
            Self::Metadata => "metadata",
            Self::Compress => "compress",
            Self::Checksum => "checksum",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Finish => "finish",
            Self::Publish => "publish",
        }
    }
}

#[derive(Debug, Default)]
struct Clock {
    nanoseconds: AtomicU64,
    count: AtomicU64,
}

/// The clocks and outcomes of one call.
#[derive(Debug)]
pub(crate) struct Profile {
    enabled: bool,
    started: Instant,
    clocks: [Clock; Stage::ALL.len()],
    sources: Mutex<Vec<SourceRow>>,
}

/// One source in the summary.
#[derive(Clone, Debug, Serialize)]
struct SourceRow {
    name: String,
    outcome: &'static str,
    /// Why it was written or reused, or the error.
    reason: String,
    samples: u64,
    payload_bytes: u64,
    stored_bytes: u64,
    /// From the beginning of the call to the source's outcome.
    finished_at_seconds: f64,
}

/// What became of a source, for the summary.
#[derive(Clone, Debug)]
pub(crate) struct SourceOutcome {
    pub(crate) outcome: &'static str,
    pub(crate) reason: String,
    pub(crate) samples: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) stored_bytes: u64,
}

impl SourceOutcome {
    /// A source that got an error.
    pub(crate) fn failed(error: &Error) -> Self {
        Self::without_data(
            if matches!(error, Error::Interrupted) {
                "interrupted"
            } else {
                "error"
            },
            error.to_string(),
        )
    }

    /// An outcome for which nothing was stored.
    pub(crate) fn without_data(outcome: &'static str, reason: String) -> Self {
        Self {
            outcome,
            reason,
            samples: 0,
            payload_bytes: 0,
            stored_bytes: 0,
        }
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    format: &'static str,
    version: u32,
    library: &'static str,
    interrupted: bool,
    num_workers: usize,
    prefetch_size: usize,
    max_shard_bytes: u64,
    compression: &'static str,
    wall_seconds: f64,
    samples: u64,
    payload_bytes: u64,
    stored_bytes: u64,
    stages: Stages<'a>,
    sources: Vec<SourceRow>,
}

#[derive(Serialize)]
struct StageRow {
    seconds: f64,
    count: u64,
}

/// Serialises as an object in the order of the stages.
struct Stages<'a>(&'a Profile);

impl Serialize for Stages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Stage::ALL.iter().zip(&self.0.clocks).map(|(stage, clock)| {
            let nanoseconds = clock.nanoseconds.load(Ordering::Relaxed);
            let row = StageRow {
                seconds: Duration::from_nanos(nanoseconds).as_secs_f64(),
                count: clock.count.load(Ordering::Relaxed),
            };
            (stage.name(), row)
        }))
    }
}

/// What the summary says beside the clocks.
pub(crate) struct Totals<'a> {
    pub(crate) options: &'a WriteOptions,
    pub(crate) num_workers: usize,
    pub(crate) interrupted: bool,
    pub(crate) samples: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) stored_bytes: u64,
}

impl Profile {
    /// Clocks that stand still unless `enabled`.
    pub(crate) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            started: Instant::now(),
            clocks: std::array::from_fn(|_| Clock::default()),
            sources: Mutex::new(Vec::new()),
        }
    }

    /// Adds time that a stage took, in `count` steps.
    pub(crate) fn add(&self, stage: Stage, time: Duration, count: u64) {
        if !self.enabled {
            return;
        }
        let Some(clock) = Stage::ALL
            .iter()
            .position(|s| *s == stage)
            .and_then(|i| self.clocks.get(i))
        else {
            return;
        };
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        clock.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        clock.count.fetch_add(count, Ordering::Relaxed);
    }

    /// Runs and times one step.
    pub(crate) fn time<T>(&self, stage: Stage, step: impl FnOnce() -> T) -> T {
        if !self.enabled {
            return step();
        }
        let started = Instant::now();
        let result = step();
        self.add(stage, started.elapsed(), 1);
        result
    }

    /// Opens a row for a source, in the order of the calls, and returns its number.
    pub(crate) fn open_source(&self, name: &str) -> usize {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.push(SourceRow {
            name: name.to_owned(),
            outcome: "unfinished",
            reason: String::new(),
            samples: 0,
            payload_bytes: 0,
            stored_bytes: 0,
            finished_at_seconds: 0.0,
        });
        sources.len() - 1
    }

    /// Fills a row.
    pub(crate) fn close_source(&self, number: usize, outcome: SourceOutcome) {
        let at = self.started.elapsed().as_secs_f64();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = sources.get_mut(number) {
            let SourceOutcome {
                outcome,
                reason,
                samples,
                payload_bytes,
                stored_bytes,
            } = outcome;
            let name = std::mem::take(&mut row.name);
            *row = SourceRow {
                name,
                outcome,
                reason,
                samples,
                payload_bytes,
                stored_bytes,
                finished_at_seconds: at,
            };
        }
    }

    /// The summary as JSON, indented, with a newline at its end.
    pub(crate) fn to_json(&self, totals: &Totals<'_>) -> Result<String, Error> {
        let summary = Summary {
            format: "dataset_rt.writer_profile",
            version: 1,
            library: crate::writer::WRITER,
            interrupted: totals.interrupted,
            num_workers: totals.num_workers,
            prefetch_size: totals.options.prefetch_size,
            max_shard_bytes: totals.options.max_shard_bytes,
            compression: totals.options.codec.name(),
            wall_seconds: self.started.elapsed().as_secs_f64(),
            samples: totals.samples,
            payload_bytes: totals.payload_bytes,
            stored_bytes: totals.stored_bytes,
            stages: Stages(self),
            sources: self
                .sources
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        };
        let mut json = serde_json::to_string_pretty(&summary)
            .map_err(|error| Error::Internal(format!("profile summary: {error}")))?;
        json.push('\n');
        Ok(json)
    }
}
