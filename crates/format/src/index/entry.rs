//! One sample's entry in the index.

use crate::codec::Codec;
use crate::constants::{MAX_PAYLOAD, SHARD_HEADER_LEN, SHARD_SIZE_LIMIT};
use crate::cursor::{Cursor, Fill};
use crate::error::FormatError;

const OFFSET_BITS: u32 = 40;
const OFFSET_MASK: u64 = SHARD_SIZE_LIMIT - 1;

/// Where a sample's record is, how long it is stored, and the CRC of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Position of the shard in the manifest; below 2^24.
    pub shard: u32,
    /// Where the record starts in the shard's file; below 2^40.
    pub offset: u64,
    /// Bytes of the record in the file.
    pub stored_len: u32,
    /// CRC of the payload as delivered.
    pub crc: u32,
}

impl IndexEntry {
    /// The entry's 16 bytes. A shard or offset out of range becomes an offset that every reader refuses.
    #[must_use]
    pub fn encode(&self) -> [u8; 16] {
        let in_range = u64::from(self.shard) < (1 << 24) && self.offset < SHARD_SIZE_LIMIT;
        let offset = if in_range { self.offset } else { OFFSET_MASK };
        let position = u64::from(self.shard) << OFFSET_BITS | offset;
        Fill::new()
            .u64(position)
            .u32(self.stored_len)
            .u32(self.crc)
            .finish()
    }

    /// The entry in 16 bytes; nothing is checked yet.
    #[must_use]
    pub fn decode(bytes: &[u8; 16]) -> Self {
        let mut cursor = Cursor::new(bytes);
        let position = cursor.u64().unwrap_or_default();
        Self {
            shard: u32::try_from(position >> OFFSET_BITS).unwrap_or_default(),
            offset: position & OFFSET_MASK,
            stored_len: cursor.u32().unwrap_or_default(),
            crc: cursor.u32().unwrap_or_default(),
        }
    }

    /// Checks that the record lies among the records of its shard.
    ///
    /// `limits` has for each shard of the cache the end of its record area,
    /// [`records_limit`](crate::records_limit); `sample` is named in errors.
    ///
    /// # Errors
    /// [`FormatError::EntryShard`], [`FormatError::EntryOffset`] or [`FormatError::EntryEnd`].
    pub fn check(&self, sample: u64, align: u8, limits: &[u64]) -> Result<(), FormatError> {
        let shard = usize::try_from(self.shard).ok();
        let Some(limit) = shard.and_then(|shard| limits.get(shard)).copied() else {
            let shards = limits.len() as u64;
            return Err(FormatError::EntryShard {
                sample,
                shard: self.shard,
                shards,
            });
        };
        let alignment = 1_u64 << align.min(63);
        if self.offset < SHARD_HEADER_LEN || !self.offset.is_multiple_of(alignment) {
            return Err(FormatError::EntryOffset {
                sample,
                offset: self.offset,
                alignment,
            });
        }
        let end = self.offset + u64::from(self.stored_len);
        if end > limit {
            return Err(FormatError::EntryEnd { sample, end, limit });
        }
        Ok(())
    }
}

/// Checks that a record of `stored_len` bytes may stand for a payload of `raw_len`, before memory for
/// the payload is set aside.
///
/// # Errors
/// [`FormatError::EntryLengths`].
pub fn check_lengths(
    sample: u64,
    codec: Codec,
    stored_len: u32,
    raw_len: u32,
) -> Result<(), FormatError> {
    let (stored_len, raw_len) = (u64::from(stored_len), u64::from(raw_len));
    debug_assert!(raw_len <= MAX_PAYLOAD);
    if codec.lengths_fit(stored_len, raw_len) {
        Ok(())
    } else {
        Err(FormatError::EntryLengths {
            sample,
            stored_len,
            raw_len,
        })
    }
}
