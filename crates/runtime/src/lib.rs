//! The DatasetRT runtime: files, maps, worker pool, writer, reader, sampler and active table.
//!
//! No Python and no Polars: tables cross as Arrow, payloads as memory that the caller provides.
#![deny(unsafe_code)]

mod active;
mod cancel;
mod dataset;
mod error;
mod export;
mod files;
mod forked;
mod mapped;
mod pool;
mod reader;
mod region;
mod sampler;
mod weights;

pub use active::{ActiveTable, SampleRef, UpdateReport};
pub use cancel::Cancel;
pub use dataset::{Cursor, Dataset, ReaderOptions, Window};
pub use error::{Error, Fault, Result};
pub use pool::{MAX_WORKERS, Pool};
pub use reader::{
    Block, BlockSizing, BlockStream, Cache, CacheOptions, GatheredColumns, MAX_BLOCK_BYTES,
    MAX_BLOCK_SAMPLES, MAX_PREFETCH_BYTES, PayloadBuffers, Poll, ReadPlan, VecBuffers, Waiter,
    verify,
};
pub use sampler::{
    CACHE_HEADS, LoaderPart, MAX_ROWS, Mode, POSITION_FORMAT, POSITION_VERSION, POSITIONS,
    PositionError, PositionItem, RankPart, RankPolicy, RowsDigest, SAMPLING_ALGORITHM, Sampler,
    SamplerConfig, SavedPosition, Step, StreamProgress, TableDigests, WeightsDigest, WindowError,
    caches_digest, window_end,
};
pub use weights::{Normalize, balanced_weight};
