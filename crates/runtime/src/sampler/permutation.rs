//! Shuffling without replacement, all rows alike: one permutation of the rows after the other, any place of any of
//! them computed alone, in constant memory.

use super::draw::{high, index, low, scale, scale_64};
use super::philox::{Blocks, Domain};

/// Up to so many rows a permutation is unranked from one draw below rows!, which is exact. The network below is
/// measurably uneven over all permutations of so few rows, once many passes are looked at.
const SMALL_ROWS: u64 = 20;

/// Rounds of the network. With 16, permutations of 5 to 7 rows came out visibly uneven; 24 were clean.
const ROUNDS: usize = 24;

/// Walks that are computed side by side: one walk is a chain of multiplications that wait for each other.
const WALKS: usize = 8;

/// Places that go through the network before those outside of the rows go through it again.
const BATCH: usize = 128;

/// Permutations of a number of rows under one seed and stream word.
#[derive(Debug)]
pub(super) enum Permutation {
    /// At most [`SMALL_ROWS`] rows.
    Small(Small),
    /// More.
    Network(Network),
}

impl Permutation {
    /// Permutations of 1 to 2^62 rows.
    pub(super) fn new(seed: u64, stream: u32, rows: u64) -> Self {
        if rows <= SMALL_ROWS {
            Self::Small(Small {
                rows,
                blocks: Blocks::new(seed, stream, Domain::Small),
            })
        } else {
            Self::Network(Network::new(seed, stream, rows))
        }
    }

    /// Rows of the positions from `start` on: the pass is position / rows, the place in it the remainder.
    pub(super) fn fill(&self, start: u64, out: &mut [u64]) {
        let rows = match self {
            Self::Small(small) => small.rows,
            Self::Network(network) => network.rows,
        };
        let (mut pass, mut place) = (start / rows, start % rows);
        let mut rest = out;
        while !rest.is_empty() {
            let left = usize::try_from(rows - place)
                .unwrap_or(usize::MAX)
                .min(rest.len());
            let (part, after) = rest.split_at_mut(left);
            match self {
                Self::Small(small) => small.fill(pass, place, part),
                Self::Network(network) => network.fill(pass, place, part),
            }
            (pass, place, rest) = (pass + 1, 0, after);
        }
    }

    /// The place of a row in a pass.
    pub(super) fn place(&self, pass: u64, row: u64) -> u64 {
        match self {
            Self::Small(small) => small.place(pass, row),
            Self::Network(network) => network.place(pass, row),
        }
    }
}

/// 0! to 20!, the largest factorial below 2^64.
const FACTORIALS: [u64; 21] = {
    let mut table = [1; 21];
    let mut i = 1;
    while i < table.len() {
        table[i] = table[i - 1] * i as u64;
        i += 1;
    }
    table
};

/// Permutations by unranking.
#[derive(Debug)]
pub(super) struct Small {
    rows: u64,
    blocks: Blocks,
}

impl Small {
    /// The whole permutation of a pass, in the first `rows` entries.
    fn unrank(&self, pass: u64) -> [u8; 20] {
        // rows <= 20 here.
        let rows = index(self.rows);
        let mut rank = scale(self.blocks.get(pass), FACTORIALS[rows]);
        let mut left: [u8; 20] = [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
        ];
        let mut rows_of = [0; 20];
        for i in 0..rows {
            let below = FACTORIALS[rows - 1 - i];
            // The rank is below (rows - i)!, so this is below rows - i, the number of rows not yet taken.
            let digit = index(rank / below);
            rank %= below;
            rows_of[i] = left[digit];
            left.copy_within(digit + 1..rows - i, digit);
        }
        rows_of
    }

    fn fill(&self, pass: u64, place: u64, out: &mut [u64]) {
        if self.rows == 1 {
            return out.fill(0);
        }
        let rows_of = self.unrank(pass);
        for (slot, &row) in out.iter_mut().zip(&rows_of[index(place)..]) {
            *slot = u64::from(row);
        }
    }

    fn place(&self, pass: u64, row: u64) -> u64 {
        let rows_of = self.unrank(pass);
        (0..self.rows)
            .zip(rows_of)
            .find(|&(_, found)| u64::from(found) == row)
            .map_or(0, |pair| pair.0)
    }
}

/// Permutations by a keyed Feistel network over a rectangle of `a` by `b` places, at least as many as rows; a place
/// outside of the rows is sent through again until it comes out inside (cycle walking, Black and Rogaway 2002).
///
/// `a` is even: with both sides odd the network makes even permutations only.
#[derive(Debug)]
pub(super) struct Network {
    rows: u64,
    a: u64,
    b: u64,
    keys: Blocks,
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// `(x + y) mod m` for x and y below m, and m below 2^63.
#[inline(always)]
fn add(x: u64, y: u64, m: u64) -> u64 {
    let sum = x.wrapping_add(y);
    // Where the sum is below m the difference wraps to something larger than it.
    sum.min(sum.wrapping_sub(m))
}

/// `(x - y) mod m` for x and y below m, and m below 2^63.
#[inline(always)]
fn subtract(x: u64, y: u64, m: u64) -> u64 {
    let difference = x.wrapping_sub(y);
    difference.min(difference.wrapping_add(m))
}

impl Network {
    fn new(seed: u64, stream: u32, rows: u64) -> Self {
        // The integer root: a root in floats is wrong from 2^52 on.
        let root = rows.isqrt();
        let root = if root * root < rows { root + 1 } else { root };
        let a = root + root % 2;
        Self {
            rows,
            a,
            b: rows.div_ceil(a),
            keys: Blocks::new(seed, stream, Domain::Round),
        }
    }

    fn keys(&self, pass: u64) -> [u64; ROUNDS] {
        let mut keys = [0; ROUNDS];
        // 12 blocks, so the sub-index is far below 256.
        for (sub, pair) in (0_u8..).zip(keys.chunks_mut(2)) {
            let block = self.keys.sub(pass, sub);
            pair[0] = low(block);
            pair[1] = high(block);
        }
        keys
    }

    /// Sends places of the rectangle through the network once.
    #[inline(always)]
    fn forward(&self, keys: &[u64; ROUNDS], places: &mut [u64; WALKS]) {
        let (a, b) = (self.a, self.b);
        let mut left = places.map(|place| place / b);
        let mut right = [0; WALKS];
        for lane in 0..WALKS {
            right[lane] = places[lane].wrapping_sub(left[lane].wrapping_mul(b));
        }
        for pair in keys.chunks_exact(2) {
            for lane in 0..WALKS {
                left[lane] = add(left[lane], scale_64(mix(right[lane] ^ pair[0]), a), a);
            }
            for lane in 0..WALKS {
                right[lane] = add(right[lane], scale_64(mix(left[lane] ^ pair[1]), b), b);
            }
        }
        for lane in 0..WALKS {
            places[lane] = left[lane].wrapping_mul(b).wrapping_add(right[lane]);
        }
    }

    fn fill(&self, pass: u64, place: u64, out: &mut [u64]) {
        let keys = self.keys(pass);
        let mut place = place;
        for part in out.chunks_mut(BATCH) {
            for slot in &mut *part {
                *slot = place;
                place += 1;
            }
            let mut walks = part.chunks_exact_mut(WALKS);
            for lanes in &mut walks {
                if let Ok(lanes) = <&mut [u64; WALKS]>::try_from(lanes) {
                    self.forward(&keys, lanes);
                }
            }
            let rest = walks.into_remainder();
            if !rest.is_empty() {
                let mut lanes = [0; WALKS];
                lanes[..rest.len()].copy_from_slice(rest);
                self.forward(&keys, &mut lanes);
                rest.copy_from_slice(&lanes[..rest.len()]);
            }
            self.walk(&keys, part);
        }
    }

    /// Sends the places that are outside of the rows through again, until none is.
    fn walk(&self, keys: &[u64; ROUNDS], part: &mut [u64]) {
        let mut from = 0;
        loop {
            let mut lanes = [0; WALKS];
            let mut slots = [0; WALKS];
            let mut found = 0;
            let mut i = from;
            while i < part.len() && found < WALKS {
                if part[i] >= self.rows {
                    lanes[found] = part[i];
                    slots[found] = i;
                    found += 1;
                }
                i += 1;
            }
            if found == 0 {
                return;
            }
            self.forward(keys, &mut lanes);
            for (&slot, &place) in slots[..found].iter().zip(&lanes) {
                part[slot] = place;
            }
            // Everything before the first of these is inside.
            from = slots[0];
        }
    }

    fn place(&self, pass: u64, row: u64) -> u64 {
        let keys = self.keys(pass);
        let (a, b) = (self.a, self.b);
        let mut place = row;
        loop {
            let (mut left, mut right) = (place / b, place % b);
            for pair in keys.chunks_exact(2).rev() {
                right = subtract(right, scale_64(mix(left ^ pair[1]), b), b);
                left = subtract(left, scale_64(mix(right ^ pair[0]), a), a);
            }
            place = left * b + right;
            if place < self.rows {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests;
