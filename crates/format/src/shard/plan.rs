//! Where records go, and when a writer begins a new shard.

use crate::codec::Codec;
use crate::constants::{
    FOOTER_ALIGNMENT, SHARD_HEADER_LEN, SHARD_SIZE_LIMIT, SHARD_TRAILER_LEN, round_up,
};

/// Bytes of a footer for `count` records, padding included. Saturates far above every legal size.
#[must_use]
pub fn footer_len(count: u64, codec: Codec) -> u64 {
    let width = if codec.has_raw_lens() { 12 } else { 8 };
    round_up(count.saturating_mul(width), 8).unwrap_or(u64::MAX)
}

/// The size of a finished shard whose last record ends at `records_end`. Saturates.
#[must_use]
pub fn shard_file_size(records_end: u64, count: u64, codec: Codec) -> u64 {
    round_up(records_end, FOOTER_ALIGNMENT)
        .and_then(|footer| footer.checked_add(footer_len(count, codec)))
        .and_then(|end| end.checked_add(SHARD_TRAILER_LEN))
        .unwrap_or(u64::MAX)
}

/// Where the records of a shard of `size` bytes with `samples` records end at the latest; 0 where such a
/// shard can't be.
#[must_use]
pub fn records_limit(size: u64, samples: u64, codec: Codec) -> u64 {
    size.saturating_sub(SHARD_TRAILER_LEN)
        .saturating_sub(footer_len(samples, codec))
}

/// The state of the shard that a writer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardPlan {
    codec: Codec,
    align: u8,
    max_bytes: u64,
    end: u64,
    count: u64,
}

impl ShardPlan {
    /// An empty shard. `max_bytes` is the size that a finished file should not exceed; it is capped at
    /// the format's own limit.
    #[must_use]
    pub fn new(codec: Codec, align: u8, max_bytes: u64) -> Self {
        let max_bytes = max_bytes.min(SHARD_SIZE_LIMIT - 1);
        Self {
            codec,
            align,
            max_bytes,
            end: SHARD_HEADER_LEN,
            count: 0,
        }
    }

    /// Where a record added now would start.
    #[must_use]
    pub fn next_offset(&self) -> u64 {
        // `end` stays near the size limit of 2^40 at most: rounding can't overflow.
        round_up(self.end, 1 << self.align.min(12)).unwrap_or(self.end)
    }

    /// Whether a record of `stored_len` bytes belongs into this shard: it is empty, or the finished file
    /// with the record would not exceed the maximum.
    #[must_use]
    pub fn fits(&self, stored_len: u32) -> bool {
        let end = self.next_offset() + u64::from(stored_len);
        self.count == 0 || shard_file_size(end, self.count + 1, self.codec) <= self.max_bytes
    }

    /// Adds a record and returns where it starts.
    pub fn place(&mut self, stored_len: u32) -> u64 {
        let offset = self.next_offset();
        self.end = offset + u64::from(stored_len);
        self.count += 1;
        offset
    }

    /// Where the last record ends.
    #[must_use]
    pub fn records_end(&self) -> u64 {
        self.end
    }

    /// The number of records.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The size of the finished file.
    #[must_use]
    pub fn file_size(&self) -> u64 {
        shard_file_size(self.end, self.count, self.codec)
    }
}
