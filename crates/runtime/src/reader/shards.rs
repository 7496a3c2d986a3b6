//! The shard files of a cache: opened and mapped when first needed, and given up again.
//!
//! Whatever the number of caches and shards, a process keeps at most [`MAX_FILES`] shard files open, or a quarter of
//! the descriptors that it may have, and [`MAX_MAPS`] mapped. Each time a file is opened its size and the id in its trailer are compared with the manifest,
//! so that a file which was replaced since, by a newer cache or by another shard, is an error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use dataset_rt_format::constants::SHARD_TRAILER_LEN;
use dataset_rt_format::{Manifest, ShardTrailer, records_limit, shard_path};

use crate::error::{Error, Result};
use crate::files::{FileId, Folder, RegularFile, expect_size};
use crate::forked::PerProcess;
use crate::mapped::Map;

use super::lru::Lru;

/// Shard files that a process keeps open.
const MAX_FILES: usize = 64;
/// Shard files that a process keeps mapped.
const MAX_MAPS: usize = 4096;
/// A mapped shard's size is looked at again when the last look is older than so many milliseconds.
const RECHECK_MS: u64 = 50;
/// Shards are numbered in so many bits of a key.
const SHARD_BITS: u32 = 24;

struct Store {
    files: Mutex<Lru<Arc<RegularFile>>>,
    maps: Mutex<Lru<Arc<ShardMap>>>,
}

static STORE: PerProcess<Store> = PerProcess::new(|| Store {
    files: Mutex::new(Lru::new(files_to_keep())),
    maps: Mutex::new(Lru::new(MAX_MAPS)),
});
static NEXT_CACHE: AtomicU64 = AtomicU64::new(0);

fn files_to_keep() -> usize {
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let quarter = allowed.map_or(MAX_FILES, |most| {
        usize::try_from(most / 4).unwrap_or(MAX_FILES)
    });
    quarter.clamp(1, MAX_FILES)
}

/// Closes all shards that are kept open for later reads.
pub(crate) fn give_up_files() {
    let files = lock(&STORE.get().files).retain(|_| false);
    drop(files);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The tables stay consistent under a panic: nothing of ours runs while they are locked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mapped shard.
pub(crate) struct ShardMap {
    map: Map,
    id: FileId,
    checked_at: AtomicU64,
}

impl ShardMap {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// See [`Map::is_broken`].
    pub(crate) fn is_broken(&self) -> bool {
        self.map.is_broken()
    }
}

/// Milliseconds of a clock that only serves to tell how long ago something was.
pub(crate) fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The shards of one open cache.
pub(crate) struct Shards {
    folder: Folder,
    manifest: Arc<Manifest>,
    /// Where the record area of each shard ends at the latest.
    limits: Box<[u64]>,
    use_mmap: bool,
    /// Number of this open cache in the process, so that keys of different caches differ.
    number: u64,
}

impl Shards {
    pub(crate) fn new(folder: Folder, manifest: Arc<Manifest>, use_mmap: bool) -> Self {
        let codec = manifest.codec;
        let limits = manifest
            .shards
            .iter()
            .map(|s| records_limit(s.size, s.samples, codec));
        let limits = limits.collect();
        let number = NEXT_CACHE.fetch_add(1, Ordering::Relaxed);
        Self {
            folder,
            manifest,
            limits,
            use_mmap,
            number,
        }
    }

    pub(crate) fn limits(&self) -> &[u64] {
        &self.limits
    }

    /// The path of a shard's file, for errors.
    pub(crate) fn path(&self, shard: u32) -> std::path::PathBuf {
        self.folder.file_path(&self.relative(shard))
    }

    /// An open shard.
    pub(crate) fn file(&self, shard: u32) -> Result<Arc<RegularFile>> {
        let key = self.key(shard);
        if let Some(file) = lock(&STORE.get().files).get(key) {
            return Ok(file);
        }
        let file = Arc::new(self.open(shard)?);
        let gone = lock(&STORE.get().files).insert(key, file.clone());
        drop(gone);
        Ok(file)
    }

    /// A mapped shard, `None` where maps are off or not to be had. `now` is the [`clock`].
    ///
    /// # Errors
    /// When the file at the path is the mapped one but has another size by now: touching what was cut off would be a
    /// fault. (A file that was removed or replaced keeps its bytes for whoever has it mapped.)
    pub(crate) fn map(&self, shard: u32, now: u64) -> Result<Option<Arc<ShardMap>>> {
        if !self.use_mmap {
            return Ok(None);
        }
        let key = self.key(shard);
        let kept = lock(&STORE.get().maps).get(key);
        if let Some(map) = kept.filter(|map| !map.is_broken()) {
            if now.saturating_sub(map.checked_at.load(Ordering::Relaxed)) >= RECHECK_MS {
                let relative = self.relative(shard);
                if let Some(id) = self.folder.peek(&relative)
                    && (id.device, id.inode) == (map.id.device, map.id.inode)
                    && id.size != map.id.size
                {
                    return Err(self.changed(shard, id, map.id.size));
                }
                map.checked_at.store(now, Ordering::Relaxed);
            }
            return Ok(Some(map));
        }
        let file = self.file(shard)?;
        let id = FileId {
            size: current_size(&file)?,
            ..file.id()
        };
        if id.size != file.id().size {
            return Err(self.changed(shard, id, file.id().size));
        }
        let Some(map) = Map::new(file.file(), id.size) else {
            return Ok(None);
        };
        let map = Arc::new(ShardMap {
            map,
            id,
            checked_at: AtomicU64::new(now),
        });
        let gone = lock(&STORE.get().maps).insert(key, map.clone());
        drop(gone);
        Ok(Some(map))
    }

    fn changed(&self, shard: u32, id: FileId, stated: u64) -> Error {
        let path = self.path(shard);
        expect_size(&path, id, stated)
            .err()
            .unwrap_or_else(|| Error::Internal("a size that changed and did not".to_owned()))
    }

    /// Opens a shard and compares it with the manifest.
    fn open(&self, shard: u32) -> Result<RegularFile> {
        let facts = usize::try_from(shard)
            .ok()
            .and_then(|shard| self.manifest.shards.get(shard));
        let Some(facts) = facts else {
            return Err(Error::Internal(format!(
                "shard {shard} is not in the manifest"
            )));
        };
        let file = self.folder.open_file(&self.relative(shard))?;
        file.expect_size(facts.size)?;
        let mut bytes = [0; 64];
        let start = facts.size.saturating_sub(SHARD_TRAILER_LEN);
        file.read_exact_at(&mut bytes, start)?;
        ShardTrailer::decode(&bytes, facts.size, self.manifest.codec, Some(facts)).map_err(
            |source| Error::Damaged {
                path: file.path().to_path_buf(),
                sample: None,
                offset: Some(start),
                source,
            },
        )?;
        Ok(file)
    }

    fn relative(&self, shard: u32) -> String {
        let shard = usize::try_from(shard).ok();
        let facts = shard.and_then(|shard| self.manifest.shards.get(shard));
        facts.map_or_else(String::new, |facts| shard_path(&facts.name))
    }

    fn key(&self, shard: u32) -> u64 {
        self.number << SHARD_BITS | u64::from(shard)
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        // A cache that was deleted must not keep its disk space through a process that is done with it.
        let other = |key: u64| key >> SHARD_BITS != self.number;
        let files = lock(&STORE.get().files).retain(other);
        let maps = lock(&STORE.get().maps).retain(other);
        drop((files, maps));
    }
}

fn current_size(file: &RegularFile) -> Result<u64> {
    let metadata = file.file().metadata();
    metadata
        .map(|m| m.len())
        .map_err(|e| Error::io("examine", file.path(), e))
}
