//! Weights as whole numbers of tickets, and the search for the row that holds a ticket.
//!
//! No sum of floats anywhere: the numbers of tickets are integers, so the table is the same on every machine and for
//! every order of summation.

use super::draw::{high, index, low, scale};

/// Draws that go through the table together: enough to overlap the waits for memory, little enough for the stack.
pub(crate) const BATCH: usize = 128;

/// Bits of a ticket of the largest weight before the common shift: it lies in [2^62, 2^63).
const TOP_BIT: i32 = 62;

/// Buckets of the guide are at most 2^32.
const MAX_GUIDE_BITS: u32 = 32;

/// Running sums of the tickets of rows, and a guide into them.
#[derive(Debug)]
pub(crate) struct TicketTable {
    /// Tickets of the rows 0 ..= i together; strictly rising, the last is the sum of all.
    ends: Box<[u64]>,
    /// The bucket of a block is its top `guide_bits` bits. Entry g is the row that holds the lowest ticket which a
    /// block of bucket g can draw, and one last entry is the last row; so the row of a block lies between its bucket's
    /// entry and the next. Rows are shifted right by `guide_shift`, so that 32 bits do for any table.
    guide: Box<[u32]>,
    guide_bits: u32,
    guide_shift: u32,
}

/// A positive finite binary64 as `significand * 2^exponent`, with the significand below 2^53; subnormals too.
fn split(weight: f64) -> (u64, i32) {
    let bits = weight.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    // The sign bit is 0: eleven bits are left.
    match (bits >> 52) as i32 {
        0 => (fraction, -1074),
        field => (fraction | 1 << 52, field - 1075),
    }
}

/// Exponent of the highest bit of the largest weight.
fn top_exponent(weights: &[f64]) -> i32 {
    // Bits of positive floats rise with their values.
    let largest = weights
        .iter()
        .map(|weight| weight.to_bits())
        .max()
        .unwrap_or(1);
    let (significand, exponent) = split(f64::from_bits(largest));
    // ilog2 is below 53.
    exponent + significand.max(1).ilog2() as i32
}

/// The weight times 2^(62 - top), rounded down.
#[inline(always)]
fn scaled(weight: f64, top: i32) -> u64 {
    let (significand, exponent) = split(weight);
    let shift = exponent + TOP_BIT - top;
    // A left shift keeps the value below 2^63, as it is at most the largest weight's. A right shift of 53 or more
    // leaves nothing.
    if shift >= 0 {
        significand << shift.unsigned_abs()
    } else {
        significand >> shift.unsigned_abs().min(63)
    }
}

/// How far all scaled weights are shifted right, so that their sum fits 63 bits.
fn common_shift(weights: &[f64], top: i32) -> u32 {
    let sum: u128 = weights
        .iter()
        .map(|&weight| u128::from(scaled(weight, top)))
        .sum();
    (128 - sum.leading_zeros()).saturating_sub(63)
}

impl TicketTable {
    /// Makes the table of finite weights above 0.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let shift = 32_u32.saturating_sub((weights.len().max(1) as u64 - 1).leading_zeros());
        let bits = weights
            .len()
            .max(2)
            .next_power_of_two()
            .ilog2()
            .min(MAX_GUIDE_BITS);
        Self::with_guide(weights, bits, shift)
    }

    /// The table with a guide of 2^bits buckets, 1 <= bits <= 32, over rows shifted right.
    fn with_guide(weights: &[f64], guide_bits: u32, guide_shift: u32) -> Self {
        let top = top_exponent(weights);
        let shift = common_shift(weights, top);
        let mut sum = 0_u64;
        // A weight that comes out as no ticket gets one: every row must be able to come. The sum stays below
        // 2^63 + rows.
        let ends: Box<[u64]> = weights
            .iter()
            .map(|&weight| {
                sum = sum.wrapping_add((scaled(weight, top) >> shift).max(1));
                sum
            })
            .collect();

        let mut row = 0;
        let guide = (0..1_u64 << guide_bits)
            .map(|bucket| {
                // The lowest ticket of the bucket; below the sum, so the walk stops at the last row.
                let ticket = low((u128::from(bucket) * u128::from(sum)) >> guide_bits);
                while ends[row] <= ticket {
                    row += 1;
                }
                row
            })
            .chain([weights.len().saturating_sub(1)])
            .map(|row| short(row >> guide_shift))
            .collect();
        Self {
            ends,
            guide,
            guide_bits,
            guide_shift,
        }
    }

    /// All tickets together.
    pub(crate) fn sum(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The rows that the blocks draw, at most [`BATCH`] of them: the first row whose running sum of tickets is above
    /// the block scaled to the sum of all.
    ///
    /// In steps over the whole batch, so that the loads of one step don't wait for each other.
    pub(crate) fn rows(&self, blocks: &[u128], out: &mut [u64]) {
        let sum = self.sum();
        let last = self.ends.len() - 1;
        let mut tickets = [0; BATCH];
        let mut spans = [(0, 0); BATCH];
        let mut firsts = [0; BATCH];
        let lanes = blocks.len().min(out.len()).min(BATCH);

        for lane in 0..lanes {
            tickets[lane] = scale(blocks[lane], sum);
            // At most 32 bits are left, and a bucket is an index of the guide.
            let bucket = index(high(blocks[lane]) >> (64 - self.guide_bits));
            spans[lane] = (self.guide[bucket], self.guide[bucket + 1]);
        }
        for lane in 0..lanes {
            firsts[lane] = self.ends[(spans[lane].0 as usize) << self.guide_shift];
        }
        for lane in 0..lanes {
            let mut row = (spans[lane].0 as usize) << self.guide_shift;
            if firsts[lane] <= tickets[lane] {
                let end = ((spans[lane].1 as usize + 1) << self.guide_shift) - 1;
                row = self.search(tickets[lane], row + 1, end.min(last));
            }
            out[lane] = row as u64;
        }
    }

    /// The first row of `from ..= to` whose running sum is above the ticket; there is one.
    #[inline]
    fn search(&self, ticket: u64, from: usize, to: usize) -> usize {
        const WALKED: usize = 8;
        if to - from <= WALKED {
            let mut row = from;
            while row < to && self.ends[row] <= ticket {
                row += 1;
            }
            row
        } else {
            from + self.ends[from..to].partition_point(|&end| end <= ticket)
        }
    }
}

/// A guide entry, shifted to fit 32 bits when the table was laid out.
fn short(row: usize) -> u32 {
    // The shift was chosen from the number of rows: see `TicketTable::new`.
    (row as u64 & 0xFFFF_FFFF) as u32
}

#[cfg(test)]
mod tests;
