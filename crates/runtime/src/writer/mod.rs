//! Writing caches: from blocks of samples to a published directory.
//!
//! ```text
//! caller   begin -> start(schema) -> submit(block) ... -> finish -> wait
//! workers           encode blocks, many at once (encode)
//!                   append them in order, one at a time (source -> sink: shard, index, metadata)
//!                   close full shards (shard)
//!                   ends of the files, manifest, publishing (sink -> publish)
//! ```
//!
//! No job waits for another: a block that is encoded before its turn stays in a buffer, and whoever completes the next
//! one in order appends all that follow. So one worker is enough, and the bytes depend neither on the number of workers
//! nor on how the source was cut into blocks.

mod buffers;
mod commit;
mod conclude;
mod created;
mod encode;
mod flow;
mod index;
mod metadata;
mod names;
mod neighbours;
mod owner;
mod policy;
mod profile;
mod publish;
mod repair;
mod session;
mod shard;
mod sink;
mod source;
mod staging;
mod target;

pub use encode::{InputBlock, PayloadList, RECORD_ALIGNMENT};
pub use flow::MAX_QUEUED_BYTES;
pub use names::{MAX_SOURCE_NAME_BYTES, check_source_name, fold_source_name};
pub use policy::OnMismatch;
pub use profile::Stage;
pub use repair::{RepairReport, repair};
pub use session::{
    Begin, DEFAULT_MAX_SHARD_BYTES, DEFAULT_PREFETCH_SIZE, Progress, Reused, WriteOptions,
    WriteSession,
};
pub use source::{SourceWriter, Status, Written};

/// What the manifest names as the writer.
pub(crate) const WRITER: &str = concat!("dataset_rt ", env!("CARGO_PKG_VERSION"));
