//! File names inside a cache directory.

use crate::error::FormatError;

/// The manifest, written last; what it does not name is no part of the cache.
pub const MANIFEST_FILE: &str = "manifest.json";
/// One row of metadata a sample.
pub const METADATA_FILE: &str = "metadata.arrow";
/// Where each sample is.
pub const INDEX_FILE: &str = "index.bin";
/// The directory of the shards.
pub const SHARD_DIR: &str = "shards";
/// What follows a shard's name in its file's name.
pub const SHARD_SUFFIX: &str = ".bin";

/// The name that a writer on one machine gives to its shard number `ordinal`: six digits or more.
#[must_use]
pub fn shard_name(ordinal: u32) -> String {
    format!("{ordinal:06}")
}

/// The path of a shard below the cache directory, with `/` as separator.
#[must_use]
pub fn shard_path(name: &str) -> String {
    format!("{SHARD_DIR}/{name}{SHARD_SUFFIX}")
}

/// The file name of a shard inside [`SHARD_DIR`].
#[must_use]
pub fn shard_file(name: &str) -> String {
    format!("{name}{SHARD_SUFFIX}")
}

/// Checks a shard's name: a digit, then 5 to 99 of `0-9`, `a-z` and `-`.
///
/// The pattern leaves no room for path separators, `..`, device names, hidden files or names that
/// differ by case alone.
///
/// # Errors
/// [`FormatError::ShardName`].
pub fn check_shard_name(name: &str) -> Result<(), FormatError> {
    let bytes = name.as_bytes();
    let allowed = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'-');
    let good = (6..=100).contains(&bytes.len())
        && bytes.first().is_some_and(u8::is_ascii_digit)
        && bytes.iter().all(allowed);
    if good {
        Ok(())
    } else {
        Err(FormatError::ShardName {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_local_writer() {
        assert_eq!(shard_name(0), "000000");
        assert_eq!(shard_name(16_777_215), "16777215");
        assert_eq!(shard_path(&shard_name(7)), "shards/000007.bin");
        assert_eq!(shard_file("000007"), "000007.bin");
    }

    #[test]
    fn shard_names() {
        for good in ["000000", "0-attempt-1", &format!("9{}", "z".repeat(99))] {
            assert_eq!(check_shard_name(good), Ok(()), "{good}");
        }
        for bad in [
            "", "00000", "a00000", "00000A", "0000.0", "0000/0", "00000é", "000 00", "000000\0",
        ] {
            let error = check_shard_name(bad).unwrap_err();
            assert_eq!(error.code(), "name_invalid", "{bad}");
        }
        assert!(check_shard_name(&"0".repeat(101)).is_err());
    }
}
