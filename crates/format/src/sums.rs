//! A CRC for each 64 KiB of a run of bytes, so that a reader checks what it touches and nothing else.

use crate::checksum::{Crc32c, crc32c, crc32c_combine};
use crate::constants::CHECK_BLOCK;

/// The CRC of each block of a stream, and of the stream as a whole.
#[derive(Clone, Debug, Default)]
pub struct BlockSums {
    sums: Vec<u32>,
    open: Crc32c,
    closed_crc: u32,
}

impl BlockSums {
    /// An empty stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the bytes that follow.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(CHECK_BLOCK - self.open.len()).unwrap_or(usize::MAX);
            let (head, rest) = bytes.split_at(room.min(bytes.len()));
            self.open.update(head);
            bytes = rest;
            if self.open.len() == CHECK_BLOCK {
                self.close();
            }
        }
    }

    /// The length of the stream so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.sums.len() as u64 * CHECK_BLOCK + self.open.len()
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The CRC of the whole stream so far.
    #[must_use]
    pub fn crc(&self) -> u32 {
        crc32c_combine(self.closed_crc, self.open.value(), self.open.len())
    }

    /// The CRC of each block; the last may be of a shorter one.
    #[must_use]
    pub fn finish(mut self) -> Vec<u32> {
        if !self.open.is_empty() {
            self.close();
        }
        self.sums
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.closed_crc = crc32c_combine(self.closed_crc, open.value(), open.len());
        self.sums.push(open.value());
    }
}

/// The bytes of a sum section.
#[must_use]
pub fn encode_sums(sums: &[u32]) -> Vec<u8> {
    sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
}

/// The sums in the bytes of a sum section; bytes after the last whole sum are left out.
#[must_use]
pub fn decode_sums(bytes: &[u8]) -> Vec<u32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|chunk| u32::from_le_bytes(*chunk))
        .collect()
}

/// Compares one block with its sum: `Err((stated, found))` where they differ. A block without a sum
/// states 0 and is never right.
///
/// # Errors
/// The stated and the found CRC.
pub fn check_block(sums: &[u32], block: u64, bytes: &[u8]) -> Result<(), (u32, u32)> {
    let found = crc32c(bytes);
    let stated = usize::try_from(block)
        .ok()
        .and_then(|block| sums.get(block));
    match stated {
        Some(stated) if *stated == found => Ok(()),
        _ => Err((stated.copied().unwrap_or(0), found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_depend_on_the_cuts() {
        let data: Vec<u8> = (0..200_000_u32)
            .map(|i| i.to_le_bytes()[usize::from(i % 3 == 0)])
            .collect();
        let expected: Vec<u32> = data.chunks(65_536).map(crc32c).collect();
        assert_eq!(expected.len(), 4);
        for step in [1000, 65_536, 65_537, 200_000] {
            let mut sums = BlockSums::new();
            for part in data.chunks(step) {
                sums.push(part);
            }
            assert_eq!(sums.len(), 200_000);
            assert_eq!(sums.crc(), crc32c(&data));
            assert_eq!(sums.finish(), expected, "{step}");
        }
        let mut whole = BlockSums::new();
        whole.push(&data[..131_072]);
        assert_eq!(whole.finish().len(), 2);
        assert!(BlockSums::new().finish().is_empty());
    }

    #[test]
    fn a_changed_block_is_seen() {
        let sums = decode_sums(&encode_sums(&[crc32c(b"abc"), crc32c(b"d")]));
        assert_eq!(check_block(&sums, 0, b"abc"), Ok(()));
        assert_eq!(check_block(&sums, 1, b"d"), Ok(()));
        assert_eq!(
            check_block(&sums, 1, b"abc"),
            Err((crc32c(b"d"), crc32c(b"abc")))
        );
        assert!(check_block(&sums, 2, b"d").is_err());
    }
}
