//! `metadata.arrow`: an Arrow IPC file that is written and checked here byte for byte.
//!
//! The framing is our own, over the flatbuffer types of the `arrow-ipc` crate: a library's writer would
//! decide our bytes, and would change them with its version. Arrow readers trust their input, so that
//! offsets, bounds and UTF-8 are checked here.

mod access;
mod batch;
mod batcher;
mod contents;
mod encode;
mod errors;
mod footer;
mod frame;
mod layout;

pub use access::ColumnSlices;
pub use batcher::Batcher;
pub use contents::metadata_contents;
pub use encode::MetadataEncoder;
pub use layout::{BatchLayout, ColumnLayout, MetadataLayout};

#[cfg(test)]
mod tests;
