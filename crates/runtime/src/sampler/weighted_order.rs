//! Shuffling without replacement by unequal weights: each pass has every row once, in an order that draws rows
//! successively with probability proportional to the weights of the rows left.
//!
//! The one mode without random access: an order is made as a whole, and kept.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::draw::{index, low};
use super::forked::PerProcess;
use super::philox::{Blocks, Domain};
use super::race::{self, BATCH};
use super::sort::by_key_and_row;

/// Orders that are kept: of the pass that is read, and of the next, made ahead.
const KEPT: usize = 2;

/// Orders of the rows under one seed, stream word and table.
#[derive(Debug)]
pub(super) struct WeightedOrder {
    weights: Arc<[f64]>,
    stream: u32,
    passes: Blocks,
    kept: PerProcess<Mutex<Kept>>,
}

/// The last used passes, the most recent first.
type Kept = Vec<(u64, Arc<OnceLock<Order>>)>;

/// Rows in the order of a pass.
#[derive(Debug)]
enum Order {
    /// Fewer than 2^32 rows.
    Short(Box<[u32]>),
    /// Any number of rows.
    Long(Box<[u64]>),
}

impl Order {
    fn copy(&self, place: usize, out: &mut [u64]) {
        match self {
            Self::Short(rows) => {
                for (slot, &row) in out.iter_mut().zip(&rows[place..]) {
                    *slot = u64::from(row);
                }
            }
            Self::Long(rows) => out.copy_from_slice(&rows[place..place + out.len()]),
        }
    }

    fn place(&self, row: u64) -> Option<usize> {
        match self {
            Self::Short(rows) => rows.iter().position(|&found| u64::from(found) == row),
            Self::Long(rows) => rows.iter().position(|&found| found == row),
        }
    }
}

impl WeightedOrder {
    /// Orders of at least one row.
    pub(super) fn new(seed: u64, stream: u32, weights: Arc<[f64]>) -> Self {
        let passes = Blocks::new(seed, stream, Domain::Pass);
        Self {
            weights,
            stream,
            passes,
            kept: PerProcess::new(Mutex::default()),
        }
    }

    /// Rows of the positions from `start` on: the pass is position / rows, the place in it the remainder.
    pub(super) fn fill(&self, start: u64, out: &mut [u64]) {
        let rows = self.weights.len() as u64;
        let (mut pass, mut place) = (start / rows, start % rows);
        let mut rest = out;
        while !rest.is_empty() {
            let left = index(rows - place).min(rest.len());
            let (part, after) = rest.split_at_mut(left);
            let slot = self.slot(pass);
            self.order(&slot, pass).copy(index(place), part);
            (pass, place, rest) = (pass + 1, 0, after);
        }
    }

    /// The place of a row in a pass.
    pub(super) fn place(&self, pass: u64, row: u64) -> u64 {
        let slot = self.slot(pass);
        // Every row is in every order.
        self.order(&slot, pass)
            .place(row)
            .map_or(0, |place| place as u64)
    }

    /// Makes the order of a pass, where it isn't there yet.
    pub(super) fn prepare(&self, pass: u64) {
        let slot = self.slot(pass);
        self.order(&slot, pass);
    }

    /// Whether the order of a pass is there. Doesn't count as a use of it.
    pub(super) fn is_prepared(&self, pass: u64) -> bool {
        lock(self.kept.get(inherit))
            .iter()
            .any(|(kept, order)| *kept == pass && order.get().is_some())
    }

    fn order<'a>(&self, slot: &'a OnceLock<Order>, pass: u64) -> &'a Order {
        slot.get_or_init(|| {
            let races = self.races(pass);
            if self.weights.len() as u64 <= 1 << 32 {
                short(races)
            } else {
                long(races)
            }
        })
    }

    /// The slot of a pass; the one not used for longest gives way. The lock is never held while an order is made.
    fn slot(&self, pass: u64) -> Arc<OnceLock<Order>> {
        let mut kept = lock(self.kept.get(inherit));
        let at = kept.iter().position(|&(found, _)| found == pass);
        let entry = match at {
            Some(at) => kept.remove(at),
            None => (pass, Arc::default()),
        };
        let slot = entry.1.clone();
        kept.insert(0, entry);
        kept.truncate(KEPT);
        slot
    }

    /// Keys of all rows in a pass with the rows below them, ascending.
    fn races(&self, pass: u64) -> Vec<u128> {
        let blocks = Blocks::new(low(self.passes.get(pass)), self.stream, Domain::Race);
        let mut keys = Vec::with_capacity(self.weights.len());
        let mut words = [0; BATCH];
        let mut row = 0;
        for weights in self.weights.chunks(BATCH) {
            let words = &mut words[..weights.len()];
            blocks.fill_low(row, words);
            race::keys(words, weights, &mut keys);
            row += weights.len() as u64;
        }
        by_key_and_row(keys)
    }
}

fn short(races: Vec<u128>) -> Order {
    // Rows are below 2^32 here, so the mask cuts nothing off.
    Order::Short(
        races
            .into_iter()
            .map(|race| (race & 0xFFFF_FFFF) as u32)
            .collect(),
    )
}

fn long(races: Vec<u128>) -> Order {
    Order::Long(races.into_iter().map(low).collect())
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    // Nothing panics between two changes that belong together.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a forked child takes over: the orders that are complete.
fn inherit(parent: &Mutex<Kept>) -> Mutex<Kept> {
    let complete = match parent.try_lock() {
        Ok(kept) => kept
            .iter()
            .filter(|(_, slot)| slot.get().is_some())
            .cloned()
            .collect(),
        Err(_) => Vec::new(),
    };
    Mutex::new(complete)
}

#[cfg(test)]
mod tests;
