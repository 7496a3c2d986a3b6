//! Checked little-endian reads and writes.

/// Reads fixed-width integers from a slice, front to back. Every read is `None` beyond the end.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Fills an array of exactly `N` bytes front to back; what is not filled stays zero.
pub(crate) struct Fill<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Fill<N> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; N],
            at: 0,
        }
    }

    /// Appends `bytes`. What would run over the array is dropped: callers write fixed layouts whose
    /// lengths the tests pin.
    pub(crate) fn put(mut self, bytes: &[u8]) -> Self {
        debug_assert!(self.at + bytes.len() <= N);
        for (slot, byte) in self.bytes.iter_mut().skip(self.at).zip(bytes) {
            *slot = *byte;
        }
        self.at += bytes.len();
        self
    }

    pub(crate) fn u8(self, value: u8) -> Self {
        self.put(&[value])
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn skip(mut self, count: usize) -> Self {
        self.at += count;
        self
    }

    /// What was written so far.
    pub(crate) fn written(&self) -> &[u8] {
        self.bytes.get(..self.at).unwrap_or(&self.bytes)
    }

    pub(crate) fn finish(self) -> [u8; N] {
        debug_assert_eq!(self.at, N);
        self.bytes
    }
}

/// Appends `value` as two lower-case digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text
}

/// Parses exactly `2 * N` lower-case hex digits.
pub(crate) fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_little_endian_and_end_with_none() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(cursor.u8(), Some(1));
        assert_eq!(cursor.u16(), Some(2));
        assert_eq!(cursor.u32(), Some(3));
        assert_eq!(cursor.u64(), Some(4));
        assert_eq!(cursor.u16(), None);
        assert_eq!(cursor.bytes(1), Some(&[9][..]));
        assert_eq!(cursor.u8(), None);
    }

    #[test]
    fn filled_arrays_start_as_zero() {
        let bytes = Fill::<8>::new().u8(1).skip(1).u16(0x0203).u32(4).finish();
        assert_eq!(bytes, [1, 0, 3, 2, 4, 0, 0, 0]);
    }

    #[test]
    fn hex_digits() {
        assert_eq!(hex(&[0x00, 0x9F, 0xA0]), "009fa0");
        assert_eq!(parse_hex::<3>("009fa0"), Some([0x00, 0x9F, 0xA0]));
        assert_eq!(parse_hex::<3>("009fA0"), None);
        assert_eq!(parse_hex::<3>("009fa"), None);
        assert_eq!(parse_hex::<3>("009fa00"), None);
        assert_eq!(parse_hex::<1>("é"), None);
    }
}
