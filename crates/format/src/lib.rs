//! The DatasetRT on-disk format: bytes to typed values and back. No IO, threads, maps, clock or Python.
//!
//! A cache is a directory:
//!
//! ```text
//! manifest.json      names every other file; written last            Manifest
//! metadata.arrow     one row a sample, an Arrow IPC file              MetadataEncoder, MetadataLayout
//! index.bin          where each sample is                             IndexBuilder, IndexHeader, IndexEntry
//! shards/NAME.bin    the payloads                                     ShardHeader, ShardTrailer
//! ```
//!
//! ```text
//! shard      header 64 | records, aligned | zeros to 64 | footer: {stored_len, crc}, raw_len | trailer 64
//! index.bin  header 128 | section table | entries | raw lengths | sums of both and of the metadata
//! ```
//!
//! A shard of one record, written and read:
//!
//! ```
//! use dataset_rt_format::{
//!     Codec, FooterEntry, ShardFooter, ShardHeader, ShardPlan, ShardTrailer, crc32c, encode_tail,
//! };
//!
//! let header = ShardHeader { codec: Codec::None, align: 3, part: 0, first: 0, ordinal: 0 };
//! let mut file = header.encode().to_vec();
//! let mut plan = ShardPlan::new(Codec::None, 3, 1 << 30);
//! assert_eq!(plan.place(5), 64);
//! file.extend_from_slice(b"hello");
//! let entry = FooterEntry { stored_len: 5, crc: crc32c(b"hello"), raw_len: 5 };
//! let tail = encode_tail(&header.encode(), plan.records_end(), &[entry], Codec::None, true);
//! file.extend_from_slice(&tail.bytes);
//!
//! let trailer = ShardTrailer::decode(&file, file.len() as u64, Codec::None, None)?;
//! let footer = trailer.footer_range();
//! let footer = &file[footer.start as usize..footer.end as usize];
//! let footer = ShardFooter::decode(&file, &trailer, footer)?;
//! assert_eq!(footer.entries(), &[entry]);
//! # Ok::<(), dataset_rt_format::FormatError>(())
//! ```
//!
//! All numbers are little-endian and unsigned. The normative text is `spec/format.md`.
#![forbid(unsafe_code)]

mod checksum;
mod codec;
mod column;
pub mod constants;
mod cursor;
mod error;
mod identity;
mod index;
pub mod layout;
mod manifest;
mod metadata;
mod schema;
mod shard;
mod sums;
mod verify;

pub use checksum::{Crc32c, crc32c, crc32c_combine};
pub use codec::{Codec, decode_lz4_block};
pub use column::{Column, Columns, TextColumn, Value};
pub use constants::{CHECK_BLOCK, MAX_BATCH_ROWS, MAX_BATCH_TEXT, MAX_COMPRESSED_PAYLOAD};
pub use error::{ERROR_CODES, FormatError};
pub use identity::{
    ContentHasher, IdentityBlock, StreamedHasher, identity_of, identity_of_metadata,
};
pub use index::{
    IndexBuilder, IndexEntry, IndexHeader, IndexParts, Section, check_lengths, index_head_len,
    index_prefix_len, section_kind,
};
pub use layout::{
    INDEX_FILE, MANIFEST_FILE, METADATA_FILE, SHARD_DIR, SHARD_SUFFIX, check_shard_name,
    shard_file, shard_name, shard_path,
};
pub use manifest::{FileInfo, Manifest, ShardInfo, SourceInfo};
pub use metadata::{
    BatchLayout, Batcher, ColumnLayout, ColumnSlices, MetadataEncoder, MetadataLayout,
    metadata_contents,
};
pub use schema::{Field, FieldType, Schema, check_field_name};
pub use shard::{
    ChainLink, FooterEntry, ShardFooter, ShardHeader, ShardPlan, ShardTail, ShardTrailer,
    check_chain, encode_tail, footer_len, records_limit, shard_file_size,
};
pub use sums::{BlockSums, check_block, decode_sums, encode_sums};
pub use verify::{CacheFiles, IndexView, verify, verify_identity, verify_metadata, verify_shard};
