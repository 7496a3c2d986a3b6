//! Pieces of a text that are compared: overlapping runs of characters or words.

use super::hash::{KeyType, hash_bytes};
use crate::error::{Error, Result};

/// What a shingle is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShingleUnit {
    /// Unicode scalar values.
    Char,
    /// What stands between white space, joined by one U+0020 each.
    Word,
}

/// How texts are cut: into all runs of `size` units that follow each other. A text of fewer units is one shingle. Text
/// is taken as it is, neither normalised nor folded.
#[derive(Clone, Debug)]
pub struct Shingles {
    unit: ShingleUnit,
    size: usize,
    seed: u64,
    /// Where units begin in the text at hand, and where the last one ends.
    borders: Vec<usize>,
    /// The words of the text, joined.
    joined: String,
}

impl Shingles {
    /// A cutter of many texts; shingles are hashed as text under the seed.
    ///
    /// # Errors
    /// [`Error::Argument`] for a size of 0.
    pub fn new(unit: ShingleUnit, size: usize, seed: u64) -> Result<Self> {
        if size == 0 {
            return Err(Error::Argument {
                argument: "shingle",
                message: "shingle must be at least 1, found 0".to_owned(),
            });
        }
        Ok(Self {
            unit,
            size,
            seed: KeyType::Text.seed(seed),
            borders: Vec::new(),
            joined: String::new(),
        })
    }

    /// Calls with the hash of each shingle of a text, in order; at least once.
    pub(super) fn each(&mut self, text: &str, mut each: impl FnMut(u64)) {
        let seed = self.seed;
        match self.unit {
            ShingleUnit::Char if text.is_ascii() => {
                let bytes = text.as_bytes();
                if bytes.len() <= self.size {
                    return each(hash_bytes(bytes, seed));
                }
                for shingle in bytes.windows(self.size) {
                    each(hash_bytes(shingle, seed));
                }
            }
            ShingleUnit::Char => {
                self.borders.clear();
                self.borders
                    .extend(text.char_indices().map(|(start, _)| start));
                self.borders.push(text.len());
                runs(&self.borders, self.size, 0, text, seed, each);
            }
            ShingleUnit::Word => {
                self.joined.clear();
                self.borders.clear();
                for word in text.split_whitespace() {
                    if !self.joined.is_empty() {
                        self.joined.push(' ');
                    }
                    self.borders.push(self.joined.len());
                    self.joined.push_str(word);
                }
                // A run ends one space before the next one begins.
                self.borders.push(self.joined.len() + 1);
                runs(&self.borders, self.size, 1, &self.joined, seed, each);
            }
        }
    }
}

/// Calls with the hash of each run of units between borders, without the gap at their ends.
fn runs(
    borders: &[usize],
    size: usize,
    gap: usize,
    text: &str,
    seed: u64,
    mut each: impl FnMut(u64),
) {
    let bytes = text.as_bytes();
    if borders.len() <= size {
        return each(hash_bytes(bytes, seed));
    }
    for (start, end) in borders.iter().zip(&borders[size..]) {
        each(hash_bytes(
            &bytes[*start..(*end - gap).min(bytes.len())],
            seed,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::{ShingleUnit, Shingles};
    use crate::expr::hash::hash_bytes;

    fn check(unit: ShingleUnit, size: usize, text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        Shingles::new(unit, size, 3)
            .unwrap()
            .each(text, |hash| found.push(hash));
        let expected: Vec<u64> = expected
            .iter()
            .map(|shingle| hash_bytes(shingle.as_bytes(), 3))
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn runs_of_characters() {
        check(ShingleUnit::Char, 3, "abcde", &["abc", "bcd", "cde"]);
        check(ShingleUnit::Char, 3, "abc", &["abc"]);
        check(ShingleUnit::Char, 3, "ab", &["ab"]);
        check(ShingleUnit::Char, 3, "", &[""]);
        check(ShingleUnit::Char, 2, "aäö€", &["aä", "äö", "ö€"]);
        check(ShingleUnit::Char, 9, "aä", &["aä"]);
        check(ShingleUnit::Char, 2, "aä", &["aä"]);
    }

    #[test]
    fn runs_of_words() {
        check(
            ShingleUnit::Word,
            2,
            " the  old\tman\n",
            &["the old", "old man"],
        );
        check(ShingleUnit::Word, 1, "a b", &["a", "b"]);
        check(ShingleUnit::Word, 3, "a  b", &["a b"]);
        check(ShingleUnit::Word, 2, "a b", &["a b"]);
        check(ShingleUnit::Word, 2, " \n", &[""]);
    }
}
