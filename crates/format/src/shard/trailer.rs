//! The last 64 bytes of a shard, and what a writer appends behind the last record.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::footer::{self, FooterEntry};
use super::plan::{records_limit, shard_file_size};
use crate::checksum::crc32c;
use crate::codec::Codec;
use crate::constants::{
    BINARY_VERSION, FOOTER_ALIGNMENT, FORMAT_VERSION, SHARD_END_MAGIC, SHARD_HEADER_LEN,
    SHARD_SIZE_LIMIT, SHARD_TRAILER_LEN, round_up,
};
use crate::cursor::{Cursor, Fill, hex};
use crate::error::FormatError;
use crate::manifest::ShardInfo;

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
    /// Reads and checks the end of a shard of `file_len` bytes, of which `bytes` has the last 64 or more.
    /// `codec` decides how long the footer is; `expected` is what the manifest says, where there is one.
    ///
    /// # Errors
    /// Codes `shard_damaged`, `shard_mismatch`, `version_unsupported` and `shard_invalid`.
    pub fn decode(
        bytes: &[u8],
        file_len: u64,
        codec: Codec,
        expected: Option<&ShardInfo>,
    ) -> Result<Self, FormatError> {
        let needed = shard_file_size(SHARD_HEADER_LEN, 1, Codec::None);
        let found = if bytes.len() < 64 {
            bytes.len() as u64
        } else {
            file_len
        };
        let short = FormatError::ShardShort {
            part: PART,
            found,
            needed,
        };
        match bytes.last_chunk::<64>() {
            Some(trailer) if file_len >= needed => {
                Self::fields(trailer, file_len, codec, expected).ok_or(short)?
            }
            _ => Err(short),
        }
    }

    fn fields(
        bytes: &[u8; 64],
        file_len: u64,
        codec: Codec,
        expected: Option<&ShardInfo>,
    ) -> Option<Result<Self, FormatError>> {
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
        let last = flags & LAST_OF_PART != 0;
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
            if let Some(expected) = expected.filter(|expected| expected.id != id) {
                let (expected, found) = (hex(&expected.id), hex(&id));
                return Err(FormatError::ShardMismatch { expected, found });
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
                let allowed = format!("{file_len}, and less than 2^40");
                return Err(rule("size of the file", file_size, &allowed));
            }
            if count == 0 || expected.is_some_and(|expected| expected.samples != count) {
                let samples = expected.map(|expected| expected.samples.to_string());
                let allowed = samples.unwrap_or_else(|| "1 or more".to_owned());
                return Err(rule("count", count, &allowed));
            }
            let footer = records_limit(file_size, count, codec);
            let place = footer >= SHARD_HEADER_LEN && footer.is_multiple_of(FOOTER_ALIGNMENT);
            if footer_offset != footer || !place {
                let allowed = format!("{footer} by count and size, a multiple of 64 from 64");
                return Err(rule("footer offset", footer_offset, &allowed));
            }
            Ok(Self {
                count,
                footer_offset,
                file_size,
                id,
                footer_crc,
                last,
            })
        };
        Some(checked())
    }

    /// The bytes of the file that the footer takes.
    #[must_use]
    pub fn footer_range(&self) -> Range<u64> {
        self.footer_offset..self.file_size - SHARD_TRAILER_LEN
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
