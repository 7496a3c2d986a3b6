//! Values of any type to small integers: equal values get equal codes.

use super::memory::with_room;
use super::table::{Key, Table, Text};
use crate::error::{Error, Result};

/// The code of a row that has no class.
pub const NO_CLASS: u32 = u32::MAX;

/// The most rows that are coded: codes are 32 bits wide, as Polars' row numbers are.
pub const MAX_ROWS: usize = (u32::MAX - 2) as usize;

/// What a null is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// A value like any other: a class of its own.
    Value,
    /// A row without a class: [`NO_CLASS`].
    NoClass,
}

/// Which values of a chunk are there: a bit each, the lowest bit of a byte first.
#[derive(Clone, Copy, Debug)]
pub struct Validity<'a> {
    /// The bits; as many as the chunk has values follow `offset`.
    pub bytes: &'a [u8],
    /// Bits before the first value.
    pub offset: usize,
}

impl Validity<'_> {
    /// Whether a value is there. Bits beyond the end are unset.
    #[inline(always)]
    pub fn get(&self, row: usize) -> bool {
        let bit = self.offset + row;
        self.bytes
            .get(bit / 8)
            .is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }
}

/// A piece of a column as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a, T> {
    /// The values; those of nulls are of no meaning.
    pub values: &'a [T],
    /// Which are there; `None` for all.
    pub validity: Option<Validity<'a>>,
}

impl<T> Chunk<'_, T> {
    fn each(&self, mut visit: impl FnMut(Option<&T>)) {
        match self.validity {
            None => self.values.iter().for_each(|value| visit(Some(value))),
            Some(validity) => {
                for (row, value) in self.values.iter().enumerate() {
                    visit(validity.get(row).then_some(value));
                }
            }
        }
    }
}

/// Values that are one 64-bit word: the same word for equal values of one type and for no others.
pub trait Word: Copy {
    /// The word. Integers keep their order.
    fn word(self) -> u64;
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty);*) => {$(
        impl Word for $unsigned {
            #[inline(always)]
            fn word(self) -> u64 {
                u64::from(self)
            }
        }
        impl Word for $signed {
            #[inline(always)]
            fn word(self) -> u64 {
                i64::from(self).cast_unsigned() ^ 1 << 63
            }
        }
    )*};
}

integers!(u8, i8; u16, i16; u32, i32; u64, i64);

impl Word for f64 {
    #[inline(always)]
    fn word(self) -> u64 {
        if self.is_nan() {
            return Self::NAN.to_bits();
        }
        // -0.0 + 0.0 is 0.0.
        (self + 0.0).to_bits()
    }
}

impl Word for f32 {
    #[inline(always)]
    fn word(self) -> u64 {
        f64::from(self).word()
    }
}

/// A code a row, all below [`bound`](Self::bound) except [`NO_CLASS`]. Not every code below the bound need occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codes {
    codes: Vec<u32>,
    bound: u32,
    without: usize,
}

impl Codes {
    /// Code 0 for every row.
    ///
    /// # Errors
    /// [`Error::Argument`] beyond [`MAX_ROWS`], as in all that makes codes.
    pub fn one_class(rows: usize) -> Result<Self> {
        check_rows(rows)?;
        Ok(Self {
            codes: vec![0; rows],
            bound: 1,
            without: 0,
        })
    }

    /// Codes of values of up to 64 bits.
    pub fn of_words<T: Word>(chunks: &[Chunk<'_, T>], nulls: Nulls) -> Result<Self> {
        let rows = check_rows(chunks.iter().map(|chunk| chunk.values.len()).sum())?;
        // A range no longer than the column is its own code.
        let (mut least, mut largest) = (u64::MAX, 0);
        for chunk in chunks {
            chunk.each(|value| {
                if let Some(value) = value {
                    least = least.min(value.word());
                    largest = largest.max(value.word());
                }
            });
        }
        let span = largest.saturating_sub(least);
        if let Some(top) = u32::try_from(span).ok().filter(|&top| short(top, rows)) {
            let mut coder = Coder::new(rows, nulls);
            coder.next = top + 1;
            for chunk in chunks {
                // Below `top`, as all words are in the range.
                #[allow(clippy::cast_possible_truncation)]
                coder.extend(chunk, |_, value| (value.word() - least) as u32);
            }
            return Ok(coder.finish());
        }
        Ok(hashed(rows, chunks, nulls, |value: &T| value.word()))
    }

    /// Codes of values of 128 bits.
    pub fn of_wide_words(chunks: &[Chunk<'_, i128>], nulls: Nulls) -> Result<Self> {
        let rows = check_rows(chunks.iter().map(|chunk| chunk.values.len()).sum())?;
        Ok(hashed(rows, chunks, nulls, |value| value.cast_unsigned()))
    }

    /// Codes of texts or bytes, one a row.
    pub fn of_bytes<'a>(
        rows: usize,
        values: impl IntoIterator<Item = Option<&'a [u8]>>,
        nulls: Nulls,
    ) -> Result<Self> {
        let mut coder = Coder::new(check_rows(rows)?, nulls);
        let mut short = Table::new();
        let mut long = Table::new();
        for value in values {
            match value {
                None => coder.push_null(),
                Some(value) => {
                    let code = match packed(value) {
                        Some(key) => short.code(key, &mut coder.next),
                        None => long.code(Text::new(value), &mut coder.next),
                    };
                    coder.codes.push(code);
                }
            }
        }
        Ok(coder.finish())
    }

    /// Codes of pairs: one a combination. A row without a class in one of the two has none.
    pub fn of_pairs(left: &Self, right: &Self) -> Result<Self> {
        Ok(Self::pairs(left, right)?.0)
    }

    /// Codes of pairs, and the pair that each of them is.
    pub(super) fn pairs(left: &Self, right: &Self) -> Result<(Self, Vec<[u32; 2]>)> {
        if left.len() != right.len() {
            return Err(Error::Internal("columns of two lengths".to_owned()));
        }
        let mut coder = Coder::new(left.len(), Nulls::NoClass);
        let rows = left.codes.iter().zip(&right.codes);
        let product = left.bound.checked_mul(right.bound);
        if let Some(product) = product.filter(|&product| short(product, left.len())) {
            coder.codes.extend(rows.map(|(&left, &code)| {
                if left == NO_CLASS || code == NO_CLASS {
                    NO_CLASS
                } else {
                    left * right.bound + code
                }
            }));
            coder.without = count(&coder.codes, NO_CLASS);
            coder.next = product;
            let pair = |code| [code / right.bound, code % right.bound];
            return Ok((coder.finish(), (0..product).map(pair).collect()));
        }
        let mut table = Table::new();
        let mut pairs = Vec::new();
        for (&left, &right) in rows {
            if left == NO_CLASS || right == NO_CLASS {
                coder.push_null();
                continue;
            }
            let code = table.code(u64::from(left) << 32 | u64::from(right), &mut coder.next);
            if code as usize == pairs.len() {
                pairs.push([left, right]);
            }
            coder.codes.push(code);
        }
        Ok((coder.finish(), pairs))
    }

    /// The codes.
    pub fn as_slice(&self) -> &[u32] {
        &self.codes
    }

    /// The codes, without a copy.
    pub(super) fn into_vec(self) -> Vec<u32> {
        self.codes
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// What all codes are below; memory for one value a code is never more than a few values a row.
    pub fn bound(&self) -> usize {
        self.bound as usize
    }

    /// The first row without a class.
    pub fn first_without(&self) -> Option<usize> {
        if self.without == 0 {
            return None;
        }
        self.codes.iter().position(|&code| code == NO_CLASS)
    }

    /// The first row of a code.
    pub fn first_row(&self, code: usize) -> Option<usize> {
        self.codes.iter().position(|&found| found as usize == code)
    }

    /// The first row of each code, `None` where no row has it.
    pub fn first_rows(&self) -> Vec<Option<usize>> {
        let mut rows = vec![None; self.bound()];
        let mut missing = rows.len();
        for (row, &code) in self.codes.iter().enumerate() {
            if missing == 0 {
                break;
            }
            if let Some(first @ None) = rows.get_mut(code as usize) {
                *first = Some(row);
                missing -= 1;
            }
        }
        rows
    }

    /// Rows of each code.
    pub fn counts(&self) -> Vec<u64> {
        // Four tables: with few codes the increments of one would wait for each other.
        const FEW: usize = 1 << 12;
        let tables = if self.bound() <= FEW { 4 } else { 1 };
        let mut counts = vec![[0_u64; 4]; if tables == 4 { self.bound() } else { 0 }];
        if tables == 4 {
            let (quads, rest) = self.codes.as_chunks::<4>();
            for quad in quads.iter().map(|quad| quad.as_slice()).chain([rest]) {
                for (table, &code) in quad.iter().enumerate() {
                    if let Some(counts) = counts.get_mut(code as usize) {
                        counts[table] += 1;
                    }
                }
            }
            return counts.iter().map(|counts| counts.iter().sum()).collect();
        }
        let mut counts = vec![0; self.bound()];
        for &code in &self.codes {
            if let Some(count) = counts.get_mut(code as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// The value of each row's code, `without` for rows that have none.
    pub fn look_up<T: Copy>(&self, values: &[T], without: T) -> Vec<T> {
        let of = |&code: &u32| values.get(code as usize).copied().unwrap_or(without);
        let mut found = with_room(self.len());
        found.extend(self.codes.iter().map(of));
        found
    }
}

/// Whether a table of so many codes is small beside the column, or small at all.
fn short(codes: u32, rows: usize) -> bool {
    (codes as usize) < rows.max(256)
}

fn check_rows(rows: usize) -> Result<usize> {
    if rows > MAX_ROWS {
        return Err(Error::Argument {
            argument: "by",
            message: format!("{rows} rows are too many: at most {MAX_ROWS} are allowed"),
        });
    }
    Ok(rows)
}

fn count(codes: &[u32], wanted: u32) -> usize {
    codes.iter().filter(|&&code| code == wanted).count()
}

fn hashed<T, K: Key>(
    rows: usize,
    chunks: &[Chunk<'_, T>],
    nulls: Nulls,
    key: impl Fn(&T) -> K,
) -> Codes {
    let mut coder = Coder::new(rows, nulls);
    let mut table = Table::new();
    for chunk in chunks {
        coder.extend(chunk, |next, value| table.code(key(value), next));
    }
    coder.finish()
}

/// Up to 15 bytes and their number as one word.
#[inline(always)]
fn packed(bytes: &[u8]) -> Option<u128> {
    let len = bytes.len();
    let word = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        if len > 15 {
            return None;
        }
        // The two overlap: what the first has is shifted out of the last.
        let rest = u64::from_le_bytes(*last) >> 8 >> (8 * (15 - len));
        u128::from(u64::from_le_bytes(*first)) | u128::from(rest) << 64
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let rest = u32::from_le_bytes(*last) >> 8 >> (8 * (7 - len));
        u128::from(u32::from_le_bytes(*first)) | u128::from(rest) << 32
    } else {
        bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u128::from(byte))
    };
    Some(word | (len as u128) << 120)
}

struct Coder {
    codes: Vec<u32>,
    /// The next new code.
    next: u32,
    nulls: Nulls,
    without: usize,
    /// Rows that are null and wait for their code, which is the last one.
    waiting: bool,
}

impl Coder {
    fn new(rows: usize, nulls: Nulls) -> Self {
        Self {
            codes: with_room(rows),
            next: 0,
            nulls,
            without: 0,
            waiting: false,
        }
    }

    fn extend<T>(&mut self, chunk: &Chunk<'_, T>, mut code: impl FnMut(&mut u32, &T) -> u32) {
        if chunk.validity.is_none() {
            let next = &mut self.next;
            self.codes
                .extend(chunk.values.iter().map(|value| code(next, value)));
            return;
        }
        chunk.each(|value| match value {
            Some(value) => {
                let code = code(&mut self.next, value);
                self.codes.push(code);
            }
            None => self.push_null(),
        });
    }

    #[inline(always)]
    fn push_null(&mut self) {
        self.codes.push(NO_CLASS);
        self.without += 1;
        self.waiting = self.nulls == Nulls::Value;
    }

    fn finish(mut self) -> Codes {
        if self.waiting {
            for code in self.codes.iter_mut().filter(|code| **code == NO_CLASS) {
                *code = self.next;
            }
            self.next += 1;
            self.without = 0;
        }
        Codes {
            codes: self.codes,
            bound: self.next,
            without: self.without,
        }
    }
}

#[cfg(test)]
mod tests;
