//! Lengths and CRCs of all records of a shard.

use super::header::ShardHeader;
use super::plan::{ShardPlan, footer_len};
use super::trailer::{ShardTrailer, shard_id};
use crate::checksum::crc32c;
use crate::codec::Codec;
use crate::constants::FOOTER_ALIGNMENT;
use crate::cursor::{Cursor, hex};
use crate::error::FormatError;
use crate::index::IndexEntry;

/// What a footer says about one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FooterEntry {
    /// Bytes of the record in the file.
    pub stored_len: u32,
    /// CRC of the payload as delivered.
    pub crc: u32,
    /// Bytes of the payload; equal to `stored_len` without a codec.
    pub raw_len: u32,
}

/// The footer of a shard, checked against its header and trailer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardFooter {
    header: ShardHeader,
    entries: Vec<FooterEntry>,
}

pub(super) fn encode(entries: &[FooterEntry], codec: Codec) -> Vec<u8> {
    let len = usize::try_from(footer_len(entries.len() as u64, codec)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(len);
    for entry in entries {
        bytes.extend_from_slice(&entry.stored_len.to_le_bytes());
        bytes.extend_from_slice(&entry.crc.to_le_bytes());
    }
    if codec.has_raw_lens() {
        bytes.extend(entries.iter().flat_map(|entry| entry.raw_len.to_le_bytes()));
    }
    bytes.resize(len, 0);
    bytes
}

impl ShardFooter {
    /// Reads the footer. `header` is the shard's first 64 bytes, `footer` the bytes at
    /// [`ShardTrailer::footer_range`].
    ///
    /// # Errors
    /// Codes `shard_damaged`, `shard_invalid` and `shard_mismatch`, and those of
    /// [`ShardHeader::decode`].
    pub fn decode(
        header: &[u8],
        trailer: &ShardTrailer,
        footer: &[u8],
    ) -> Result<Self, FormatError> {
        let parsed = ShardHeader::decode(header)?;
        let found = crc32c(footer);
        if found != trailer.footer_crc {
            let stated = trailer.footer_crc;
            return Err(FormatError::ShardChecksum {
                part: "footer",
                stated,
                found,
            });
        }
        let needed = footer_len(trailer.count, parsed.codec);
        let short = FormatError::ShardShort {
            part: "footer",
            found: footer.len() as u64,
            needed,
        };
        if needed != footer.len() as u64 {
            return Err(short);
        }
        let entries = read_entries(footer, trailer.count, parsed.codec)?.ok_or(short)?;
        let read = Self {
            header: parsed,
            entries,
        };
        read.check_records(trailer)?;
        let expected = shard_id(header.get(..64).unwrap_or_default(), footer, trailer.count);
        if expected != trailer.id {
            let (expected, found) = (hex(&expected), hex(&trailer.id));
            return Err(FormatError::ShardId { expected, found });
        }
        Ok(read)
    }

    fn check_records(&self, trailer: &ShardTrailer) -> Result<(), FormatError> {
        let codec = self.header.codec;
        let mut plan = ShardPlan::new(codec, self.header.align, 0);
        for (record, entry) in (0..).zip(&self.entries) {
            let (stored_len, raw_len) = (u64::from(entry.stored_len), u64::from(entry.raw_len));
            if !codec.lengths_fit(stored_len, raw_len) {
                return Err(FormatError::ShardRecord {
                    record,
                    stored_len,
                    raw_len,
                });
            }
            plan.place(entry.stored_len);
        }
        let size = plan.file_size();
        if size != trailer.file_size {
            return Err(FormatError::ShardField {
                part: "trailer",
                field: "size of the file",
                found: trailer.file_size,
                allowed: format!("{size} by the lengths in the footer"),
            });
        }
        Ok(())
    }

    /// The shard's header.
    #[must_use]
    pub fn header(&self) -> &ShardHeader {
        &self.header
    }

    /// The records in order.
    #[must_use]
    pub fn entries(&self) -> &[FooterEntry] {
        &self.entries
    }

    /// Checks that the bytes between records and before the footer are zero. `file` is the whole file.
    ///
    /// # Errors
    /// [`FormatError::ShardPadding`].
    pub fn check_padding(&self, file: &[u8]) -> Result<(), FormatError> {
        let mut plan = ShardPlan::new(self.header.codec, self.header.align, 0);
        for entry in &self.entries {
            let end = plan.records_end();
            check_zeros(file, end, plan.place(entry.stored_len))?;
        }
        let footer = plan.records_end().next_multiple_of(FOOTER_ALIGNMENT);
        check_zeros(file, plan.records_end(), footer)
    }

    /// The index entries and raw lengths of the records, if the shard is number `shard` of its cache:
    /// an index is rebuilt from these.
    pub fn index_entries(&self, shard: u32) -> impl Iterator<Item = (IndexEntry, u32)> {
        let mut plan = ShardPlan::new(self.header.codec, self.header.align, 0);
        self.entries.iter().map(move |entry| {
            let offset = plan.place(entry.stored_len);
            let (stored_len, crc) = (entry.stored_len, entry.crc);
            (
                IndexEntry {
                    shard,
                    offset,
                    stored_len,
                    crc,
                },
                entry.raw_len,
            )
        })
    }
}

/// `None` where the footer is shorter than its count needs.
fn read_entries(
    footer: &[u8],
    count: u64,
    codec: Codec,
) -> Result<Option<Vec<FooterEntry>>, FormatError> {
    let mut cursor = Cursor::new(footer);
    let Some(count) = usize::try_from(count)
        .ok()
        .filter(|count| *count <= footer.len() / 8)
    else {
        return Ok(None);
    };
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let (Some(stored_len), Some(crc)) = (cursor.u32(), cursor.u32()) else {
            return Ok(None);
        };
        entries.push(FooterEntry {
            stored_len,
            crc,
            raw_len: stored_len,
        });
    }
    if codec.has_raw_lens() {
        for entry in &mut entries {
            let Some(raw_len) = cursor.u32() else {
                return Ok(None);
            };
            entry.raw_len = raw_len;
        }
    }
    while let Some(byte) = cursor.u8() {
        if byte != 0 {
            return Err(FormatError::ShardField {
                part: "footer",
                field: "padding",
                found: u64::from(byte),
                allowed: "0".to_owned(),
            });
        }
    }
    Ok(Some(entries))
}

fn check_zeros(file: &[u8], start: u64, end: u64) -> Result<(), FormatError> {
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let bytes = range
        .and_then(|(start, end)| file.get(start..end))
        .unwrap_or_default();
    match (start..).zip(bytes).find(|(_, byte)| **byte != 0) {
        Some((offset, found)) => Err(FormatError::ShardPadding {
            offset,
            found: *found,
        }),
        None => Ok(()),
    }
}
