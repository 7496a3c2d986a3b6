//! The active table: which samples are drawn from, in which order, with which weight.
//!
//! A row is the number of a sample counted over all loaded caches. A table that nobody edited is a count; an edited
//! one costs 4 bytes a row (8 beyond 2^32 samples), and 8 more where weights differ.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::reader::Mix;

pub(crate) use parse::{CACHE_ID, SAMPLE_ID, WEIGHT};

/// A sample of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SampleRef {
    /// Position of its cache among the loaded ones.
    pub cache: u32,
    /// Its number in the cache.
    pub sample: u64,
}

/// How an update changed the table, in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateReport {
    /// Rows of the new table.
    pub rows: u64,
    /// Different samples in the new table.
    pub kept: u64,
    /// Rows beyond the first of their sample.
    pub duplicated: u64,
    /// Different samples of the table before that are not in the new one.
    pub dropped: u64,
}

/// The samples of the loaded caches, numbered one after the other.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// Number of each cache's first sample, and of the one after the last.
    starts: Box<[u64]>,
}

impl Numbering {
    pub(crate) fn new(samples: impl IntoIterator<Item = u64>) -> Result<Self> {
        let mut starts = vec![0_u64];
        let mut end = 0_u64;
        for samples in samples {
            end = end
                .checked_add(samples)
                .filter(|&end| end <= crate::sampler::MAX_ROWS)
                .ok_or_else(|| Error::Argument {
                    argument: "paths",
                    message: "the caches have more than 2^62 samples together".to_owned(),
                })?;
            starts.push(end);
        }
        Ok(Self {
            starts: starts.into(),
        })
    }

    /// Samples of all caches.
    pub(crate) fn total(&self) -> u64 {
        self.starts.last().copied().unwrap_or_default()
    }

    pub(crate) fn caches(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// Samples of one cache.
    fn samples(&self, cache: u64) -> Option<u64> {
        let cache = usize::try_from(cache).ok()?;
        Some(self.starts.get(cache + 1)? - self.starts.get(cache)?)
    }

    /// The number of a sample, `None` when there is none such.
    pub(crate) fn number(&self, cache: u64, sample: u64) -> Option<u64> {
        if sample >= self.samples(cache)? {
            return None;
        }
        Some(self.starts.get(usize::try_from(cache).ok()?)? + sample)
    }

    /// The sample of a number below [`Numbering::total`].
    #[inline]
    pub(crate) fn sample(&self, number: u64) -> SampleRef {
        if let [_, end] = *self.starts
            && number < end
        {
            return SampleRef {
                cache: 0,
                sample: number,
            };
        }
        let cache = self
            .starts
            .partition_point(|&start| start <= number)
            .saturating_sub(1);
        let start = self.starts.get(cache).copied().unwrap_or_default();
        SampleRef {
            cache: u32::try_from(cache).unwrap_or(u32::MAX),
            sample: number - start,
        }
    }
}

#[derive(Clone, Debug)]
enum Rows {
    /// Every sample once, in order.
    All,
    Narrow(Arc<[u32]>),
    Wide(Arc<[u64]>),
}

#[derive(Clone, Debug)]
enum Weights {
    Equal(f64),
    Each(Arc<[f64]>),
}

/// A table of active rows; never changes.
#[derive(Clone, Debug)]
pub struct ActiveTable {
    numbering: Arc<Numbering>,
    rows: Rows,
    weights: Weights,
    len: u64,
}

impl ActiveTable {
    /// Every sample once, in order, with weight 1.
    pub(crate) fn all(numbering: Arc<Numbering>) -> Self {
        let len = numbering.total();
        Self {
            numbering,
            rows: Rows::All,
            weights: Weights::Equal(1.0),
            len,
        }
    }

    /// Number of rows, at least 1.
    // A table is never empty, so `is_empty` would say nothing.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether this is anything else than every sample once, in order, with weight 1.
    pub fn is_edited(&self) -> bool {
        let plain = matches!(self.weights, Weights::Equal(weight) if weight == 1.0);
        !plain || !matches!(self.rows, Rows::All)
    }

    /// The sample of a row, `None` past the end.
    pub fn sample(&self, row: u64) -> Option<SampleRef> {
        Some(self.numbering.sample(self.number(row)?))
    }

    /// The sample of a row.
    ///
    /// # Errors
    /// [`Error::Index`] past the end.
    pub fn row(&self, row: u64) -> Result<SampleRef> {
        self.sample(row).ok_or_else(|| Error::Index {
            index: i64::try_from(row).unwrap_or(i64::MAX),
            len: self.len,
        })
    }

    /// The weight of a row, `None` past the end.
    pub fn weight(&self, row: u64) -> Option<f64> {
        match &self.weights {
            Weights::Equal(weight) => (row < self.len).then_some(*weight),
            Weights::Each(weights) => weights.get(usize::try_from(row).ok()?).copied(),
        }
    }

    /// Whether the rows are every sample once, in order, whatever the weights.
    pub(crate) fn is_all_samples(&self) -> bool {
        matches!(self.rows, Rows::All)
    }

    /// The weight of all rows, where they have one.
    pub(crate) fn equal_weight(&self) -> Option<f64> {
        match self.weights {
            Weights::Equal(weight) => Some(weight),
            Weights::Each(_) => None,
        }
    }

    /// The weights, `None` when all are equal.
    pub(crate) fn weights(&self) -> Option<&Arc<[f64]>> {
        match &self.weights {
            Weights::Equal(_) => None,
            Weights::Each(weights) => Some(weights),
        }
    }

    #[inline]
    fn number(&self, row: u64) -> Option<u64> {
        match &self.rows {
            Rows::All => (row < self.len).then_some(row),
            Rows::Narrow(rows) => rows.get(usize::try_from(row).ok()?).map(|&n| u64::from(n)),
            Rows::Wide(rows) => rows.get(usize::try_from(row).ok()?).copied(),
        }
    }

    /// Turns rows, all below [`ActiveTable::len`], into samples.
    pub(crate) fn samples_of(&self, rows: &[u64], out: &mut Vec<SampleRef>) {
        out.clear();
        out.reserve(rows.len());
        match &self.rows {
            Rows::All => out.extend(rows.iter().map(|&row| self.numbering.sample(row))),
            Rows::Narrow(list) => self.look_up(list, rows, out),
            Rows::Wide(list) => self.look_up(list, rows, out),
        }
    }

    /// Rows come in any order, so the list is prefetched as far ahead as one line takes to arrive.
    fn look_up<T: Copy + Into<u64>>(&self, list: &[T], rows: &[u64], out: &mut Vec<SampleRef>) {
        const AHEAD: usize = 16;
        for (i, &row) in rows.iter().enumerate() {
            if let Some(&later) = rows.get(i + AHEAD)
                && let Some(value) = list.get(usize::try_from(later).unwrap_or(usize::MAX))
            {
                crate::region::prefetch(value);
            }
            let number = list.get(usize::try_from(row).unwrap_or(usize::MAX));
            out.push(number.map_or_else(SampleRef::default, |&n| self.numbering.sample(n.into())));
        }
    }

    /// What changed from `before` to this table.
    pub(crate) fn report(&self, before: &ActiveTable) -> UpdateReport {
        let total = self.numbering.total();
        let (kept, dropped) = match (&self.rows, &before.rows) {
            (Rows::All, _) => (total, 0),
            (_, Rows::All) => {
                let mut seen = Seen::new(total, self.len);
                let kept = self.count_new(&mut seen, |_| true);
                (kept, total - kept)
            }
            _ => {
                let mut seen = Seen::new(total, self.len);
                let kept = self.count_new(&mut seen, |_| true);
                let mut gone = Seen::new(total, before.len);
                (
                    kept,
                    before.count_new(&mut gone, |number| !seen.contains(number)),
                )
            }
        };
        UpdateReport {
            rows: self.len,
            kept,
            duplicated: self.len - kept,
            dropped,
        }
    }

    fn count_new(&self, seen: &mut Seen, wanted: impl Fn(u64) -> bool) -> u64 {
        let mut count = 0;
        for row in 0..self.len {
            if let Some(number) = self.number(row)
                && wanted(number)
                && seen.insert(number)
            {
                count += 1;
            }
        }
        count
    }
}

/// A set of sample numbers: a bit a sample, or a hash set where that would be mostly zeros.
enum Seen {
    Bits(Vec<u64>),
    Few(HashSet<u64, BuildHasherDefault<Mix>>),
}

impl Seen {
    fn new(total: u64, rows: u64) -> Self {
        match usize::try_from(total.div_ceil(64)) {
            Ok(words) if total / 256 <= rows => Self::Bits(vec![0; words]),
            _ => Self::Few(HashSet::default()),
        }
    }

    fn insert(&mut self, number: u64) -> bool {
        match self {
            Self::Bits(words) => {
                let word = usize::try_from(number / 64)
                    .ok()
                    .and_then(|at| words.get_mut(at));
                let bit = 1 << (number % 64);
                word.is_some_and(|word| {
                    let new = *word & bit == 0;
                    *word |= bit;
                    new
                })
            }
            Self::Few(set) => set.insert(number),
        }
    }

    fn contains(&self, number: u64) -> bool {
        match self {
            Self::Bits(words) => {
                let word = usize::try_from(number / 64)
                    .ok()
                    .and_then(|at| words.get(at));
                word.is_some_and(|word| word & (1 << (number % 64)) != 0)
            }
            Self::Few(set) => set.contains(&number),
        }
    }
}
