//! The whole check of a cache that goes on after the first problem, and says what each costs.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataset_rt_format::constants::{CHECK_BLOCK, SHARD_TRAILER_LEN};
use dataset_rt_format::{
    CacheFiles, FormatError, INDEX_FILE, IndexEntry, IndexHeader, MANIFEST_FILE, METADATA_FILE,
    Manifest, MetadataLayout, Section, ShardFooter, ShardHeader, ShardInfo, ShardTrailer,
    check_block, check_lengths, crc32c, decode_sums, shard_path,
};

use crate::active::SampleRef;
use crate::cancel::Cancel;
use crate::error::{Error, Result};

use super::cache::{Cache, CacheOptions};
use super::loaded::Loaded;
use super::problem::{Problem, Problems};
use super::slots::VecBuffers;
use super::stream::ReadPlan;
use super::survey::{check_record, is_damage, slice, survey};
use super::verify::{WholeFiles, verify};

/// Samples read at once when it is counted which of them can be read, and bytes of them.
const COUNTED_AT_ONCE: u64 = 256;
const COUNTED_BYTES: u64 = 16 << 20;
const ENTRY: u64 = 16;
const RAW_LEN: u64 = 4;

/// What is known about a cache after every byte of it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The cache's folder.
    pub path: PathBuf,
    /// Samples that it should have; `None` where the manifest can't be read.
    pub samples: Option<u64>,
    /// Samples that a dataset of it gives, payload and metadata. 0 when it can't be opened.
    pub readable: u64,
    /// What is wrong, the first error of [`verify`] among it. Empty: every byte is right.
    pub problems: Vec<Problem>,
    /// Problems above [`MAX_PROBLEMS`](super::MAX_PROBLEMS), which are counted only.
    pub omitted: u64,
    /// Whether shards and metadata are whole, so that the rest can be made again.
    pub repairable: bool,
}

/// Looks at every byte of a cache and lists all that is wrong. A whole cache is read once; of a damaged one each sample
/// is tried besides.
///
/// # Errors
/// [`Error::NotFound`] for a folder without a cache, [`Error::Damaged`] for a cache of a later version alone,
/// [`Error::Io`], and [`Error::Interrupted`].
pub fn examine(path: &Path, options: CacheOptions, cancel: &Cancel) -> Result<VerifyReport> {
    let first = match verify(path, options, cancel) {
        Ok(manifest) => {
            return Ok(VerifyReport {
                path: std::path::absolute(path).map_err(|e| Error::io("resolve", path, e))?,
                samples: Some(manifest.samples),
                readable: manifest.samples,
                problems: vec![],
                omitted: 0,
                repairable: true,
            });
        }
        Err(error) if is_damage(&error) => error,
        Err(error) => return Err(error),
    };
    let files = WholeFiles::new(path, options, cancel)?;
    let mut problems = Problems::default();
    let manifest = files.size(MANIFEST_FILE).and_then(|_| {
        let bytes = files.read(MANIFEST_FILE)?;
        Manifest::parse(bytes.as_ref()).map_err(|error| files.refuse(MANIFEST_FILE, error))
    });
    let mut examination = Examination {
        files: &files,
        problems: &mut problems,
        options,
    };
    let (samples, readable) = match &manifest {
        Ok(manifest) => {
            examination.files_of(manifest)?;
            examination.include(first)?;
            (Some(manifest.samples), examination.count(manifest)?)
        }
        Err(_) => {
            examination.include(first)?;
            examination.index(None)?;
            (None, 0)
        }
    };
    let mut found = Problems::default();
    let repairable = survey(&files, &mut found)?.is_some();
    if manifest.is_err() {
        // Without a manifest the survey is all that is known of the rest.
        problems.list.append(&mut found.list);
        problems.omitted += found.omitted;
    }
    Ok(VerifyReport {
        path: files.folder().path().to_path_buf(),
        samples,
        readable,
        problems: problems.list,
        omitted: problems.omitted,
        repairable,
    })
}

struct Examination<'a> {
    files: &'a WholeFiles<'a>,
    problems: &'a mut Problems,
    options: CacheOptions,
}

/// An index whose head is sound.
struct Index {
    bytes: super::verify::Bytes,
    header: IndexHeader,
    metadata_sums: Option<Vec<u32>>,
    /// Blocks of the entries and of the raw lengths that are damaged.
    bad: Vec<Range<u64>>,
}

impl Index {
    /// Entry and raw length of a sample, unless they are damaged.
    fn get(&self, sample: u64) -> Option<(IndexEntry, u32)> {
        if self.bad.iter().any(|range| range.contains(&sample)) {
            return None;
        }
        let bytes = self.bytes.as_ref();
        let entry = slice(bytes, self.header.entries.offset + sample * ENTRY, ENTRY);
        let entry = IndexEntry::decode(entry.first_chunk()?);
        let raw_len = match &self.header.raw_lens {
            None => entry.stored_len,
            Some(section) => {
                let bytes = slice(bytes, section.offset + sample * RAW_LEN, RAW_LEN);
                u32::from_le_bytes(*bytes.first_chunk()?)
            }
        };
        Some((entry, raw_len))
    }
}

impl Examination<'_> {
    /// Adds a problem with its place in the file.
    fn add(
        &mut self,
        name: &str,
        error: FormatError,
        offset: Option<u64>,
        lost: Range<u64>,
    ) -> Result<()> {
        let error = match self.files.refuse(name, error) {
            Error::Damaged {
                path,
                sample,
                offset: None,
                source,
            } => Error::Damaged {
                path,
                sample,
                offset,
                source,
            },
            other => other,
        };
        self.problems.add(error, lost)
    }

    /// Makes sure that the first error of the whole check is in the list.
    fn include(&mut self, first: Error) -> Result<()> {
        let Error::Damaged { path, source, .. } = &first else {
            return Ok(());
        };
        let known = |problem: &Problem| problem.path == *path && problem.code == source.code();
        if !self.problems.list.iter().any(known) {
            self.problems.add(first, 0..0)?;
        }
        Ok(())
    }

    fn files_of(&mut self, manifest: &Manifest) -> Result<()> {
        let all = 0..manifest.samples;
        let index = if self.has_size(INDEX_FILE, manifest.index.size, &all)? {
            self.index(Some(manifest))?
        } else {
            None
        };
        if self.has_size(METADATA_FILE, manifest.metadata.size, &all)? {
            self.metadata(manifest, index.as_ref())?;
        }
        let mut first = 0;
        for (position, shard) in (0..).zip(&manifest.shards) {
            let samples = first..first + shard.samples;
            first = samples.end;
            if self.has_size(&shard_path(&shard.name), shard.size, &samples)? {
                self.shard(manifest, position, shard, samples, index.as_ref())?;
            }
        }
        Ok(())
    }

    /// Whether the file is there with the size of the manifest.
    fn has_size(&mut self, path: &str, stated: u64, lost: &Range<u64>) -> Result<bool> {
        let found = match self.files.size(path) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.problems.add(error, lost.clone())?;
                return Ok(false);
            }
        };
        if found != stated {
            let name = path.to_owned();
            let error = FormatError::FileSize {
                name,
                stated,
                found,
            };
            self.add(path, error, None, lost.clone())?;
        }
        Ok(found == stated)
    }

    fn index(&mut self, manifest: Option<&Manifest>) -> Result<Option<Index>> {
        let samples = manifest.map_or(0, |manifest| manifest.samples);
        let all = 0..samples;
        let file = match self.files.read(INDEX_FILE) {
            Ok(file) => file,
            Err(error) => return self.problems.add(error, all).map(|()| None),
        };
        let bytes = file.as_ref();
        let before = self.problems.len();
        let header = match IndexHeader::decode(bytes, bytes.len() as u64, manifest) {
            Ok(header) => header,
            Err(error) => return self.add(INDEX_FILE, error, Some(0), all).map(|()| None),
        };
        let mut bad = Vec::new();
        let mut sums_of = |section: &Section| {
            let stored = slice(bytes, section.offset, section.length);
            match section.check_crc(stored) {
                Ok(()) => Ok(Some(decode_sums(stored))),
                Err(error) => {
                    let offset = Some(section.offset);
                    self.add(INDEX_FILE, error, offset, all.clone())
                        .map(|()| None)
                }
            }
        };
        let entry_sums = sums_of(&header.entry_sums)?;
        let raw_len_sums = match &header.raw_len_sums {
            Some(section) => sums_of(section)?,
            None => None,
        };
        let metadata_sums = sums_of(&header.metadata_sums)?;
        let arrays = [
            (Some(&header.entries), entry_sums, ENTRY),
            (header.raw_lens.as_ref(), raw_len_sums, RAW_LEN),
        ];
        for (section, sums, width) in arrays {
            let (Some(section), Some(sums)) = (section, sums) else {
                continue;
            };
            let stored = slice(bytes, section.offset, section.length);
            for (block, bytes) in blocks(stored) {
                let Err((stated, found)) = check_block(&sums, block, bytes) else {
                    continue;
                };
                let start = block * CHECK_BLOCK;
                let lost = start / width..((start + CHECK_BLOCK) / width).min(samples);
                let kind = section.kind;
                let error = FormatError::IndexBlockChecksum {
                    kind,
                    block,
                    stated,
                    found,
                };
                bad.push(lost.clone());
                self.add(INDEX_FILE, error, Some(section.offset + start), lost)?;
            }
        }
        if let Err(error) = header.check_gaps(bytes) {
            let offset = match error {
                FormatError::IndexPadding { offset, .. } => Some(offset),
                _ => None,
            };
            self.add(INDEX_FILE, error, offset, 0..0)?;
        }
        let found = crc32c(bytes);
        if let Some(stated) = manifest.map(|manifest| manifest.index.crc32c)
            && stated != found
            && self.problems.len() == before
        {
            let name = INDEX_FILE.to_owned();
            let error = FormatError::FileChecksum {
                name,
                stated,
                found,
            };
            self.add(INDEX_FILE, error, None, 0..0)?;
        }
        let index = Index {
            header,
            metadata_sums,
            bad,
            bytes: file,
        };
        if let Some(manifest) = manifest {
            self.entries(&index, manifest)?;
        }
        Ok(Some(index))
    }

    fn entries(&mut self, index: &Index, manifest: &Manifest) -> Result<()> {
        let limits = manifest.records_limits();
        for sample in 0..manifest.samples {
            let Some((entry, raw_len)) = index.get(sample) else {
                continue;
            };
            let (align, codec) = (manifest.align, manifest.codec);
            let checked = entry
                .check(sample, align, &limits)
                .and_then(|()| check_lengths(sample, codec, entry.stored_len, raw_len));
            if let Err(error) = checked {
                let offset = index.header.entries.offset + sample * ENTRY;
                self.add(INDEX_FILE, error, Some(offset), sample..sample + 1)?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, manifest: &Manifest, index: Option<&Index>) -> Result<()> {
        let all = 0..manifest.samples;
        let file = match self.files.read(METADATA_FILE) {
            Ok(file) => file,
            Err(error) => return self.problems.add(error, all),
        };
        let bytes = file.as_ref();
        let before = self.problems.len();
        if let Some(sums) = index.and_then(|index| index.metadata_sums.as_ref()) {
            for (block, bytes) in blocks(bytes) {
                if let Err((stated, found)) = check_block(sums, block, bytes) {
                    let error = FormatError::MetadataBlockChecksum {
                        block,
                        stated,
                        found,
                    };
                    let offset = Some(block * CHECK_BLOCK);
                    self.add(METADATA_FILE, error, offset, all.clone())?;
                }
            }
        }
        if self.problems.len() != before {
            return Ok(());
        }
        let parsed = MetadataLayout::parse_bytes(bytes, &manifest.schema, manifest.samples);
        if let Err(error) = parsed.and_then(|layout| layout.check_values(bytes)) {
            return self.add(METADATA_FILE, error, None, all);
        }
        let (found, stated) = (crc32c(bytes), manifest.metadata.crc32c);
        if found != stated {
            let name = METADATA_FILE.to_owned();
            let error = FormatError::FileChecksum {
                name,
                stated,
                found,
            };
            self.add(METADATA_FILE, error, None, 0..0)?;
        }
        Ok(())
    }

    fn shard(
        &mut self,
        manifest: &Manifest,
        position: u32,
        shard: &ShardInfo,
        samples: Range<u64>,
        index: Option<&Index>,
    ) -> Result<()> {
        let path = shard_path(&shard.name);
        let file = match self.files.read(&path) {
            Ok(file) => file,
            Err(error) => return self.problems.add(error, samples),
        };
        let bytes = file.as_ref();
        let before = self.problems.len();
        let trailer =
            match ShardTrailer::decode(bytes, bytes.len() as u64, manifest.codec, Some(shard)) {
                Ok(trailer) => Some(trailer),
                Err(error) => {
                    let offset = (bytes.len() as u64).saturating_sub(SHARD_TRAILER_LEN);
                    self.add(&path, error, Some(offset), samples.clone())?;
                    None
                }
            };
        let header = ShardHeader::decode(bytes).and_then(|header| {
            let packed = header.check_packing(manifest.codec, manifest.align);
            packed.map(|()| header)
        });
        if let Err(error) = &header {
            self.add(&path, error.clone(), Some(0), 0..0)?;
        }
        let mut footer = None;
        if let (Some(trailer), Ok(_)) = (&trailer, &header) {
            let range = trailer.footer_range();
            let stored = slice(bytes, range.start, range.end - range.start);
            match ShardFooter::decode(bytes, trailer, stored) {
                Ok(decoded) => footer = Some(decoded),
                Err(error) => self.add(&path, error, Some(range.start), 0..0)?,
            }
        }
        // By the footer, or where that is damaged by the index.
        let mut by_footer = footer.iter().flat_map(|f| f.index_entries(position));
        let mut payload = Vec::new();
        for sample in samples {
            self.files.cancel().check()?;
            let entry = by_footer.next().or_else(|| index?.get(sample));
            let Some((entry, raw_len)) = entry.filter(|(entry, _)| entry.shard == position) else {
                continue;
            };
            let fits = check_lengths(sample, manifest.codec, entry.stored_len, raw_len).is_ok();
            let stored = slice(bytes, entry.offset, u64::from(entry.stored_len));
            if !fits || stored.len() as u64 != u64::from(entry.stored_len) {
                continue;
            }
            let checked = check_record(manifest.codec, stored, raw_len, entry.crc, &mut payload);
            if let Err(error) = checked {
                let error = FormatError::Record {
                    sample,
                    offset: entry.offset,
                    source: Box::new(error),
                };
                self.add(&path, error, None, sample..sample + 1)?;
            }
        }
        if let Some(Err(error)) = footer.as_ref().map(|footer| footer.check_padding(bytes)) {
            let offset = match error {
                FormatError::ShardPadding { offset, .. } => Some(offset),
                _ => None,
            };
            self.add(&path, error, offset, 0..0)?;
        }
        let (found, stated) = (crc32c(bytes), shard.crc32c);
        if found != stated && self.problems.len() == before {
            let error = FormatError::FileChecksum {
                name: path.clone(),
                stated,
                found,
            };
            self.add(&path, error, None, 0..0)?;
        }
        Ok(())
    }

    /// Opens the cache as a dataset does, reads each sample, and says of every problem which samples it costs.
    fn count(&mut self, manifest: &Manifest) -> Result<u64> {
        let cache = match Cache::open(self.files.folder().path(), self.options) {
            Ok(cache) => cache,
            Err(error) => {
                self.include(error)?;
                return Ok(0);
            }
        };
        let loaded = Arc::new(Loaded::new(vec![Arc::new(cache)], true)?);
        let cache = match loaded.cache(0) {
            Some(cache) => cache.clone(),
            None => return Err(Error::Internal("a cache that is not loaded".to_owned())),
        };
        let mut costs = Costs::new(self.problems);
        let mean = manifest.payload_bytes / manifest.samples.max(1);
        let step = (COUNTED_BYTES / mean.max(1)).clamp(1, COUNTED_AT_ONCE);
        let (mut start, mut readable) = (0, 0);
        while start < manifest.samples {
            self.files.cancel().check()?;
            let end = (start + step).min(manifest.samples);
            let samples = (start..end).map(|sample| SampleRef { cache: 0, sample });
            let plan = ReadPlan::new(loaded.clone(), loaded.plan(samples.collect(), false, false));
            let buffers = VecBuffers::allocate(plan.lengths());
            let mut errors = plan.fill(buffers).errors;
            errors.sort_by_key(|(place, _)| *place);
            let mut errors = errors.into_iter().peekable();
            for sample in start..end {
                let mut whole = true;
                while let Some((_, error)) =
                    errors.next_if(|(place, _)| start + u64::from(*place) == sample)
                {
                    whole = false;
                    costs.charge(self.problems, error, sample)?;
                }
                for field in 0..cache.fields().len() {
                    if let Err(error) = cache.value(field, sample) {
                        whole = false;
                        costs.charge(self.problems, error, sample)?;
                    }
                }
                readable += u64::from(whole);
            }
            start = end;
        }
        Ok(readable)
    }
}

/// Which problem an error that a reader meets belongs to.
struct Costs {
    places: HashMap<(PathBuf, Option<u64>), usize>,
}

impl Costs {
    /// What was assumed of each problem's cost is forgotten: reading tells.
    fn new(problems: &mut Problems) -> Self {
        let mut places = HashMap::new();
        for (at, problem) in problems.list.iter_mut().enumerate() {
            problem.lost.clear();
            places
                .entry((problem.path.clone(), problem.offset))
                .or_insert(at);
        }
        Self { places }
    }

    fn charge(&mut self, problems: &mut Problems, error: Error, sample: u64) -> Result<()> {
        let (path, offset, code) = match &error {
            Error::Damaged {
                path,
                offset,
                source,
                ..
            } => (path.clone(), *offset, source.code()),
            _ => return Err(error),
        };
        let key = (path, offset);
        let known = self.places.get(&key).copied().or_else(|| {
            let same = |problem: &Problem| problem.path == key.0 && problem.code == code;
            problems.list.iter().position(same)
        });
        let at = match known {
            Some(at) => at,
            None => {
                problems.add(error, 0..0)?;
                problems.list.len() - 1
            }
        };
        if let Some(problem) = problems.list.get_mut(at) {
            problem.lose(sample);
        }
        self.places.insert(key, at);
        Ok(())
    }
}

fn blocks(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    (0..).zip(bytes.chunks(usize::try_from(CHECK_BLOCK).unwrap_or(usize::MAX)))
}
