//! Payloads of a block in one piece of memory, one after the other.
#![allow(unsafe_code)] // One pointer into memory that the value owns.

use super::slots::PayloadBuffers;

/// One vector for all payloads, and where each begins.
#[derive(Debug)]
pub struct JoinedBuffers {
    bytes: Vec<u8>,
    /// One more than there are payloads.
    offsets: Vec<i64>,
}

impl JoinedBuffers {
    /// Zeroed room for all lengths together.
    pub fn allocate(lengths: &[u32]) -> Self {
        let mut end = 0;
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        offsets.push(end);
        offsets.extend(lengths.iter().map(|&len| {
            end += i64::from(len);
            end
        }));
        Self {
            bytes: vec![0; place(end)],
            offsets,
        }
    }

    /// One payload; empty for an `i` out of range.
    pub fn get(&self, i: usize) -> &[u8] {
        let range = match (self.offsets.get(i), self.offsets.get(i + 1)) {
            (Some(&start), Some(&end)) => place(start)..place(end),
            _ => 0..0,
        };
        self.bytes.get(range).unwrap_or_default()
    }

    /// The bytes, and the offsets of an Arrow array over them.
    pub fn into_parts(self) -> (Vec<u8>, Vec<i64>) {
        (self.bytes, self.offsets)
    }
}

fn place(offset: i64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

// SAFETY: slot `i` starts at offset `i`, and the next one starts `lengths[i]` later: all inside of one vector that is
// this value's own and does not change its size before the drop.
unsafe impl PayloadBuffers for JoinedBuffers {
    fn slot(&self, i: usize) -> *mut u8 {
        let start = place(self.offsets[i]);
        // SAFETY: no offset exceeds the length of the vector.
        unsafe { self.bytes.as_ptr().cast_mut().add(start) }
    }

    fn fits(&self, lengths: &[u32]) -> bool {
        self.offsets.len() == lengths.len() + 1
            && lengths
                .iter()
                .zip(self.offsets.iter().zip(self.offsets.iter().skip(1)))
                .all(|(&len, (start, end))| i64::from(len) == end - start)
    }
}
