//! Checks of whole files, for who wants to know that every byte of a cache is right.
//!
//! Opening a cache is cheap and checks what it touches; these checks read everything. [`verify`] makes all
//! of them in the order that the specification gives, so that every implementation reports the same error
//! first. Its parts may also be called one by one, for shards in parallel.

use sha2::{Digest, Sha256};

use crate::checksum::crc32c;
use crate::codec::Codec;
use crate::constants::CHECK_BLOCK;
use crate::cursor::hex;
use crate::error::FormatError;
use crate::identity::identity_of_metadata;
use crate::index::{IndexEntry, IndexHeader, Section, check_lengths, section_kind};
use crate::layout::{INDEX_FILE, MANIFEST_FILE, METADATA_FILE, shard_path};
use crate::manifest::Manifest;
use crate::metadata::MetadataLayout;
use crate::shard::{ChainLink, ShardFooter, ShardHeader, ShardTrailer, check_chain};
use crate::sums::{check_block, decode_sums};

/// The files of one cache, by their paths below its directory.
pub trait CacheFiles {
    /// The bytes of a file.
    type Bytes: AsRef<[u8]>;
    /// What goes wrong.
    type Error;

    /// The size of a file; `None` if there is none, or it is not a regular file.
    ///
    /// # Errors
    /// Whatever keeps the implementation from knowing.
    fn size(&self, path: &str) -> Result<Option<u64>, Self::Error>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// Whatever keeps the implementation from reading.
    fn read(&self, path: &str) -> Result<Self::Bytes, Self::Error>;

    /// Makes an error of a broken rule in the file at `path`.
    fn refuse(&self, path: &str, error: FormatError) -> Self::Error;
}

/// Makes every check of the format, in the order of the specification, and returns the manifest.
///
/// # Errors
/// The first broken rule, through [`CacheFiles::refuse`], or what reading met.
pub fn verify<F: CacheFiles>(files: &F) -> Result<Manifest, F::Error> {
    let missing = |path: &str| files.refuse(path, FormatError::FileMissing { name: path.into() });
    files
        .size(MANIFEST_FILE)?
        .ok_or_else(|| missing(MANIFEST_FILE))?;
    let manifest = Manifest::parse(files.read(MANIFEST_FILE)?.as_ref())
        .map_err(|error| files.refuse(MANIFEST_FILE, error))?;

    let shard_paths = manifest
        .shards
        .iter()
        .map(|shard| (shard_path(&shard.name), shard.size));
    let own = [
        (METADATA_FILE, manifest.metadata.size),
        (INDEX_FILE, manifest.index.size),
    ];
    let own = own.map(|(path, size)| (path.to_owned(), size));
    for (path, stated) in own.into_iter().chain(shard_paths) {
        let found = files.size(&path)?.ok_or_else(|| missing(&path))?;
        if found != stated {
            let error = FormatError::FileSize {
                name: path.clone(),
                stated,
                found,
            };
            return Err(files.refuse(&path, error));
        }
    }

    let index_bytes = files.read(INDEX_FILE)?;
    let index = IndexView::verify(index_bytes.as_ref(), &manifest)
        .map_err(|error| files.refuse(INDEX_FILE, error))?;
    index
        .verify_entries(&manifest)
        .map_err(|error| files.refuse(INDEX_FILE, error))?;

    let metadata = files.read(METADATA_FILE)?;
    let layout = verify_metadata(metadata.as_ref(), &manifest, index.metadata_sums())
        .map_err(|error| files.refuse(METADATA_FILE, error))?;

    let mut links = Vec::with_capacity(manifest.shards.len());
    let mut first = 0;
    for (position, shard) in (0..).zip(&manifest.shards) {
        let path = shard_path(&shard.name);
        let bytes = files.read(&path)?;
        let link = verify_shard(bytes.as_ref(), &manifest, position, first, &index)
            .map_err(|error| files.refuse(&path, error))?;
        links.push(link);
        first += shard.samples;
    }
    check_chain(&links).map_err(|error| files.refuse(MANIFEST_FILE, error))?;
    verify_identity(&manifest, &index, &layout, metadata.as_ref())
        .map_err(|error| files.refuse(MANIFEST_FILE, error))?;
    Ok(manifest)
}

/// A whole index in memory, every block of it checked.
#[derive(Clone, Debug)]
pub struct IndexView<'a> {
    header: IndexHeader,
    entries: &'a [u8],
    raw_lens: Option<&'a [u8]>,
    metadata_sums: Vec<u32>,
}

impl<'a> IndexView<'a> {
    /// Checks the bytes of the whole index file.
    ///
    /// # Errors
    /// Codes `index_damaged`, `index_invalid`, `version_unsupported`, `feature_unsupported` and
    /// `checksum_mismatch`.
    pub fn verify(bytes: &'a [u8], manifest: &Manifest) -> Result<Self, FormatError> {
        let header = IndexHeader::decode(bytes, bytes.len() as u64, Some(manifest))?;
        let sums = |section: &Section| {
            let stored = section_bytes(bytes, section);
            section.check_crc(stored).map(|()| decode_sums(stored))
        };
        let entry_sums = sums(&header.entry_sums)?;
        let raw_len_sums = header.raw_len_sums.as_ref().map(sums).transpose()?;
        let metadata_sums = sums(&header.metadata_sums)?;
        let entries = section_bytes(bytes, &header.entries);
        check_blocks(section_kind::ENTRIES, &entry_sums, entries)?;
        let raw_lens = header
            .raw_lens
            .as_ref()
            .map(|section| section_bytes(bytes, section));
        if let (Some(raw_lens), Some(sums)) = (raw_lens, raw_len_sums) {
            check_blocks(section_kind::RAW_LENS, &sums, raw_lens)?;
        }
        check_file(
            INDEX_FILE,
            bytes,
            manifest.index.crc32c,
            manifest.index.sha256.as_ref(),
        )?;
        header.check_gaps(bytes)?;
        Ok(Self {
            header,
            entries,
            raw_lens,
            metadata_sums,
        })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// The CRC of each block of `metadata.arrow`.
    #[must_use]
    pub fn metadata_sums(&self) -> &[u32] {
        &self.metadata_sums
    }

    /// Entry and raw length of a sample; `None` beyond the last.
    #[must_use]
    pub fn get(&self, sample: u64) -> Option<(IndexEntry, u32)> {
        let at = usize::try_from(sample).ok()?;
        let entry = IndexEntry::decode(self.entries.as_chunks().0.get(at)?);
        let raw_len = match self.raw_lens {
            Some(raw_lens) => u32::from_le_bytes(*raw_lens.as_chunks().0.get(at)?),
            None => entry.stored_len,
        };
        Some((entry, raw_len))
    }

    /// Checks every entry, and the sums of lengths in the manifest.
    ///
    /// # Errors
    /// Codes `entry_invalid` and `manifest_invalid`.
    pub fn verify_entries(&self, manifest: &Manifest) -> Result<(), FormatError> {
        let limits = manifest.records_limits();
        let (mut payload_bytes, mut stored_bytes) = (0_u64, 0_u64);
        let samples =
            (0..self.header.samples).map_while(|sample| Some((sample, self.get(sample)?)));
        for (sample, (entry, raw_len)) in samples {
            entry.check(sample, self.header.align, &limits)?;
            check_lengths(sample, self.header.codec, entry.stored_len, raw_len)?;
            payload_bytes = payload_bytes.saturating_add(u64::from(raw_len));
            stored_bytes = stored_bytes.saturating_add(u64::from(entry.stored_len));
        }
        let sums = [
            ("payload_bytes", manifest.payload_bytes, payload_bytes),
            ("stored_bytes", manifest.stored_bytes, stored_bytes),
        ];
        for (member, stated, sum) in sums {
            if stated != sum {
                let what = "the lengths in the index";
                return Err(FormatError::ManifestSum {
                    member,
                    what,
                    stated,
                    sum,
                });
            }
        }
        Ok(())
    }
}

/// Checks the bytes of the whole metadata file: blocks, structure, every value, the file's checksums.
///
/// # Errors
/// Codes `metadata_damaged`, `metadata_invalid` and `checksum_mismatch`.
pub fn verify_metadata(
    bytes: &[u8],
    manifest: &Manifest,
    sums: &[u32],
) -> Result<MetadataLayout, FormatError> {
    for (block, bytes) in blocks(bytes) {
        check_block(sums, block, bytes).map_err(|(stated, found)| {
            FormatError::MetadataBlockChecksum {
                block,
                stated,
                found,
            }
        })?;
    }
    let (schema, rows) = (&manifest.schema, manifest.samples);
    let layout = MetadataLayout::parse_bytes(bytes, schema, rows)?;
    layout.check_values(bytes)?;
    let stated = &manifest.metadata;
    check_file(METADATA_FILE, bytes, stated.crc32c, stated.sha256.as_ref())?;
    Ok(layout)
}

/// Checks the bytes of a whole shard against manifest and index, every payload included.
///
/// `position` is the shard's in the manifest, `first` its first sample. All shards together are checked
/// with [`check_chain`] over what this returns.
///
/// # Errors
/// Codes `shard_damaged`, `shard_mismatch`, `shard_invalid`, `version_unsupported`,
/// `feature_unsupported`, `index_invalid`, `record_damaged` and `checksum_mismatch`.
pub fn verify_shard(
    bytes: &[u8],
    manifest: &Manifest,
    position: u32,
    first: u64,
    index: &IndexView<'_>,
) -> Result<ChainLink, FormatError> {
    let shard = usize::try_from(position)
        .ok()
        .and_then(|at| manifest.shards.get(at));
    let Some(shard) = shard else {
        let shards = manifest.shards.len() as u64;
        return Err(FormatError::EntryShard {
            sample: first,
            shard: position,
            shards,
        });
    };
    let codec = manifest.codec;
    let trailer = ShardTrailer::decode(bytes, bytes.len() as u64, codec, Some(shard))?;
    let header = ShardHeader::decode(bytes)?;
    header.check_packing(codec, manifest.align)?;
    let footer_range = trailer.footer_range();
    let footer = ShardFooter::decode(
        bytes,
        &trailer,
        slice(
            bytes,
            footer_range.start,
            footer_range.end - footer_range.start,
        ),
    )?;
    for (sample, (entry, raw_len)) in (first..).zip(footer.index_entries(position)) {
        let found = index.get(sample);
        if found != Some((entry, raw_len)) {
            return Err(FormatError::EntryFooter {
                sample,
                found: format!("{found:?}"),
                expected: format!("{:?}", (entry, raw_len)),
            });
        }
    }
    let mut payload = Vec::new();
    for (sample, (entry, raw_len)) in (first..).zip(footer.index_entries(position)) {
        let stored = slice(bytes, entry.offset, u64::from(entry.stored_len));
        check_record(codec, stored, raw_len, entry.crc, &mut payload).map_err(|error| {
            FormatError::Record {
                sample,
                offset: entry.offset,
                source: Box::new(error),
            }
        })?;
    }
    check_file(
        &shard_path(&shard.name),
        bytes,
        shard.crc32c,
        shard.sha256.as_ref(),
    )?;
    footer.check_padding(bytes)?;
    Ok(ChainLink::new(&header, &trailer))
}

/// Computes the identity from index and metadata and compares it with the manifest's.
///
/// # Errors
/// Codes `identity_mismatch` and `metadata_invalid`.
pub fn verify_identity(
    manifest: &Manifest,
    index: &IndexView<'_>,
    layout: &MetadataLayout,
    metadata: &[u8],
) -> Result<(), FormatError> {
    let found = identity_of_metadata(&manifest.schema, layout, metadata, |row| {
        let (found, expected) = (layout.rows(), index.header.samples);
        match index.get(row) {
            Some((entry, raw_len)) => Ok(Some((raw_len, entry.crc))),
            None => Err(FormatError::MetadataRows { found, expected }),
        }
    })?;
    if found != manifest.identity {
        let (stated, found) = (hex(&manifest.identity), hex(&found));
        return Err(FormatError::IdentityMismatch { stated, found });
    }
    Ok(())
}

/// Decodes a record into `payload` and checks the payload's CRC. A record that is stored raw is not copied
/// and leaves `payload` as it was.
fn check_record(
    codec: Codec,
    stored: &[u8],
    raw_len: u32,
    crc: u32,
    payload: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let raw_len = usize::try_from(raw_len).unwrap_or(usize::MAX);
    let delivered = if stored.len() == raw_len {
        stored
    } else {
        payload.resize(raw_len, 0);
        codec.decode(stored, payload)?;
        payload.as_slice()
    };
    let found = crc32c(delivered);
    if found != crc {
        return Err(FormatError::RecordChecksum { stated: crc, found });
    }
    Ok(())
}

fn check_file(
    name: &str,
    bytes: &[u8],
    stated: u32,
    digest: Option<&[u8; 32]>,
) -> Result<(), FormatError> {
    let found = crc32c(bytes);
    if found != stated {
        return Err(FormatError::FileChecksum {
            name: name.to_owned(),
            stated,
            found,
        });
    }
    if let Some(stated) = digest {
        let found: [u8; 32] = Sha256::digest(bytes).into();
        if found != *stated {
            let (stated, found) = (hex(stated), hex(&found));
            return Err(FormatError::FileDigest {
                name: name.to_owned(),
                stated,
                found,
            });
        }
    }
    Ok(())
}

fn check_blocks(kind: u32, sums: &[u32], bytes: &[u8]) -> Result<(), FormatError> {
    for (block, bytes) in blocks(bytes) {
        check_block(sums, block, bytes).map_err(|(stated, found)| {
            FormatError::IndexBlockChecksum {
                kind,
                block,
                stated,
                found,
            }
        })?;
    }
    Ok(())
}

fn blocks(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    (0..).zip(bytes.chunks(usize::try_from(CHECK_BLOCK).unwrap_or(usize::MAX)))
}

fn section_bytes<'a>(file: &'a [u8], section: &Section) -> &'a [u8] {
    slice(file, section.offset, section.length)
}

/// Bytes of a range that was checked to be inside the file.
fn slice(file: &[u8], start: u64, len: u64) -> &[u8] {
    let range = usize::try_from(start)
        .ok()
        .zip(usize::try_from(start + len).ok());
    range
        .and_then(|(start, end)| file.get(start..end))
        .unwrap_or_default()
}
