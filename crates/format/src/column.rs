//! Typed columns of consecutive rows without nulls: what a writer holds between its source and the file.

use crate::constants::MAX_TEXT_VALUE;
use crate::error::FormatError;
use crate::schema::{FieldType, Schema};

/// One metadata value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Missing.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int64(i64),
    /// A number; its bits are kept, also those of NaN.
    Float64(f64),
    /// Text.
    Utf8(&'a str),
}

/// Text values one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextColumn {
    text: String,
    ends: Vec<usize>,
}

impl TextColumn {
    /// No values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    pub fn push(&mut self, value: &str) {
        self.text.push_str(value);
        self.ends.push(self.text.len());
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All values without gaps.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where each value ends in [`text`](Self::text), in bytes.
    #[must_use]
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The value of a row.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&str> {
        let end = *self.ends.get(row)?;
        self.text.get(self.start_of(row)..end)
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|row| self.get(row).unwrap_or_default())
    }

    /// Where the value of a row, or of one behind the last, starts in [`text`](Self::text), in bytes.
    pub(crate) fn start_of(&self, row: usize) -> usize {
        row.checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0)
    }

    fn extend_range(&mut self, other: &Self, start: usize, end: usize) {
        let (first, base) = (other.start_of(start), self.text.len());
        let ends = other.ends.get(start..end).unwrap_or_default();
        let last = ends.last().copied().unwrap_or(first);
        self.text
            .push_str(other.text.get(first..last).unwrap_or_default());
        self.ends
            .extend(ends.iter().map(|end| base + (end - first)));
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

/// The values of one field.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// True or false.
    Bool(Vec<bool>),
    /// Integers.
    Int64(Vec<i64>),
    /// Numbers.
    Float64(Vec<f64>),
    /// Text.
    Utf8(TextColumn),
}

impl Column {
    /// A column without values.
    #[must_use]
    pub fn new(field_type: FieldType) -> Self {
        match field_type {
            FieldType::Bool => Self::Bool(Vec::new()),
            FieldType::Int64 => Self::Int64(Vec::new()),
            FieldType::Float64 => Self::Float64(Vec::new()),
            FieldType::Utf8 => Self::Utf8(TextColumn::new()),
        }
    }

    /// The type of the values.
    #[must_use]
    pub fn field_type(&self) -> FieldType {
        match self {
            Self::Bool(_) => FieldType::Bool,
            Self::Int64(_) => FieldType::Int64,
            Self::Float64(_) => FieldType::Float64,
            Self::Utf8(_) => FieldType::Utf8,
        }
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::Float64(values) => values.len(),
            Self::Utf8(values) => values.len(),
        }
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a row.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<Value<'_>> {
        Some(match self {
            Self::Bool(values) => Value::Bool(*values.get(row)?),
            Self::Int64(values) => Value::Int64(*values.get(row)?),
            Self::Float64(values) => Value::Float64(*values.get(row)?),
            Self::Utf8(values) => Value::Utf8(values.get(row)?),
        })
    }

    /// Adds a value; `false` and no change if it is of another type or null.
    #[must_use]
    pub fn push(&mut self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Bool(values), Value::Bool(value)) => values.push(value),
            (Self::Int64(values), Value::Int64(value)) => values.push(value),
            (Self::Float64(values), Value::Float64(value)) => values.push(value),
            (Self::Utf8(values), Value::Utf8(value)) => values.push(value),
            _ => return false,
        }
        true
    }

    /// Bytes of UTF-8 in the column; 0 for other types.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        match self {
            Self::Utf8(values) => values.text.len() as u64,
            _ => 0,
        }
    }

    fn row_text_bytes(&self, row: usize) -> u64 {
        match self {
            Self::Utf8(values) => values.get(row).unwrap_or_default().len() as u64,
            _ => 0,
        }
    }

    fn extend_range(&mut self, other: &Self, start: usize, end: usize) {
        match (self, other) {
            (Self::Bool(to), Self::Bool(from)) => {
                to.extend_from_slice(from.get(start..end).unwrap_or_default());
            }
            (Self::Int64(to), Self::Int64(from)) => {
                to.extend_from_slice(from.get(start..end).unwrap_or_default());
            }
            (Self::Float64(to), Self::Float64(from)) => {
                to.extend_from_slice(from.get(start..end).unwrap_or_default());
            }
            (Self::Utf8(to), Self::Utf8(from)) => to.extend_range(from, start, end),
            // The callers compare the types first.
            _ => {}
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Bool(values) => values.clear(),
            Self::Int64(values) => values.clear(),
            Self::Float64(values) => values.clear(),
            Self::Utf8(values) => values.clear(),
        }
    }
}

/// Columns of one length, one for each field of a schema. Without fields it is a number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    rows: usize,
    columns: Vec<Column>,
}

impl Columns {
    /// No rows yet.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let columns = schema
            .fields()
            .iter()
            .map(|field| Column::new(field.field_type))
            .collect();
        Self { rows: 0, columns }
    }

    /// Columns that were filled one by one.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if a column is not `rows` long or not of its field's type,
    /// [`FormatError::TextLong`] if a text value is over the format's limit.
    pub fn from_columns(
        schema: &Schema,
        rows: usize,
        columns: Vec<Column>,
    ) -> Result<Self, FormatError> {
        let shape_fits = columns.len() == schema.len()
            && columns.iter().zip(schema.fields()).all(|(column, field)| {
                column.len() == rows && column.field_type() == field.field_type
            });
        let made = Self { rows, columns };
        if !shape_fits {
            let names: Vec<&str> = schema
                .fields()
                .iter()
                .map(|field| field.field_type.name())
                .collect();
            return Err(made.shape_error(format!("{rows} rows of ({})", names.join(", "))));
        }
        for column in &made.columns {
            if let Column::Utf8(texts) = column
                && texts.text.len() as u64 > MAX_TEXT_VALUE
            {
                texts.iter().try_for_each(check_text_len)?;
            }
        }
        Ok(made)
    }

    /// Adds one row, given as one value a field.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if number or types of the values differ,
    /// [`FormatError::TextLong`]; nothing is added then.
    pub fn push_row(&mut self, values: &[Value<'_>]) -> Result<(), FormatError> {
        for value in values {
            if let Value::Utf8(text) = value {
                check_text_len(text)?;
            }
        }
        let fits = values.len() == self.columns.len()
            && values.iter().zip(&self.columns).all(|(value, column)| {
                matches!(
                    (value, column),
                    (Value::Bool(_), Column::Bool(_))
                        | (Value::Int64(_), Column::Int64(_))
                        | (Value::Float64(_), Column::Float64(_))
                        | (Value::Utf8(_), Column::Utf8(_))
                )
            });
        if !fits {
            return Err(self.shape_error(format!("a row of {} other values", values.len())));
        }
        for (value, column) in values.iter().zip(&mut self.columns) {
            let _pushed = column.push(*value);
        }
        self.rows += 1;
        Ok(())
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The columns in the schema's order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Bytes of UTF-8 in all columns.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.columns.iter().map(Column::text_bytes).sum()
    }

    /// Bytes of UTF-8 in one row.
    #[must_use]
    pub fn row_text_bytes(&self, row: usize) -> u64 {
        self.columns
            .iter()
            .map(|column| column.row_text_bytes(row))
            .sum()
    }

    /// Adds rows `start..end` of other columns of the same types.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the types differ or the range is not inside `other`.
    pub fn extend_range(
        &mut self,
        other: &Self,
        start: usize,
        end: usize,
    ) -> Result<(), FormatError> {
        let fits = start <= end
            && end <= other.rows
            && self.columns.len() == other.columns.len()
            && self
                .columns
                .iter()
                .zip(&other.columns)
                .all(|(a, b)| a.field_type() == b.field_type());
        if !fits {
            return Err(other.shape_error(format!("rows {start}..{end} of the same types")));
        }
        for (to, from) in self.columns.iter_mut().zip(&other.columns) {
            to.extend_range(from, start, end);
        }
        self.rows += end - start;
        Ok(())
    }

    /// Adds all rows of other columns of the same types.
    ///
    /// # Errors
    /// [`FormatError::ColumnsShape`] if the types differ.
    pub fn append(&mut self, other: &Self) -> Result<(), FormatError> {
        self.extend_range(other, 0, other.rows)
    }

    /// Takes all rows out and leaves none.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let empty = self
            .columns
            .iter()
            .map(|column| Column::new(column.field_type()))
            .collect();
        std::mem::replace(
            self,
            Self {
                rows: 0,
                columns: empty,
            },
        )
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.columns.iter_mut().for_each(Column::clear);
    }

    /// Whether the columns are those of `schema`.
    #[must_use]
    pub fn fits(&self, schema: &Schema) -> bool {
        self.columns.len() == schema.len()
            && self
                .columns
                .iter()
                .zip(schema.fields())
                .all(|(column, field)| column.field_type() == field.field_type)
    }

    pub(crate) fn shape_error(&self, expected: String) -> FormatError {
        FormatError::ColumnsShape {
            found: self.rows as u64,
            columns: self.columns.len() as u64,
            expected,
        }
    }
}

fn check_text_len(text: &str) -> Result<(), FormatError> {
    let found = text.len() as u64;
    if found > MAX_TEXT_VALUE {
        return Err(FormatError::TextLong {
            found,
            most: MAX_TEXT_VALUE,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
