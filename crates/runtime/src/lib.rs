//! The DatasetRT runtime: files, maps, worker pool, writer, reader, sampler and active table.
//!
//! No Python and no Polars: tables cross as Arrow, payloads as memory that the caller provides.
#![deny(unsafe_code)]

mod cancel;
mod error;
mod pool;

pub use cancel::Cancel;
pub use error::{Error, Fault, Result};
pub use pool::{MAX_WORKERS, Pool};
