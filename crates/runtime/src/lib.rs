//! The DatasetRT runtime: files, maps, worker pool, writer, reader, sampler and active table.
//!
//! No Python and no Polars: tables cross as Arrow, payloads as memory that the caller provides.
#![deny(unsafe_code)]

mod active;
mod caches;
mod cancel;
mod dataset;
mod disk;
mod error;
mod export;
pub mod expr;
mod files;
mod forked;
mod mapped;
mod pool;
mod reader;
mod region;
mod sampler;
mod vector;
mod writer;

pub use active::{ActiveTable, SampleRef, UpdateReport};
pub use caches::{Caches, PayloadFacts};
pub use cancel::Cancel;
pub use dataset::{CommittedUpdate, Cursor, Dataset, PreparedUpdate, ReaderOptions, Window};
pub use error::{Error, Fault, Result};
pub use pool::{MAX_WORKERS, Pool};
pub use reader::{
    Block, BlockColumns, BlockSizing, BlockStream, Cache, CacheOptions, GatheredColumns,
    JoinedBuffers, MAX_BATCHES_SAMPLES, MAX_BLOCK_BYTES, MAX_BLOCK_SAMPLES, MAX_PREFETCH_BYTES,
    MAX_PROBLEMS, PayloadBuffers, Poll, Problem, ReadPlan, VecBuffers, VerifyReport, Waiter,
    examine, verify,
};
pub use sampler::{
    CACHE_HEADS, LoaderPart, MAX_ROWS, Mode, POSITION_FORMAT, POSITION_VERSION, POSITIONS,
    PositionError, PositionItem, RankPart, RankPolicy, RowsDigest, SAMPLING_ALGORITHM, Sampler,
    SamplerConfig, SavedPosition, Step, StreamProgress, TableDigests, WeightsDigest, WindowError,
    caches_digest, window_end,
};
pub use writer::{
    Begin, DEFAULT_MAX_SHARD_BYTES, DEFAULT_PREFETCH_SIZE, InputBlock, MAX_QUEUED_BYTES,
    MAX_SOURCE_NAME_BYTES, OnMismatch, PayloadList, Progress, RECORD_ALIGNMENT, RepairReport,
    Reused, SourceWriter, Stage, Status, WriteOptions, WriteSession, Written, check_source_name,
    fold_source_name, repair,
};

/// Faults for tests: every change of the disk passes a hook, and is told to a recorder.
#[doc(hidden)]
pub mod fault {
    pub use crate::disk::{Change, Hook, Operation, Recorder, set_hook, set_recorder};
}
