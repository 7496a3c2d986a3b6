//! Header and section table of the index.

use std::ops::Range;

use super::section_kind::{
    ENTRIES, ENTRY_SUMS, FIRST_WITH_CRC, METADATA_SUMS, RAW_LEN_SUMS, RAW_LENS,
};
use crate::checksum::Crc32c;
use crate::codec::Codec;
use crate::constants::{
    BINARY_VERSION, CHECK_BLOCK, FORMAT_VERSION, INDEX_ENTRY_LEN, INDEX_HEADER_LEN, INDEX_MAGIC,
    INDEX_SECTION_LEN, MAX_ALIGN, MAX_INTEGER, MAX_SHARDS, RAW_LEN_LEN, SECTION_ALIGNMENT,
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
    /// [`index_head_len`] says (the whole file will do); `file_len` is the file's real length.
    ///
    /// # Errors
    /// Codes `index_damaged`, `version_unsupported`, `feature_unsupported` and `index_invalid`.
    pub fn decode(head: &[u8], file_len: u64) -> Result<Self, FormatError> {
        let needed = index_head_len(head, file_len)?;
        let short = FormatError::IndexShort {
            found: head.len() as u64,
            needed,
        };
        let Some(head) = usize::try_from(needed).ok().and_then(|len| head.get(..len)) else {
            return Err(short);
        };
        check_head_crc(head).ok_or(short.clone())??;
        Self::fields(head, file_len).ok_or(short)?
    }

    fn fields(head: &[u8], file_len: u64) -> Option<Result<Self, FormatError>> {
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
        let reserved = cursor.u32()?;
        let identity = cursor.array::<32>()?;
        let padding = cursor.array::<44>()?;
        let _crc = cursor.u32()?;
        let mut table = Vec::new();
        for _ in 0..count {
            table.push(read_section(&mut cursor)?);
        }
        let checked = || {
            if version != BINARY_VERSION {
                let found = u64::from(version);
                return Err(FormatError::VersionUnsupported {
                    found,
                    supported: FORMAT_VERSION,
                });
            }
            if required != 0 {
                let features = vec![format!("index flags {required:#010x}")];
                return Err(FormatError::FeatureUnsupported { features });
            }
            let rule = |field, found, allowed: &str| FormatError::IndexField {
                field,
                found,
                allowed: allowed.to_owned(),
            };
            let Some(codec) = Codec::from_byte(codec) else {
                return Err(rule("codec", u64::from(codec), "0, 1"));
            };
            if align > MAX_ALIGN {
                return Err(rule("align", u64::from(align), "0..=12"));
            }
            if !(1..=MAX_INTEGER).contains(&samples) {
                return Err(rule("samples", samples, "1..=2^53-1"));
            }
            if !(1..=MAX_SHARDS).contains(&shards) {
                return Err(rule("shards", shards, "1..=2^24"));
            }
            if file_size != file_len {
                return Err(rule("size of the file", file_size, &file_len.to_string()));
            }
            let reserved_bits = padding
                .iter()
                .fold(u64::from(reserved), |all, byte| all | u64::from(*byte));
            if reserved_bits != 0 {
                return Err(rule("reserved", reserved_bits, "0"));
            }
            let sections = check_table(&table, head.len() as u64, file_len)?;
            let find = |kind| {
                sections
                    .iter()
                    .copied()
                    .find(|section| section.kind == kind)
            };
            let need = |kind| find(kind).ok_or(FormatError::IndexSections { kind });
            let with_raw = |kind| match (codec.has_raw_lens(), find(kind)) {
                (true, None) | (false, Some(_)) => Err(FormatError::IndexSections { kind }),
                (_, section) => Ok(section),
            };
            let header = Self {
                codec,
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
            };
            header.check_lengths()?;
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

    /// Checks the index against the manifest that names it.
    ///
    /// # Errors
    /// Code `index_invalid`.
    pub fn check_manifest(&self, manifest: &Manifest) -> Result<(), FormatError> {
        let pairs = [
            (
                "codec",
                u64::from(self.codec.byte()),
                u64::from(manifest.codec.byte()),
            ),
            ("align", u64::from(self.align), u64::from(manifest.align)),
            ("samples", self.samples, manifest.samples),
            ("shards", self.shards, manifest.shards.len() as u64),
        ];
        for (field, found, expected) in pairs {
            if found != expected {
                let allowed = format!("{expected} by the manifest");
                return Err(FormatError::IndexField {
                    field,
                    found,
                    allowed,
                });
            }
        }
        if self.identity != manifest.identity {
            return Err(FormatError::IndexIdentity {
                expected: hex(&manifest.identity),
                found: hex(&self.identity),
            });
        }
        expect_length(&self.metadata_sums, sums_len(manifest.metadata.size))
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

/// Checks that the sections stand in order of kind and of place inside the file; returns the known ones.
fn check_table(
    table: &[(Section, u32)],
    head_len: u64,
    file_len: u64,
) -> Result<Vec<Section>, FormatError> {
    let mut known = Vec::new();
    let (mut before, mut end) = (0, head_len);
    for (section, reserved) in table {
        let kind = section.kind;
        if kind <= before {
            return Err(FormatError::IndexSections { kind });
        }
        before = kind;
        if *reserved != 0 {
            return Err(section.error("reserved", u64::from(*reserved), "0"));
        }
        if section.flags & !IGNORABLE != 0 {
            return Err(section.error("flags", u64::from(section.flags), "0, 1"));
        }
        if !section.offset.is_multiple_of(SECTION_ALIGNMENT) || section.offset < end {
            let allowed = format!("a multiple of 64 from {end}");
            return Err(section.error("offset", section.offset, allowed));
        }
        end = section.offset.saturating_add(section.length);
        if end > file_len {
            let allowed = format!("up to {}", file_len.saturating_sub(section.offset));
            return Err(section.error("length", section.length, allowed));
        }
        if kind < FIRST_WITH_CRC && section.crc != 0 {
            return Err(section.error("crc", u64::from(section.crc), "0"));
        }
        match kind {
            ENTRIES | RAW_LENS | ENTRY_SUMS | RAW_LEN_SUMS | METADATA_SUMS => known.push(*section),
            _ if section.flags & IGNORABLE != 0 => {}
            _ => {
                let features = vec![format!("index section {kind}")];
                return Err(FormatError::FeatureUnsupported { features });
            }
        }
    }
    Ok(known)
}
