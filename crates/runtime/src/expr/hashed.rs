//! Rows by the hash of their group or class.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::codes::Codes;
use super::memory::with_room;
use super::table::Table;
use crate::error::{Error, Result};

/// A map by hashes: they are mixed well already.
pub(super) type HashesTo<T> = HashMap<u64, T, BuildHasherDefault<Given>>;

/// Takes a hash as it is.
#[derive(Default)]
pub(super) struct Given(u64);

impl Hasher for Given {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only for keys that are no u64, of which there are none.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The group of each row, and a hash that a group is known by.
#[derive(Clone, Debug)]
pub struct GroupCodes {
    hashes: Vec<u64>,
    codes: Vec<u32>,
    /// Where the rows of each group start when they are sorted into groups, and the end of the last.
    starts: Vec<usize>,
}

impl GroupCodes {
    /// Groups of the rows whose hashes are the same, numbered by their first rows.
    ///
    /// # Errors
    /// [`Error::Argument`] for 2^32 rows or more.
    pub fn new(of_rows: &[u64]) -> Result<Self> {
        check_rows(of_rows.len())?;
        let mut table = Table::new();
        let mut next = 0;
        let mut hashes = Vec::new();
        let mut sizes: Vec<usize> = Vec::new();
        let mut codes = with_room(of_rows.len());
        for &hash in of_rows {
            let code = table.code(hash, &mut next);
            if code as usize == hashes.len() {
                hashes.push(hash);
                sizes.push(0);
            }
            sizes[code as usize] += 1;
            codes.push(code);
        }
        Ok(Self::of_sizes(codes, hashes, sizes))
    }

    /// Groups that are numbered already, with a hash for each number; some numbers may have no rows. Every row must have
    /// a group.
    ///
    /// # Errors
    /// [`Error::Internal`] for a row without one, or hashes of another number.
    pub fn of_codes(codes: Codes, hashes: Vec<u64>) -> Result<Self> {
        let counts = codes.counts();
        let rows: u64 = counts.iter().sum();
        if rows != codes.len() as u64 || counts.len() != hashes.len() {
            return Err(Error::Internal("groups without hash or number".to_owned()));
        }
        let sizes = counts
            .into_iter()
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
            .collect();
        Ok(Self::of_sizes(codes.into_vec(), hashes, sizes))
    }

    fn of_sizes(codes: Vec<u32>, hashes: Vec<u64>, sizes: Vec<usize>) -> Self {
        let mut starts = Vec::with_capacity(sizes.len() + 1);
        let mut sum = 0;
        for size in sizes {
            starts.push(sum);
            sum += size;
        }
        starts.push(sum);
        Self {
            hashes,
            codes,
            starts,
        }
    }

    /// The hash of each group.
    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The group of each row.
    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// Where the rows of a group are in [`sorted`](Self::sorted).
    pub(super) fn range(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// The values of the rows, group by group, in each in the order of the rows.
    pub(super) fn sorted<T: Copy + Default>(&self, values: impl Iterator<Item = T>) -> Vec<T> {
        let mut next = self.starts.clone();
        let mut sorted = with_room(self.codes.len());
        sorted.resize(self.codes.len(), T::default());
        for (value, &code) in values.zip(&self.codes) {
            let at = &mut next[code as usize];
            sorted[*at] = value;
            *at += 1;
        }
        sorted
    }
}

/// Rows sorted into groups, each in the order of the rows. Groups are numbered by their first rows.
#[derive(Clone, Debug)]
pub struct Groups {
    of_rows: GroupCodes,
    rows: Vec<u32>,
}

impl Groups {
    /// Groups of the rows whose hashes are the same.
    ///
    /// # Errors
    /// [`Error::Argument`] for 2^32 rows or more.
    pub fn new(of_rows: &[u64]) -> Result<Self> {
        let of_rows = GroupCodes::new(of_rows)?;
        let rows = of_rows.sorted(0_u32..=u32::MAX);
        Ok(Self { of_rows, rows })
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.hashes().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hashes().is_empty()
    }

    /// The hash of each group.
    pub fn hashes(&self) -> &[u64] {
        self.of_rows.hashes()
    }

    /// The group of each row.
    pub fn codes(&self) -> &[u32] {
        self.of_rows.codes()
    }

    /// The rows of a group, ascending.
    pub fn rows(&self, group: usize) -> &[u32] {
        &self.rows[self.of_rows.range(group)]
    }

    /// The rows of all groups, one group after the other.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|group| self.rows(group))
    }

    /// The place of each row in its group.
    pub(super) fn places(&self) -> Vec<u32> {
        let mut places = vec![0; self.rows.len()];
        for rows in self.iter() {
            for (place, &row) in (0..).zip(rows) {
                places[row as usize] = place;
            }
        }
        places
    }
}

/// Computes a column group by group: each call gets the values of one group and gives one result a row.
///
/// # Errors
/// Those of `of_group`.
pub fn by_group<T: Copy, R: Copy + Default>(
    values: &[T],
    groups: &Groups,
    mut of_group: impl FnMut(&[T]) -> Result<Vec<R>>,
) -> Result<Vec<R>> {
    let mut out = vec![R::default(); values.len()];
    let mut gathered = Vec::new();
    for rows in groups.iter() {
        gathered.clear();
        gathered.extend(rows.iter().map(|&row| values[row as usize]));
        for (&row, result) in rows.iter().zip(of_group(&gathered)?) {
            out[row as usize] = result;
        }
    }
    Ok(out)
}

/// Row numbers are kept in 32 bits.
pub(super) fn check_rows(rows: usize) -> Result<()> {
    if u32::try_from(rows).is_err() {
        return Err(Error::Argument {
            argument: "rows",
            message: format!("a column has at most 2^32 - 1 rows here, found {rows}"),
        });
    }
    Ok(())
}

/// A number of at most as many as the rows, which [`check_rows`] limits.
#[inline(always)]
pub(super) fn narrow(below_rows: usize) -> u32 {
    (below_rows as u64 & 0xFFFF_FFFF) as u32
}

#[cfg(test)]
mod tests {
    use super::{Groups, by_group};

    #[test]
    fn rows_by_group() {
        let groups = Groups::new(&[7, 7, 3, 7, 3, 9]).unwrap();
        assert_eq!(groups.hashes(), [7, 3, 9]);
        assert_eq!(groups.codes(), [0, 0, 1, 0, 1, 2]);
        assert_eq!(
            groups.iter().map(<[u32]>::to_vec).collect::<Vec<_>>(),
            [vec![0, 1, 3], vec![2, 4], vec![5]]
        );
        assert_eq!(groups.places(), [0, 1, 0, 2, 1, 0]);
        let sums = by_group(&[1, 2, 3, 4, 5, 6], &groups, |values| {
            Ok(vec![values.iter().sum::<i32>(); values.len()])
        });
        assert_eq!(sums.unwrap(), [7, 7, 8, 7, 8, 6]);
        assert!(Groups::new(&[]).unwrap().is_empty());
    }
}
