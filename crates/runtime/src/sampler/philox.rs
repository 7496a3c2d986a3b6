//! The generator: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011), a keyed function of a counter. There is
//! no state, so any block is computed without the ones before it.

use crate::vector::wide;

/// The four words of a counter, each below 2^32: in 64 bits a product needs no widening.
type Words = [u64; 4];

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u64; 2] = [0x9E37_79B9, 0xBB67_AE85];
const LOW_32: u64 = 0xFFFF_FFFF;

const ROUNDS: usize = 10;

/// Rounds that are applied to counters while they are in registers: more would spill.
const TOGETHER: usize = 2;

/// Counters that are worked on at once.
const AT_ONCE: usize = 64;

/// Counters in the widest vector.
const LANES: usize = 4;

/// What a block is used for. Each use has numbers of its own, so that no two share a counter. New uses take a new
/// number; 16 on are those of expressions, and the others are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Domain {
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
    /// The seed of a group that an expression draws from; the index is the hash of the group.
    Group = 16,
    /// Draws of an expression without replacement; the index is the row, or the hash of its key. So in the next ones.
    Select = 17,
    /// Draws of an expression with replacement; the index is the draw.
    Counts = 18,
    /// Keys that shuffle.
    Shuffle = 19,
    /// Draws of each class.
    PerClass = 20,
    /// Permutations of MinHash; the index is the permutation.
    MinHash = 21,
    /// Rounding of repeats.
    Repeat = 22,
}

/// The blocks of one key, stream word and domain, by their 64-bit index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    key: u64,
    stream: u64,
    domain: u64,
}

impl Blocks {
    pub(crate) fn new(key: u64, stream: u32, domain: Domain) -> Self {
        Self {
            key,
            stream: u64::from(stream),
            domain: u64::from(domain as u8),
        }
    }

    /// The block of an index.
    pub(crate) fn get(&self, index: u64) -> u128 {
        self.sub(index, 0)
    }

    /// The block of an index and a sub-index.
    pub(crate) fn sub(&self, index: u64, sub: u8) -> u128 {
        let counter = [
            index & LOW_32,
            index >> 32,
            self.stream,
            self.domain | u64::from(sub) << 8,
        ];
        join(permute(counter, self.key))
    }

    /// The blocks of the indices `first`, `first + 1`, ...; indices wrap at 2^64.
    pub(crate) fn fill(&self, first: u64, out: &mut [u128]) {
        fill(self, first, out);
    }

    /// The low halves of the same blocks.
    pub(crate) fn fill_low(&self, first: u64, out: &mut [u64]) {
        fill_low(self, first, out);
    }

    /// The low halves of the blocks of any indices, as many as there is room for.
    pub(crate) fn fill_low_of(&self, indices: &[u64], out: &mut [u64]) {
        fill_low_of(self, indices, out);
    }
}

/// Counters side by side, word by word: over these arrays the compiler makes vector instructions.
struct Counters {
    words: [[u64; AT_ONCE]; 4],
    keys: [[u64; 2]; ROUNDS],
}

impl Counters {
    #[inline(always)]
    fn new(blocks: &Blocks) -> Self {
        Self {
            words: [
                [0; AT_ONCE],
                [0; AT_ONCE],
                [blocks.stream; AT_ONCE],
                [blocks.domain; AT_ONCE],
            ],
            keys: round_keys(blocks.key),
        }
    }

    /// The blocks of so many indices, word by word.
    #[inline(always)]
    fn blocks(&self, indices: impl Iterator<Item = u64>, len: usize) -> [[u64; AT_ONCE]; 4] {
        let mut words = self.words;
        let [c0, c1, c2, c3] = &mut words;
        for ((low, high), index) in c0.iter_mut().zip(&mut *c1).zip(indices) {
            *low = index & LOW_32;
            *high = index >> 32;
        }
        // Whole vectors: what is beyond the end is computed and not looked at.
        let len = len.next_multiple_of(LANES).min(AT_ONCE);
        let (c0, c1, c2, c3) = (
            &mut c0[..len],
            &mut c1[..len],
            &mut c2[..len],
            &mut c3[..len],
        );
        for keys in self.keys.as_chunks::<TOGETHER>().0 {
            let lanes = c0.iter_mut().zip(&mut *c1).zip(&mut *c2).zip(&mut *c3);
            for (((c0, c1), c2), c3) in lanes {
                [*c0, *c1, *c2, *c3] = keys
                    .iter()
                    .fold([*c0, *c1, *c2, *c3], |words, &key| round(words, key));
            }
        }
        words
    }
}

wide! {
    fn fill(blocks: &Blocks, first: u64, out: &mut [u128]) {
        let counters = Counters::new(blocks);
        let mut first = first;
        for chunk in out.chunks_mut(AT_ONCE) {
            let indices = (0..AT_ONCE as u64).map(|at| first.wrapping_add(at));
            let [c0, c1, c2, c3] = counters.blocks(indices, chunk.len());
            let words = c0.iter().zip(&c1).zip(&c2).zip(&c3);
            for (block, (((&c0, &c1), &c2), &c3)) in chunk.iter_mut().zip(words) {
                *block = join([c0, c1, c2, c3]);
            }
            first = first.wrapping_add(chunk.len() as u64);
        }
    }
}

wide! {
    fn fill_low(blocks: &Blocks, first: u64, out: &mut [u64]) {
        let counters = Counters::new(blocks);
        let mut first = first;
        for chunk in out.chunks_mut(AT_ONCE) {
            let indices = (0..AT_ONCE as u64).map(|at| first.wrapping_add(at));
            write_low(&counters.blocks(indices, chunk.len()), chunk);
            first = first.wrapping_add(chunk.len() as u64);
        }
    }
}

wide! {
    fn fill_low_of(blocks: &Blocks, indices: &[u64], out: &mut [u64]) {
        let counters = Counters::new(blocks);
        for (chunk, indices) in out.chunks_mut(AT_ONCE).zip(indices.chunks(AT_ONCE)) {
            write_low(&counters.blocks(indices.iter().copied(), chunk.len()), chunk);
        }
    }
}

#[inline(always)]
fn write_low([c0, c1, ..]: &[[u64; AT_ONCE]; 4], out: &mut [u64]) {
    for (low, (&c0, &c1)) in out.iter_mut().zip(c0.iter().zip(c1)) {
        *low = c0 | c1 << 32;
    }
}

#[inline(always)]
fn join(words: Words) -> u128 {
    let low = words[0] | words[1] << 32;
    let high = words[2] | words[3] << 32;
    u128::from(low) | u128::from(high) << 64
}

fn round_keys(key: u64) -> [[u64; 2]; ROUNDS] {
    let mut next = [key & LOW_32, key >> 32];
    let mut keys = [next; ROUNDS];
    for key in &mut keys {
        *key = next;
        next[0] = next[0].wrapping_add(KEY_STEPS[0]) & LOW_32;
        next[1] = next[1].wrapping_add(KEY_STEPS[1]) & LOW_32;
    }
    keys
}

/// One round. Words stay below 2^32, so no product passes 2^64.
#[inline(always)]
fn round(c: Words, key: [u64; 2]) -> Words {
    let p0 = (c[0] & LOW_32).wrapping_mul(MULTIPLIERS[0]);
    let p1 = (c[2] & LOW_32).wrapping_mul(MULTIPLIERS[1]);
    [
        (p1 >> 32) ^ c[1] ^ key[0],
        p1 & LOW_32,
        (p0 >> 32) ^ c[3] ^ key[1],
        p0 & LOW_32,
    ]
}

fn permute(counter: Words, key: u64) -> Words {
    round_keys(key).into_iter().fold(counter, round)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, Domain, permute};
    use crate::sampler::draw::low;

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
            assert_eq!(permute(counter, key), expected);
        }
    }

    /// Counter word 0 is the low half of the index, word 3 the domain and the sub-index; word 0 of the output is
    /// the lowest of the block.
    #[test]
    fn layout_of_counter_and_block() {
        let blocks = Blocks::new(u64::MAX, 7, Domain::Small);
        let words = permute([0x5566_7788, 0x1122_3344, 7, 5 + 256 * 11], u64::MAX);
        let expected = words
            .iter()
            .rev()
            .fold(0, |sum, word| sum << 32 | u128::from(*word));
        assert_eq!(blocks.sub(0x1122_3344_5566_7788, 11), expected);
    }

    #[test]
    fn many_blocks_are_the_single_ones() {
        let blocks = Blocks::new(42, 3, Domain::Draw);
        for first in [0, 5, (1 << 32) - 3, u64::MAX - 4] {
            for len in [0, 1, 7, 63, 64, 65, 200] {
                let indices: Vec<u64> = (0..len).map(|at| first.wrapping_add(at)).collect();
                let single: Vec<u128> = indices.iter().map(|&index| blocks.get(index)).collect();
                let halves: Vec<u64> = single.iter().map(|&block| low(block)).collect();
                let mut out = vec![0; indices.len()];
                blocks.fill(first, &mut out);
                assert_eq!(out, single);
                let mut out = vec![0; indices.len()];
                blocks.fill_low(first, &mut out);
                assert_eq!(out, halves);
                let backwards: Vec<u64> = indices.into_iter().rev().collect();
                blocks.fill_low_of(&backwards, &mut out);
                out.reverse();
                assert_eq!(out, halves);
            }
        }
    }
}
