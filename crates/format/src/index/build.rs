//! Writing the index as a stream: entries first, header and section table last.

use super::header::{HEADER_CRC_AT, Section, head_crc};
use super::section_kind::{ENTRIES, ENTRY_SUMS, METADATA_SUMS, RAW_LEN_SUMS, RAW_LENS};
use crate::checksum::{Crc32c, crc32c};
use crate::codec::Codec;
use crate::constants::{
    BINARY_VERSION, INDEX_ENTRY_LEN, INDEX_HEADER_LEN, INDEX_MAGIC, INDEX_SECTION_LEN,
    SECTION_ALIGNMENT,
};
use crate::cursor::Fill;
use crate::sums::{BlockSums, encode_sums};

/// Where the first entry stands: header and section table are shorter and padded to here.
#[must_use]
pub fn index_prefix_len(codec: Codec) -> u64 {
    pad(INDEX_HEADER_LEN + section_count(codec) * INDEX_SECTION_LEN)
}

fn section_count(codec: Codec) -> u64 {
    if codec.has_raw_lens() { 5 } else { 3 }
}

/// Rounds up to the alignment of sections. Files are far shorter than 2^64 - 64 bytes.
fn pad(len: u64) -> u64 {
    len.next_multiple_of(SECTION_ALIGNMENT)
}

/// Keeps the sums of entries and raw lengths while a writer streams them to the disk.
///
/// Entries go to [`entries_offset`](Self::entries_offset) and onwards; raw lengths are kept aside, since
/// their place is known only at the end.
#[derive(Clone, Debug)]
pub struct IndexBuilder {
    codec: Codec,
    align: u8,
    entries: BlockSums,
    raw_lens: BlockSums,
}

/// What is left to write when the last entry was, and where.
///
/// Bytes between the parts are zero: a file that is written at these places only has holes there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexParts {
    /// Header and section table with padding; goes to offset 0.
    pub head: Vec<u8>,
    /// Where the raw lengths go; with a codec only.
    pub raw_lens_at: Option<u64>,
    /// Where `tail` goes.
    pub tail_at: u64,
    /// The sum sections.
    pub tail: Vec<u8>,
    /// Size of the finished file.
    pub file_size: u64,
    /// CRC of the finished file.
    pub crc: u32,
}

impl IndexBuilder {
    /// No samples yet.
    #[must_use]
    pub fn new(codec: Codec, align: u8) -> Self {
        Self {
            codec,
            align,
            entries: BlockSums::new(),
            raw_lens: BlockSums::new(),
        }
    }

    /// Where the first entry goes.
    #[must_use]
    pub fn entries_offset(&self) -> u64 {
        index_prefix_len(self.codec)
    }

    /// Takes note of encoded entries, in the order of samples.
    pub fn push_entries(&mut self, bytes: &[u8]) {
        self.entries.push(bytes);
    }

    /// Takes note of raw lengths, four bytes each, in the order of samples; with a codec only.
    pub fn push_raw_lens(&mut self, bytes: &[u8]) {
        self.raw_lens.push(bytes);
    }

    /// The number of entries so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.entries.len() / INDEX_ENTRY_LEN
    }

    /// Makes the rest of the file. `metadata_sums` are those of `metadata.arrow`.
    #[must_use]
    pub fn finish(self, shards: u64, identity: [u8; 32], metadata_sums: &[u32]) -> IndexParts {
        let samples = self.samples();
        let prefix = self.entries_offset();
        let mut file = FileCrc::default();
        let mut sections = vec![section(ENTRIES, prefix, self.entries.len(), 0)];
        file.append(prefix, self.entries.crc(), self.entries.len());
        let mut end = prefix + self.entries.len();

        let mut raw_lens_at = None;
        if self.codec.has_raw_lens() {
            let at = pad(end);
            sections.push(section(RAW_LENS, at, self.raw_lens.len(), 0));
            file.append(at, self.raw_lens.crc(), self.raw_lens.len());
            end = at + self.raw_lens.len();
            raw_lens_at = Some(at);
        }

        let tail_at = pad(end);
        let mut tail = Vec::new();
        let mut add_sums = |kind, sums: &[u32]| {
            let bytes = encode_sums(sums);
            let padded = pad(tail.len() as u64);
            tail.resize(usize::try_from(padded).unwrap_or(tail.len()), 0);
            sections.push(section(
                kind,
                tail_at + padded,
                bytes.len() as u64,
                crc32c(&bytes),
            ));
            tail.extend_from_slice(&bytes);
        };
        add_sums(ENTRY_SUMS, &self.entries.finish());
        if self.codec.has_raw_lens() {
            add_sums(RAW_LEN_SUMS, &self.raw_lens.finish());
        }
        add_sums(METADATA_SUMS, metadata_sums);
        file.append(tail_at, crc32c(&tail), tail.len() as u64);
        let file_size = tail_at + tail.len() as u64;

        let start: [u8; 128] = Fill::new()
            .put(&INDEX_MAGIC)
            .u16(BINARY_VERSION)
            .u8(self.codec.byte())
            .u8(self.align)
            .u32(0)
            .u64(samples)
            .u64(shards)
            .u64(file_size)
            .u32(if self.codec.has_raw_lens() { 5 } else { 3 })
            .u32(0)
            .put(&identity)
            .skip(48)
            .finish();
        let mut head = start.to_vec();
        head.extend(sections.iter().flat_map(Section::encode));
        let crc = head_crc(&head).unwrap_or_default();
        for (slot, byte) in head.iter_mut().skip(HEADER_CRC_AT).zip(crc.to_le_bytes()) {
            *slot = byte;
        }
        head.resize(usize::try_from(prefix).unwrap_or(head.len()), 0);
        let crc = file.finish(&head);
        IndexParts {
            head,
            raw_lens_at,
            tail_at,
            tail,
            file_size,
            crc,
        }
    }
}

fn section(kind: u32, offset: u64, length: u64, crc: u32) -> Section {
    Section {
        kind,
        flags: 0,
        offset,
        length,
        crc,
    }
}

/// The CRC of a file whose parts become known out of order, with zeros between them.
#[derive(Default)]
struct FileCrc {
    after_head: Crc32c,
    end: Option<u64>,
}

impl FileCrc {
    fn append(&mut self, at: u64, crc: u32, len: u64) {
        let gap = at - self.end.unwrap_or(at);
        self.after_head
            .update(&[0; 64][..usize::try_from(gap).unwrap_or_default().min(64)]);
        self.after_head.append(crc, len);
        self.end = Some(at + len);
    }

    fn finish(self, head: &[u8]) -> u32 {
        let mut crc = Crc32c::new();
        crc.update(head);
        crc.append(self.after_head.value(), self.after_head.len());
        crc.value()
    }
}
