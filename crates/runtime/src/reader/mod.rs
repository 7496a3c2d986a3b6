//! Reading caches: opening, checking at first touch, blocks of payloads and metadata columns.

mod blocks;
mod cache;
mod columns;
mod loaded;
mod lru;
mod metadata;
mod record;
mod shards;
mod slots;
mod stream;
mod verify;

pub use blocks::{BlockSizing, MAX_BLOCK_BYTES, MAX_BLOCK_SAMPLES, MAX_PREFETCH_BYTES};
pub use cache::{Cache, CacheOptions};
pub use columns::GatheredColumns;
pub use slots::{PayloadBuffers, VecBuffers};
pub use stream::{Block, BlockStream, Poll, ReadPlan, Waiter};
pub use verify::verify;

pub(crate) use blocks::Stream;
pub(crate) use columns::{GatheredColumn, Values};
pub(crate) use loaded::Loaded;
pub(crate) use lru::Mix;
pub(crate) use shards::give_up_files;
pub(crate) use stream::{Order, Source};
