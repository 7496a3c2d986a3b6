//! Reading caches: opening, checking at first touch, blocks of payloads and metadata columns.

mod blocks;
mod cache;
mod columns;
mod examine;
mod joined;
mod loaded;
mod lru;
mod metadata;
mod problem;
mod record;
mod scattered;
mod shards;
mod slots;
mod stream;
mod survey;
mod texts;
mod verify;

pub use blocks::{
    BlockSizing, MAX_BATCHES_SAMPLES, MAX_BLOCK_BYTES, MAX_BLOCK_SAMPLES, MAX_PREFETCH_BYTES,
};
pub use cache::{Cache, CacheOptions};
pub use columns::GatheredColumns;
pub use examine::{VerifyReport, examine};
pub use joined::JoinedBuffers;
pub use problem::{MAX_PROBLEMS, Problem};
pub use slots::{PayloadBuffers, VecBuffers};
pub use stream::{Block, BlockStream, Poll, ReadPlan, Waiter};
pub use texts::BlockColumns;
pub use verify::verify;

pub(crate) use blocks::Stream;
pub(crate) use columns::{GatheredColumn, Values};
pub(crate) use loaded::Loaded;
pub(crate) use lru::Mix;
pub(crate) use problem::Problems;
pub(crate) use record::of_sample;
pub(crate) use shards::give_up_files;
pub(crate) use stream::{Order, Source};
pub(crate) use survey::{Survey, survey};
pub(crate) use verify::WholeFiles;
