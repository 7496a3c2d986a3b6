//! The hash table that numbers different keys in the order in which they come.

/// What [`Table`] numbers.
pub(super) trait Key: Copy + PartialEq {
    /// What fills a slot that holds no key.
    const EMPTY: Self;

    /// All of its bits depend on all bits of the key.
    fn hash(self) -> u64;
}

impl Key for u64 {
    const EMPTY: Self = 0;

    #[inline(always)]
    fn hash(self) -> u64 {
        mix(self, SEEDS[1])
    }
}

impl Key for u128 {
    const EMPTY: Self = 0;

    #[inline(always)]
    fn hash(self) -> u64 {
        let [low, high] = halves(self);
        mix(low, mix(high, SEEDS[1]))
    }
}

/// Bytes with their hash, which is compared first.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Text<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut hash = bytes.len() as u64;
        let mut add = |block: &[u8; 16]| {
            let [low, high] = halves(u128::from_le_bytes(*block));
            hash = mix(low ^ hash.rotate_left(23), high ^ SEEDS[1]);
        };
        let (blocks, _) = bytes.as_chunks();
        blocks.iter().for_each(&mut add);
        // The last block overlaps the one before: no copy of a rest whose length varies.
        if let Some(last) = bytes.last_chunk() {
            add(last);
        } else {
            bytes.iter().for_each(|&byte| add(&[byte; 16]));
        }
        Self { hash, bytes }
    }
}

impl Key for Text<'_> {
    const EMPTY: Self = Self {
        hash: 0,
        bytes: &[],
    };

    #[inline(always)]
    fn hash(self) -> u64 {
        self.hash
    }
}

/// Odd constants without structure: the fractions of the golden ratio and of the square root of 2.
const SEEDS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0x6A09_E667_F3BC_C909];

/// The two halves of the 128-bit product, folded: both depend on all bits of either factor.
#[inline(always)]
fn mix(left: u64, right: u64) -> u64 {
    let [low, high] = halves(u128::from(left ^ SEEDS[0]) * u128::from(right));
    low ^ high
}

#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
fn halves(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// The code of a free slot; no key gets it.
const FREE: u32 = u32::MAX;

/// Numbers keys 0, 1, 2, ... Open addressing with linear probing, at most half full.
pub(super) struct Table<K> {
    slots: Vec<(K, u32)>,
    taken: usize,
}

impl<K: Key> Table<K> {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![(K::EMPTY, FREE); 64],
            taken: 0,
        }
    }

    /// The code of a key: that of the same key before, else `next`, which then grows by 1.
    #[inline(always)]
    pub(super) fn code(&mut self, key: K, next: &mut u32) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = slot_of(key, mask);
        loop {
            let slot = &mut self.slots[at];
            if slot.1 == FREE {
                *slot = (key, *next);
                let code = *next;
                *next += 1;
                self.taken += 1;
                if self.taken * 2 > mask {
                    self.grow();
                }
                return code;
            }
            if slot.0 == key {
                return slot.1;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.slots.len() * 4;
        let old = std::mem::replace(&mut self.slots, vec![(K::EMPTY, FREE); len]);
        for slot in old.into_iter().filter(|slot| slot.1 != FREE) {
            let mut at = slot_of(slot.0, len - 1);
            while self.slots[at].1 != FREE {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = slot;
        }
    }
}

#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
fn slot_of<K: Key>(key: K, mask: usize) -> usize {
    key.hash() as usize & mask
}

#[cfg(test)]
mod tests {
    use super::{Table, Text};

    #[test]
    fn keys_are_numbered_as_they_come() {
        let mut table = Table::new();
        let mut next = 0;
        for round in 0..2 {
            for number in 0..10_000_u32 {
                // Keys that differ in high bits as much as in low ones.
                let key = u64::from(number) << 50 ^ u64::from(number);
                assert_eq!(table.code(key, &mut next), number, "{round}");
            }
        }
        assert_eq!(next, 10_000);
    }

    #[test]
    fn texts_differ_by_any_byte() {
        let long = [7_u8; 100];
        let mut texts: Vec<Vec<u8>> = (0..long.len()).map(|len| long[..len].to_vec()).collect();
        texts.extend((0..long.len()).map(|at| {
            let mut text = long.to_vec();
            text[at] = 8;
            text
        }));
        let mut table = Table::new();
        let mut next = 0;
        for (number, text) in (0..).zip(&texts) {
            assert_eq!(table.code(Text::new(text), &mut next), number);
        }
    }
}
