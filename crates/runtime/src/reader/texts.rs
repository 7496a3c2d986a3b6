//! Texts that repeat within a block, found by whoever gathers it, so that the consumer makes one object for all of
//! them without looking at the bytes.

use std::ops::Deref;

use super::columns::{GatheredColumns, Values};

/// Columns with more different texts in a block than these are not numbered.
const MOST_TEXTS: usize = 64;
/// Nor are columns with a longer text: comparing would cost more than it spares.
const MAX_TEXT: usize = 48;
/// Places of the hash table, a power of two, sparse enough that most searches end at the first.
const PLACES: usize = 256;
const EMPTY: u8 = u8::MAX;

/// The gathered metadata of a block, with its repeated texts.
#[derive(Debug)]
pub struct BlockColumns {
    columns: GatheredColumns,
    /// By column, or none; empty for columns that are not numbered.
    texts: Vec<TextNumbers>,
}

impl BlockColumns {
    /// No text is numbered yet.
    pub(crate) fn new(columns: GatheredColumns) -> Self {
        Self {
            columns,
            texts: Vec::new(),
        }
    }

    /// Numbers the texts of all columns that have few.
    pub(crate) fn number_texts(&mut self) {
        let columns = self.columns.columns.iter();
        let texts = columns.map(|column| match &column.values {
            Values::Utf8 { ends, bytes } => TextNumbers::of(ends, bytes).unwrap_or_default(),
            _ => TextNumbers::default(),
        });
        self.texts = texts.collect();
    }

    pub(crate) fn into_columns(self) -> GatheredColumns {
        self.columns
    }

    /// For each column how many different texts it has, 0 when that was not found out.
    pub fn distinct_texts(&self) -> impl Iterator<Item = usize> {
        self.texts.iter().map(|texts| texts.distinct)
    }

    /// The number of a row's text among the different texts of its column. `None` for columns that are not numbered.
    #[inline]
    pub fn text_number(&self, row: usize, column: usize) -> Option<usize> {
        let number = self.texts.get(column)?.numbers.get(row)?;
        Some(usize::from(*number))
    }
}

impl Deref for BlockColumns {
    type Target = GatheredColumns;

    #[inline]
    fn deref(&self) -> &GatheredColumns {
        &self.columns
    }
}

#[derive(Debug, Default)]
struct TextNumbers {
    /// By row.
    numbers: Vec<u8>,
    distinct: usize,
}

impl TextNumbers {
    fn of(ends: &[i64], bytes: &[u8]) -> Option<Self> {
        let mut places = [EMPTY; PLACES];
        let mut distinct: Vec<&[u8]> = Vec::with_capacity(MOST_TEXTS);
        let mut numbers = Vec::with_capacity(ends.len());
        let mut start = 0;
        for &end in ends.iter().skip(1) {
            let end = usize::try_from(end).ok()?;
            let text = bytes.get(start..end)?;
            start = end;
            if text.len() > MAX_TEXT {
                return None;
            }
            let mut place = hash(text) % PLACES;
            let number = loop {
                let number = places[place];
                match distinct.get(usize::from(number)) {
                    Some(&known) if known == text => break number,
                    Some(_) => place = (place + 1) % PLACES,
                    None if distinct.len() == MOST_TEXTS => return None,
                    None => {
                        let number = u8::try_from(distinct.len()).ok()?;
                        places[place] = number;
                        distinct.push(text);
                        break number;
                    }
                }
            };
            numbers.push(number);
        }
        Some(Self {
            numbers,
            distinct: distinct.len(),
        })
    }
}

/// Any hash will do; this one takes in eight bytes at a time.
fn hash(text: &[u8]) -> usize {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = text.len() as u64;
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    }
    for &byte in rest {
        hash = (hash ^ u64::from(byte)).wrapping_mul(FACTOR);
    }
    usize::try_from(hash >> 56).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{MOST_TEXTS, TextNumbers};

    fn numbers(texts: &[String]) -> Option<(Vec<u8>, usize)> {
        let mut ends = vec![0];
        ends.extend(texts.iter().scan(0, |end, text| {
            *end += i64::try_from(text.len()).unwrap();
            Some(*end)
        }));
        let numbers = TextNumbers::of(&ends, texts.concat().as_bytes())?;
        Some((numbers.numbers, numbers.distinct))
    }

    #[test]
    fn equal_texts_and_only_they_share_a_number() {
        let texts = ["a", "", "bb", "a", "train, and more than eight", "", "bb"];
        let texts = texts.map(String::from);
        assert_eq!(numbers(&texts), Some((vec![0, 1, 2, 0, 3, 1, 2], 4)));
        assert_eq!(numbers(&[]), Some((vec![], 0)));
    }

    #[test]
    fn many_or_long_texts_are_left_alone() {
        let many: Vec<String> = (0..=MOST_TEXTS).map(|i| format!("text {i}")).collect();
        assert_eq!(numbers(&many), None);
        let (found, distinct) = numbers(&many[1..]).unwrap();
        assert_eq!(distinct, MOST_TEXTS);
        assert!((0..64).eq(found));
        assert_eq!(numbers(&["x".repeat(49)]), None);
    }
}
