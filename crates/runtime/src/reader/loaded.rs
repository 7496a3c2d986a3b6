//! Caches that were loaded together: one schema, one numbering, and the plan of a block over them.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dataset_rt_format::Field;
use rustix::io::Errno;

use crate::active::{Numbering, SampleRef};
use crate::error::{Error, Result};
use crate::files::RegularFile;

use super::cache::Cache;
use super::record::{Record, of_sample};
use super::stream::Work;

/// Index entries asked for before they are needed.
const AHEAD: usize = 64;
/// Records that are looked up in the page cache for a block, and when many blocks in a row were resident.
const PROBES: usize = 4;
const PROBES_WHEN_WARM: usize = 1;
const WARM_BLOCKS: u64 = 32;
/// Records are close when no more than so many bytes lie between them.
const NEAR: u64 = 16 << 10;

/// The caches of a dataset.
pub(crate) struct Loaded {
    caches: Vec<Arc<Cache>>,
    numbering: Arc<Numbering>,
    fields: Vec<Field>,
    /// For each cache, and each of `fields`, the place in the cache's own fields.
    cache_fields: Vec<Vec<Option<usize>>>,
    verify_payloads: bool,
    /// Blocks found resident since the last that was not.
    warm: AtomicU64,
}

impl Loaded {
    pub(crate) fn new(caches: Vec<Arc<Cache>>, verify_payloads: bool) -> Result<Self> {
        let numbering = Arc::new(Numbering::new(caches.iter().map(|cache| cache.samples()))?);
        let (fields, cache_fields) = merge(&caches)?;
        let warm = AtomicU64::new(0);
        Ok(Self {
            caches,
            numbering,
            fields,
            cache_fields,
            verify_payloads,
            warm,
        })
    }

    pub(crate) fn caches(&self) -> &[Arc<Cache>] {
        &self.caches
    }

    #[inline]
    pub(crate) fn cache(&self, cache_id: u32) -> Option<&Arc<Cache>> {
        self.caches.get(cache_id as usize)
    }

    pub(crate) fn numbering(&self) -> &Arc<Numbering> {
        &self.numbering
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub(crate) fn cache_fields(&self, cache_id: u32) -> &[Option<usize>] {
        self.cache_fields
            .get(cache_id as usize)
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn verifies_payloads(&self) -> bool {
        self.verify_payloads
    }

    /// Whether the last block that was planned was found in memory: then the index is there too, most likely.
    pub(crate) fn is_warm(&self) -> bool {
        self.warm.load(Ordering::Relaxed) > 0
    }

    /// Mean length of a payload in bytes.
    pub(crate) fn mean_payload(&self) -> u64 {
        let bytes = self
            .caches
            .iter()
            .map(|cache| cache.manifest().payload_bytes);
        bytes.fold(0, u64::saturating_add) / self.numbering.total().max(1)
    }

    /// A sample by its ids.
    pub(crate) fn sample(&self, cache_id: u64, sample_id: u64) -> Result<SampleRef> {
        let cache = u32::try_from(cache_id).ok();
        match cache.and_then(|id| Some((id, self.cache(id)?))) {
            Some((id, cache)) if sample_id < cache.samples() => Ok(SampleRef {
                cache: id,
                sample: sample_id,
            }),
            Some((_, cache)) => Err(Error::UnknownSample {
                cache_id,
                sample_id,
                message: format!(
                    "cache {cache_id} has no sample {sample_id}; allowed: 0 to {}",
                    cache.samples() - 1
                ),
            }),
            None => Err(Error::UnknownSample {
                cache_id,
                sample_id,
                message: format!(
                    "there is no cache {cache_id}; allowed: 0 to {}",
                    self.caches.len() - 1
                ),
            }),
        }
    }

    /// Finds the records of samples. With `probe` also whether they are in memory; if not, their reading is begun.
    pub(crate) fn plan(&self, samples: Vec<SampleRef>, columns: bool, probe: bool) -> Work {
        let mut lengths = Vec::with_capacity(samples.len());
        let mut records = Vec::with_capacity(samples.len());
        let mut errors = Vec::new();
        for (i, &sample) in samples.iter().enumerate() {
            if let Some(later) = samples.get(i + AHEAD)
                && let Some(cache) = self.cache(later.cache)
            {
                cache.prefetch_entry(later.sample);
            }
            let record = match self.cache(sample.cache) {
                Some(cache) => cache.found_record(sample.sample),
                None => Err(Error::Internal("a sample without a cache".to_owned())),
            };
            let record = record.unwrap_or_else(|error| {
                let place = u32::try_from(i).unwrap_or(u32::MAX);
                errors.push((place, of_sample(error, sample)));
                Record::NONE
            });
            lengths.push(record.raw_len);
            records.push(record);
        }
        // AFTER all entries were read.
        for cache in self.touched(&samples) {
            if self.cache(cache).is_some_and(|c| c.index_intact().is_err()) {
                self.fail_records(cache, &samples, &mut records, &mut lengths, &mut errors);
            }
        }
        let resident = !probe || self.is_resident(&samples, &records);
        if !resident {
            self.begin_reading(&samples, &records);
        }
        let wants_columns = columns;
        Work {
            samples,
            lengths,
            records,
            errors,
            resident,
            wants_columns,
            columns: None,
        }
    }

    /// The caches of samples; those that take turns come more than once.
    fn touched(&self, samples: &[SampleRef]) -> impl Iterator<Item = u32> {
        let mut last = None;
        samples
            .iter()
            .map(|sample| sample.cache)
            .filter(move |&cache| last.replace(cache) != Some(cache))
    }

    /// For a cache whose index is not what it was: no entry of it counts.
    #[cold]
    fn fail_records(
        &self,
        cache: u32,
        samples: &[SampleRef],
        records: &mut [Record],
        lengths: &mut [u32],
        errors: &mut Vec<(u32, Error)>,
    ) {
        let in_cache = |place: u32| {
            let sample = usize::try_from(place).ok().and_then(|at| samples.get(at));
            sample.is_some_and(|sample| sample.cache == cache)
        };
        errors.retain(|(place, _)| !in_cache(*place));
        let found = samples.iter().zip(records).zip(lengths);
        for (place, ((sample, record), length)) in (0..).zip(found) {
            if sample.cache == cache
                && let Some(Err(error)) = self.cache(cache).map(|cache| cache.index_intact())
            {
                errors.push((place, of_sample(error, *sample)));
                (*record, *length) = (Record::NONE, 0);
            }
        }
    }

    fn is_resident(&self, samples: &[SampleRef], records: &[Record]) -> bool {
        let warm = self.warm.load(Ordering::Relaxed);
        let probes = if warm < WARM_BLOCKS {
            PROBES
        } else {
            PROBES_WHEN_WARM
        };
        let step = (records.len() / probes).max(1);
        // Another record of the step each time, so that a half-resident file is noticed.
        let first = usize::try_from(warm).unwrap_or(0) % step;
        let probed = samples
            .iter()
            .zip(records)
            .skip(first)
            .step_by(step)
            .take(probes);
        for (sample, record) in probed {
            let Some(cache) = self.cache(sample.cache).filter(|_| *record != Record::NONE) else {
                continue;
            };
            let middle = record.offset + u64::from(record.stored_len) / 2;
            let file = cache.shards().file(record.shard);
            if file.is_ok_and(|file| !in_page_cache(&file, middle)) {
                self.warm.store(0, Ordering::Relaxed);
                return false;
            }
        }
        self.warm.store(warm.saturating_add(1), Ordering::Relaxed);
        true
    }

    /// Asks the system to load the records, so that the disk has all of them at hand while they are read in turn.
    /// Records that lie close to each other are asked for as one range.
    fn begin_reading(&self, samples: &[SampleRef], records: &[Record]) {
        let mut range: Option<(u32, u32, Range<u64>)> = None;
        for (sample, record) in samples.iter().zip(records) {
            if *record == Record::NONE || record.stored_len == 0 {
                continue;
            }
            let end = record.offset + u64::from(record.stored_len);
            match &mut range {
                Some((cache, shard, range))
                    if (*cache, *shard) == (sample.cache, record.shard)
                        && (range.start..=range.end + NEAR).contains(&record.offset) =>
                {
                    range.end = range.end.max(end);
                }
                _ => {
                    let next = (sample.cache, record.shard, record.offset..end);
                    self.begin_range(range.replace(next));
                }
            }
        }
        self.begin_range(range);
    }

    fn begin_range(&self, range: Option<(u32, u32, Range<u64>)>) {
        if let Some((cache, shard, range)) = range
            && let Some(cache) = self.cache(cache)
            && let Some(len) = NonZeroU64::new(range.end - range.start)
            && let Ok(file) = cache.shards().file(shard)
        {
            will_need(&file, range.start, len);
        }
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("caches", &self.caches)
            .finish_non_exhaustive()
    }
}

/// Whether a byte of a file can be had without waiting. Where the system can't tell it counts as such: then maps are
/// used, which are never wrong, only slower on a cold disk. (`mincore` would need no descriptor, but says yes to
/// whoever does not own the file.)
#[cfg(target_os = "linux")]
fn in_page_cache(file: &RegularFile, offset: u64) -> bool {
    let mut byte = [0];
    let mut slices = [IoSliceMut::new(&mut byte)];
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    rustix::io::preadv2(file.file(), &mut slices, offset, flags) != Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn in_page_cache(_: &RegularFile, _: u64) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn will_need(file: &RegularFile, offset: u64, len: NonZeroU64) {
    // A hint: without it reads are slower, not wrong.
    let _ = rustix::fs::fadvise(file.file(), offset, Some(len), rustix::fs::Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
fn will_need(_: &RegularFile, _: u64, _: NonZeroU64) {}

type Merged = (Vec<Field>, Vec<Vec<Option<usize>>>);

/// Fields of the same name are one field, which must have one type.
fn merge(caches: &[Arc<Cache>]) -> Result<Merged> {
    let mut fields: Vec<(Field, &Path)> = Vec::new();
    let mut by_name = std::collections::HashMap::new();
    for cache in caches {
        for field in cache.fields() {
            match by_name
                .get(field.name.as_str())
                .and_then(|&at: &usize| fields.get_mut(at))
            {
                Some((known, path)) if known.field_type != field.field_type => {
                    return Err(Error::SchemaConflict {
                        field: field.name.clone(),
                        first: path.to_path_buf(),
                        first_type: known.field_type.name(),
                        second: cache.path().to_path_buf(),
                        second_type: field.field_type.name(),
                    });
                }
                Some((known, _)) => {
                    known.nullable |= field.nullable;
                    if known.description.is_none() {
                        known.description.clone_from(&field.description);
                    }
                }
                None => {
                    by_name.insert(field.name.as_str(), fields.len());
                    fields.push((field.clone(), cache.path()));
                }
            }
        }
    }
    let cache_fields: Vec<Vec<Option<usize>>> = caches
        .iter()
        .map(|cache| {
            let own: std::collections::HashMap<&str, usize> = (0..)
                .zip(cache.fields())
                .map(|(at, field)| (field.name.as_str(), at))
                .collect();
            fields
                .iter()
                .map(|(field, _)| own.get(field.name.as_str()).copied())
                .collect()
        })
        .collect();
    let fields = fields
        .into_iter()
        .enumerate()
        .map(|(at, (mut field, _))| {
            field.nullable |= cache_fields.iter().any(|own| own.get(at) == Some(&None));
            field
        })
        .collect();
    Ok((fields, cache_fields))
}
