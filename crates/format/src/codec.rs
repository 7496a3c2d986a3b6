//! How the payload of one record is stored: as it is, or as one LZ4 block without a length in front.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use crate::constants::MAX_COMPRESSED_PAYLOAD;
use crate::error::FormatError;

/// How the records of a cache are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// Payloads as they are.
    None,
    /// LZ4 blocks, one a record.
    Lz4,
}

impl Codec {
    /// The codec's number in shard and index headers.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
        }
    }

    /// The codec with this number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }

    /// The codec's name in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
        }
    }

    /// The codec of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "lz4" => Some(Self::Lz4),
            _ => None,
        }
    }

    /// Whether raw lengths are stored beside stored lengths.
    #[must_use]
    pub fn has_raw_lens(self) -> bool {
        self != Self::None
    }

    /// Appends the stored form of `raw` to `out` and returns its length.
    ///
    /// It is `raw` itself exactly when compression does not make it shorter, so that a reader tells
    /// the two apart by comparing lengths.
    pub fn encode(self, raw: &[u8], out: &mut Vec<u8>) -> usize {
        if self.compresses(raw.len()) {
            let start = out.len();
            out.resize(start + get_maximum_output_size(raw.len()), 0);
            let written = compress_into(raw, out.get_mut(start..).unwrap_or_default());
            if let Ok(len) = written
                && len < raw.len()
            {
                out.truncate(start + len);
                return len;
            }
            out.truncate(start);
        }
        out.extend_from_slice(raw);
        raw.len()
    }

    /// The most bytes that [`encode`](Self::encode) needs behind what `out` holds, for a payload of `raw_len` bytes.
    #[must_use]
    pub fn most_encoded(self, raw_len: usize) -> usize {
        if self.compresses(raw_len) {
            get_maximum_output_size(raw_len)
        } else {
            raw_len
        }
    }

    fn compresses(self, raw_len: usize) -> bool {
        self == Self::Lz4 && raw_len > 0 && raw_len as u64 <= MAX_COMPRESSED_PAYLOAD
    }

    /// Decodes a record into exactly `out.len()` bytes.
    ///
    /// # Errors
    /// [`FormatError::RecordDecode`] when the stored bytes do not decode to that length, or could not.
    pub fn decode(self, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let (stored_len, raw_len) = (stored.len() as u64, out.len() as u64);
        if stored_len == raw_len {
            out.copy_from_slice(stored);
            Ok(())
        } else if self.lengths_fit(stored_len, raw_len) {
            decode_lz4_block(stored, out)
        } else {
            Err(FormatError::RecordDecode {
                stored_len,
                raw_len,
            })
        }
    }

    /// Whether a record of `stored_len` bytes may stand for a payload of `raw_len` bytes: a codec never
    /// makes a record longer, and LZ4 never makes it shorter than one part in 255.
    #[must_use]
    pub fn lengths_fit(self, stored_len: u64, raw_len: u64) -> bool {
        match self {
            Self::None => stored_len == raw_len,
            Self::Lz4 => {
                stored_len == raw_len
                    || (stored_len < raw_len
                        && raw_len <= MAX_COMPRESSED_PAYLOAD
                        && raw_len <= stored_len.saturating_mul(255))
            }
        }
    }
}

/// Decodes one LZ4 block, whatever its length, into exactly `out.len()` bytes. Records are decoded by
/// [`Codec::decode`], which knows more about lengths.
///
/// # Errors
/// [`FormatError::RecordDecode`].
pub fn decode_lz4_block(block: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
    let (stored_len, raw_len) = (block.len() as u64, out.len() as u64);
    match decompress_into(block, out) {
        Ok(len) if len == out.len() => Ok(()),
        _ => Err(FormatError::RecordDecode {
            stored_len,
            raw_len,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(codec: Codec, raw: &[u8]) -> usize {
        let mut out = vec![7, 7];
        let len = codec.encode(raw, &mut out);
        assert_eq!(out.len(), 2 + len);
        assert_eq!(&out[..2], &[7, 7]);
        let mut back = vec![0; raw.len()];
        codec.decode(&out[2..], &mut back).unwrap();
        assert_eq!(back, raw);
        len
    }

    #[test]
    fn numbers_and_names() {
        for codec in [Codec::None, Codec::Lz4] {
            assert_eq!(Codec::from_byte(codec.byte()), Some(codec));
            assert_eq!(Codec::from_name(codec.name()), Some(codec));
        }
        assert_eq!(Codec::from_byte(2), None);
        assert_eq!(Codec::from_name("LZ4"), None);
    }

    #[test]
    fn raw_when_not_shorter() {
        assert_eq!(round_trip(Codec::None, &[0; 1000]), 1000);
        assert!(round_trip(Codec::Lz4, &[0; 1000]) < 30);
        assert_eq!(round_trip(Codec::Lz4, b""), 0);
        assert_eq!(round_trip(Codec::Lz4, b"abc"), 3);
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        })
        .take(5000)
        .collect();
        assert_eq!(round_trip(Codec::Lz4, &noise), 5000);
    }

    #[test]
    fn lengths_that_cannot_be() {
        assert!(Codec::Lz4.lengths_fit(4, 1020));
        assert!(!Codec::Lz4.lengths_fit(4, 1021));
        assert!(!Codec::Lz4.lengths_fit(5, 4));
        assert!(!Codec::Lz4.lengths_fit(0, 1));
        assert!(!Codec::Lz4.lengths_fit(0x7E00_0000, 0x7E00_0001));
        assert!(Codec::Lz4.lengths_fit(0x7E00_0001, 0x7E00_0001));
        assert!(!Codec::None.lengths_fit(4, 5));
        let error = Codec::None.decode(&[1, 2], &mut [0; 3]).unwrap_err();
        assert_eq!(error.code(), "record_damaged");
    }

    #[test]
    fn damaged_blocks_are_errors() {
        let mut stored = Vec::new();
        let raw: Vec<u8> = (0..600).map(|i| u8::try_from(i % 50).unwrap()).collect();
        Codec::Lz4.encode(&raw, &mut stored);
        assert!(stored.len() < raw.len());
        for len in [raw.len() - 1, raw.len() + 1] {
            assert!(
                Codec::Lz4.decode(&stored, &mut vec![0; len]).is_err(),
                "{len}"
            );
        }
        for cut in 0..stored.len() {
            assert!(
                Codec::Lz4
                    .decode(&stored[..cut], &mut vec![0; raw.len()])
                    .is_err(),
                "{cut}"
            );
        }
        for at in 0..stored.len() {
            for bit in 0..8 {
                let mut bad = stored.clone();
                bad[at] ^= 1 << bit;
                // Any result but a panic: the payload's checksum judges what decodes.
                let _ = Codec::Lz4.decode(&bad, &mut vec![0; raw.len()]);
            }
        }
    }
}
