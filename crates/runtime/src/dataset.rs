//! A dataset: loaded caches, the active table, and the stream of windows over it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use dataset_rt_format::Field;

use crate::active::{ActiveTable, SampleRef, UpdateReport};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::export;
use crate::files::steady;
use crate::mapped;
use crate::pool::Pool;
use crate::reader::{
    BlockColumns, BlockSizing, BlockStream, Cache, CacheOptions, Loaded, MAX_BLOCK_BYTES, Order,
    PayloadBuffers, ReadPlan, Source, Stream, verify,
};
use crate::sampler::{Mode, POSITIONS, Sampler, SamplerConfig};

/// How a dataset reads and draws.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// Key of all random numbers.
    pub seed: u64,
    /// Most blocks in flight a stream, at least 1.
    pub prefetch_size: usize,
    /// Whether samples come in random order.
    pub shuffle: bool,
    /// With `shuffle`: whether a sample may come again before all others came.
    pub replacement: bool,
    /// Whether opening checks every file whole.
    pub validate_cache: bool,
    /// Whether each payload's checksum is compared on each read.
    pub verify_payloads: bool,
    /// Whether files may be mapped.
    pub use_mmap: bool,
    /// Whether files of a cache may be links out of its folder.
    pub follow_links: bool,
}

impl ReaderOptions {
    /// Default of [`ReaderOptions::prefetch_size`], in blocks.
    pub const DEFAULT_PREFETCH_SIZE: usize = 64;

    /// The defaults, with a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            prefetch_size: Self::DEFAULT_PREFETCH_SIZE,
            shuffle: true,
            replacement: true,
            validate_cache: false,
            verify_payloads: true,
            use_mmap: true,
            follow_links: false,
        }
    }
}

/// A snapshot of the positions that one iterator delivers. Later changes of the dataset don't reach it.
#[derive(Clone, Debug)]
pub struct Window {
    table: Arc<ActiveTable>,
    sampler: Arc<Sampler>,
    start: u64,
    len: u64,
}

impl Window {
    /// First position.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Number of positions.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The same window without what would be left over after batches of `size`; it may be empty.
    #[must_use]
    pub fn whole_batches(mut self, size: u64) -> Self {
        self.len -= self.len % size.max(1);
        self
    }

    /// The table that the positions are drawn from.
    pub fn table(&self) -> &Arc<ActiveTable> {
        &self.table
    }

    /// What draws them.
    pub fn sampler(&self) -> &Arc<Sampler> {
        &self.sampler
    }
}

/// Where a dataset stands in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Position at which the next window starts.
    pub next: u64,
    /// Length of windows; `None`: as many as the table has rows.
    pub epoch_len: Option<u64>,
    /// The stream word.
    pub stream: u32,
}

/// A table that was checked and is not in place yet.
#[derive(Debug)]
pub struct PreparedUpdate {
    table: Arc<ActiveTable>,
    sampler: Arc<Sampler>,
    stream: u32,
}

/// A table that was put in place, and the one before it.
#[derive(Debug)]
pub struct CommittedUpdate {
    table: Arc<ActiveTable>,
    before: Arc<ActiveTable>,
    /// Dropped with this, where it may take its time.
    _old_sampler: Arc<Sampler>,
}

impl CommittedUpdate {
    /// How the table changed. Counts rows, so that it takes a moment for large tables.
    pub fn report(&self) -> UpdateReport {
        self.table.report(&self.before)
    }
}

struct State {
    table: Arc<ActiveTable>,
    sampler: Arc<Sampler>,
    cursor: Cursor,
}

/// Loaded caches with an active table. Shared by threads; every method takes effect at once or not at all.
pub struct Dataset {
    pool: Pool,
    options: ReaderOptions,
    loaded: Arc<Loaded>,
    state: Mutex<State>,
}

impl Dataset {
    /// Opens caches; their order gives their `cache_id`s.
    ///
    /// # Errors
    /// [`Error::Argument`] for no paths or a prefetch size of 0, [`Error::NotFound`] and [`Error::Damaged`] for a
    /// path without a whole cache, [`Error::SchemaConflict`] when caches disagree on a field's type.
    pub fn open(
        pool: Pool,
        paths: Vec<PathBuf>,
        options: ReaderOptions,
        cancel: &Cancel,
    ) -> Result<Self> {
        if paths.is_empty() {
            let message = "at least one cache path is needed, found none".to_owned();
            return Err(Error::Argument {
                argument: "paths",
                message,
            });
        }
        if options.prefetch_size == 0 {
            let message = "prefetch_size must be at least 1, found 0".to_owned();
            return Err(Error::Argument {
                argument: "prefetch_size",
                message,
            });
        }
        let cache_options = CacheOptions {
            use_mmap: options.use_mmap,
            follow_links: options.follow_links,
        };
        let mut caches = Vec::with_capacity(paths.len());
        for path in &paths {
            cancel.check()?;
            let cache = steady(path, || {
                if options.validate_cache {
                    verify(path, cache_options, cancel)?;
                }
                Cache::open(path, cache_options)
            })?;
            caches.push(Arc::new(cache));
        }
        let loaded = Arc::new(Loaded::new(caches, options.verify_payloads)?);
        let table = Arc::new(ActiveTable::all(loaded.numbering().clone()));
        let cursor = Cursor {
            next: 0,
            epoch_len: None,
            stream: 0,
        };
        let sampler = Arc::new(sampler(&options, &table, 0)?);
        let state = Mutex::new(State {
            table,
            sampler,
            cursor,
        });
        Ok(Self {
            pool,
            options,
            loaded,
            state,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Changes are single assignments, so that a poisoned state is as good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The options that the dataset was opened with.
    pub fn options(&self) -> &ReaderOptions {
        &self.options
    }

    /// The loaded caches, by `cache_id`.
    pub fn caches(&self) -> &[Arc<Cache>] {
        self.loaded.caches()
    }

    /// All metadata fields: the first cache's in its order, then new ones of the others. Nullable where a cache
    /// declares them so or lacks them.
    pub fn schema(&self) -> &[Field] {
        self.loaded.fields()
    }

    /// For each field of [`Dataset::schema`] its place in a cache's own fields, `None` where the cache lacks it.
    pub fn cache_fields(&self, cache: u32) -> &[Option<usize>] {
        self.loaded.cache_fields(cache)
    }

    /// The active table as it is now.
    pub fn table(&self) -> Arc<ActiveTable> {
        self.state().table.clone()
    }

    /// Rows of the active table.
    pub fn active_rows(&self) -> u64 {
        self.state().table.len()
    }

    /// Number of samples that the next window delivers.
    // A dataset is never empty, so `is_empty` would say nothing.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.state().window_len()
    }

    /// The length set by [`Dataset::set_epoch_len`].
    pub fn epoch_len(&self) -> Option<u64> {
        self.state().cursor.epoch_len
    }

    /// Sets how many samples later windows deliver.
    ///
    /// # Errors
    /// [`Error::Argument`] unless 1 <= `epoch_len` < 2^63.
    pub fn set_epoch_len(&self, epoch_len: u64) -> Result<()> {
        check_epoch_len(epoch_len)?;
        self.state().cursor.epoch_len = Some(epoch_len);
        Ok(())
    }

    /// Takes the next window, whole, whether it is read to its end or not.
    ///
    /// # Errors
    /// [`Error::Argument`] when it would pass the last position of the stream, 2^63 - 1.
    pub fn take_window(&self) -> Result<Window> {
        let mut state = self.state();
        let len = state.window_len();
        let start = state.cursor.next;
        let end = start.checked_add(len).filter(|&end| end <= POSITIONS);
        let Some(end) = end else {
            let message = format!(
                "a window of {len} samples from position {start} would pass the end of the stream at 2^63"
            );
            return Err(Error::Argument {
                argument: "epoch_len",
                message,
            });
        };
        state.cursor.next = end;
        let (table, sampler) = (state.table.clone(), state.sampler.clone());
        Ok(Window {
            table,
            sampler,
            start,
            len,
        })
    }

    /// Replaces the active table and starts its stream at position 0 of a stream word. The epoch length stays.
    ///
    /// The batches have the columns `cache_id` and `sample_id` (any integers of up to 64 bits) and `weight` (integers
    /// or floats of up to 64 bits); other columns are not looked at.
    ///
    /// # Errors
    /// [`Error::Table`] with column, row and value for whatever is wrong; nothing has changed then.
    pub fn update(&self, batches: &[RecordBatch], stream: u32) -> Result<UpdateReport> {
        let prepared = self.prepare_update(batches, stream, &Cancel::new())?;
        Ok(self.commit_update(prepared).report())
    }

    /// The first part of [`Dataset::update`]: checks everything and changes nothing.
    ///
    /// # Errors
    /// Those of [`Dataset::update`], and [`Error::Interrupted`].
    pub fn prepare_update(
        &self,
        batches: &[RecordBatch],
        stream: u32,
        cancel: &Cancel,
    ) -> Result<PreparedUpdate> {
        let numbering = self.loaded.numbering().clone();
        let table = Arc::new(ActiveTable::parse(numbering, batches, cancel)?);
        cancel.check()?;
        let sampler = Arc::new(sampler(&self.options, &table, stream)?);
        cancel.check()?;
        Ok(PreparedUpdate {
            table,
            sampler,
            stream,
        })
    }

    /// The second part of [`Dataset::update`]: puts a prepared table in place, at once.
    pub fn commit_update(&self, prepared: PreparedUpdate) -> CommittedUpdate {
        let PreparedUpdate {
            table,
            sampler,
            stream,
        } = prepared;
        let mut state = self.state();
        state.cursor = Cursor {
            next: 0,
            stream,
            ..state.cursor
        };
        let old_sampler = std::mem::replace(&mut state.sampler, sampler);
        let before = std::mem::replace(&mut state.table, table.clone());
        drop(state);
        CommittedUpdate {
            table,
            before,
            _old_sampler: old_sampler,
        }
    }

    /// How the next window draws.
    pub fn mode(&self) -> Mode {
        self.state().sampler.mode()
    }

    /// Where the stream stands.
    pub fn cursor(&self) -> Cursor {
        self.state().cursor
    }

    /// Puts the stream where [`Dataset::cursor`] of an equal dataset was.
    ///
    /// # Errors
    /// [`Error::Argument`] for a position or a length out of range.
    pub fn set_cursor(&self, cursor: Cursor) -> Result<()> {
        if let Some(epoch_len) = cursor.epoch_len {
            check_epoch_len(epoch_len)?;
        }
        if cursor.next > POSITIONS {
            let message = format!(
                "position {} is beyond the end of the stream at 2^63",
                cursor.next
            );
            return Err(Error::Argument {
                argument: "next",
                message,
            });
        }
        let mut state = self.state();
        if cursor.stream != state.cursor.stream {
            state.sampler = Arc::new(sampler(&self.options, &state.table, cursor.stream)?);
        }
        state.cursor = cursor;
        Ok(())
    }

    /// The active table with its metadata: `cache_id` and `sample_id` (UInt64), the fields of [`Dataset::schema`],
    /// `weight` (Float64). All data is copied out of the files, checked; text is Utf8View.
    ///
    /// # Errors
    /// [`Error::Damaged`] for metadata that can't be read.
    pub fn export(&self) -> Result<Vec<RecordBatch>> {
        self.export_table(&self.table(), &Cancel::new())
    }

    /// The same for a table that [`Dataset::table`] gave out earlier.
    ///
    /// # Errors
    /// Those of [`Dataset::export`], and [`Error::Interrupted`].
    pub fn export_table(
        &self,
        table: &Arc<ActiveTable>,
        cancel: &Cancel,
    ) -> Result<Vec<RecordBatch>> {
        mapped::ensure_guard();
        export::table(&self.pool, &self.loaded, table, cancel)
    }

    /// The columns `cache_id`, `sample_id` and `weight` of the active table.
    ///
    /// # Errors
    /// [`Error::Internal`] only.
    pub fn export_rows(&self) -> Result<Vec<RecordBatch>> {
        export::rows(&self.table())
    }

    /// The metadata of a list of samples, the fields of [`Dataset::schema`] alone, in one batch.
    ///
    /// # Errors
    /// [`Error::UnknownSample`] and [`Error::Damaged`].
    pub fn export_samples(&self, samples: &[SampleRef]) -> Result<RecordBatch> {
        mapped::ensure_guard();
        self.check_samples(samples)?;
        export::samples(&self.loaded, samples)
    }

    /// The same for a block that came with its columns.
    ///
    /// # Errors
    /// [`Error::Internal`] only.
    pub fn export_columns(&self, columns: BlockColumns) -> Result<RecordBatch> {
        export::columns(&self.loaded, columns)
    }

    /// A stream over a window.
    pub fn blocks<B: PayloadBuffers>(&self, window: Window, sizing: BlockSizing) -> BlockStream<B> {
        let positions = window.start..window.start + window.len;
        self.stream(
            Order::Drawn(window.table, window.sampler),
            positions,
            sizing,
        )
    }

    /// A stream over a list of samples.
    ///
    /// # Errors
    /// [`Error::UnknownSample`].
    pub fn blocks_of<B: PayloadBuffers>(
        &self,
        samples: Vec<SampleRef>,
        sizing: BlockSizing,
    ) -> Result<BlockStream<B>> {
        self.check_samples(&samples)?;
        let positions = 0..samples.len() as u64;
        Ok(self.stream(Order::Listed(samples.into()), positions, sizing))
    }

    fn stream<B: PayloadBuffers>(
        &self,
        order: Order,
        positions: std::ops::Range<u64>,
        sizing: BlockSizing,
    ) -> BlockStream<B> {
        mapped::ensure_guard();
        let usual = (MAX_BLOCK_BYTES / self.loaded.mean_payload().max(1)).min(sizing.most());
        let source = Arc::new(Source {
            loaded: self.loaded.clone(),
            order,
            numbers_texts: sizing == BlockSizing::Samples,
        });
        let prefetch_size = self.options.prefetch_size;
        BlockStream::new(Stream::new(
            &self.pool,
            source,
            positions,
            sizing,
            usual,
            prefetch_size,
        ))
    }

    /// Reads the payload of one sample on the caller's thread, into the memory that `allocate` makes for its length.
    ///
    /// # Errors
    /// [`Error::UnknownSample`], whatever keeps the sample from being read, and those of `allocate`.
    pub fn read_one<B: PayloadBuffers, E: From<Error>>(
        &self,
        sample: SampleRef,
        allocate: impl FnOnce(u32) -> Result<B, E>,
    ) -> Result<B, E> {
        self.loaded.sample(sample.cache.into(), sample.sample)?;
        self.loaded.read_one(sample, allocate)
    }

    /// Plans a direct read of some samples on the caller's thread.
    ///
    /// # Errors
    /// [`Error::UnknownSample`]; a sample that can't be read is an error in the block.
    pub fn read(&self, samples: Vec<SampleRef>, columns: bool) -> Result<ReadPlan> {
        self.check_samples(&samples)?;
        // One sample is served from its map whether resident or not: asking costs more than it could gain.
        let probe = samples.len() > 1;
        if probe {
            mapped::ensure_guard();
        }
        let work = self.loaded.plan(samples, columns, probe);
        Ok(ReadPlan::new(self.loaded.clone(), work))
    }

    /// The sample of an active row; negative rows count from the end.
    ///
    /// # Errors
    /// [`Error::Index`] out of range.
    pub fn active_sample(&self, row: i64) -> Result<SampleRef> {
        let state = self.state();
        let len = state.table.len();
        let place = if row < 0 {
            len.checked_sub(row.unsigned_abs())
        } else {
            Some(row.unsigned_abs())
        };
        place
            .and_then(|place| state.table.sample(place))
            .ok_or(Error::Index { index: row, len })
    }

    /// The sample of a cache, active or not.
    ///
    /// # Errors
    /// [`Error::UnknownSample`].
    pub fn sample(&self, cache_id: u64, sample_id: u64) -> Result<SampleRef> {
        self.loaded.sample(cache_id, sample_id)
    }

    fn check_samples(&self, samples: &[SampleRef]) -> Result<()> {
        for sample in samples {
            self.loaded.sample(sample.cache.into(), sample.sample)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset")
            .field("caches", &self.caches().len())
            .finish_non_exhaustive()
    }
}

impl State {
    fn window_len(&self) -> u64 {
        self.cursor.epoch_len.unwrap_or_else(|| self.table.len())
    }
}

fn check_epoch_len(epoch_len: u64) -> Result<()> {
    if (1..POSITIONS).contains(&epoch_len) {
        return Ok(());
    }
    let message = format!("epoch_len must be 1 to 2^63 - 1, found {epoch_len}");
    Err(Error::Argument {
        argument: "epoch_len",
        message,
    })
}

fn sampler(options: &ReaderOptions, table: &ActiveTable, stream: u32) -> Result<Sampler> {
    let &ReaderOptions {
        shuffle,
        replacement,
        seed,
        ..
    } = options;
    let config = SamplerConfig {
        shuffle,
        replacement,
        seed,
        stream,
    };
    Sampler::new(config, table.len(), table.weights().cloned())
}
