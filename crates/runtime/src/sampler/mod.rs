//! Which row comes at which position: sampling algorithm 1.
//!
//! A stream is a function of (seed, stream word, mode, number of rows, weights) and of nothing else: not of how far
//! it was read before, of threads, or of how a range is cut into calls. A *row* is a place in the active table, and
//! positions are 0 to 2^63 - 1. The definition can't change; another one would get another number.

mod digest;
pub(crate) mod draw;
mod forked;
mod ordered;
mod permutation;
pub(crate) mod philox;
mod position;
pub(crate) mod race;
mod sort;
pub(crate) mod tickets;
mod weighted;
mod weighted_order;
mod window;

#[cfg(test)]
#[rustfmt::skip]
mod golden;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;

pub use digest::{CACHE_HEADS, RowsDigest, WeightsDigest, caches_digest};
pub use position::{
    POSITION_FORMAT, POSITION_VERSION, PositionError, PositionItem, SavedPosition, StreamProgress,
    TableDigests,
};
pub use window::{LoaderPart, RankPart, RankPolicy, Step, WindowError, window_end};

use std::sync::Arc;

use self::permutation::Permutation;
use self::weighted::Weighted;
use self::weighted_order::WeightedOrder;
use crate::error::{Error, Result};

/// Number of the definition of the stream, as saved positions carry it.
pub const SAMPLING_ALGORITHM: u32 = 1;

/// The most rows that a sampler takes.
pub const MAX_ROWS: u64 = 1 << 62;

/// Number of positions of a stream: the first one that there is not.
pub const POSITIONS: u64 = 1 << 63;

/// How rows follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The order of the table, over and over; weights are not used.
    Ordered,
    /// Each position draws by weight, with replacement.
    Weighted,
    /// One permutation after the other, all weights being equal.
    Permutation,
    /// Passes over all rows, each in an order drawn by weight.
    WeightedOrder,
}

impl Mode {
    /// The name in saved positions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Weighted => "weighted",
            Self::Permutation => "permutation",
            Self::WeightedOrder => "weighted_order",
        }
    }

    /// The mode of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let modes = [
            Self::Ordered,
            Self::Weighted,
            Self::Permutation,
            Self::WeightedOrder,
        ];
        modes.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether weights decide rows, so that a saved position holds for these weights only.
    pub fn uses_weights(self) -> bool {
        matches!(self, Self::Weighted | Self::WeightedOrder)
    }
}

/// What a user chooses about the order of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplerConfig {
    /// False: the order of the table.
    pub shuffle: bool,
    /// Whether a row may come again before all others came; without `shuffle` not used.
    pub replacement: bool,
    /// The key of all random numbers.
    pub seed: u64,
    /// Another stream of the same seed, for loops that change the weights each epoch.
    pub stream: u32,
}

/// The rows of a stream, by position.
///
/// Shared by threads; tables that a mode needs are made at the first use, once a process.
///
/// ```
/// use dataset_rt_runtime::{Sampler, SamplerConfig};
///
/// let config = SamplerConfig { shuffle: true, replacement: false, seed: 7, stream: 0 };
/// let sampler = Sampler::new(config, 5, None)?;
/// let mut pass = [0; 5];
/// sampler.fill(0, &mut pass);
/// let mut third = [0];
/// sampler.fill(2, &mut third);
/// assert_eq!(third[0], pass[2]);
/// pass.sort_unstable();
/// assert_eq!(pass, [0, 1, 2, 3, 4]);
/// # Ok::<(), dataset_rt_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    config: SamplerConfig,
    rows: u64,
    plan: Plan,
}

#[derive(Debug)]
enum Plan {
    Ordered,
    Weighted(Weighted),
    Permutation(Permutation),
    WeightedOrder(WeightedOrder),
}

impl Sampler {
    /// A sampler of so many rows. Without weights all are equal, as they are when all have the same bits.
    ///
    /// Takes at most one pass over the weights.
    ///
    /// # Errors
    /// [`Error::Argument`] unless 1 <= rows <= [`MAX_ROWS`], or when weights are used and are not one a row, or not
    /// all finite and above 0.
    pub fn new(config: SamplerConfig, rows: u64, weights: Option<Arc<[f64]>>) -> Result<Self> {
        if rows == 0 || rows > MAX_ROWS {
            return Err(Error::Argument {
                argument: "rows",
                message: format!("a sampler takes 1 to {MAX_ROWS} rows, found {rows}"),
            });
        }
        let SamplerConfig {
            shuffle,
            replacement,
            seed,
            stream,
        } = config;
        let plan = if shuffle {
            let weights = match weights {
                Some(weights) => unequal(rows, weights)?,
                None => None,
            };
            match (replacement, weights) {
                (true, Some(weights)) => Plan::Weighted(Weighted::new(seed, stream, weights)),
                (true, None) => Plan::Weighted(Weighted::equal(seed, stream, rows)),
                (false, Some(weights)) => {
                    Plan::WeightedOrder(WeightedOrder::new(seed, stream, weights))
                }
                (false, None) => Plan::Permutation(Permutation::new(seed, stream, rows)),
            }
        } else {
            Plan::Ordered
        };
        Ok(Self { config, rows, plan })
    }

    /// The mode that configuration and weights make.
    pub fn mode(&self) -> Mode {
        match self.plan {
            Plan::Ordered => Mode::Ordered,
            Plan::Weighted(_) => Mode::Weighted,
            Plan::Permutation(_) => Mode::Permutation,
            Plan::WeightedOrder(_) => Mode::WeightedOrder,
        }
    }

    /// The configuration.
    pub fn config(&self) -> SamplerConfig {
        self.config
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.config.seed
    }

    /// The stream word.
    pub fn stream(&self) -> u32 {
        self.config.stream
    }

    /// Writes the rows of the positions `start` .. `start + out.len()`, which must not pass [`POSITIONS`]; see
    /// [`window_end`]. Any cut of a range into calls gives the same rows.
    ///
    /// The first call makes what the mode needs (see [`prepare`](Self::prepare)); other calls wait for it. A call of
    /// a few hundred positions or more is fastest for each.
    pub fn fill(&self, start: u64, out: &mut [u64]) {
        match &self.plan {
            Plan::Ordered => ordered::fill(self.rows, start, out),
            Plan::Weighted(weighted) => weighted.fill(start, out),
            Plan::Permutation(permutation) => permutation.fill(start, out),
            Plan::WeightedOrder(order) => order.fill(start, out),
        }
    }

    /// Makes now what [`fill`](Self::fill) at a position would make first: the table of a weighted draw, or the order
    /// of the position's pass. The order of a pass costs a sort of all rows, so a reader calls this ahead of the end
    /// of a pass; two orders are kept. Where nothing is to be made it returns at once.
    pub fn prepare(&self, position: u64) {
        match &self.plan {
            Plan::Ordered | Plan::Permutation(_) => {}
            Plan::Weighted(weighted) => weighted.prepare(),
            Plan::WeightedOrder(order) => order.prepare(position / self.rows),
        }
    }

    /// Whether [`fill`](Self::fill) of these positions has nothing left to make first. Never waits.
    pub fn is_prepared(&self, start: u64, count: u64) -> bool {
        match &self.plan {
            Plan::Ordered | Plan::Permutation(_) => true,
            Plan::Weighted(weighted) => weighted.is_prepared(),
            Plan::WeightedOrder(order) => {
                let last = start.saturating_add(count.saturating_sub(1));
                (start / self.rows..=last / self.rows).all(|pass| order.is_prepared(pass))
            }
        }
    }

    /// The position to [`prepare`](Self::prepare) now for a reader that is about to leave `position`: the first of the
    /// next pass, once the last quarter of this one has begun, where that takes work which is not done yet. Making an
    /// order takes a row less time than reading it, so a quarter of a pass is enough. Never waits.
    pub fn ahead_of(&self, position: u64) -> Option<u64> {
        let Plan::WeightedOrder(order) = &self.plan else {
            return None;
        };
        let (pass, place) = (position / self.rows, position % self.rows);
        let next = pass + 1;
        let start = next.checked_mul(self.rows)?;
        let due = place >= self.rows - self.rows.div_ceil(4);
        (due && start < POSITIONS && !order.is_prepared(next)).then_some(start)
    }

    /// Where in a pass a row comes: the position is `pass * rows + place`. None where a row has no one place, in draws
    /// with replacement, and for a row that there is not. A search through the order in the weighted order; no search
    /// in the others.
    pub fn place(&self, pass: u64, row: u64) -> Option<u64> {
        if row >= self.rows {
            return None;
        }
        match &self.plan {
            Plan::Ordered => Some(row),
            Plan::Weighted(_) => None,
            Plan::Permutation(permutation) => Some(permutation.place(pass, row)),
            Plan::WeightedOrder(order) => Some(order.place(pass, row)),
        }
    }
}

/// The weights, checked; None when all have the same bits.
fn unequal(rows: u64, weights: Arc<[f64]>) -> Result<Option<Arc<[f64]>>> {
    let refused = |message| {
        Err(Error::Argument {
            argument: "weights",
            message,
        })
    };
    if weights.len() as u64 != rows {
        return refused(format!(
            "{} weights for {rows} rows, there must be one a row",
            weights.len()
        ));
    }
    if let Some(row) = weights
        .iter()
        .position(|&weight| !(weight > 0.0 && weight < f64::INFINITY))
    {
        let found = weights[row];
        return refused(format!(
            "weights must be finite and above 0, found {found} at row {row}"
        ));
    }
    let first = weights[0].to_bits();
    let equal = weights.iter().all(|weight| weight.to_bits() == first);
    Ok(if equal { None } else { Some(weights) })
}
