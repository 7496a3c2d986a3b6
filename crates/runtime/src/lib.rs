//! The DatasetRT runtime: files, maps, worker pool, writer, reader, sampler and active table.
//!
//! No Python and no Polars: tables cross as Arrow, payloads as memory that the caller provides.
#![deny(unsafe_code)]

mod cancel;
mod error;
mod pool;
mod sampler;
mod weights;

pub use cancel::Cancel;
pub use error::{Error, Fault, Result};
pub use pool::{MAX_WORKERS, Pool};
pub use sampler::{
    CACHE_HEADS, LoaderPart, MAX_ROWS, Mode, POSITION_FORMAT, POSITION_VERSION, POSITIONS,
    PositionError, PositionItem, RankPart, RankPolicy, RowsDigest, SAMPLING_ALGORITHM, Sampler,
    SamplerConfig, SavedPosition, Step, StreamProgress, TableDigests, WeightsDigest, WindowError,
    caches_digest, window_end,
};
pub use weights::{Normalize, balanced_weight};
