//! Values of one column of one batch, checked at each access.

use crate::column::Value;
use crate::constants::MAX_TEXT_VALUE;
use crate::error::FormatError;
use crate::schema::FieldType;

/// One column of a batch. Bytes may come from anywhere; only their lengths are checked at first.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSlices<'a> {
    field_type: FieldType,
    rows: u64,
    nulls: Option<&'a [u8]>,
    values: &'a [u8],
    text: &'a [u8],
}

impl<'a> ColumnSlices<'a> {
    /// A column of `rows` rows. `text` is empty but for texts, whose `values` are their offsets.
    ///
    /// # Errors
    /// [`FormatError::MetadataBuffer`] if a slice is too short for the rows.
    pub fn new(
        field_type: FieldType,
        rows: u64,
        nulls: Option<&'a [u8]>,
        values: &'a [u8],
        text: &'a [u8],
    ) -> Result<Self, FormatError> {
        let bits = rows.div_ceil(8);
        let needed = match field_type {
            FieldType::Bool => bits,
            FieldType::Int64 | FieldType::Float64 => rows.saturating_mul(8),
            FieldType::Utf8 => rows.saturating_add(1).saturating_mul(4),
        };
        if let Some(nulls) = nulls {
            check_len("validity buffer", nulls, bits, rows)?;
        }
        check_len("value buffer", values, needed, rows)?;
        Ok(Self {
            field_type,
            rows,
            nulls,
            values,
            text,
        })
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The type of the values.
    #[must_use]
    pub fn field_type(&self) -> FieldType {
        self.field_type
    }

    /// The value of a row. Offsets and UTF-8 of a text are checked.
    ///
    /// # Errors
    /// [`FormatError::MetadataRow`], [`FormatError::TextOffsets`], [`FormatError::TextLong`] or
    /// [`FormatError::TextUtf8`].
    pub fn value(&self, row: u64) -> Result<Value<'a>, FormatError> {
        let beyond = FormatError::MetadataRow {
            row,
            rows: self.rows,
        };
        let Some(at) = usize::try_from(row).ok().filter(|_| row < self.rows) else {
            return Err(beyond);
        };
        if self.nulls.is_some_and(|nulls| !bit(nulls, at)) {
            return Ok(Value::Null);
        }
        match self.field_type {
            FieldType::Bool => Ok(Value::Bool(bit(self.values, at))),
            FieldType::Int64 => {
                let bytes = word(self.values, at).ok_or(beyond)?;
                Ok(Value::Int64(i64::from_le_bytes(bytes)))
            }
            FieldType::Float64 => {
                let bytes = word(self.values, at).ok_or(beyond)?;
                Ok(Value::Float64(f64::from_le_bytes(bytes)))
            }
            FieldType::Utf8 => {
                let bytes = self.text_bytes(at)?;
                let text = std::str::from_utf8(bytes).map_err(|_| FormatError::TextUtf8 { row })?;
                Ok(Value::Utf8(text))
            }
        }
    }

    /// Whether the value of a row is null; `true` beyond the last row.
    #[must_use]
    pub fn is_null(&self, row: u64) -> bool {
        let at = usize::try_from(row).ok().filter(|_| row < self.rows);
        at.is_none_or(|at| self.nulls.is_some_and(|nulls| !bit(nulls, at)))
    }

    /// Checks every value, and that `null_count` of them are null.
    ///
    /// # Errors
    /// [`FormatError::NullCount`], or what [`value`](Self::value) returns for the first bad value.
    pub fn check(&self, null_count: u64) -> Result<(), FormatError> {
        let found = self.nulls.map_or(0, |nulls| zero_bits(nulls, self.rows));
        if found != null_count {
            return Err(FormatError::NullCount {
                stated: null_count,
                found,
            });
        }
        if self.field_type == FieldType::Utf8 {
            // Offsets of null slots too: they are part of the chain.
            for row in 0..self.rows {
                let bytes = self.text_bytes(usize::try_from(row).unwrap_or(usize::MAX))?;
                if !self.is_null(row) {
                    std::str::from_utf8(bytes).map_err(|_| FormatError::TextUtf8 { row })?;
                }
            }
        }
        Ok(())
    }

    fn text_bytes(&self, at: usize) -> Result<&'a [u8], FormatError> {
        let row = at as u64;
        let limit = self.text.len() as u64;
        let (start, end) = (self.offset(at), self.offset(at.saturating_add(1)));
        let bad = || FormatError::TextOffsets {
            row,
            start,
            end,
            limit,
        };
        let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
            return Err(bad());
        };
        let bytes = self.text.get(from..to).ok_or_else(bad)?;
        let found = bytes.len() as u64;
        if found > MAX_TEXT_VALUE {
            return Err(FormatError::TextLong {
                found,
                most: MAX_TEXT_VALUE,
            });
        }
        Ok(bytes)
    }

    /// A text offset; -1 where there is none.
    fn offset(&self, at: usize) -> i64 {
        let bytes = self.values.as_chunks().0.get(at);
        bytes.map_or(-1, |bytes| i64::from(i32::from_le_bytes(*bytes)))
    }
}

fn check_len(what: &'static str, slice: &[u8], needed: u64, rows: u64) -> Result<(), FormatError> {
    let found = slice.len() as u64;
    if found >= needed {
        return Ok(());
    }
    Err(FormatError::MetadataBuffer {
        what,
        found,
        needed,
        rows,
    })
}

/// How many of the first `rows` bits are 0; `bytes` has at least so many.
fn zero_bits(bytes: &[u8], rows: u64) -> u64 {
    let rows_here = usize::try_from(rows).unwrap_or(usize::MAX);
    let (whole, rest) = (rows_here / 8, rows_here % 8);
    let ones = |byte: &u8| u64::from(byte.count_ones());
    let present: u64 = bytes.iter().take(whole).map(ones).sum();
    let last = bytes
        .get(whole)
        .map_or(0, |byte| ones(&(byte & ((1_u8 << rest) - 1))));
    rows - (present + last)
}

fn bit(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

fn word(bytes: &[u8], at: usize) -> Option<[u8; 8]> {
    bytes.as_chunks().0.get(at).copied()
}
