//! CRC-32C (Castagnoli, reflected, init and xor-out 0xFFFFFFFF), which RFC 3720 calls the iSCSI CRC.

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

/// The CRC-32C of `bytes`; of nothing it is 0.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32_iscsi(bytes)
}

/// The CRC-32C of two runs of bytes one after the other, from the CRC of each and the second's length.
#[must_use]
pub fn crc32c_combine(first: u32, second: u32, second_len: u64) -> u32 {
    // Bytes behind the first run multiply its CRC, a polynomial over GF(2), by x^8 each; initial value and xor-out cancel.
    let mut shifted = first;
    let mut left = second_len;
    for power in BYTES_BEHIND {
        if left & 1 == 1 {
            shifted = multiply(shifted, power);
        }
        left >>= 1;
        if left == 0 {
            break;
        }
    }
    shifted ^ second
}

/// The polynomial, as CRCs are written: the coefficient of x^31 is the lowest bit.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// x^(8 * 2^k) modulo the polynomial, for each k.
const BYTES_BEHIND: [u32; 64] = {
    let mut powers = [1 << (31 - 8); 64];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = multiply(powers[k - 1], powers[k - 1]);
        k += 1;
    }
    powers
};

/// The product of two polynomials modulo the polynomial.
const fn multiply(a: u32, b: u32) -> u32 {
    let mut product = 0;
    // a * x^power, for the coefficients of b in turn.
    let mut shifted = a;
    let mut power = 0;
    while power < 32 {
        let coefficient = b >> (31 - power) & 1;
        product ^= shifted & coefficient.wrapping_neg();
        shifted = shifted >> 1 ^ POLYNOMIAL & (shifted & 1).wrapping_neg();
        power += 1;
    }
    product
}

/// A running CRC-32C.
#[derive(Clone)]
pub struct Crc32c {
    digest: Digest,
    len: u64,
}

impl Crc32c {
    /// The CRC of nothing so far.
    #[must_use]
    pub fn new() -> Self {
        Self {
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            len: 0,
        }
    }

    /// Adds the bytes that follow.
    pub fn update(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.len += bytes.len() as u64;
    }

    /// Adds a run of bytes of which only CRC and length are known.
    pub fn append(&mut self, crc: u32, len: u64) {
        let both = crc32c_combine(self.value(), crc, len);
        // The engine holds the state before xor-out, and takes it back as an initial state.
        self.digest =
            Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(both ^ u32::MAX));
        self.len += len;
    }

    /// The CRC of all bytes so far.
    #[must_use]
    pub fn value(&self) -> u32 {
        narrow(self.digest.finalize())
    }

    /// How many bytes were added.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no byte was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Crc32c {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crc32c")
            .field("value", &self.value())
            .field("len", &self.len)
            .finish()
    }
}

/// The engine returns every CRC as 64 bits; a 32-bit one has nothing in the upper half.
fn narrow(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit from the polynomial's definition.
    fn reference(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 {
                    (crc >> 1) ^ 0x82F6_3B78
                } else {
                    crc >> 1
                };
            }
        }
        !crc
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len)
            .map(|i| u8::try_from((i * 31 + i / 7) % 256).unwrap())
            .collect()
    }

    #[test]
    fn published_values() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        // RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and counting up.
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        let counting: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&counting), 0x46DD_794E);
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        let data = bytes(700);
        for len in 0..data.len() {
            assert_eq!(crc32c(&data[..len]), reference(&data[..len]), "{len}");
        }
    }

    #[test]
    fn combined_over_long_runs() {
        let zeros = |len: u64| {
            let mut crc = Crc32c::new();
            (0..len >> 10).for_each(|_| crc.update(&[0; 1024]));
            crc.value()
        };
        let first = crc32c(b"first");
        for len in [1_u64 << 20, 3 << 20, (1 << 24) + 1024] {
            let mut whole = Crc32c::new();
            whole.update(b"first");
            (0..len >> 10).for_each(|_| whole.update(&[0; 1024]));
            assert_eq!(
                crc32c_combine(first, zeros(len), len),
                whole.value(),
                "{len}"
            );
        }
        // Lengths beyond any file: two steps are one of twice the length.
        let half = 1_u64 << 60;
        let there = crc32c_combine(first, 0, half);
        assert_eq!(
            crc32c_combine(there, 0, half),
            crc32c_combine(first, 0, 2 * half)
        );
        assert_eq!(crc32c_combine(first, 0, 0), first);
    }

    #[test]
    fn running_and_combined() {
        let data = bytes(5000);
        let whole = crc32c(&data);
        for cut in [0, 1, 3, 64, 255, 256, 257, 4096, 4999, 5000] {
            let (a, b) = data.split_at(cut);
            assert_eq!(
                crc32c_combine(crc32c(a), crc32c(b), b.len() as u64),
                whole,
                "{cut}"
            );
            let mut running = Crc32c::new();
            running.update(a);
            running.update(b);
            assert_eq!(running.value(), whole, "{cut}");
            assert_eq!(running.len(), 5000);
            let mut appended = Crc32c::new();
            appended.update(&a[..cut / 2]);
            appended.append(crc32c(&a[cut / 2..]), (cut - cut / 2) as u64);
            appended.update(b);
            assert_eq!(appended.value(), whole, "append at {cut}");
        }
    }
}
