//! `manifest.json`: names, sizes and checksums of all that belongs to a cache.
//!
//! The first and the last bytes are the same in every version of the format, so that a reader can tell a
//! damaged manifest from one that is too new: the tail holds the SHA-256 of all bytes before it.

mod members;
mod parse;
mod root;
mod write;

use std::collections::BTreeMap;

use crate::codec::Codec;
use crate::schema::Schema;
use crate::shard::records_limit;

/// First bytes of a manifest; the version number follows.
pub(crate) const PREFIX: &str = "{\"format\":\"dataset_rt.cache\",\"version\":";
/// What stands between the members and the digest.
pub(crate) const TAIL_START: &str = ",\"sha256\":\"";
/// What stands behind the digest.
pub(crate) const TAIL_END: &str = "\"}\n";
/// The length of the tail: start, 64 digits, end.
pub(crate) const TAIL_LEN: usize = TAIL_START.len() + 64 + TAIL_END.len();

/// All that a manifest of version 1 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Features that a reader must know. This version knows none.
    pub required: Vec<String>,
    /// Features that a reader may ignore.
    pub optional: Vec<String>,
    /// Digest of the logical contents.
    pub identity: [u8; 32],
    /// Where the data comes from.
    pub source: SourceInfo,
    /// When the cache was written: RFC 3339, UTC.
    pub created: String,
    /// Which program wrote the cache.
    pub writer: String,
    /// The number of samples, 1 or more.
    pub samples: u64,
    /// The sum of all payloads' lengths.
    pub payload_bytes: u64,
    /// The sum of all records' stored lengths.
    pub stored_bytes: u64,
    /// The metadata fields.
    pub schema: Schema,
    /// How records are stored.
    pub codec: Codec,
    /// The user's own texts.
    pub user: Option<BTreeMap<String, String>>,
    /// What the payloads are.
    pub media_type: Option<String>,
    /// Alignment of records, as a power of two. The manifest holds the number of bytes.
    pub align: u8,
    /// `metadata.arrow`.
    pub metadata: FileInfo,
    /// `index.bin`.
    pub index: FileInfo,
    /// The shards in order.
    pub shards: Vec<ShardInfo>,
}

/// Name and fingerprint of a cache's source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceInfo {
    /// The source's name.
    pub name: String,
    /// A text that changes when the source's data does.
    pub fingerprint: Option<String>,
}

/// Size and checksums of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// Size in bytes.
    pub size: u64,
    /// CRC of the whole file.
    pub crc32c: u32,
    /// SHA-256 of the whole file, where the writer made one.
    pub sha256: Option<[u8; 32]>,
}

/// A shard as the manifest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardInfo {
    /// The file's name without its suffix.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// The number of samples, 1 or more.
    pub samples: u64,
    /// The id in the shard's trailer.
    pub id: [u8; 16],
    /// CRC of the whole file.
    pub crc32c: u32,
    /// SHA-256 of the whole file, where the writer made one.
    pub sha256: Option<[u8; 32]>,
}

impl Manifest {
    /// For each shard, where its records end at the latest; entries of the index are checked with this.
    #[must_use]
    pub fn records_limits(&self) -> Vec<u64> {
        let limit = |shard: &ShardInfo| records_limit(shard.size, shard.samples, self.codec);
        self.shards.iter().map(limit).collect()
    }
}

#[cfg(test)]
mod tests;
