//! From payloads to the bytes of their records: what many workers do at once, for each block by itself.

use std::fmt;
use std::path::Path;

use dataset_rt_format::constants::MAX_PAYLOAD;
use dataset_rt_format::{Codec, Columns, crc32c};

use crate::error::{Error, Result};
use crate::writer::flow::Permit;
use crate::writer::profile::{Profile, Stage};

/// Records begin at multiples of this, in the file as well as in a block.
pub(crate) const RECORD_ALIGNMENT: usize = 8;

/// Uncompressed payloads of at least this mean length are written from where they lie; smaller ones are gathered
/// first, since a system call costs more than the copy.
const DIRECT_MEAN: u64 = 64 << 10;

/// Payloads in memory that somebody else owns. It is dropped as a whole when the block is stored, on a worker.
#[expect(
    clippy::len_without_is_empty,
    reason = "an empty list is dropped unseen"
)]
pub trait PayloadList: Send {
    /// How many payloads there are.
    fn len(&self) -> usize;
    /// The bytes of one; empty beyond the end.
    fn get(&self, index: usize) -> &[u8];
}

impl PayloadList for Vec<Vec<u8>> {
    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> &[u8] {
        self.as_slice().get(index).map_or(&[], Vec::as_slice)
    }
}

/// Consecutive samples of a source.
pub struct InputBlock {
    /// One payload a sample.
    pub payloads: Box<dyn PayloadList>,
    /// One row a sample, of the schema that the source was started with.
    pub columns: Columns,
}

impl InputBlock {
    /// Bytes of payloads and text, which is what a block weighs in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.payload_bytes() + self.columns.text_bytes()
    }

    fn payload_bytes(&self) -> u64 {
        (0..self.payloads.len())
            .map(|i| self.payloads.get(i).len() as u64)
            .sum()
    }
}

impl fmt::Debug for InputBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputBlock")
            .field("samples", &self.payloads.len())
            .finish_non_exhaustive()
    }
}

/// One record of an encoded block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// From the block's beginning; a multiple of the alignment.
    pub(crate) offset: u64,
    pub(crate) stored_len: u32,
    pub(crate) raw_len: u32,
    /// Of the payload, not of the stored bytes.
    pub(crate) crc: u32,
}

impl Record {
    /// Where the next record may begin.
    pub(crate) fn padded_end(&self) -> u64 {
        (self.offset + u64::from(self.stored_len)).next_multiple_of(RECORD_ALIGNMENT as u64)
    }
}

/// The stored bytes of a block.
pub(crate) enum Body {
    /// All records with the zeros after each, and the CRC of all that.
    Laid { bytes: Vec<u8>, crc: u32 },
    /// The payloads themselves.
    Direct(Box<dyn PayloadList>),
}

/// A block that is ready to be appended.
pub(crate) struct EncodedBlock {
    pub(crate) records: Vec<Record>,
    pub(crate) body: Body,
    pub(crate) columns: Columns,
    pub(crate) payload_bytes: u64,
    /// Held for its drop.
    pub(crate) _permit: Permit,
}

impl EncodedBlock {
    /// Bytes of all records without the zeros between them.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.records
            .iter()
            .map(|record| u64::from(record.stored_len))
            .sum()
    }
}

/// Encodes a block of the cache that is to stand at `target`.
///
/// # Errors
/// [`Error::Argument`] for a payload that is too long for the format, [`Error::Io`] where there is no memory for one.
pub(crate) fn encode(
    target: &Path,
    block: InputBlock,
    codec: Codec,
    permit: Permit,
    mut bytes: Vec<u8>,
    profile: &Profile,
) -> Result<EncodedBlock> {
    let payload_bytes = block.payload_bytes();
    let InputBlock { payloads, columns } = block;
    let count = payloads.len();
    let crcs: Vec<u32> = profile.time(Stage::Checksum, || {
        (0..count).map(|i| crc32c(payloads.get(i))).collect()
    });
    let direct =
        matches!(codec, Codec::None) && count > 0 && payload_bytes / (count as u64) >= DIRECT_MEAN;
    let mut records = Vec::with_capacity(count);
    let mut offset = 0;
    let laying = std::time::Instant::now();
    bytes.clear();
    for (index, crc) in crcs.into_iter().enumerate() {
        let payload = payloads.get(index);
        let raw_len = payload_len(payload)?;
        let stored_len = if direct {
            raw_len
        } else {
            make_room(&mut bytes, codec.most_encoded(payload.len()), target)?;
            let stored = codec.encode(payload, &mut bytes);
            bytes.resize(bytes.len().next_multiple_of(RECORD_ALIGNMENT), 0);
            u32::try_from(stored)
                .map_err(|_| Error::Internal(format!("a record of {stored} bytes")))?
        };
        let record = Record {
            offset,
            stored_len,
            raw_len,
            crc,
        };
        offset = record.padded_end();
        records.push(record);
    }
    profile.add(Stage::Compress, laying.elapsed(), 1);
    let body = if direct {
        Body::Direct(payloads)
    } else {
        // The owner's memory is given back now, not when the block's turn comes.
        drop(payloads);
        let crc = profile.time(Stage::Checksum, || crc32c(&bytes));
        Body::Laid { bytes, crc }
    };
    Ok(EncodedBlock {
        records,
        body,
        columns,
        payload_bytes,
        _permit: permit,
    })
}

/// Sets memory aside for one record. A payload may be longer than there is memory: that must be an error of its source,
/// not the end of the process.
fn make_room(bytes: &mut Vec<u8>, record: usize, target: &Path) -> Result<()> {
    let needed = record.saturating_add(RECORD_ALIGNMENT);
    bytes.try_reserve(needed).map_err(|_| Error::Io {
        operation: "allocate memory for a record",
        path: target.to_path_buf(),
        hint: format!("; {needed} bytes were asked for"),
        source: std::io::ErrorKind::OutOfMemory.into(),
    })
}

fn payload_len(payload: &[u8]) -> Result<u32> {
    let too_long = |_| Error::Argument {
        argument: "data",
        message: format!(
            "a payload of {} bytes; allowed: up to {MAX_PAYLOAD}",
            payload.len()
        ),
    };
    u32::try_from(payload.len()).map_err(too_long)
}
