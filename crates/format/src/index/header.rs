//! Header and section table of the index.

use std::ops::Range;

use super::section_kind::{
    ENTRIES, ENTRY_SUMS, FIRST_WITH_CRC, METADATA_SUMS, RAW_LEN_SUMS, RAW_LENS,
};
use crate::checksum::Crc32c;
use crate::codec::Codec;
use crate::constants::{
    BINARY_VERSION, CHECK_BLOCK, FORMAT_VERSION, INDEX_ENTRY_LEN, INDEX_HEADER_LEN, INDEX_MAGIC,
    INDEX_SECTION_LEN, MAX_ALIGN, MAX_INTEGER, RAW_LEN_LEN, SECTION_ALIGNMENT, round_up,
};
use crate::cursor::{Cursor, Fill, hex};
use crate::error::FormatError;
use crate::manifest::Manifest;

/// Where the header's CRC stands.
pub(super) const HEADER_CRC_AT: usize = 124;
/// Section flag: a reader that does not know the kind passes over the section.
const IGNORABLE: u32 = 1;

/// One row of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// What the section holds, see [`section_kind`](crate::section_kind).
    pub kind: u32,
    /// Bit 0: may be ignored.
    pub flags: u32,
    /// Where it starts in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// CRC of the whole section; 0 for kinds below 16.
    pub crc: u32,
}

impl Section {
    /// The bytes of the file that the section takes.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.length
    }

    /// Compares the section's bytes with its CRC in the table.
    ///
    /// # Errors
    /// [`FormatError::IndexSectionChecksum`].
    pub fn check_crc(&self, bytes: &[u8]) -> Result<(), FormatError> {
        let found = crate::crc32c(bytes);
        if found == self.crc && bytes.len() as u64 == self.length {
            return Ok(());
        }
        Err(FormatError::IndexSectionChecksum {
            kind: self.kind,
            stated: self.crc,
            found,
        })
    }

    pub(super) fn encode(&self) -> [u8; 32] {
        Fill::new()
            .u32(self.kind)
            .u32(self.flags)
            .u64(self.offset)
            .u64(self.length)
            .u32(self.crc)
            .u32(0)
            .finish()
    }

    fn error(&self, field: &'static str, found: u64, allowed: impl Into<String>) -> FormatError {
        FormatError::IndexSection {
            kind: self.kind,
            field,
            found,
            allowed: allowed.into(),
        }
    }
}

/// What the index's header and section table say, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexHeader {
    /// How the records are stored.
    pub codec: Codec,
    /// Alignment of the records, as a power of two.
    pub align: u8,
    /// Number of samples.
    pub samples: u64,
    /// Number of shards.
    pub shards: u64,
    /// Size of the index file.
    pub file_size: u64,
    /// Identity of the cache.
    pub identity: [u8; 32],
    /// 16 bytes a sample.
    pub entries: Section,
    /// 4 bytes a sample; with a codec only.
    pub raw_lens: Option<Section>,
    /// Sums of the entries.
    pub entry_sums: Section,
    /// Sums of the raw lengths; with a codec only.
    pub raw_len_sums: Option<Section>,
    /// Sums of `metadata.arrow`.
    pub metadata_sums: Section,
    gaps: Vec<Range<u64>>,
}

/// The length of header and section table, from the first 128 bytes of the file.
///
/// # Errors
/// [`FormatError::IndexMagic`] or [`FormatError::IndexShort`].
pub fn index_head_len(start: &[u8], file_len: u64) -> Result<u64, FormatError> {
    let short = |needed| FormatError::IndexShort {
        found: file_len,
        needed,
    };
    let mut cursor = Cursor::new(start);
    let magic = cursor.array::<8>().ok_or(short(INDEX_HEADER_LEN))?;
    if magic != INDEX_MAGIC {
        return Err(FormatError::IndexMagic);
    }
    let count = cursor
        .bytes(32)
        .and_then(|_| cursor.u32())
        .filter(|_| file_len >= INDEX_HEADER_LEN)
        .ok_or(short(INDEX_HEADER_LEN))?;
    let needed = INDEX_HEADER_LEN + u64::from(count) * INDEX_SECTION_LEN;
    if needed > file_len {
        return Err(short(needed));
    }
    Ok(needed)
}

impl IndexHeader {
    /// Reads and checks header and section table. `head` is at least as long as
    /// [`index_head_len`] says (the whole file will do); `file_len` is the file's real length. Where the
    /// manifest is known, the index must agree with it.
    ///
    /// # Errors
    /// Codes `index_damaged`, `version_unsupported`, `feature_unsupported` and
    /// `index_invalid`.
    pub fn decode(
        head: &[u8],
        file_len: u64,
        manifest: Option<&Manifest>,
    ) -> Result<Self, FormatError> {
        let needed = index_head_len(head, file_len)?;
        let short = FormatError::IndexShort {
            found: head.len() as u64,
            needed,
        };
        let Some(head) = usize::try_from(needed).ok().and_then(|len| head.get(..len)) else {
            return Err(short);
        };
        check_head_crc(head).ok_or(short.clone())??;
        Self::fields(head, file_len, manifest).ok_or(short)?
    }

    fn fields(
        head: &[u8],
        file_len: u64,
        manifest: Option<&Manifest>,
    ) -> Option<Result<Self, FormatError>> {
        let mut cursor = Cursor::new(head);
        let _magic = cursor.array::<8>()?;
        let version = cursor.u16()?;
        let codec = cursor.u8()?;
        let align = cursor.u8()?;
        let required = cursor.u32()?;
        let samples = cursor.u64()?;
        let shards = cursor.u64()?;
        let file_size = cursor.u64()?;
        let count = cursor.u32()?;
        let mut reserved = u64::from(cursor.u32()?);
        let identity = cursor.array::<32>()?;
        let padding = cursor.array::<44>()?;
        let _crc = cursor.u32()?;
        reserved |= padding.iter().fold(0, |all, byte| all | u64::from(*byte));
        let mut table = Vec::new();
        for _ in 0..count {
            let (section, section_reserved) = read_section(&mut cursor)?;
            reserved |= u64::from(section_reserved);
            table.push(section);
        }
        let checked = || {
            if version != BINARY_VERSION {
                let found = u64::from(version);
                return Err(FormatError::VersionUnsupported {
                    found,
                    supported: FORMAT_VERSION,
                });
            }
            expect("reserved", reserved, 0)?;
            if required != 0 {
                let features = vec![format!("index flags {required:#010x}")];
                return Err(FormatError::FeatureUnsupported { features });
            }
            let known = Codec::from_byte(codec).filter(|_| align <= MAX_ALIGN);
            let Some(known_codec) = known else {
                let (field, found, allowed) = match Codec::from_byte(codec) {
                    None => ("codec", codec, "0, 1"),
                    Some(_) => ("align", align, "0..=12"),
                };
                return Err(rule(field, u64::from(found), allowed));
            };
            if !(1..=MAX_INTEGER).contains(&samples) {
                return Err(rule("samples", samples, "1..=2^53-1"));
            }
            if let Some(manifest) = manifest {
                expect("codec", u64::from(codec), u64::from(manifest.codec.byte()))?;
                expect("align", u64::from(align), u64::from(manifest.align))?;
                expect("samples", samples, manifest.samples)?;
                expect("shards", shards, manifest.shards.len() as u64)?;
            }
            expect("size of the file", file_size, file_len)?;
            if let Some(manifest) = manifest.filter(|manifest| manifest.identity != identity) {
                let (expected, found) = (hex(&manifest.identity), hex(&identity));
                return Err(FormatError::IndexIdentity { expected, found });
            }
            check_table(&table, head.len() as u64, file_len)?;
            let find = |kind| table.iter().copied().find(|section| section.kind == kind);
            let need = |kind| find(kind).ok_or(FormatError::IndexSections { kind });
            let with_raw = |kind| match (known_codec.has_raw_lens(), find(kind)) {
                (true, None) | (false, Some(_)) => Err(FormatError::IndexSections { kind }),
                (_, section) => Ok(section),
            };
            let header = Self {
                codec: known_codec,
                align,
                samples,
                shards,
                file_size,
                identity,
                entries: need(ENTRIES)?,
                raw_lens: with_raw(RAW_LENS)?,
                entry_sums: need(ENTRY_SUMS)?,
                raw_len_sums: with_raw(RAW_LEN_SUMS)?,
                metadata_sums: need(METADATA_SUMS)?,
                gaps: gaps(&table, head.len() as u64),
            };
            header.check_lengths()?;
            if let Some(manifest) = manifest {
                expect_length(&header.metadata_sums, sums_len(manifest.metadata.size))?;
            }
            Ok(header)
        };
        Some(checked())
    }

    fn check_lengths(&self) -> Result<(), FormatError> {
        // At most 2^53 samples of 16 bytes: no product below overflows.
        expect_length(&self.entries, self.samples * INDEX_ENTRY_LEN)?;
        expect_length(&self.entry_sums, sums_len(self.entries.length))?;
        if let (Some(raw_lens), Some(sums)) = (&self.raw_lens, &self.raw_len_sums) {
            expect_length(raw_lens, self.samples * RAW_LEN_LEN)?;
            expect_length(sums, sums_len(raw_lens.length))?;
        }
        let sums = &self.metadata_sums;
        if sums.length == 0 || !sums.length.is_multiple_of(4) {
            return Err(sums.error("length", sums.length, "a multiple of 4 above 0"));
        }
        Ok(())
    }

    /// The bytes between sections, which are zero.
    #[must_use]
    pub fn gaps(&self) -> &[Range<u64>] {
        &self.gaps
    }

    /// Checks that the bytes between sections are zero. `file` is the whole file.
    ///
    /// # Errors
    /// [`FormatError::IndexPadding`].
    pub fn check_gaps(&self, file: &[u8]) -> Result<(), FormatError> {
        for gap in &self.gaps {
            let start = usize::try_from(gap.start).unwrap_or(usize::MAX);
            let end = usize::try_from(gap.end).unwrap_or(usize::MAX);
            let bytes = file.get(start..end).unwrap_or_default();
            if let Some((offset, found)) = (gap.start..).zip(bytes).find(|(_, byte)| **byte != 0) {
                return Err(FormatError::IndexPadding {
                    offset,
                    found: *found,
                });
            }
        }
        Ok(())
    }
}

fn gaps(table: &[Section], head_len: u64) -> Vec<Range<u64>> {
    let mut end = head_len;
    let mut gaps = Vec::with_capacity(table.len());
    for section in table {
        gaps.push(end..section.offset);
        end = section.range().end;
    }
    gaps
}

fn rule(field: &'static str, found: u64, allowed: &str) -> FormatError {
    FormatError::IndexField {
        field,
        found,
        allowed: allowed.to_owned(),
    }
}

fn expect(field: &'static str, found: u64, expected: u64) -> Result<(), FormatError> {
    if found == expected {
        Ok(())
    } else {
        Err(rule(field, found, &expected.to_string()))
    }
}

/// Bytes of the sums of a run of `len` bytes.
fn sums_len(len: u64) -> u64 {
    len.div_ceil(CHECK_BLOCK) * 4
}

fn expect_length(section: &Section, expected: u64) -> Result<(), FormatError> {
    if section.length == expected {
        return Ok(());
    }
    Err(section.error("length", section.length, expected.to_string()))
}

pub(super) fn head_crc(head: &[u8]) -> Option<u32> {
    let mut crc = Crc32c::new();
    crc.update(head.get(..HEADER_CRC_AT)?);
    crc.update(head.get(HEADER_CRC_AT + 4..)?);
    Some(crc.value())
}

fn check_head_crc(head: &[u8]) -> Option<Result<(), FormatError>> {
    let found = head_crc(head)?;
    let stated = Cursor::new(head.get(HEADER_CRC_AT..)?).u32()?;
    if found == stated {
        return Some(Ok(()));
    }
    Some(Err(FormatError::IndexHeadChecksum { stated, found }))
}

fn read_section(cursor: &mut Cursor<'_>) -> Option<(Section, u32)> {
    let section = Section {
        kind: cursor.u32()?,
        flags: cursor.u32()?,
        offset: cursor.u64()?,
        length: cursor.u64()?,
        crc: cursor.u32()?,
    };
    Some((section, cursor.u32()?))
}

/// Checks kinds, flags and places of all sections. They follow each other at the next multiple of 64 and
/// fill the file.
fn check_table(table: &[Section], head_len: u64, file_len: u64) -> Result<(), FormatError> {
    let mut before = None;
    for section in table {
        let kind = section.kind;
        if before.is_some_and(|before| kind <= before) {
            return Err(FormatError::IndexSections { kind });
        }
        before = Some(kind);
        let known = is_known(kind);
        let allowed = if known { 0 } else { IGNORABLE };
        if section.flags & !allowed != 0 {
            let allowed = if known { "0" } else { "0, 1" };
            return Err(section.error("flags", u64::from(section.flags), allowed));
        }
        if kind < FIRST_WITH_CRC && section.crc != 0 {
            return Err(section.error("crc", u64::from(section.crc), "0"));
        }
    }
    for section in table {
        if !is_known(section.kind) && section.flags & IGNORABLE == 0 {
            let features = vec![format!("index section {}", section.kind)];
            return Err(FormatError::FeatureUnsupported { features });
        }
    }
    let mut end = head_len;
    for section in table {
        let place = round_up(end, SECTION_ALIGNMENT).unwrap_or(u64::MAX);
        if section.offset != place {
            return Err(section.error("offset", section.offset, place.to_string()));
        }
        end = section.offset.saturating_add(section.length);
        if end > file_len {
            let allowed = format!("up to {}", file_len.saturating_sub(section.offset));
            return Err(section.error("length", section.length, allowed));
        }
    }
    expect("size of the file", file_len, end)
}

fn is_known(kind: u32) -> bool {
    matches!(
        kind,
        ENTRIES | RAW_LENS | ENTRY_SUMS | RAW_LEN_SUMS | METADATA_SUMS
    )
}
