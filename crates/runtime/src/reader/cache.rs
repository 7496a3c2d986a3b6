//! An open cache.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dataset_rt_format::constants::{INDEX_ENTRY_LEN, INDEX_HEADER_LEN, RAW_LEN_LEN};
use dataset_rt_format::{
    Field, FormatError, INDEX_FILE, IndexEntry, IndexHeader, MANIFEST_FILE, METADATA_FILE,
    Manifest, SHARD_DIR, Schema, Value, check_lengths, decode_sums, index_head_len, section_kind,
    shard_file,
};

use crate::error::{Error, Result};
use crate::files::{Directory, Folder, RegularFile, expect_size};
use crate::mapped::Map;
use crate::region::{Region, Section, SectionKind};

use super::metadata::Metadata;
use super::record::Record;
use super::shards::Shards;

/// How the files of a cache are reached.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Whether files may be mapped; otherwise all reads are by position.
    pub use_mmap: bool,
    /// Whether files may be links out of the cache folder.
    pub follow_links: bool,
}

/// An open cache. Never changes; shared by everything that reads from it.
pub struct Cache {
    folder: Folder,
    manifest: Arc<Manifest>,
    shards: Shards,
    entries: Region,
    raw_lens: Option<Region>,
    metadata: Metadata,
    use_mmap: bool,
}

impl Cache {
    /// Opens a cache. Reads the manifest, the head and sums of the index, and where the metadata's columns lie; looks
    /// at the size of every file. What the files hold is checked when it is first used.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the folder has no cache, [`Error::Damaged`] when a file breaks a rule of the format,
    /// [`Error::Io`] when the system refuses.
    pub fn open(path: &Path, options: CacheOptions) -> Result<Self> {
        let CacheOptions {
            use_mmap,
            follow_links,
        } = options;
        let folder = Folder::new(path, follow_links)?;
        let directory = folder.open()?;
        let manifest = Arc::new(read_manifest(&folder, &directory)?);
        check_shard_files(&directory, &manifest)?;

        let file = directory.open_file(INDEX_FILE)?;
        file.expect_size(manifest.index.size)?;
        let index = Index::read(&file, &manifest)?;
        let map = use_mmap
            .then(|| Map::new(file.file(), file.id().size))
            .flatten()
            .map(Arc::new);
        let entries = Region::new(&folder, INDEX_FILE, &file, map.clone(), index.entries)?;
        let raw_lens = match index.raw_lens {
            Some(section) => Some(Region::new(&folder, INDEX_FILE, &file, map, section)?),
            None => None,
        };

        let file = directory.open_file(METADATA_FILE)?;
        file.expect_size(manifest.metadata.size)?;
        let map = use_mmap
            .then(|| Map::new(file.file(), file.id().size))
            .flatten()
            .map(Arc::new);
        let section = Section {
            base: 0,
            len: manifest.metadata.size,
            sums: index.metadata_sums,
            kind: SectionKind::Metadata,
        };
        let region = Region::new(&folder, METADATA_FILE, &file, map, section)?;
        let metadata = Metadata::new(region, &manifest.schema, manifest.samples)?;

        let shards = Shards::new(folder.clone(), manifest.clone(), use_mmap);
        Ok(Self {
            folder,
            manifest,
            shards,
            entries,
            raw_lens,
            metadata,
            use_mmap,
        })
    }

    /// The cache's folder, absolute.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Number of samples, at least 1.
    pub fn samples(&self) -> u64 {
        self.manifest.samples
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The metadata fields.
    pub fn schema(&self) -> &Schema {
        &self.manifest.schema
    }

    /// The metadata fields, in order.
    pub fn fields(&self) -> &[Field] {
        self.manifest.schema.fields()
    }

    /// One metadata value, by the place of its field in [`Cache::fields`].
    ///
    /// # Errors
    /// [`Error::Damaged`] when the file's bytes are not what they should be; [`Error::Internal`] for a field or sample
    /// that does not exist.
    pub fn value(&self, field: usize, sample: u64) -> Result<Value<'_>> {
        self.metadata.value(field, sample)
    }

    /// All metadata values of a sample, in the order of [`Cache::fields`].
    ///
    /// # Errors
    /// Those of [`Cache::value`], also after some values were taken, and those of `take`.
    pub fn values<E: From<Error>>(
        &self,
        sample: u64,
        take: impl FnMut(usize, Value<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.metadata.values(sample, take)
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    pub(crate) fn uses_mmap(&self) -> bool {
        self.use_mmap
    }

    /// Starts to load a sample's index entry.
    #[inline]
    pub(crate) fn prefetch_entry(&self, sample: u64) {
        self.entries.prefetch(sample.wrapping_mul(INDEX_ENTRY_LEN));
        if let Some(raw_lens) = &self.raw_lens {
            raw_lens.prefetch(sample.wrapping_mul(RAW_LEN_LEN));
        }
    }

    /// Where a sample's payload is, checked against the manifest.
    pub(crate) fn record(&self, sample: u64) -> Result<Record> {
        let record = self.found_record(sample);
        self.index_intact()?;
        record
    }

    /// Lengths of the payloads of samples that follow each other, as the index has them: those who read the payloads check.
    pub(crate) fn raw_lens(&self, samples: Range<u64>) -> Result<Vec<u32>> {
        let lens = match &self.raw_lens {
            None => {
                let range = samples.start * INDEX_ENTRY_LEN..samples.end * INDEX_ENTRY_LEN;
                let (entries, _) = self.entries.bytes(range)?.as_chunks();
                let lens = entries.iter().map(IndexEntry::decode);
                lens.map(|entry| entry.stored_len).collect()
            }
            Some(region) => {
                let range = samples.start * RAW_LEN_LEN..samples.end * RAW_LEN_LEN;
                let (lens, _) = region.bytes(range)?.as_chunks();
                lens.iter().map(|&len| u32::from_le_bytes(len)).collect()
            }
        };
        self.index_intact()?;
        Ok(lens)
    }

    /// An error when index entries that were read may have been zeros: see [`Region::intact`].
    pub(crate) fn index_intact(&self) -> Result<()> {
        self.entries.intact()?;
        self.raw_lens.as_ref().map_or(Ok(()), Region::intact)
    }

    /// As [`Cache::record`], for many records: the caller asks [`Cache::index_intact`] once, AFTER all of them.
    #[inline]
    pub(crate) fn found_record(&self, sample: u64) -> Result<Record> {
        let start = sample * INDEX_ENTRY_LEN;
        let bytes = self
            .entries
            .bytes(start..start + INDEX_ENTRY_LEN)?
            .first_chunk();
        let entry = bytes.map(IndexEntry::decode);
        let Some(entry) = entry else {
            return Err(Error::Internal("short index entry".to_owned()));
        };
        let raw_len = match &self.raw_lens {
            None => entry.stored_len,
            Some(region) => {
                let start = sample * RAW_LEN_LEN;
                let bytes = region.bytes(start..start + RAW_LEN_LEN)?.first_chunk();
                bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
            }
        };
        entry
            .check(sample, self.manifest.align, self.shards.limits())
            .and_then(|()| check_lengths(sample, self.manifest.codec, entry.stored_len, raw_len))
            .map_err(|source| {
                self.entries
                    .error(source, Some(self.entries.base() + start))
            })?;
        let IndexEntry {
            shard,
            offset,
            stored_len,
            crc,
        } = entry;
        Ok(Record {
            shard,
            offset,
            stored_len,
            raw_len,
            crc,
        })
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

fn read_manifest(folder: &Folder, directory: &Directory) -> Result<Manifest> {
    let file = match directory.open_file(MANIFEST_FILE) {
        Ok(file) => file,
        Err(error) => return Err(explain_missing_manifest(folder, error)),
    };
    let bytes = file.read_vec(0, file.id().size)?;
    Manifest::parse(&bytes).map_err(|source| Error::damaged(file.path(), source))
}

/// A folder that has none of a cache's files is no broken cache, but no cache at all.
pub(crate) fn explain_missing_manifest(folder: &Folder, error: Error) -> Error {
    let is_absent = |name: &&str| match folder.stat(name) {
        Err(Error::Damaged {
            source: FormatError::FileMissing { name: missing },
            ..
        }) => missing == **name,
        _ => false,
    };
    if ![MANIFEST_FILE, METADATA_FILE, INDEX_FILE]
        .iter()
        .all(is_absent)
    {
        return error;
    }
    Error::NotFound {
        path: folder.path().to_path_buf(),
        message: format!("there is no cache: the folder has no {MANIFEST_FILE}"),
    }
}

/// Every shard is there and has its size: one system call each.
fn check_shard_files(directory: &Directory, manifest: &Manifest) -> Result<()> {
    let directory = directory.open_directory(SHARD_DIR)?;
    for shard in &manifest.shards {
        let name = shard_file(&shard.name);
        let id = directory.stat(&name)?;
        if id.size != shard.size {
            expect_size(&directory.path().join(&name), id, shard.size)?;
        }
    }
    Ok(())
}

struct Index {
    entries: Section,
    raw_lens: Option<Section>,
    metadata_sums: Vec<u32>,
}

impl Index {
    fn read(file: &RegularFile, manifest: &Manifest) -> Result<Self> {
        let size = file.id().size;
        let damaged = |source| Error::damaged(file.path(), source);
        let start = file.read_vec(0, INDEX_HEADER_LEN.min(size))?;
        let head_len = index_head_len(&start, size).map_err(damaged)?;
        let head = file.read_vec(0, head_len)?;
        let header = IndexHeader::decode(&head, size, Some(manifest)).map_err(damaged)?;
        let sums = |section: &dataset_rt_format::Section| {
            let bytes = file.read_vec(section.offset, section.length)?;
            section.check_crc(&bytes).map_err(damaged)?;
            Ok::<_, Error>(decode_sums(&bytes))
        };
        let entries = Section {
            base: header.entries.offset,
            len: header.entries.length,
            sums: sums(&header.entry_sums)?,
            kind: SectionKind::Index(section_kind::ENTRIES),
        };
        let raw_lens = match (&header.raw_lens, &header.raw_len_sums) {
            (Some(section), Some(section_sums)) => Some(Section {
                base: section.offset,
                len: section.length,
                sums: sums(section_sums)?,
                kind: SectionKind::Index(section_kind::RAW_LENS),
            }),
            _ => None,
        };
        Ok(Self {
            entries,
            raw_lens,
            metadata_sums: sums(&header.metadata_sums)?,
        })
    }
}
