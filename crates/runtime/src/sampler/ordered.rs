//! The mode without shuffling: the active rows in the order of the table, over and over.

/// Rows of the positions from `start` on: position modulo rows.
pub(super) fn fill(rows: u64, start: u64, out: &mut [u64]) {
    let mut row = start % rows;
    for slot in out {
        *slot = row;
        row += 1;
        if row == rows {
            row = 0;
        }
    }
}
