//! The generator: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011), a keyed function of a counter. There is
//! no state, so any block is computed without the ones before it.

/// Words of a counter are kept in 64-bit lanes, each below 2^32: the products then need no widening, and the
/// compiler turns the loops over lanes into vector instructions.
type Lanes<const N: usize> = [[u64; N]; 4];

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u64; 2] = [0x9E37_79B9, 0xBB67_AE85];
const LOW_32: u64 = 0xFFFF_FFFF;

/// Counters that [`Blocks::fill`] works on at once.
const AT_ONCE: usize = 8;

/// What a block is used for. Each use has numbers of its own, so that no two share a counter. New uses take a new
/// number; 0 and 6 to 255 are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Domain {
    /// A draw with replacement; the index is the position.
    Draw = 1,
    /// Round keys of a permutation; the index is the pass.
    Round = 2,
    /// The key of a weighted order; the index is the pass.
    Pass = 3,
    /// The race of a weighted order; the index is the row.
    Race = 4,
    /// A whole permutation of few rows; the index is the pass.
    Small = 5,
}

/// The blocks of one key, stream word and domain, by their 64-bit index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    key: u64,
    stream: u64,
    domain: u64,
}

impl Blocks {
    pub(super) fn new(key: u64, stream: u32, domain: Domain) -> Self {
        Self {
            key,
            stream: u64::from(stream),
            domain: u64::from(domain as u8),
        }
    }

    /// The block of an index.
    pub(super) fn get(&self, index: u64) -> u128 {
        self.sub(index, 0)
    }

    /// The block of an index and a sub-index.
    pub(super) fn sub(&self, index: u64, sub: u8) -> u128 {
        let last = self.domain | u64::from(sub) << 8;
        let counter = [[index & LOW_32], [index >> 32], [self.stream], [last]];
        join(&permute(counter, self.key), 0)
    }

    /// The blocks of the indices `first`, `first + 1`, ...; indices wrap at 2^64.
    pub(super) fn fill(&self, first: u64, out: &mut [u128]) {
        let mut index = first;
        for chunk in out.chunks_mut(AT_ONCE) {
            let mut counter = [
                [0; AT_ONCE],
                [0; AT_ONCE],
                [self.stream; _],
                [self.domain; _],
            ];
            let [low, high, ..] = &mut counter;
            for (low, high) in low.iter_mut().zip(high) {
                *low = index & LOW_32;
                *high = index >> 32;
                index = index.wrapping_add(1);
            }
            let words = permute(counter, self.key);
            for (lane, block) in chunk.iter_mut().enumerate() {
                *block = join(&words, lane);
            }
        }
    }
}

fn join<const N: usize>(words: &Lanes<N>, lane: usize) -> u128 {
    let low = words[0][lane] | words[1][lane] << 32;
    let high = words[2][lane] | words[3][lane] << 32;
    u128::from(low) | u128::from(high) << 64
}

/// Ten rounds on N counters. Every word stays below 2^32, so no product passes 2^64.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // four rows are walked side by side
fn permute<const N: usize>(mut c: Lanes<N>, key: u64) -> Lanes<N> {
    let mut k = [key & LOW_32, key >> 32];
    for _ in 0..10 {
        for lane in 0..N {
            let p0 = (c[0][lane] & LOW_32).wrapping_mul(MULTIPLIERS[0]);
            let p1 = (c[2][lane] & LOW_32).wrapping_mul(MULTIPLIERS[1]);
            c[0][lane] = (p1 >> 32) ^ c[1][lane] ^ k[0];
            c[1][lane] = p1 & LOW_32;
            c[2][lane] = (p0 >> 32) ^ c[3][lane] ^ k[1];
            c[3][lane] = p0 & LOW_32;
        }
        k[0] = k[0].wrapping_add(KEY_STEPS[0]) & LOW_32;
        k[1] = k[1].wrapping_add(KEY_STEPS[1]) & LOW_32;
    }
    c
}

#[cfg(test)]
mod tests {
    use super::{Blocks, Domain, permute};

    /// The known answers that the authors publish with their reference implementation.
    #[test]
    fn published_vectors() {
        let ones = 0xFFFF_FFFF;
        let cases = [
            (
                [0; 4],
                0,
                [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8],
            ),
            (
                [ones; 4],
                u64::MAX,
                [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD],
            ),
            (
                [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
                0x299F_31D0_A409_3822,
                [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(
                permute(counter.map(|word| [word]), key),
                expected.map(|word| [word])
            );
            assert_eq!(
                permute(counter.map(|word| [word; 5]), key),
                expected.map(|word| [word; 5])
            );
        }
    }

    /// Counter word 0 is the low half of the index, word 3 the domain and the sub-index; word 0 of the output is
    /// the lowest of the block.
    #[test]
    fn layout_of_counter_and_block() {
        let blocks = Blocks::new(u64::MAX, 7, Domain::Small);
        let words = permute(
            [[0x5566_7788], [0x1122_3344], [7], [5 + 256 * 11]],
            u64::MAX,
        );
        let expected = words
            .iter()
            .rev()
            .fold(0, |sum, word| sum << 32 | u128::from(word[0]));
        assert_eq!(blocks.sub(0x1122_3344_5566_7788, 11), expected);
    }

    #[test]
    fn many_blocks_are_the_single_ones() {
        let blocks = Blocks::new(42, 3, Domain::Draw);
        for first in [0, 5, (1 << 32) - 3, u64::MAX - 4] {
            for len in [0, 1, 7, 8, 9, 33] {
                let mut out = vec![0; len];
                blocks.fill(first, &mut out);
                for (i, block) in out.into_iter().enumerate() {
                    assert_eq!(block, blocks.get(first.wrapping_add(i as u64)));
                }
            }
        }
    }
}
