//! From payloads to the bytes of their records: what many workers do at once, for each block by itself.

use std::fmt;
use std::path::Path;

use dataset_rt_format::constants::MAX_PAYLOAD;
use dataset_rt_format::{Codec, Columns, Crc32c, crc32c};

use crate::error::{Error, Result};
use crate::writer::buffers::Buffers;
use crate::writer::flow::Permit;
use crate::writer::profile::{Profile, Stage};

/// Records begin at multiples of this, in the file as well as in a block.
pub const RECORD_ALIGNMENT: usize = 8;
/// Bytes whose checksums, the records' and the block's, are made in turns, while they are in the nearest cache.
const CHECKED_TOGETHER: usize = 16 << 10;

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
    /// The length of all together.
    fn total_bytes(&self) -> u64 {
        (0..self.len()).map(|i| self.get(i).len() as u64).sum()
    }
    /// Gives away the memory of the payloads, if it is one buffer in which they follow each other, each behind as many
    /// zeros as bring it to a multiple of [`RECORD_ALIGNMENT`], and as many behind the last. Afterwards
    /// [`get`](Self::get) is not called.
    fn take_laid(&mut self) -> Option<Vec<u8>> {
        None
    }
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
        self.payloads.total_bytes() + self.columns.text_bytes()
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
    buffers: &Buffers,
    profile: &Profile,
) -> Result<EncodedBlock> {
    let InputBlock {
        mut payloads,
        columns,
    } = block;
    let payload_bytes = payloads.total_bytes();
    let mut records = Vec::with_capacity(payloads.len());
    let body = match codec {
        Codec::None => {
            for index in 0..payloads.len() {
                let len = payload_len(payloads.get(index))?;
                push_record(&mut records, len, len, 0);
            }
            match payloads.take_laid() {
                Some(bytes) => profile.time(Stage::Checksum, || check_laid(&mut records, bytes))?,
                None => store(
                    target,
                    payloads,
                    payload_bytes,
                    &mut records,
                    buffers,
                    profile,
                )?,
            }
        }
        _ => compress(target, codec, payloads, &mut records, buffers, profile)?,
    };
    Ok(EncodedBlock {
        records,
        body,
        columns,
        payload_bytes,
        _permit: permit,
    })
}

/// Adds a record behind the others.
fn push_record(records: &mut Vec<Record>, stored_len: u32, raw_len: u32, crc: u32) {
    let offset = records.last().map_or(0, Record::padded_end);
    records.push(Record {
        offset,
        stored_len,
        raw_len,
        crc,
    });
}

/// Makes the checksums of records that are laid out, and of all their bytes, in one pass.
fn check_laid(records: &mut [Record], bytes: Vec<u8>) -> Result<Body> {
    let mut whole = Crc32c::new();
    let mut done = 0;
    for record in records.iter_mut() {
        let start = usize::try_from(record.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(record.stored_len as usize);
        let Some(payload) = bytes.get(start..end) else {
            return Err(Error::Internal(
                "a payload outside of its buffer".to_owned(),
            ));
        };
        record.crc = crc32c(payload);
        if end - done >= CHECKED_TOGETHER {
            whole.update(bytes.get(done..end).unwrap_or_default());
            done = end;
        }
    }
    let end = records.last().map_or(0, Record::padded_end);
    if bytes.len() as u64 != end {
        let message = format!("{} bytes of records that take {end}", bytes.len());
        return Err(Error::Internal(message));
    }
    whole.update(bytes.get(done..).unwrap_or_default());
    let crc = whole.value();
    Ok(Body::Laid { bytes, crc })
}

/// Payloads as they are that lie here and there: long ones stay there, short ones are gathered.
fn store(
    target: &Path,
    payloads: Box<dyn PayloadList>,
    payload_bytes: u64,
    records: &mut [Record],
    buffers: &Buffers,
    profile: &Profile,
) -> Result<Body> {
    if payload_bytes / (records.len() as u64).max(1) >= DIRECT_MEAN {
        profile.time(Stage::Checksum, || {
            for (index, record) in records.iter_mut().enumerate() {
                record.crc = crc32c(payloads.get(index));
            }
        });
        return Ok(Body::Direct(payloads));
    }
    let mut bytes = buffers.take();
    let total = records.last().map_or(0, Record::padded_end);
    make_room(
        &mut bytes,
        usize::try_from(total).unwrap_or(usize::MAX),
        target,
    )?;
    profile.time(Stage::Compress, || {
        for index in 0..payloads.len() {
            bytes.extend_from_slice(payloads.get(index));
            bytes.resize(bytes.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        }
    });
    // The owner's memory is given back now, not when the block's turn comes.
    drop(payloads);
    profile.time(Stage::Checksum, || check_laid(records, bytes))
}

fn compress(
    target: &Path,
    codec: Codec,
    mut payloads: Box<dyn PayloadList>,
    records: &mut Vec<Record>,
    buffers: &Buffers,
    profile: &Profile,
) -> Result<Body> {
    let count = payloads.len();
    let crcs: Vec<u32> = profile.time(Stage::Checksum, || {
        (0..count).map(|i| crc32c(payloads.get(i))).collect()
    });
    let mut bytes = buffers.take();
    profile.time(Stage::Compress, || {
        for (index, crc) in crcs.into_iter().enumerate() {
            let payload = payloads.get(index);
            let raw_len = payload_len(payload)?;
            make_room(&mut bytes, codec.most_encoded(payload.len()), target)?;
            let stored = codec.encode(payload, &mut bytes);
            bytes.resize(bytes.len().next_multiple_of(RECORD_ALIGNMENT), 0);
            let stored_len = u32::try_from(stored)
                .map_err(|_| Error::Internal(format!("a record of {stored} bytes")))?;
            push_record(records, stored_len, raw_len, crc);
        }
        Ok::<_, Error>(())
    })?;
    if let Some(memory) = payloads.take_laid() {
        buffers.give(memory);
    }
    drop(payloads);
    let crc = profile.time(Stage::Checksum, || crc32c(&bytes));
    Ok(Body::Laid { bytes, crc })
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
