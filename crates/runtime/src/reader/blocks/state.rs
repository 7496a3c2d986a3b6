//! Which blocks are in flight, and how far each is.

use std::collections::VecDeque;

use super::{BlockSizing, Filled};

/// Samples of the first blocks, so that the first sample comes at once.
const FIRST_BLOCKS: [u64; 3] = [8, 32, 128];

/// Sizes of blocks, and the window that is left to plan.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) sizing: BlockSizing,
    pub(super) usual: u64,
    /// Number of the next block.
    pub(super) number: u64,
    pub(super) next: u64,
    pub(super) end: u64,
}

impl Cut {
    pub(super) fn take<W, B>(&mut self) -> Option<Entry<W, B>> {
        let left = self.end - self.next;
        if left == 0 {
            return None;
        }
        let size = match self.sizing {
            BlockSizing::Exact(size) => size.max(1),
            BlockSizing::Batches(size) => {
                let most = (self.usual / size.max(1)).max(1);
                // 1, 2, 4, ...: the first batch comes at once.
                let batches = 1 << self.number.min(16);
                most.min(batches).saturating_mul(size.max(1))
            }
            BlockSizing::Samples => {
                let first = usize::try_from(self.number)
                    .ok()
                    .and_then(|n| FIRST_BLOCKS.get(n));
                first.map_or(self.usual, |&first| first.min(self.usual))
            }
        };
        let count = size.min(left);
        let entry = Entry {
            number: self.number,
            first: self.next,
            count,
            bytes: 0,
            stage: Stage::Unplanned,
        };
        self.number += 1;
        self.next += count;
        Some(entry)
    }
}

pub(super) enum Stage<W, B> {
    /// Nobody has planned it yet.
    Unplanned,
    /// Waits for memory from the consumer.
    Planned(W),
    /// Waits for somebody to fill it.
    Allocated(W, B),
    /// Somebody is at it.
    Taken,
    Ready(Filled<W, B>),
    /// Its task panicked and took the work along.
    Lost,
}

pub(super) struct Entry<W, B> {
    pub(super) number: u64,
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) stage: Stage<W, B>,
}

pub(super) struct State<W, B> {
    pub(super) entries: VecDeque<Entry<W, B>>,
    pub(super) cut: Cut,
    /// Blocks kept in flight now.
    pub(super) depth: usize,
    pub(super) calm: u32,
    /// The last block that was planned was not in memory.
    pub(super) cold: bool,
    /// Bytes of blocks that have memory.
    pub(super) allocated: u64,
    /// Tasks in the pool's queue or running.
    pub(super) jobs: usize,
    /// Consumers that sleep.
    pub(super) waiting: usize,
}

impl<W, B> State<W, B> {
    /// Adds blocks to plan until enough are in flight, never past the end of the window.
    pub(super) fn top_up(&mut self) {
        while self.entries.len() < self.depth
            && let Some(entry) = self.cut.take()
        {
            self.entries.push_back(entry);
        }
    }
}

impl<W, B> Entry<W, B> {
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready(_) | Stage::Lost)
    }

    pub(super) fn is_task(&self) -> bool {
        matches!(self.stage, Stage::Unplanned | Stage::Allocated(..))
    }
}
