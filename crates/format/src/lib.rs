//! The DatasetRT on-disk format: bytes to typed values and back. No IO, threads, maps, clock or Python.
#![forbid(unsafe_code)]

mod error;

pub use error::FormatError;
