//! Caches without a pool or a table: metadata in runs and single payloads, all on the calling thread.
//!
//! For scans and expressions, which are handed rows and not draws.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use dataset_rt_format::{Field, MANIFEST_FILE};

use crate::active::SampleRef;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::export;
use crate::files::steady;
use crate::forked::PerProcess;
use crate::mapped;
use crate::reader::{Cache, CacheOptions, Loaded, ReadPlan, VecBuffers, of_sample};

/// Lists of caches that stay open between expressions.
const KEPT: usize = 4;

/// Some open caches; their order gives their `cache_id`s. A copy is the same caches.
#[derive(Clone, Debug)]
pub struct Caches {
    loaded: Arc<Loaded>,
}

/// What the index says of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadFacts {
    /// Length in bytes, uncompressed.
    pub len: u32,
    /// CRC-32C of these bytes.
    pub crc: u32,
}

impl Caches {
    /// Opens caches.
    ///
    /// # Errors
    /// [`Error::Argument`] for no paths, [`Error::NotFound`] and [`Error::Damaged`] for a path without a whole cache,
    /// [`Error::SchemaConflict`] when caches disagree on a field's type.
    pub fn open(paths: &[PathBuf], options: CacheOptions, cancel: &Cancel) -> Result<Self> {
        if paths.is_empty() {
            let message = "at least one cache path is needed, found none".to_owned();
            return Err(Error::Argument {
                argument: "paths",
                message,
            });
        }
        let mut caches = Vec::with_capacity(paths.len());
        for path in paths {
            cancel.check()?;
            caches.push(Arc::new(steady(path, || Cache::open(path, options))?));
        }
        let loaded = Arc::new(Loaded::new(caches, true)?);
        Ok(Self { loaded })
    }

    /// The caches at some paths, with maps and without links: still open from an earlier call if the same manifests
    /// stand there, else opened now. Few lists are kept, the last ones used.
    ///
    /// # Errors
    /// Those of [`Caches::open`].
    pub fn kept(paths: &[PathBuf]) -> Result<Self> {
        let manifests: Option<Vec<Standing>> = paths.iter().map(|path| standing(path)).collect();
        if let Some(manifests) = &manifests {
            let mut kept = lock();
            let found = kept
                .iter()
                .position(|set| set.paths == paths && set.manifests == *manifests);
            if let Some(at) = found {
                let set = kept.remove(at);
                let caches = set.caches.clone();
                kept.push(set);
                return Ok(caches);
            }
        }
        let options = CacheOptions {
            use_mmap: true,
            follow_links: false,
        };
        let caches = Self::open(paths, options, &Cancel::new())?;
        if let Some(manifests) = manifests {
            let mut kept = lock();
            // What stood at these paths before is not asked for again.
            let (mut gone, mut stay): (Vec<_>, Vec<_>) =
                kept.drain(..).partition(|set| set.paths == paths);
            stay.push(Kept {
                paths: paths.to_vec(),
                manifests,
                caches: caches.clone(),
            });
            while stay.len() > KEPT {
                gone.push(stay.remove(0));
            }
            *kept = stay;
            drop(kept);
            drop(gone);
        }
        Ok(caches)
    }

    /// All metadata fields, as in [`crate::Dataset::schema`].
    pub fn fields(&self) -> &[Field] {
        self.loaded.fields()
    }

    /// The caches, by `cache_id`.
    pub fn caches(&self) -> &[Arc<Cache>] {
        self.loaded.caches()
    }

    /// A sample by its ids.
    ///
    /// # Errors
    /// [`Error::UnknownSample`].
    pub fn sample(&self, cache_id: u64, sample_id: u64) -> Result<SampleRef> {
        self.loaded.sample(cache_id, sample_id)
    }

    /// `cache_id`, `sample_id` and some fields (places in [`Caches::fields`]) of samples that follow each other. Of
    /// other fields nothing is read.
    ///
    /// # Errors
    /// [`Error::UnknownSample`] past the end of the cache, [`Error::Damaged`] for metadata that can't be read.
    pub fn metadata(
        &self,
        first: SampleRef,
        count: usize,
        fields: &[usize],
    ) -> Result<Vec<RecordBatch>> {
        mapped::ensure_guard();
        if let Some(more) = count.checked_sub(1) {
            let last = first.sample.saturating_add(more as u64);
            self.loaded.sample(first.cache.into(), last)?;
        }
        export::run(&self.loaded, first, count, fields)
    }

    /// Length and checksum of a payload, from the index: the payload is not read.
    ///
    /// # Errors
    /// [`Error::Damaged`] for an index that can't be read.
    pub fn facts(&self, sample: SampleRef) -> Result<PayloadFacts> {
        mapped::ensure_guard();
        self.guarded_facts(sample)
    }

    /// As [`Caches::facts`], for many samples: the caller calls [`mapped::ensure_guard`] once, before all of them.
    pub(crate) fn guarded_facts(&self, sample: SampleRef) -> Result<PayloadFacts> {
        let record = self.cache(sample)?.record(sample.sample);
        let record = record.map_err(|error| of_sample(error, sample))?;
        Ok(PayloadFacts {
            len: record.raw_len,
            crc: record.crc,
        })
    }

    /// How many of some samples have payloads that make at most `max_bytes` together; at least one, where there is one.
    ///
    /// # Errors
    /// [`Error::UnknownSample`] and [`Error::Damaged`] for an index that can't be read.
    pub fn fitting(&self, samples: &[SampleRef], max_bytes: u64) -> Result<usize> {
        mapped::ensure_guard();
        let (mut count, mut bytes) = (0, 0);
        // By runs of one cache, whose maps are asked once whether they are intact.
        for run in samples.chunk_by(|a, b| a.cache == b.cache) {
            let cache = self.cache(run[0])?;
            let before = count;
            for &sample in run {
                self.loaded.sample(sample.cache.into(), sample.sample)?;
                let record = cache.found_record(sample.sample);
                bytes += u64::from(record.map_err(|error| of_sample(error, sample))?.raw_len);
                if bytes > max_bytes && count > 0 {
                    break;
                }
                count += 1;
            }
            cache.index_intact()?;
            if count - before < run.len() {
                break;
            }
        }
        Ok(count)
    }

    /// The same of `count` samples from the first on, which follow each other. What the index says isn't checked further
    /// than its blocks.
    ///
    /// # Errors
    /// As [`Caches::fitting`].
    pub fn fitting_from(&self, first: SampleRef, count: u64, max_bytes: u64) -> Result<usize> {
        let Some(more) = count.checked_sub(1) else {
            return Ok(0);
        };
        let last = first.sample.saturating_add(more);
        self.loaded.sample(first.cache.into(), last)?;
        mapped::ensure_guard();
        let lens = self.cache(first)?.raw_lens(first.sample..last + 1)?;
        let mut bytes = 0;
        let fits = |len: &&u32| {
            bytes += u64::from(**len);
            bytes <= max_bytes
        };
        Ok(lens.iter().take_while(fits).count().max(1))
    }

    /// The first `n` bytes of a payload, or all of a shorter one. Of an uncompressed payload nothing else is read, so
    /// that its checksum is not compared; a compressed one is read whole and checked.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Io`].
    pub fn head(&self, sample: SampleRef, n: u32) -> Result<Vec<u8>> {
        mapped::ensure_guard();
        let cache = self.cache(sample)?;
        let record = cache.record(sample.sample);
        let record = record.map_err(|error| of_sample(error, sample))?;
        if record.stored_len == record.raw_len && n < record.raw_len {
            let file = cache.shards().file(record.shard);
            let bytes = file.and_then(|file| file.read_vec(record.offset, n.into()));
            return bytes.map_err(|error| of_sample(error, sample));
        }
        let plan = self.read(vec![sample])?;
        let buffers = VecBuffers::allocate(plan.lengths());
        let mut block = plan.fill(buffers);
        if let Some((_, error)) = block.errors.pop() {
            return Err(error);
        }
        let mut bytes = block.buffers.0.pop().unwrap_or_default();
        bytes.truncate(usize::try_from(n).unwrap_or(usize::MAX));
        Ok(bytes)
    }

    /// Plans a read of whole payloads, each checked; see [`crate::Dataset::read`].
    ///
    /// # Errors
    /// [`Error::UnknownSample`]; a sample that can't be read is an error in the block.
    pub fn read(&self, samples: Vec<SampleRef>) -> Result<ReadPlan> {
        mapped::ensure_guard();
        for sample in &samples {
            self.loaded.sample(sample.cache.into(), sample.sample)?;
        }
        let work = self.loaded.plan(samples, false, true);
        Ok(ReadPlan::new(self.loaded.clone(), work))
    }

    fn cache(&self, sample: SampleRef) -> Result<&Cache> {
        self.loaded
            .sample(sample.cache.into(), sample.sample)
            .and_then(|sample| {
                let cache = self.loaded.cache(sample.cache);
                cache.ok_or_else(|| Error::Internal("a sample without a cache".to_owned()))
            })
            .map(Arc::as_ref)
    }
}

/// Which manifest stands at a path: device, number, size, and when it was last changed.
type Standing = (u64, u64, u64, i64, i64);

fn standing(path: &Path) -> Option<Standing> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path.join(MANIFEST_FILE)).ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.size(),
        found.ctime(),
        found.ctime_nsec(),
    ))
}

struct Kept {
    paths: Vec<PathBuf>,
    manifests: Vec<Standing>,
    caches: Caches,
}

/// The last one used is the last.
static STORE: PerProcess<Mutex<Vec<Kept>>> = PerProcess::new(|| Mutex::new(Vec::new()));

fn lock() -> std::sync::MutexGuard<'static, Vec<Kept>> {
    STORE.get().lock().unwrap_or_else(PoisonError::into_inner)
}
