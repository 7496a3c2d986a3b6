//! How much may be under way at once, over all sources of a call.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Payload and text bytes under way at most, unless one block alone is over it.
pub const MAX_QUEUED_BYTES: u64 = 256 << 20;

#[derive(Debug, Default)]
struct Used {
    blocks: usize,
    bytes: u64,
}

/// Room for blocks.
#[derive(Debug)]
pub(crate) struct Flow {
    /// A process forked from this one finds a lock that may never be given back, and counts nothing.
    pid: u32,
    max_blocks: usize,
    used: Mutex<Used>,
    freed: Condvar,
}

impl Flow {
    pub(crate) fn new(max_blocks: usize) -> Arc<Self> {
        Arc::new(Self {
            pid: std::process::id(),
            max_blocks,
            used: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    fn admits(&self, used: &Used) -> bool {
        used.blocks == 0 || (used.blocks < self.max_blocks && used.bytes < MAX_QUEUED_BYTES)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.admits(&self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for room; `false`: there is none yet.
    pub(crate) fn wait_for_room(&self, timeout: Duration) -> bool {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .freed
            .wait_timeout_while(used, timeout, |used| !self.admits(used));
        let (used, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.admits(&used)
    }

    /// Counts a block, whether there is room or not: it exists already.
    pub(crate) fn enter(self: &Arc<Self>, bytes: u64) -> Permit {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.blocks += 1;
        used.bytes += bytes;
        Permit {
            flow: self.clone(),
            bytes,
        }
    }
}

/// A block that is under way; dropped when it is stored or given up.
#[derive(Debug)]
pub(crate) struct Permit {
    flow: Arc<Flow>,
    bytes: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.flow.pid != std::process::id() {
            return;
        }
        let mut used = self
            .flow
            .used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        used.blocks -= 1;
        used.bytes -= self.bytes;
        drop(used);
        self.flow.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Flow, MAX_QUEUED_BYTES};

    #[test]
    fn blocks_and_bytes_are_bounded_but_one_block_always_fits() {
        let flow = Flow::new(2);
        let huge = flow.enter(MAX_QUEUED_BYTES * 2);
        assert!(!flow.has_room());
        drop(huge);
        let one = flow.enter(1);
        assert!(flow.has_room());
        let two = flow.enter(1);
        assert!(!flow.wait_for_room(Duration::from_millis(1)));
        let waiting = {
            let flow = flow.clone();
            std::thread::spawn(move || flow.wait_for_room(Duration::from_secs(30)))
        };
        drop(two);
        assert!(waiting.join().unwrap());
        drop(one);
    }
}
