//! The hash of a key: XXH3-64 over bytes that depend on the value alone, never on the column's width, dictionary or
//! chunks. Splits, draws by key and fingerprints go by it, so it can't change; `docs/reference/key-hash.md` defines it.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What keeps an integer apart from the text of its bytes: times the tag of the type it goes into the seed.
const TAG_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Tag of a key of several values.
const TUPLE_TAG: u8 = 15;

/// Types of keys. Text has tag 0: its hash is plain XXH3-64 under the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KeyType {
    /// UTF-8; categories too.
    Text = 0,
    /// Two's complement in 8 bytes, little-endian; unsigned ones as they are.
    Integer = 1,
    /// Bytes.
    Binary = 2,
    /// One byte, 0 or 1.
    Boolean = 3,
    /// Days since 1970-01-01, like an integer.
    Date = 4,
    /// No value, no bytes. Only groups may have it.
    Null = 5,
}

impl KeyType {
    /// The seed for values of this type.
    pub fn seed(self, seed: u64) -> u64 {
        tagged(self as u8, seed)
    }
}

fn tagged(tag: u8, seed: u64) -> u64 {
    seed ^ u64::from(tag).wrapping_mul(TAG_STEP)
}

/// Hash of an integer, or of a date's days, in two's complement. The seed is that of the type: [`KeyType::seed`].
#[inline(always)]
pub fn hash_integer(value: u64, typed_seed: u64) -> u64 {
    xxh3_64_with_seed(&value.to_le_bytes(), typed_seed)
}

/// Hash of bytes. The seed is that of the type: [`KeyType::seed`].
#[inline(always)]
pub fn hash_bytes(bytes: &[u8], typed_seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, typed_seed)
}

/// Hashes keys of several values: each is written as its tag, its length in 8 bytes and its bytes, so that no two keys
/// have the same writing.
///
/// ```
/// use dataset_rt_runtime::expr::{KeyType, TupleHasher};
///
/// let mut hasher = TupleHasher::new(7);
/// let mut hash = |a: &str, b: &str| {
///     hasher.push(KeyType::Text, a.as_bytes());
///     hasher.push(KeyType::Text, b.as_bytes());
///     hasher.finish()
/// };
/// assert_ne!(hash("ab", "c"), hash("a", "bc"));
/// ```
#[derive(Clone, Debug)]
pub struct TupleHasher {
    seed: u64,
    written: Vec<u8>,
}

impl TupleHasher {
    /// A hasher of many keys under one seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed: tagged(TUPLE_TAG, seed),
            written: Vec::new(),
        }
    }

    /// Appends a value to the key: integers and dates as their 8 bytes.
    pub fn push(&mut self, kind: KeyType, bytes: &[u8]) {
        self.written.push(kind as u8);
        self.written
            .extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.written.extend_from_slice(bytes);
    }

    /// The hash of the key; the next one starts empty.
    pub fn finish(&mut self) -> u64 {
        let hash = xxh3_64_with_seed(&self.written, self.seed);
        self.written.clear();
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyType, TupleHasher, hash_bytes, hash_integer};

    #[test]
    fn published_values() {
        let text = |text: &str, seed| hash_bytes(text.as_bytes(), KeyType::Text.seed(seed));
        assert_eq!(text("", 0), 0x2D06_8005_38D3_94C2);
        assert_eq!(text("a", 0), 0xE6C6_32B6_1E96_4E1F);
        assert_eq!(text("abc", 0), 0x78AF_5F94_892F_3950);
        // Past 240 bytes another path is taken, under a seed another one still.
        assert_ne!(text(&"a".repeat(241), 0), text(&"a".repeat(241), 1));
    }

    /// Types are kept apart by the seed, and an integer is its 8 bytes.
    #[test]
    fn types_and_bytes() {
        let seed = KeyType::Integer.seed(42);
        assert_eq!(seed, 42 ^ 0x9E37_79B9_7F4A_7C15);
        assert_eq!(
            hash_integer(0x0102_0304_0506_0708, seed),
            hash_bytes(&[8, 7, 6, 5, 4, 3, 2, 1], seed)
        );
        let kinds = [
            KeyType::Text,
            KeyType::Integer,
            KeyType::Binary,
            KeyType::Boolean,
            KeyType::Date,
            KeyType::Null,
        ];
        let mut hashes = kinds.map(|kind| hash_bytes(b"12345678", kind.seed(0)));
        hashes.sort_unstable();
        assert!(hashes.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn tuples_are_written_with_tags_and_lengths() {
        let mut hasher = TupleHasher::new(9);
        hasher.push(KeyType::Text, b"ab");
        hasher.push(KeyType::Integer, &7_u64.to_le_bytes());
        let written = [
            0, 2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b', 1, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0,
            0,
        ];
        let seed = 9 ^ 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(15);
        assert_eq!(hasher.finish(), hash_bytes(&written, seed));
        // Nothing of a key is left for the next one.
        assert_eq!(hasher.finish(), hash_bytes(b"", seed));
    }
}
