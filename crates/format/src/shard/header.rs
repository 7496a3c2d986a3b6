//! The first 64 bytes of a shard.

use crate::checksum::crc32c;
use crate::codec::Codec;
use crate::constants::{BINARY_VERSION, FORMAT_VERSION, MAX_ALIGN, SHARD_HEADER_LEN, SHARD_MAGIC};
use crate::cursor::{Cursor, Fill};
use crate::error::FormatError;

const PART: &str = "header";

/// What a shard says about itself before its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardHeader {
    /// How the records are stored.
    pub codec: Codec,
    /// Alignment of the records, as a power of two.
    pub align: u8,
    /// The ordinal of the task that wrote the shard; 0 for a writer on one machine.
    pub part: u64,
    /// Samples of this part in earlier shards.
    pub first: u64,
    /// Position of the shard in its part.
    pub ordinal: u32,
}

impl ShardHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; 64] {
        let open = Fill::<64>::new()
            .put(&SHARD_MAGIC)
            .u16(BINARY_VERSION)
            .u8(self.codec.byte())
            .u8(self.align)
            .u32(0)
            .u64(self.part)
            .u64(self.first)
            .u32(self.ordinal)
            .skip(24);
        let crc = crc32c(open.written());
        open.u32(crc).finish()
    }

    /// Reads and checks the first 64 bytes of a shard.
    ///
    /// # Errors
    /// Codes `shard_damaged`, `version_unsupported`, `feature_unsupported` and `shard_invalid`.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let Some(header) = bytes.first_chunk::<64>() else {
            let found = bytes.len() as u64;
            return Err(FormatError::ShardShort {
                part: PART,
                found,
                needed: SHARD_HEADER_LEN,
            });
        };
        Self::fields(header).unwrap_or(Err(FormatError::ShardMagic { part: PART }))
    }

    fn fields(bytes: &[u8; 64]) -> Option<Result<Self, FormatError>> {
        let mut cursor = Cursor::new(bytes);
        let magic = cursor.array::<8>()?;
        let version = cursor.u16()?;
        let codec = cursor.u8()?;
        let align = cursor.u8()?;
        let required = cursor.u32()?;
        let part = cursor.u64()?;
        let first = cursor.u64()?;
        let ordinal = cursor.u32()?;
        let reserved = cursor.array::<24>()?;
        let stated = cursor.u32()?;
        let checked = || {
            if magic != SHARD_MAGIC {
                return Err(FormatError::ShardMagic { part: PART });
            }
            let found = crc32c(&bytes[..60]);
            if found != stated {
                return Err(FormatError::ShardChecksum {
                    part: PART,
                    stated,
                    found,
                });
            }
            if version != BINARY_VERSION {
                let found = u64::from(version);
                return Err(FormatError::VersionUnsupported {
                    found,
                    supported: FORMAT_VERSION,
                });
            }
            if required != 0 {
                let features = vec![format!("shard flags {required:#010x}")];
                return Err(FormatError::FeatureUnsupported { features });
            }
            if let Some(byte) = reserved.iter().find(|byte| **byte != 0) {
                return Err(rule("reserved", u64::from(*byte), "0"));
            }
            let Some(codec) = Codec::from_byte(codec) else {
                return Err(rule("codec", u64::from(codec), "0, 1"));
            };
            if align > MAX_ALIGN {
                return Err(rule("align", u64::from(align), "0..=12"));
            }
            Ok(Self {
                codec,
                align,
                part,
                first,
                ordinal,
            })
        };
        Some(checked())
    }

    /// Checks that the shard stores its records as its cache does.
    ///
    /// # Errors
    /// [`FormatError::ShardField`].
    pub fn check_packing(&self, codec: Codec, align: u8) -> Result<(), FormatError> {
        if self.codec != codec {
            let allowed = format!("{}, the cache's", codec.byte());
            return Err(rule("codec", u64::from(self.codec.byte()), &allowed));
        }
        if self.align != align {
            return Err(rule(
                "align",
                u64::from(self.align),
                &format!("{align}, the cache's"),
            ));
        }
        Ok(())
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
