//! Metadata and the active table as Arrow, copied out of the files after all checks.
//!
//! Text is Utf8View: Polars takes it as it is, where LargeUtf8 would cost it a pass.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use arrow_array::builder::make_view;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringViewArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use dataset_rt_format::{Field, FieldType};

use crate::active::{ActiveTable, CACHE_ID, SAMPLE_ID, SampleRef, WEIGHT};
use crate::cancel::{Cancel, PROBE_INTERVAL};
use crate::error::{Error, Result};
use crate::mapped;
use crate::pool::Pool;
use crate::reader::{BlockColumns, GatheredColumn, GatheredColumns, Loaded, Values};

/// Rows of an exported batch.
const BATCH_ROWS: u64 = 65_536;
/// A batch ends before its text would pass what a view can point into, whatever the number of rows.
const MAX_BATCH_TEXT: usize = i32::MAX as usize;

/// The whole active table: ids, fields, weight. Workers of the pool that have nothing else to do help.
pub(crate) fn table(
    pool: &Pool,
    loaded: &Arc<Loaded>,
    table: &Arc<ActiveTable>,
    cancel: &Cancel,
) -> Result<Vec<RecordBatch>> {
    let chunks = chunks(loaded, table);
    let count = chunks.len();
    let export = Export {
        schema: table_schema(loaded.fields()),
        constants: Constants::new(table, &chunks),
        loaded: loaded.clone(),
        table: table.clone(),
    };
    let batches = shared_work(pool, count, cancel, move |at| {
        mapped::ensure_guard();
        let mut batches = Vec::new();
        if let Some(rows) = chunks.get(at) {
            export.push(rows.clone(), &mut batches)?;
        }
        Ok(batches)
    })?;
    Ok(batches.into_iter().flatten().collect())
}

/// What all batches of an export are made from.
struct Export {
    schema: SchemaRef,
    constants: Constants,
    loaded: Arc<Loaded>,
    table: Arc<ActiveTable>,
}

/// Columns of one value, made once for the longest batch: the others are slices of the same memory.
struct Constants {
    first_cache: ScalarBuffer<u64>,
    weight: Option<ScalarBuffer<f64>>,
}

impl Constants {
    fn new(table: &ActiveTable, chunks: &[Range<u64>]) -> Self {
        let longest = chunks.iter().map(|rows| rows.end - rows.start).max();
        let longest = usize::try_from(longest.unwrap_or(0)).unwrap_or(0);
        Self {
            first_cache: vec![0; longest].into(),
            weight: table
                .equal_weight()
                .map(|weight| vec![weight; longest].into()),
        }
    }

    /// The ids of a run of samples.
    fn ids_of_run(&self, first: SampleRef, count: usize) -> Vec<ArrayRef> {
        let caches = if first.cache == 0 {
            self.first_cache.slice(0, count)
        } else {
            vec![u64::from(first.cache); count].into()
        };
        ids_of_run(caches, first, count)
    }

    fn weights(&self, table: &ActiveTable, rows: Range<u64>, count: usize) -> ArrayRef {
        match &self.weight {
            Some(weights) => Arc::new(Float64Array::new(weights.slice(0, count), None)),
            None => weight_column(table, rows),
        }
    }
}

impl Export {
    /// One batch of the table, or more where its text is too long for one.
    fn push(&self, rows: Range<u64>, batches: &mut Vec<RecordBatch>) -> Result<()> {
        let Self {
            schema,
            constants,
            loaded,
            table,
        } = self;
        let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        let run = if table.is_all_samples() {
            table.sample(rows.start)
        } else {
            None
        };
        let (ids, gathered) = match run {
            Some(first) => (
                constants.ids_of_run(first, count),
                GatheredColumns::gather_run(loaded, first, count)?,
            ),
            None => {
                let samples = samples_of(table, rows.clone());
                (
                    id_columns(&samples),
                    GatheredColumns::gather(loaded, &samples)?,
                )
            }
        };
        if gathered.text_is_too_long() && count > 1 {
            let middle = rows.start + (count / 2) as u64;
            self.push(rows.start..middle, batches)?;
            return self.push(middle..rows.end, batches);
        }
        let mut columns = ids;
        for column in gathered.columns {
            columns.push(column.into_arrow()?);
        }
        columns.push(constants.weights(table, rows, count));
        batches.push(batch(schema.clone(), columns, count)?);
        Ok(())
    }
}

/// Ids and weights of the active table.
pub(crate) fn rows(table: &ActiveTable) -> Result<Vec<RecordBatch>> {
    let schema = table_schema(&[]);
    let chunk = |rows: Range<u64>| {
        let samples = samples_of(table, rows.clone());
        let mut columns = id_columns(&samples);
        columns.push(weight_column(table, rows));
        batch(schema.clone(), columns, samples.len())
    };
    pieces(0..table.len(), BATCH_ROWS * 16).map(chunk).collect()
}

/// Rows of each exported batch. In a table of all samples none spans two caches, so that each is one run.
fn chunks(loaded: &Loaded, table: &ActiveTable) -> Vec<Range<u64>> {
    if !table.is_all_samples() {
        return pieces(0..table.len(), BATCH_ROWS).collect();
    }
    let mut start = 0;
    let mut chunks = Vec::new();
    for cache in loaded.caches() {
        let end = start + cache.samples();
        chunks.extend(pieces(start..end, BATCH_ROWS));
        start = end;
    }
    chunks
}

fn pieces(rows: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = rows;
    let count = (end - start).div_ceil(size);
    (0..count).map(move |at| start + at * size..(start + (at + 1) * size).min(end))
}

/// What the threads that share a piece of work know together.
struct Shared<T> {
    next: AtomicUsize,
    done: Mutex<Done<T>>,
    changed: Condvar,
}

struct Done<T> {
    results: Vec<Option<Result<T>>>,
    missing: usize,
}

/// Runs `work` for `0 .. count` on the caller's thread and on workers that get to it, and returns the results in
/// order. The caller waits only for what a worker has begun, and not even for that once it is asked to stop.
fn shared_work<T: Send + 'static>(
    pool: &Pool,
    count: usize,
    cancel: &Cancel,
    work: impl Fn(usize) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>> {
    let results = (0..count).map(|_| None).collect();
    let shared = Arc::new(Shared {
        next: AtomicUsize::new(0),
        done: Mutex::new(Done {
            results,
            missing: count,
        }),
        changed: Condvar::new(),
    });
    let shared_by_jobs = shared.clone();
    // One piece; false when there was none left.
    let run = Arc::new(move || {
        let at = shared_by_jobs.next.fetch_add(1, Ordering::Relaxed);
        if at >= count {
            return false;
        }
        let result = catch_unwind(AssertUnwindSafe(|| work(at)))
            .unwrap_or_else(|_| Err(Error::Internal("exporting metadata panicked".to_owned())));
        let mut done = shared_by_jobs
            .done
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = done.results.get_mut(at) {
            *place = Some(result);
        }
        done.missing -= 1;
        if done.missing == 0 {
            shared_by_jobs.changed.notify_all();
        }
        true
    });
    for _ in 0..pool.num_workers().min(count.saturating_sub(1)) {
        let run = run.clone();
        pool.submit(move || while run() {})?;
    }
    let stop = |error| {
        // Nobody takes another piece.
        shared.next.store(count, Ordering::Relaxed);
        error
    };
    while run() {
        cancel.check().map_err(stop)?;
    }
    let mut done = shared.done.lock().unwrap_or_else(PoisonError::into_inner);
    while done.missing > 0 {
        let waited = shared.changed.wait_timeout(done, PROBE_INTERVAL);
        drop(waited);
        cancel.check()?;
        done = shared.done.lock().unwrap_or_else(PoisonError::into_inner);
    }
    let lost = || {
        Err(Error::Internal(
            "a part of the export is missing".to_owned(),
        ))
    };
    done.results
        .iter_mut()
        .map(|result| result.take().unwrap_or_else(lost))
        .collect()
}

/// Ids and some fields of samples that follow each other in one cache: one batch, or more where the text is too long.
pub(crate) fn run(
    loaded: &Loaded,
    first: SampleRef,
    count: usize,
    fields: &[usize],
) -> Result<Vec<RecordBatch>> {
    let mut arrow = vec![
        ArrowField::new(CACHE_ID, DataType::UInt64, false),
        ArrowField::new(SAMPLE_ID, DataType::UInt64, false),
    ];
    let chosen = fields.iter().filter_map(|&at| loaded.fields().get(at));
    arrow.extend(chosen.map(arrow_field));
    let mut batches = Vec::new();
    let schema = Arc::new(ArrowSchema::new(arrow));
    push_run(loaded, first, count, fields, &schema, &mut batches)?;
    Ok(batches)
}

/// The two id columns of a run of samples; `caches` holds the cache of each.
fn ids_of_run(caches: ScalarBuffer<u64>, first: SampleRef, count: usize) -> Vec<ArrayRef> {
    let samples: Vec<u64> = (first.sample..first.sample + count as u64).collect();
    vec![
        Arc::new(UInt64Array::new(caches, None)),
        Arc::new(UInt64Array::from(samples)),
    ]
}

fn push_run(
    loaded: &Loaded,
    first: SampleRef,
    count: usize,
    fields: &[usize],
    schema: &SchemaRef,
    batches: &mut Vec<RecordBatch>,
) -> Result<()> {
    let gathered = GatheredColumns::gather_fields_of_run(loaded, first, count, fields)?;
    if gathered.text_is_too_long() && count > 1 {
        let half = count / 2;
        let second = SampleRef {
            sample: first.sample + half as u64,
            ..first
        };
        push_run(loaded, first, half, fields, schema, batches)?;
        return push_run(loaded, second, count - half, fields, schema, batches);
    }
    let samples = first.sample..first.sample + count as u64;
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(vec![u64::from(first.cache); count])),
        Arc::new(UInt64Array::from_iter_values(samples)),
    ];
    for column in gathered.columns {
        columns.push(column.into_arrow()?);
    }
    batches.push(batch(schema.clone(), columns, count)?);
    Ok(())
}

/// The fields of some samples.
pub(crate) fn samples(loaded: &Loaded, samples: &[SampleRef]) -> Result<RecordBatch> {
    GatheredColumns::gather(loaded, samples)?.into_batch(loaded.fields())
}

/// The fields that were gathered with a block.
pub(crate) fn columns(loaded: &Loaded, columns: BlockColumns) -> Result<RecordBatch> {
    columns.into_columns().into_batch(loaded.fields())
}

impl GatheredColumns {
    /// The columns as Arrow, text as Utf8View; `fields` are those of the dataset's schema.
    fn into_batch(self, fields: &[Field]) -> Result<RecordBatch> {
        let fields: Vec<ArrowField> = fields.iter().map(arrow_field).collect();
        let rows = self.rows;
        let columns: Result<Vec<ArrayRef>> = self
            .columns
            .into_iter()
            .map(GatheredColumn::into_arrow)
            .collect();
        batch(Arc::new(ArrowSchema::new(fields)), columns?, rows)
    }

    fn text_is_too_long(&self) -> bool {
        self.columns.iter().any(|column| {
            matches!(&column.values, Values::Utf8 { bytes, .. } if bytes.len() > MAX_BATCH_TEXT)
        })
    }
}

impl GatheredColumn {
    fn into_arrow(self) -> Result<ArrayRef> {
        let nulls = self
            .present
            .map(|present| NullBuffer::new(packed(&present)));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Ok(match self.values {
            Values::Bool(values) => Arc::new(BooleanArray::new(packed(&values), nulls)) as ArrayRef,
            Values::Int64(values) => Arc::new(Int64Array::new(values.into(), nulls)),
            Values::Float64(values) => Arc::new(Float64Array::new(values.into(), nulls)),
            Values::Utf8 { ends, bytes } => Arc::new(text_views(&ends, bytes, nulls)?),
        })
    }
}

/// Texts that lie one after the other, as views.
#[allow(unsafe_code)] // Checking every view again, as the safe constructor does, costs as much as making them.
fn text_views(ends: &[i64], bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<StringViewArray> {
    if bytes.len() > MAX_BATCH_TEXT {
        return Err(Error::Internal(
            "more than 2 GiB of text in one batch".to_owned(),
        ));
    }
    let mut views = Vec::with_capacity(ends.len().saturating_sub(1));
    let mut start = 0_usize;
    let mut all_inline = true;
    for &end in ends.iter().skip(1) {
        let end = usize::try_from(end).unwrap_or(start);
        all_inline &= end.saturating_sub(start) <= MAX_INLINE;
        views.push(view(&bytes, start, end));
        start = end;
    }
    let buffers: Vec<Buffer> = if all_inline {
        Vec::new()
    } else {
        vec![Buffer::from_vec(bytes)]
    };
    // SAFETY: each view was made of a slice of the one buffer, at the offset of that slice where it is long; gathered text is
    // UTF-8 with each end at a character's border; there is one null bit for each view.
    Ok(unsafe { StringViewArray::new_unchecked(ScalarBuffer::from(views), buffers.into(), nulls) })
}

/// Longest text that a view holds in itself.
const MAX_INLINE: usize = 12;

/// The view of `bytes[start..end]`.
#[inline]
fn view(bytes: &[u8], start: usize, end: usize) -> u128 {
    let len = end.saturating_sub(start);
    // Short texts are most: one load of all that may belong to them, and a mask.
    if len <= MAX_INLINE
        && let Some(window) = bytes.get(start..).and_then(<[u8]>::first_chunk::<16>)
    {
        let text = u128::from_le_bytes(*window) & ((1 << (8 * len)) - 1);
        return text << 32 | len as u128;
    }
    let text = bytes.get(start..end).unwrap_or_default();
    make_view(text, 0, u32::try_from(start).unwrap_or(u32::MAX))
}

/// One bit a value.
fn packed(values: &[bool]) -> BooleanBuffer {
    let (eights, rest) = values.as_chunks::<8>();
    let mut bytes = Vec::with_capacity(values.len().div_ceil(8));
    // The product brings the lowest bit of byte i to bit 56 + i, and nothing else there.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    bytes.extend(eights.iter().map(|eight| {
        let word = u64::from_le_bytes(eight.map(u8::from));
        let [.., byte] = word.wrapping_mul(GATHER).to_le_bytes();
        byte
    }));
    if !rest.is_empty() {
        let bits = rest.iter().rev();
        bytes.push(bits.fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
    }
    BooleanBuffer::new(Buffer::from_vec(bytes), 0, values.len())
}

fn id_columns(samples: &[SampleRef]) -> Vec<ArrayRef> {
    let caches: Vec<u64> = samples.iter().map(|sample| sample.cache.into()).collect();
    let ids: Vec<u64> = samples.iter().map(|sample| sample.sample).collect();
    vec![
        Arc::new(UInt64Array::from(caches)),
        Arc::new(UInt64Array::from(ids)),
    ]
}

fn weight_column(table: &ActiveTable, rows: Range<u64>) -> ArrayRef {
    let weights = match table.equal_weight() {
        Some(weight) => vec![weight; usize::try_from(rows.end - rows.start).unwrap_or(0)],
        None => rows.map(|row| table.weight(row).unwrap_or(1.0)).collect(),
    };
    Arc::new(Float64Array::from(weights))
}

fn samples_of(table: &ActiveTable, rows: Range<u64>) -> Vec<SampleRef> {
    let rows: Vec<u64> = rows.collect();
    let mut samples = Vec::new();
    table.samples_of(&rows, &mut samples);
    samples
}

fn batch(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .map_err(|error: ArrowError| Error::Internal(format!("export of metadata: {error}")))
}

/// Ids, fields and weight.
fn table_schema(fields: &[Field]) -> SchemaRef {
    let mut all = vec![
        ArrowField::new(CACHE_ID, DataType::UInt64, false),
        ArrowField::new(SAMPLE_ID, DataType::UInt64, false),
    ];
    all.extend(fields.iter().map(arrow_field));
    all.push(ArrowField::new(WEIGHT, DataType::Float64, false));
    Arc::new(ArrowSchema::new(all))
}

fn arrow_field(field: &Field) -> ArrowField {
    let data_type = match field.field_type {
        FieldType::Bool => DataType::Boolean,
        FieldType::Int64 => DataType::Int64,
        FieldType::Float64 => DataType::Float64,
        FieldType::Utf8 => DataType::Utf8View,
        // Gathering has refused a type that this library does not know.
        _ => DataType::Null,
    };
    ArrowField::new(&field.name, data_type, field.nullable)
}

#[cfg(test)]
mod tests {
    use super::{make_view, packed, view};

    #[test]
    fn bits_are_the_values() {
        for len in 0..40 {
            let values: Vec<bool> = (0..len).map(|i| (i * 7 + len) % 3 == 0).collect();
            let bits: Vec<bool> = packed(&values).iter().collect();
            assert_eq!(bits, values);
        }
    }

    #[test]
    fn views_are_those_of_arrow() {
        let bytes: Vec<u8> = (1..=60).collect();
        for start in 0..=60 {
            for end in start..=60 {
                let expected = make_view(&bytes[start..end], 0, u32::try_from(start).unwrap());
                assert_eq!(view(&bytes, start, end), expected, "{start}..{end}");
            }
        }
    }
}
