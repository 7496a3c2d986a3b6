//! How a window of positions is shared by ranks and by loader workers: arithmetic only.
//!
//! Rank r of R takes the offsets `t * R + r` at the steps t = 0, 1, ..., counted from the first position that nobody
//! delivered. So every rank takes the same number of steps, the steps `b*t .. b*t + b` of all ranks together are
//! `b * R` consecutive positions whatever R is, and R may change at any delivered step.

use super::POSITIONS;
use crate::error::Error;

/// What is wrong with a window or a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The window passes the end of the stream.
    #[error(
        "a window of {len} positions from position {start} passes the end of the stream, position {POSITIONS}"
    )]
    PastEnd {
        /// First position.
        start: u64,
        /// Number of positions.
        len: u64,
    },
    /// More was delivered than the window has.
    #[error("{delivered} samples delivered of a window of {len}")]
    Delivered {
        /// Samples delivered by all ranks.
        delivered: u64,
        /// Number of positions.
        len: u64,
    },
    /// There is no such rank.
    #[error(
        "rank {rank} of {ranks}: ranks are 0 to the number of ranks less 1, and there is at least one"
    )]
    Rank {
        /// The rank.
        rank: u64,
        /// Number of ranks.
        ranks: u64,
    },
    /// The window is too short for one sample a rank.
    #[error(
        "a window of {len} positions is too short for {ranks} ranks: each must get at least one"
    )]
    TooShort {
        /// Number of positions.
        len: u64,
        /// Number of ranks.
        ranks: u64,
    },
    /// The ranks don't divide what is left, under [`RankPolicy::Error`].
    #[error(
        "{left} positions left can't be shared evenly by {ranks} ranks; the policies pad and drop can"
    )]
    Uneven {
        /// Positions not delivered.
        left: u64,
        /// Number of ranks.
        ranks: u64,
    },
    /// There is no such loader worker.
    #[error(
        "worker {worker} of {workers}: workers are 0 to their number less 1, and there is at least one"
    )]
    Worker {
        /// The worker.
        worker: u64,
        /// Number of workers.
        workers: u64,
    },
    /// A loader's batches have no steps.
    #[error("a loader worker takes batches of 0 steps, there must be at least 1")]
    EmptyBatch,
}

impl WindowError {
    /// Name of the argument at fault.
    pub fn argument(&self) -> &'static str {
        match self {
            Self::PastEnd { .. } => "epoch_len",
            Self::Delivered { .. } => "delivered",
            Self::Rank { .. } => "rank",
            Self::TooShort { .. } | Self::Uneven { .. } => "ranks",
            Self::Worker { .. } => "worker",
            Self::EmptyBatch => "batch",
        }
    }
}

impl From<WindowError> for Error {
    fn from(error: WindowError) -> Self {
        Self::Argument {
            argument: error.argument(),
            message: error.to_string(),
        }
    }
}

/// The end of a window, which is the start of the next.
///
/// # Errors
/// [`WindowError::PastEnd`] when the end is above [`POSITIONS`].
pub fn window_end(start: u64, len: u64) -> Result<u64, WindowError> {
    start
        .checked_add(len)
        .filter(|&end| end <= POSITIONS)
        .ok_or(WindowError::PastEnd { start, len })
}

/// What happens to the last positions of a window that are fewer than the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RankPolicy {
    /// The ranks left over get positions from the head of the same window, flagged.
    Pad,
    /// Nobody gets them.
    Drop,
    /// Such a window is refused.
    Error,
}

impl RankPolicy {
    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pad => "pad",
            Self::Drop => "drop",
            Self::Error => "error",
        }
    }

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Pad, Self::Drop, Self::Error]
            .into_iter()
            .find(|policy| policy.name() == name)
    }
}

/// One step of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The position to deliver.
    pub position: u64,
    /// Whether it repeats a position of the window, so that all ranks take equally many steps.
    pub padding: bool,
}

/// The steps of one rank through what is left of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPart {
    start: u64,
    len: u64,
    delivered: u64,
    rank: u64,
    ranks: u64,
    steps: u64,
}

impl RankPart {
    /// The share of `rank` among `ranks` in the window of `len` positions from `start`, of which all ranks together
    /// delivered the first `delivered`.
    ///
    /// # Errors
    /// Any [`WindowError`] but those of loader workers. All but [`WindowError::Rank`] come on every rank alike, so
    /// that none is left waiting for another.
    pub fn new(
        window: (u64, u64),
        delivered: u64,
        rank: u64,
        ranks: u64,
        policy: RankPolicy,
    ) -> Result<Self, WindowError> {
        let (start, len) = window;
        window_end(start, len)?;
        if rank >= ranks {
            return Err(WindowError::Rank { rank, ranks });
        }
        if len < ranks {
            return Err(WindowError::TooShort { len, ranks });
        }
        let left = len
            .checked_sub(delivered)
            .ok_or(WindowError::Delivered { delivered, len })?;
        let steps = match policy {
            RankPolicy::Pad => left.div_ceil(ranks),
            RankPolicy::Drop => left / ranks,
            RankPolicy::Error if left.is_multiple_of(ranks) => left / ranks,
            RankPolicy::Error => return Err(WindowError::Uneven { left, ranks }),
        };
        Ok(Self {
            start,
            len,
            delivered,
            rank,
            ranks,
            steps,
        })
    }

    /// Number of steps, the same on every rank.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Positions that no rank will deliver: what the policy drops.
    pub fn dropped(&self) -> u64 {
        (self.len - self.delivered).saturating_sub(self.steps * self.ranks)
    }

    /// The step t; None from [`steps`](Self::steps) on.
    pub fn step(&self, t: u64) -> Option<Step> {
        if t >= self.steps {
            return None;
        }
        // Below len + ranks <= 2 len <= 2^64, and at most len + ranks - 1: no overflow.
        let offset = self.delivered + t * self.ranks + self.rank;
        let padding = offset >= self.len;
        let offset = if padding { offset - self.len } else { offset };
        Some(Step {
            position: self.start + offset,
            padding,
        })
    }

    /// Samples delivered by all ranks once each took the first `steps` steps: what a saved position holds.
    pub fn delivered_after(&self, steps: u64) -> u64 {
        (self.delivered + steps.min(self.steps) * self.ranks).min(self.len)
    }
}

/// The steps of a rank that one of its loader workers takes: batches of `batch` steps, dealt out in turn.
///
/// `batch` is the batch size where the loader makes batches inside its workers, and 1 where it makes them outside;
/// merged in turn, the workers then give the steps of the rank in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderPart {
    worker: u64,
    workers: u64,
    batch: u64,
}

impl LoaderPart {
    /// The share of `worker` among `workers`.
    ///
    /// # Errors
    /// [`WindowError::Worker`] unless worker < workers, [`WindowError::EmptyBatch`] for batches of 0.
    pub fn new(worker: u64, workers: u64, batch: u64) -> Result<Self, WindowError> {
        if worker >= workers {
            return Err(WindowError::Worker { worker, workers });
        }
        if batch == 0 {
            return Err(WindowError::EmptyBatch);
        }
        Ok(Self {
            worker,
            workers,
            batch,
        })
    }

    /// Whether the worker takes a step of the rank.
    pub fn takes(&self, step: u64) -> bool {
        step / self.batch % self.workers == self.worker
    }

    /// How many of the first `steps` steps of the rank the worker takes.
    pub fn count(&self, steps: u64) -> u64 {
        let batches = steps / self.batch;
        let (rounds, turn) = (batches / self.workers, batches % self.workers);
        let whole = rounds * self.batch;
        match self.worker.cmp(&turn) {
            std::cmp::Ordering::Less => whole + self.batch,
            std::cmp::Ordering::Equal => whole + steps % self.batch,
            std::cmp::Ordering::Greater => whole,
        }
    }

    /// The step of the rank that is the worker's n-th, from 0; None past 2^64.
    pub fn step(&self, n: u64) -> Option<u64> {
        let batch = (n / self.batch)
            .checked_mul(self.workers)?
            .checked_add(self.worker)?;
        batch.checked_mul(self.batch)?.checked_add(n % self.batch)
    }
}

#[cfg(test)]
mod tests;
