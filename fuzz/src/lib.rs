//! What the fuzz targets share: a bound on memory, small caches, ways to damage them, and checksums put right.
//!
//! Almost every changed byte breaks a checksum, and nothing behind the checksum would ever be tried. So most targets
//! look at an input twice: as it is, and with its checksums made to fit.

mod bound;
mod caches;
mod damage;
pub mod seal;

pub use bound::Bound;
pub use caches::{Cache, Files, InMemory, load, load_all};
pub use damage::damaged;
