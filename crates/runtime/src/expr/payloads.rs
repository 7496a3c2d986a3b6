//! Payloads of rows that name a sample each: facts of the index, first bytes, whole payloads.

use crate::active::SampleRef;
use crate::caches::{Caches, PayloadFacts};
use crate::error::{Error, Result};
use crate::mapped;
use crate::reader::{JoinedBuffers, MAX_BLOCK_BYTES};

mod mime;

pub use mime::{HEAD_LEN, mime};

/// Samples of a block, so that blocks of empty payloads end too.
const BLOCK_SAMPLES: usize = 4_096;

/// The ids of a row, as wide as any column of integers; `None` where one is null.
pub type Ids = Option<(i128, i128)>;

/// What becomes of rows whose payload can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The first of them is an error.
    Error,
    /// They get no value.
    Null,
}

impl Unreadable {
    fn settle<T>(self, read: Result<T>) -> Result<Option<T>> {
        match (self, read) {
            (_, Ok(value)) => Ok(Some(value)),
            (Self::Null, Err(error)) if is_of_one_row(&error) => Ok(None),
            (_, Err(error)) => Err(error),
        }
    }
}

/// Whether an error is about a sample and its bytes, rather than a fault of ours.
fn is_of_one_row(error: &Error) -> bool {
    matches!(
        error,
        Error::UnknownSample { .. } | Error::Damaged { .. } | Error::Io { .. }
    )
}

fn sample(caches: &Caches, (cache, sample): (i128, i128)) -> Result<SampleRef> {
    match (u64::try_from(cache), u64::try_from(sample)) {
        (Ok(cache), Ok(sample)) => caches.sample(cache, sample),
        _ => Err(Error::UnknownSample {
            cache_id: u64::try_from(cache).unwrap_or(u64::MAX),
            sample_id: u64::try_from(sample).unwrap_or(u64::MAX),
            message: format!("there is no sample ({cache}, {sample})"),
        }),
    }
}

/// Length and checksum of each row's payload, from the index.
///
/// # Errors
/// [`Error::UnknownSample`] and [`Error::Damaged`], unless such rows are to have no value.
pub fn payload_facts(
    caches: &Caches,
    rows: impl Iterator<Item = Ids>,
    unreadable: Unreadable,
) -> Result<Vec<Option<PayloadFacts>>> {
    mapped::ensure_guard();
    rows.map(|ids| {
        let Some(ids) = ids else {
            return Ok(None);
        };
        let facts = sample(caches, ids).and_then(|sample| caches.guarded_facts(sample));
        unreadable.settle(facts)
    })
    .collect()
}

/// The first `n` bytes of each row's payload; see [`Caches::head`].
///
/// # Errors
/// Those of [`payload_facts`], and [`Error::Io`].
pub fn payload_heads(
    caches: &Caches,
    rows: impl Iterator<Item = Ids>,
    n: u32,
    unreadable: Unreadable,
) -> impl Iterator<Item = Result<Option<Vec<u8>>>> {
    rows.map(move |ids| {
        let Some(ids) = ids else {
            return Ok(None);
        };
        unreadable.settle(sample(caches, ids).and_then(|sample| caches.head(sample, n)))
    })
}

/// Reads each row's payload, whole and checked, and hands them over in order, a few megabytes at a time.
///
/// # Errors
/// [`Error::Argument`] before anything is read when the payloads are longer than `max_bytes` together; else those of
/// [`payload_heads`].
pub fn payloads(
    caches: &Caches,
    rows: &[Ids],
    max_bytes: u64,
    unreadable: Unreadable,
    mut take: impl FnMut(Option<&[u8]>),
) -> Result<()> {
    mapped::ensure_guard();
    let mut found = Vec::with_capacity(rows.len());
    let mut total = 0_u64;
    for &ids in rows {
        let one = match ids {
            None => None,
            Some(ids) => unreadable.settle(sample(caches, ids).and_then(|sample| {
                let facts = caches.guarded_facts(sample)?;
                Ok((sample, facts.len))
            }))?,
        };
        total = total.saturating_add(one.map_or(0, |(_, len)| len.into()));
        found.push(one);
    }
    if total > max_bytes {
        let rows = found.iter().flatten().count();
        return Err(Error::Argument {
            argument: "max_bytes",
            message: format!(
                "the payloads of {rows} rows have {total} bytes together, more than max_bytes = {max_bytes}; choose \
                 fewer rows, or scan in batches"
            ),
        });
    }
    let mut rest = found.as_slice();
    while !rest.is_empty() {
        let (block, later) = rest.split_at(block_len(rest));
        rest = later;
        let samples = block.iter().flatten().map(|&(sample, _)| sample).collect();
        let plan = caches.read(samples)?;
        let buffers = JoinedBuffers::allocate(plan.lengths());
        let read = plan.fill(buffers);
        let (buffers, mut errors) = (read.buffers, read.errors.into_iter().peekable());
        let mut places = (0_u32..).zip(0_usize..);
        for row in block {
            let place = if row.is_some() { places.next() } else { None };
            let Some((place, at)) = place else {
                take(None);
                continue;
            };
            let failed = errors.next_if(|&(other, _)| other == place);
            let outcome = failed.map_or(Ok(()), |(_, error)| Err(error));
            let read = unreadable.settle(outcome)?;
            take(read.map(|()| buffers.get(at)));
        }
    }
    Ok(())
}

/// Rows of the next block: at least one.
fn block_len(rows: &[Option<(SampleRef, u32)>]) -> usize {
    let mut bytes = 0_u64;
    let fits = rows.iter().take(BLOCK_SAMPLES).take_while(|row| {
        bytes += row.map_or(0, |(_, len)| u64::from(len));
        bytes <= MAX_BLOCK_BYTES
    });
    fits.count().max(1)
}
