//! The whole check of a cache: every byte of every file, and what the files say about each other.

use dataset_rt_format::constants::{SHARD_HEADER_LEN, SHARD_TRAILER_LEN};
use dataset_rt_format::{
    ChainLink, ColumnSlices, ContentHasher, Crc32c, FileInfo, FormatError, INDEX_FILE,
    MANIFEST_FILE, METADATA_FILE, Manifest, ShardFooter, ShardHeader, ShardInfo, ShardPlan,
    ShardTrailer, Value, check_chain, crc32c,
};
use sha2::{Digest, Sha256};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::RegularFile;
use crate::mapped;

use super::cache::Cache;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// Checks a cache whole and reports the first problem: sums and structure of every file, every payload, positions,
/// footers, values, totals and the identity.
///
/// Works on the caller's thread, at a few GB/s from memory.
///
/// # Errors
/// [`Error::Damaged`] with file, offset and, for a payload, its sample (of cache 0, as the cache does not know its
/// position among others); [`Error::Interrupted`].
pub fn verify(cache: &Cache, cancel: &Cancel) -> Result<()> {
    let mut checked = Checked::default();
    for step in 0..steps(cache) {
        checked.step(cache, step, cancel)?;
    }
    Ok(())
}

/// Like [`verify`], but goes on after a problem: at most one is reported for each file, and one for the whole.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn find_problems(cache: &Cache, cancel: &Cancel) -> Result<Vec<Error>> {
    let mut checked = Checked::default();
    let mut problems = Vec::new();
    for step in 0..steps(cache) {
        match checked.step(cache, step, cancel) {
            Ok(()) => {}
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            // What the files hold together can't be told when one of them is wrong.
            Err(_) if step + 1 == steps(cache) && !problems.is_empty() => {}
            Err(error) => problems.push(error),
        }
    }
    Ok(problems)
}

const STEP_MANIFEST: usize = 0;
const STEP_INDEX: usize = 1;
const STEP_METADATA: usize = 2;
const STEP_SHARDS: usize = 3;

/// Manifest, index, metadata, each shard, the whole.
fn steps(cache: &Cache) -> usize {
    STEP_SHARDS + cache.manifest().shards.len() + 1
}

/// What earlier steps found, for later ones.
#[derive(Default)]
struct Checked {
    links: Vec<ChainLink>,
    samples: u64,
    payload_bytes: u64,
    stored_bytes: u64,
}

impl Checked {
    fn step(&mut self, cache: &Cache, step: usize, cancel: &Cancel) -> Result<()> {
        cancel.check()?;
        mapped::ensure_guard();
        match step {
            STEP_MANIFEST => check_manifest(cache),
            STEP_INDEX => check_index(cache, cancel),
            STEP_METADATA => check_metadata(cache, cancel),
            _ => match cache.manifest().shards.get(step - STEP_SHARDS) {
                Some(shard) => self.check_shard(cache, step - STEP_SHARDS, shard, cancel),
                None => self.check_whole(cache, cancel),
            },
        }
    }

    fn check_shard(
        &mut self,
        cache: &Cache,
        ordinal: usize,
        shard: &ShardInfo,
        cancel: &Cancel,
    ) -> Result<()> {
        let number = u32::try_from(ordinal).unwrap_or(u32::MAX);
        let first = self.samples;
        // BEFORE anything can fail, so that the samples of the next shard are counted right.
        self.samples += shard.samples;
        let file = cache.shards().file(number)?;
        let mut reader = Sequential::new(&file, shard.sha256.is_some());
        let damaged = |source| Error::damaged(file.path(), source);

        let mut trailer = [0; 64];
        file.read_exact_at(&mut trailer, shard.size.saturating_sub(SHARD_TRAILER_LEN))?;
        let trailer = ShardTrailer::decode(&trailer, shard.size).map_err(damaged)?;
        let header_bytes = reader.take(SHARD_HEADER_LEN)?.to_vec();
        let header = ShardHeader::decode(&header_bytes).map_err(damaged)?;
        let manifest = cache.manifest();
        let (codec, align) = (manifest.codec, manifest.align);
        let facts = [
            (
                "header",
                "codec",
                u64::from(header.codec.byte()),
                u64::from(codec.byte()),
            ),
            ("header", "align", u64::from(header.align), u64::from(align)),
            ("trailer", "count", trailer.count, shard.samples),
        ];
        for (part, field, found, wanted) in facts {
            if found != wanted {
                let allowed = format!("{wanted} by the manifest");
                return Err(damaged(FormatError::ShardField {
                    part,
                    field,
                    found,
                    allowed,
                }));
            }
        }
        let range = trailer.footer_range();
        let footer_bytes = file.read_vec(range.start, range.end - range.start)?;
        let footer =
            ShardFooter::decode(&header_bytes, &trailer, &footer_bytes).map_err(damaged)?;

        let mut plan = ShardPlan::new(codec, align, 0);
        let mut payload = Vec::new();
        for (sample, entry) in (first..).zip(footer.entries()) {
            cancel.check()?;
            let offset = plan.place(entry.stored_len);
            let record = cache.record(sample)?;
            if (record.shard, record.offset) != (number, offset) {
                let found = format!("shard {}, offset {}", record.shard, record.offset);
                let expected = format!("shard {number}, offset {offset}");
                let source = FormatError::EntryPosition {
                    sample,
                    found,
                    expected,
                };
                return Err(cache.entries().error(source, None));
            }
            let stated = (entry.stored_len, entry.crc, entry.raw_len);
            if (record.stored_len, record.crc, record.raw_len) != stated {
                return Err(cache
                    .entries()
                    .error(FormatError::EntryFooter { sample }, None));
            }
            reader.zeros(offset)?;
            let stored = reader.take(entry.stored_len.into())?;
            let crc = if entry.stored_len == entry.raw_len {
                Ok(crc32c(stored))
            } else {
                payload.clear();
                payload.resize(entry.raw_len as usize, 0);
                codec
                    .decode(stored, &mut payload)
                    .map(|()| crc32c(&payload))
            };
            let checked = crc.and_then(|found| match found == entry.crc {
                true => Ok(()),
                false => Err(FormatError::RecordChecksum {
                    stated: entry.crc,
                    found,
                }),
            });
            checked.map_err(|source| Error::Damaged {
                path: file.path().to_path_buf(),
                sample: Some((0, sample)),
                offset: Some(offset),
                source,
            })?;
            self.payload_bytes += u64::from(entry.raw_len);
            self.stored_bytes += u64::from(entry.stored_len);
        }
        reader.zeros(range.start)?;
        reader.read_rest(cancel)?;
        reader.compare(&shard.name, shard.crc32c, shard.sha256)?;
        self.links.push(ChainLink::new(&header, &trailer));
        Ok(())
    }

    fn check_whole(&self, cache: &Cache, cancel: &Cancel) -> Result<()> {
        let manifest = cache.manifest();
        let path = cache.folder().file_path(MANIFEST_FILE);
        let damaged = |source| Error::damaged(&path, source);
        check_chain(&self.links).map_err(damaged)?;
        let sums = [
            ("payload_bytes", manifest.payload_bytes, self.payload_bytes),
            ("stored_bytes", manifest.stored_bytes, self.stored_bytes),
        ];
        for (member, stated, sum) in sums {
            if stated != sum {
                return Err(damaged(FormatError::ManifestSum {
                    member,
                    stated,
                    sum,
                }));
            }
        }
        let found = identity(cache, cancel)?;
        if found != manifest.identity {
            let (stated, found) = (hex(&manifest.identity), hex(&found));
            return Err(damaged(FormatError::IdentityMismatch { stated, found }));
        }
        Ok(())
    }
}

/// The manifest was checked when the cache was opened; it must still be the same.
fn check_manifest(cache: &Cache) -> Result<()> {
    let file = cache.folder().open_file(MANIFEST_FILE)?;
    let bytes = file.read_vec(0, file.id().size)?;
    let manifest = Manifest::parse(&bytes).map_err(|source| Error::damaged(file.path(), source))?;
    if manifest == *cache.manifest() {
        return Ok(());
    }
    let (stated, found) = (hex(&cache.manifest().identity), hex(&manifest.identity));
    Err(Error::damaged(
        file.path(),
        FormatError::IdentityMismatch { stated, found },
    ))
}

fn check_index(cache: &Cache, cancel: &Cancel) -> Result<()> {
    let entries = cache.entries();
    entries.check(0..entries.len())?;
    for sample in 0..cache.samples() {
        cache.record(sample)?;
    }
    check_file(cache, INDEX_FILE, &cache.manifest().index, cancel)
}

fn check_metadata(cache: &Cache, cancel: &Cancel) -> Result<()> {
    let region = cache.metadata().region();
    region.check(0..region.len())?;
    for_each_batch(cache, cancel, |columns, nulls, _| {
        for (column, null_count) in columns.iter().zip(nulls) {
            column.check(*null_count)?;
        }
        Ok(())
    })?;
    check_file(cache, METADATA_FILE, &cache.manifest().metadata, cancel)
}

/// Calls `f` with the columns of each batch, their null counts, and the batch's rows as samples.
fn for_each_batch(
    cache: &Cache,
    cancel: &Cancel,
    mut f: impl FnMut(&[ColumnSlices<'_>], &[u64], std::ops::Range<u64>) -> Result<(), FormatError>,
) -> Result<()> {
    let metadata = cache.metadata();
    let region = metadata.region();
    for batch in metadata.layout().batches() {
        cancel.check()?;
        let mut columns = Vec::with_capacity(batch.columns.len());
        let mut nulls = Vec::with_capacity(batch.columns.len());
        for (column, &field_type) in batch.columns.iter().zip(metadata.layout().types()) {
            let bits = column
                .nulls
                .clone()
                .map(|range| region.bytes(range))
                .transpose()?;
            let values = region.bytes(column.values.clone())?;
            let text = region.bytes(column.text.clone().unwrap_or(0..0))?;
            let slices = ColumnSlices::new(field_type, batch.rows, bits, values, text);
            columns.push(slices.map_err(|source| region.error(source, None))?);
            nulls.push(column.null_count);
        }
        let rows = batch.first_row..batch.first_row + batch.rows;
        let done = f(&columns, &nulls, rows);
        // AFTER reading: a page that could not be loaded reads as zeros.
        region.intact()?;
        done.map_err(|source| region.error(source, None))?;
    }
    Ok(())
}

/// The identity of what the cache holds.
fn identity(cache: &Cache, cancel: &Cancel) -> Result<[u8; 32]> {
    let mut hasher = ContentHasher::new(cache.schema());
    let mut failed = None;
    for_each_batch(cache, cancel, |columns, _, rows| {
        for (row, sample) in (0..).zip(rows) {
            let record = match cache.record(sample) {
                Ok(record) => record,
                Err(error) => {
                    failed.get_or_insert(error);
                    break;
                }
            };
            let values: Result<Vec<Value<'_>>, FormatError> =
                columns.iter().map(|column| column.value(row)).collect();
            hasher.push_row(record.raw_len, record.crc, values?)?;
        }
        Ok(())
    })?;
    match failed {
        Some(error) => Err(error),
        None => Ok(hasher.finish()),
    }
}

fn check_file(cache: &Cache, name: &'static str, facts: &FileInfo, cancel: &Cancel) -> Result<()> {
    let file = cache.folder().open_file(name)?;
    file.expect_size(facts.size)?;
    let mut reader = Sequential::new(&file, facts.sha256.is_some());
    reader.read_rest(cancel)?;
    reader.compare(name, facts.crc32c, facts.sha256)
}

/// Reads a file once from start to end and sums up what it has read.
struct Sequential<'a> {
    file: &'a RegularFile,
    crc: Crc32c,
    sha256: Option<Sha256>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were taken.
    taken: usize,
    /// Offset in the file of the end of the buffer.
    end: u64,
}

impl<'a> Sequential<'a> {
    fn new(file: &'a RegularFile, with_sha256: bool) -> Self {
        let sha256 = with_sha256.then(Sha256::new);
        Self {
            file,
            crc: Crc32c::new(),
            sha256,
            buffer: Vec::new(),
            taken: 0,
            end: 0,
        }
    }

    fn position(&self) -> u64 {
        self.end - (self.buffer.len() - self.taken) as u64
    }

    /// The next `len` bytes.
    fn take(&mut self, len: u64) -> Result<&[u8]> {
        let wanted = usize::try_from(len)
            .map_err(|_| Error::Internal("a record larger than memory".to_owned()))?;
        let have = self.buffer.len() - self.taken;
        if have < wanted {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            let left = self.file.id().size - self.end;
            let more = ((wanted - have).max(CHUNK) as u64)
                .min(left)
                .max((wanted - have) as u64);
            let bytes = self.file.read_vec(self.end, more)?;
            self.crc.update(&bytes);
            if let Some(sha256) = &mut self.sha256 {
                sha256.update(&bytes);
            }
            self.end += more;
            self.buffer.extend_from_slice(&bytes);
        }
        let start = self.taken;
        self.taken += wanted;
        self.buffer
            .get(start..self.taken)
            .ok_or_else(|| Error::Internal("a short read went unnoticed".to_owned()))
    }

    /// Padding up to an offset.
    fn zeros(&mut self, until: u64) -> Result<()> {
        let position = self.position();
        let Some(len) = until.checked_sub(position) else {
            return Err(Error::Internal("records of a shard overlap".to_owned()));
        };
        let bits = self.take(len)?.iter().fold(0, |bits, byte| bits | byte);
        if bits == 0 {
            return Ok(());
        }
        let (part, field, found) = ("padding", "bytes between records", u64::from(bits));
        let source = FormatError::ShardField {
            part,
            field,
            found,
            allowed: "0".to_owned(),
        };
        let path = self.file.path().to_path_buf();
        Err(Error::Damaged {
            path,
            sample: None,
            offset: Some(position),
            source,
        })
    }

    fn read_rest(&mut self, cancel: &Cancel) -> Result<()> {
        loop {
            cancel.check()?;
            let left = self.file.id().size - self.position();
            if left == 0 {
                return Ok(());
            }
            self.take(left.min(CHUNK as u64))?;
        }
    }

    /// Compares the sums of the whole file.
    fn compare(self, name: &str, stated: u32, sha256: Option<[u8; 32]>) -> Result<()> {
        let found = self.crc.value();
        let name = name.to_owned();
        if found != stated {
            let source = FormatError::FileChecksum {
                name,
                stated,
                found,
            };
            return Err(Error::damaged(self.file.path(), source));
        }
        if let (Some(stated), Some(hasher)) = (sha256, self.sha256) {
            let found: [u8; 32] = hasher.finalize().into();
            if found != stated {
                let (stated, found) = (hex(&stated), hex(&found));
                let source = FormatError::FileDigest {
                    name,
                    stated,
                    found,
                };
                return Err(Error::damaged(self.file.path(), source));
            }
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
