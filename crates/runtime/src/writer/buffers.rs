//! Memory of blocks that were stored, for the next ones.

use std::sync::{Mutex, PoisonError};

/// Buffers kept, and the largest that is worth keeping.
const KEPT: usize = 32;
const KEPT_BYTES: usize = 4 << 20;

/// Buffers that nobody uses at the moment. The last one back is the first one out, since it is still in a cache.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// An empty buffer.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut buffer = self.lock().pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Takes a buffer back, whatever it holds.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        let mut kept = self.lock();
        if (1..=KEPT_BYTES).contains(&buffer.capacity()) && kept.len() < KEPT {
            kept.push(buffer);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
