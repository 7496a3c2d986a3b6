//! Shard files: a header, records, and behind them all that is known about them.

mod chain;
mod footer;
mod header;
mod plan;
mod trailer;

pub use chain::{ChainLink, check_chain};
pub use footer::{FooterEntry, ShardFooter};
pub use header::ShardHeader;
pub use plan::{ShardPlan, footer_len, records_limit, shard_file_size};
pub use trailer::{ShardTail, ShardTrailer, encode_tail};

#[cfg(test)]
mod tests;
