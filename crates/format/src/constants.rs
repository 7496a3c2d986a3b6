//! Values that no later release may change: magic bytes, versions, sizes and limits of format version 1.

/// First bytes of a shard file. The high bit, CR LF and Ctrl-Z show transfers that mangle binary files.
pub const SHARD_MAGIC: [u8; 8] = *b"\x89DRTS\r\n\x1A";
/// Last bytes of a shard file.
pub const SHARD_END_MAGIC: [u8; 8] = *b"\x1A\n\rSTRD\x89";
/// First bytes of `index.bin`.
pub const INDEX_MAGIC: [u8; 8] = *b"\x89DRTI\r\n\x1A";
/// First and last bytes of an Arrow IPC file.
pub const ARROW_MAGIC: [u8; 6] = *b"ARROW1";

/// The format version this library reads and writes.
pub const FORMAT_VERSION: u64 = 1;
/// The version number in shard and index headers.
pub const BINARY_VERSION: u16 = 1;

/// Bytes of a shard header; the first record starts here.
pub const SHARD_HEADER_LEN: u64 = 64;
/// Bytes of a shard trailer.
pub const SHARD_TRAILER_LEN: u64 = 64;
/// A shard's footer starts at a multiple of this.
pub const FOOTER_ALIGNMENT: u64 = 64;

/// Bytes of the fixed part of the index header.
pub const INDEX_HEADER_LEN: u64 = 128;
/// Bytes of one row of the index's section table.
pub const INDEX_SECTION_LEN: u64 = 32;
/// Index sections start at multiples of this.
pub const SECTION_ALIGNMENT: u64 = 64;
/// Bytes of one index entry.
pub const INDEX_ENTRY_LEN: u64 = 16;
/// Bytes of one raw length in the index.
pub const RAW_LEN_LEN: u64 = 4;
/// Bytes that share one CRC in the index's sum sections.
pub const CHECK_BLOCK: u64 = 65_536;

/// The record alignment that this library writes, as a power of two (8 bytes).
pub const DEFAULT_ALIGN: u8 = 3;
/// The largest record alignment a shard may declare, as a power of two (4096 bytes).
pub const MAX_ALIGN: u8 = 12;

/// The largest integer in a manifest, and the largest number of samples: 2^53 - 1.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;
/// The largest number of shards in a cache.
pub const MAX_SHARDS: u64 = 1 << 24;
/// A shard file is shorter than this.
pub const SHARD_SIZE_LIMIT: u64 = 1 << 40;
/// The longest payload in bytes.
pub const MAX_PAYLOAD: u64 = u32::MAX as u64;
/// A payload longer than this is stored without compression: the limit of the LZ4 block format.
pub const MAX_COMPRESSED_PAYLOAD: u64 = 0x7E00_0000;
/// The longest text value in bytes.
pub const MAX_TEXT_VALUE: u64 = 1 << 30;
/// The longest field name in bytes of UTF-8.
pub const MAX_FIELD_NAME: usize = 1024;
/// The largest number of metadata fields.
pub const MAX_FIELDS: usize = 4096;
/// Field names that the active metadata table uses itself.
pub const RESERVED_FIELD_NAMES: [&str; 3] = ["weight", "cache_id", "sample_id"];

/// A metadata batch ends after this many rows.
pub const MAX_BATCH_ROWS: usize = 65_536;
/// A metadata batch ends before the row that would bring its text over this many bytes.
pub const MAX_BATCH_TEXT: u64 = 16 << 20;
/// Samples that share one digest in the cache identity.
pub const IDENTITY_BLOCK: usize = 65_536;

/// Rounds `value` up to a multiple of `alignment`; `None` where that does not fit into 64 bits.
///
/// `alignment` must not be zero.
pub(crate) fn round_up(value: u64, alignment: u64) -> Option<u64> {
    value.checked_next_multiple_of(alignment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats what is written above by other means, so that a change of either is noticed.
    #[test]
    fn frozen_values() {
        assert_eq!(
            SHARD_MAGIC,
            [0x89, 0x44, 0x52, 0x54, 0x53, 0x0D, 0x0A, 0x1A]
        );
        assert_eq!(
            SHARD_END_MAGIC,
            [0x1A, 0x0A, 0x0D, 0x53, 0x54, 0x52, 0x44, 0x89]
        );
        assert_eq!(
            INDEX_MAGIC,
            [0x89, 0x44, 0x52, 0x54, 0x49, 0x0D, 0x0A, 0x1A]
        );
        assert_eq!(MAX_INTEGER, 9_007_199_254_740_991);
        assert_eq!(MAX_SHARDS, 16_777_216);
        assert_eq!(SHARD_SIZE_LIMIT, 1_099_511_627_776);
        assert_eq!(MAX_PAYLOAD, 4_294_967_295);
        assert_eq!(MAX_COMPRESSED_PAYLOAD, 2_113_929_216);
        assert_eq!(MAX_TEXT_VALUE, 1_073_741_824);
        assert_eq!(MAX_BATCH_TEXT, 16_777_216);
        assert_eq!((SHARD_HEADER_LEN, SHARD_TRAILER_LEN), (64, 64));
        assert_eq!(
            (INDEX_HEADER_LEN, INDEX_SECTION_LEN, INDEX_ENTRY_LEN),
            (128, 32, 16)
        );
        assert_eq!(
            (CHECK_BLOCK, MAX_BATCH_ROWS, IDENTITY_BLOCK),
            (65_536, 65_536, 65_536)
        );
    }

    #[test]
    fn rounding() {
        assert_eq!(round_up(0, 64), Some(0));
        assert_eq!(round_up(1, 64), Some(64));
        assert_eq!(round_up(64, 64), Some(64));
        assert_eq!(round_up(u64::MAX, 64), None);
    }
}
