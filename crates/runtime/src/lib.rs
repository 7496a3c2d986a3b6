//! The DatasetRT runtime: files, maps, worker pool, writer, reader, sampler and active table.
//!
//! No Python and no Polars: tables cross as Arrow, payloads as memory that the caller provides.
#![deny(unsafe_code)]

mod cancel;
mod disk;
mod error;
mod pool;
mod writer;

pub use cancel::Cancel;
pub use error::{Error, Fault, Result};
pub use pool::{MAX_WORKERS, Pool};
pub use writer::{
    Begin, DEFAULT_MAX_SHARD_BYTES, DEFAULT_PREFETCH_SIZE, InputBlock, MAX_QUEUED_BYTES,
    MAX_SOURCE_NAME_BYTES, OnMismatch, PayloadList, Progress, Reused, SourceWriter, Stage, Status,
    WriteOptions, WriteSession, Written, check_source_name, fold_source_name,
};

/// Faults for tests: every change of the disk passes a hook.
#[doc(hidden)]
pub mod fault {
    pub use crate::disk::{Hook, Operation, set_hook};
}
