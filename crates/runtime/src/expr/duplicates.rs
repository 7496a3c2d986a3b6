//! The number of a row among those of its key.

use std::collections::HashMap;

use super::hashed::{HashesTo, check_rows, narrow};
use crate::error::Result;

/// How many rows of the same key come before each row; in the order of `order`, of equal ones the first row, or in the
/// order of the rows. Rows without a key (`counts` is false) have none before them.
///
/// # Errors
/// [`crate::Error::Argument`] for 2^32 rows or more.
pub fn duplicate_ranks(
    keys: &[u64],
    order: Option<&[u64]>,
    counts: impl Fn(usize) -> bool,
) -> Result<Vec<u32>> {
    check_rows(keys.len())?;
    let mut before: HashesTo<u32> = HashMap::default();
    let mut ranks = vec![0; keys.len()];
    let mut visit = |row: usize| {
        if counts(row) {
            let seen = before.entry(keys[row]).or_insert(0);
            ranks[row] = *seen;
            *seen += 1;
        }
    };
    match order {
        None => (0..keys.len()).for_each(visit),
        Some(order) => {
            let mut rows: Vec<u32> = (0..narrow(keys.len())).collect();
            rows.sort_unstable_by_key(|&row| (order[row as usize], row));
            rows.into_iter().for_each(|row| visit(row as usize));
        }
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::duplicate_ranks;

    #[test]
    fn ranks_count_what_came_before() {
        let keys = [5, 6, 5, 5, 6, 7];
        let ranks =
            |order, counts: fn(usize) -> bool| duplicate_ranks(&keys, order, counts).unwrap();
        assert_eq!(ranks(None, |_| true), [0, 0, 1, 2, 1, 0]);
        assert_eq!(
            ranks(Some(&[3, 9, 1, 3, 8, 0]), |_| true),
            [1, 1, 0, 2, 0, 0]
        );
        assert_eq!(ranks(None, |row| row != 2), [0, 0, 0, 1, 1, 0]);
        assert!(duplicate_ranks(&[], None, |_| true).unwrap().is_empty());
    }
}
