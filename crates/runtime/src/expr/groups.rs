//! Rows of one group side by side.

use super::codes::Codes;

/// The rows of each code, ascending, one code after the other; rows without a class are left out.
#[derive(Clone, Debug)]
pub struct RowsByCode {
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl RowsByCode {
    /// A counting sort.
    pub fn new(codes: &Codes) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        for count in codes.counts() {
            end += usize::try_from(count).unwrap_or(usize::MAX);
            starts.push(end);
        }
        let mut next = starts.clone();
        let mut rows = vec![0; end];
        for (row, &code) in (0..).zip(codes.as_slice()) {
            if let Some(at) = next.get_mut(code as usize) {
                rows[*at] = row;
                *at += 1;
            }
        }
        Self { rows, starts }
    }

    /// The rows of each code in turn; of none for a code that no row has.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.starts
            .windows(2)
            .map(|ends| self.rows.get(ends[0]..ends[1]).unwrap_or_default())
    }
}
