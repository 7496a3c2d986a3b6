//! Shuffling with replacement: each position draws a row by itself, with probability proportional to its weight.

use std::sync::{Arc, OnceLock};

use super::draw::scale;
use super::forked::PerProcess;
use super::philox::{Blocks, Domain};
use super::tickets::{BATCH, TicketTable};

/// Draws with replacement.
#[derive(Debug)]
pub(super) struct Weighted {
    blocks: Blocks,
    chances: Chances,
}

#[derive(Debug)]
enum Chances {
    /// All weights alike: no table is needed, and the rows are those that a table of equal tickets gives.
    Equal(u64),
    /// The table is made at the first draw.
    Tickets {
        weights: Arc<[f64]>,
        table: PerProcess<OnceLock<Arc<TicketTable>>>,
    },
}

impl Weighted {
    /// Draws among rows of equal weight.
    pub(super) fn equal(seed: u64, stream: u32, rows: u64) -> Self {
        Self {
            blocks: Blocks::new(seed, stream, Domain::Draw),
            chances: Chances::Equal(rows),
        }
    }

    /// Draws by weight.
    pub(super) fn new(seed: u64, stream: u32, weights: Arc<[f64]>) -> Self {
        let table = PerProcess::new(OnceLock::new());
        let blocks = Blocks::new(seed, stream, Domain::Draw);
        Self {
            blocks,
            chances: Chances::Tickets { weights, table },
        }
    }

    /// Makes the table, where one is needed and not there yet.
    pub(super) fn prepare(&self) {
        if let Chances::Tickets { weights, table } = &self.chances {
            Self::table(weights, table);
        }
    }

    /// Whether the table is there, or none is needed.
    pub(super) fn is_prepared(&self) -> bool {
        match &self.chances {
            Chances::Equal(_) => true,
            Chances::Tickets { table, .. } => Self::cell(table).get().is_some(),
        }
    }

    fn cell(table: &PerProcess<OnceLock<Arc<TicketTable>>>) -> &OnceLock<Arc<TicketTable>> {
        table.get(|parent| match parent.get() {
            Some(table) => OnceLock::from(table.clone()),
            None => OnceLock::new(),
        })
    }

    fn table<'a>(
        weights: &[f64],
        table: &'a PerProcess<OnceLock<Arc<TicketTable>>>,
    ) -> &'a TicketTable {
        Self::cell(table).get_or_init(|| Arc::new(TicketTable::new(weights)))
    }

    /// Rows of the positions from `start` on.
    pub(super) fn fill(&self, start: u64, out: &mut [u64]) {
        let mut blocks = [0; BATCH];
        let mut position = start;
        let table = match &self.chances {
            Chances::Equal(rows) => Err(*rows),
            Chances::Tickets { weights, table } => Ok(Self::table(weights, table)),
        };
        for part in out.chunks_mut(BATCH) {
            let blocks = &mut blocks[..part.len()];
            self.blocks.fill(position, blocks);
            match table {
                Ok(table) => table.rows(blocks, part),
                Err(rows) => {
                    for (slot, &block) in part.iter_mut().zip(&*blocks) {
                        *slot = scale(block, rows);
                    }
                }
            }
            position = position.wrapping_add(part.len() as u64);
        }
    }
}
