//! The last 64 bytes of a shard, and what a writer appends behind the last record.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::footer::{self, FooterEntry};
use super::plan::{footer_len, shard_file_size};
use crate::checksum::crc32c;
use crate::codec::Codec;
use crate::constants::{
    BINARY_VERSION, FOOTER_ALIGNMENT, FORMAT_VERSION, SHARD_END_MAGIC, SHARD_HEADER_LEN,
    SHARD_SIZE_LIMIT, SHARD_TRAILER_LEN, round_up,
};
use crate::cursor::{Cursor, Fill, hex};
use crate::error::FormatError;

const PART: &str = "trailer";
const LAST_OF_PART: u32 = 1;

/// What a shard says about itself at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardTrailer {
    /// The number of records, 1 or more.
    pub count: u64,
    /// Where the footer starts.
    pub footer_offset: u64,
    /// The size of the file.
    pub file_size: u64,
    /// Stands for all lengths and checksums in the shard; the manifest names it.
    pub id: [u8; 16],
    /// CRC of the footer.
    pub footer_crc: u32,
    /// Whether this is the last shard of its part.
    pub last: bool,
}

/// What a writer appends behind the last record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardTail {
    /// Padding, footer and trailer.
    pub bytes: Vec<u8>,
    /// The shard's id.
    pub id: [u8; 16],
    /// The size of the finished file.
    pub file_size: u64,
}

pub(super) fn shard_id(header: &[u8], footer: &[u8], count: u64) -> [u8; 16] {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(header)
        .chain_update(footer)
        .chain_update(count.to_le_bytes())
        .finalize()
        .into();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    id
}

/// Makes the end of a shard whose last record ends at `records_end`.
#[must_use]
pub fn encode_tail(
    header: &[u8; 64],
    records_end: u64,
    entries: &[FooterEntry],
    codec: Codec,
    last: bool,
) -> ShardTail {
    let count = entries.len() as u64;
    let footer = footer::encode(entries, codec);
    let footer_offset = round_up(records_end, FOOTER_ALIGNMENT).unwrap_or(records_end);
    let file_size = shard_file_size(records_end, count, codec);
    let id = shard_id(header, &footer, count);
    let open = Fill::<64>::new()
        .u64(count)
        .u64(footer_offset)
        .u64(file_size)
        .put(&id)
        .u32(crc32c(&footer))
        .u32(if last { LAST_OF_PART } else { 0 })
        .u32(u32::from(BINARY_VERSION));
    let crc = crc32c(open.written());
    let trailer = open.u32(crc).put(&SHARD_END_MAGIC).finish();

    let padding = usize::try_from(footer_offset - records_end).unwrap_or_default();
    let mut bytes = vec![0; padding];
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&trailer);
    ShardTail {
        bytes,
        id,
        file_size,
    }
}

impl ShardTrailer {
    /// Reads and checks the last 64 bytes of a shard of `file_len` bytes.
    ///
    /// # Errors
    /// Codes `shard_damaged`, `version_unsupported` and `shard_invalid`.
    pub fn decode(bytes: &[u8], file_len: u64) -> Result<Self, FormatError> {
        let short = FormatError::ShardShort {
            part: PART,
            found: (bytes.len() as u64).min(file_len),
            needed: SHARD_TRAILER_LEN,
        };
        match bytes.last_chunk::<64>() {
            Some(trailer) if file_len >= SHARD_HEADER_LEN + SHARD_TRAILER_LEN => {
                Self::fields(trailer, file_len).ok_or(short)?
            }
            _ => Err(short),
        }
    }

    fn fields(bytes: &[u8; 64], file_len: u64) -> Option<Result<Self, FormatError>> {
        let mut cursor = Cursor::new(bytes);
        let count = cursor.u64()?;
        let footer_offset = cursor.u64()?;
        let file_size = cursor.u64()?;
        let id = cursor.array::<16>()?;
        let footer_crc = cursor.u32()?;
        let flags = cursor.u32()?;
        let version = cursor.u32()?;
        let stated = cursor.u32()?;
        let magic = cursor.array::<8>()?;
        let checked = || {
            if magic != SHARD_END_MAGIC {
                return Err(FormatError::ShardMagic { part: PART });
            }
            let found = crc32c(&bytes[..52]);
            if found != stated {
                return Err(FormatError::ShardChecksum {
                    part: PART,
                    stated,
                    found,
                });
            }
            if version != u32::from(BINARY_VERSION) {
                let found = u64::from(version);
                return Err(FormatError::VersionUnsupported {
                    found,
                    supported: FORMAT_VERSION,
                });
            }
            if flags & !LAST_OF_PART != 0 {
                return Err(rule("flags", u64::from(flags), "0, 1"));
            }
            if file_size != file_len || file_len >= SHARD_SIZE_LIMIT {
                return Err(rule("size of the file", file_size, &file_len.to_string()));
            }
            let last = flags & LAST_OF_PART != 0;
            let trailer = Self {
                count,
                footer_offset,
                file_size,
                id,
                footer_crc,
                last,
            };
            if count == 0 {
                return Err(rule("count", 0, "1 or more"));
            }
            let footer = SHARD_HEADER_LEN..=file_len - SHARD_TRAILER_LEN;
            if !footer.contains(&footer_offset) || !footer_offset.is_multiple_of(FOOTER_ALIGNMENT) {
                let allowed = format!("a multiple of 64 in {}..={}", footer.start(), footer.end());
                return Err(rule("footer offset", footer_offset, &allowed));
            }
            Ok(trailer)
        };
        Some(checked())
    }

    /// The bytes of the file that the footer takes.
    #[must_use]
    pub fn footer_range(&self) -> Range<u64> {
        self.footer_offset..self.file_size - SHARD_TRAILER_LEN
    }

    /// Checks that the footer is exactly as long as `count` needs with the codec of the header.
    ///
    /// # Errors
    /// [`FormatError::ShardField`].
    pub fn check_layout(&self, codec: Codec) -> Result<(), FormatError> {
        let room = self.footer_range();
        if footer_len(self.count, codec) != room.end - room.start {
            let allowed = format!("what fits a footer of {} bytes", room.end - room.start);
            return Err(rule("count", self.count, &allowed));
        }
        Ok(())
    }

    /// Compares the shard's id with the one that the manifest names.
    ///
    /// # Errors
    /// [`FormatError::ShardMismatch`].
    pub fn check_id(&self, expected: &[u8; 16]) -> Result<(), FormatError> {
        if self.id == *expected {
            return Ok(());
        }
        Err(FormatError::ShardMismatch {
            expected: hex(expected),
            found: hex(&self.id),
        })
    }
}

fn rule(field: &'static str, found: u64, allowed: &str) -> FormatError {
    FormatError::ShardField {
        part: PART,
        field,
        found,
        allowed: allowed.to_owned(),
    }
}
