//! Cuts a stream of rows into batches, by a rule that depends on the rows alone.

use crate::column::Columns;
use crate::constants::{MAX_BATCH_ROWS, MAX_BATCH_TEXT};
use crate::error::FormatError;
use crate::schema::Schema;

/// Collects rows until a batch is full: after 65,536 rows, or before the row that would bring its text
/// over 16 MiB. A batch has at least one row, however long.
#[derive(Clone, Debug)]
pub struct Batcher {
    open: Columns,
}

impl Batcher {
    /// No rows yet.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        Self {
            open: Columns::new(schema),
        }
    }

    /// Adds rows and returns the batches that they complete.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the columns are of other types.
    pub fn push(&mut self, columns: &Columns) -> Result<Vec<Columns>, FormatError> {
        self.push_range(columns, 0, columns.rows())
    }

    /// As [`push`](Self::push), of the rows `start..last` alone.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the columns are of other types or have fewer rows.
    pub fn push_range(
        &mut self,
        columns: &Columns,
        mut start: usize,
        last: usize,
    ) -> Result<Vec<Columns>, FormatError> {
        let mut full = Vec::new();
        while start < last {
            let end = self.room(columns, start, last);
            self.open.extend_range(columns, start, end)?;
            // What did not fit, or a batch that can't take another row, ends it.
            if end < last || self.open.rows() == MAX_BATCH_ROWS {
                full.push(self.open.take());
            }
            start = end;
        }
        Ok(full)
    }

    /// The last batch, if it has rows.
    #[must_use]
    pub fn finish(self) -> Option<Columns> {
        if self.open.is_empty() {
            None
        } else {
            Some(self.open)
        }
    }

    /// The rows that wait for their batch to be full.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.open.rows()
    }

    /// Those rows.
    #[must_use]
    pub fn open(&self) -> &Columns {
        &self.open
    }

    /// The end of the rows from `start` that still belong into the open batch.
    fn room(&self, columns: &Columns, start: usize, last: usize) -> usize {
        let most = start + (MAX_BATCH_ROWS - self.open.rows());
        let most = most.min(last);
        let mut text = self.open.text_bytes();
        if start == 0 && text + columns.text_bytes() <= MAX_BATCH_TEXT {
            return most;
        }
        for row in start..most {
            text = text.saturating_add(columns.row_text_bytes(row));
            let empty = self.open.is_empty() && row == start;
            if text > MAX_BATCH_TEXT && !empty {
                return row;
            }
        }
        most
    }
}
