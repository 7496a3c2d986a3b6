//! Memory that payloads are written into: allocated by the consumer, filled by whoever has the block.
#![allow(unsafe_code)] // Raw destination memory comes from the caller and is wrapped here once.

use std::io;
use std::os::fd::AsRawFd;

use crate::files::RegularFile;

/// The payload memory of one block, allocated by the consumer for lengths that it was told.
///
/// # Safety
/// For every `i` below the number of lengths that the value was allocated for, `slot(i)` is the start of
/// `lengths[i]` bytes that are writable, overlap no other slot, are used by nobody else and stay where they are until
/// the value is dropped. They need not be initialised. The value may be used and dropped on any thread.
pub unsafe trait PayloadBuffers: Send + 'static {
    /// Start of the memory of payload `i`.
    fn slot(&self, i: usize) -> *mut u8;

    /// Whether the value was allocated for these lengths. What says yes without looking must not be handed to a read
    /// whose lengths it was not allocated for.
    fn fits(&self, lengths: &[u32]) -> bool {
        let _ = lengths;
        true
    }
}

/// Payloads as vectors of their own: for callers without special memory.
#[derive(Debug, Default)]
pub struct VecBuffers(pub Vec<Vec<u8>>);

impl VecBuffers {
    /// One zeroed vector for each length.
    pub fn allocate(lengths: &[u32]) -> Self {
        Self(lengths.iter().map(|&len| vec![0; len as usize]).collect())
    }
}

// SAFETY: each vector has its length's bytes of its own, on the heap, and nothing changes them before the drop.
unsafe impl PayloadBuffers for VecBuffers {
    fn slot(&self, i: usize) -> *mut u8 {
        self.0[i].as_ptr().cast_mut()
    }

    fn fits(&self, lengths: &[u32]) -> bool {
        self.0.len() == lengths.len()
            && self
                .0
                .iter()
                .zip(lengths)
                .all(|(bytes, &len)| bytes.len() == len as usize)
    }
}

/// The slots of a block while it is being filled.
///
/// Not generic: what fills them is compiled once, with this crate.
pub(crate) struct Slots<'a> {
    buffers: &'a mut dyn PayloadBuffers,
    lengths: &'a [u32],
}

impl<'a> Slots<'a> {
    /// `None` when `buffers` says that it was not made for these lengths.
    pub(crate) fn new(buffers: &'a mut dyn PayloadBuffers, lengths: &'a [u32]) -> Option<Self> {
        buffers.fits(lengths).then_some(Self { buffers, lengths })
    }

    /// The memory of payload `i`; empty for an `i` out of range.
    pub(crate) fn get(&mut self, i: usize) -> Slot<'_> {
        match self.lengths.get(i) {
            Some(&len) if len > 0 => Slot {
                start: self.buffers.slot(i),
                len: len as usize,
                filled: 0,
                _slots: std::marker::PhantomData,
            },
            _ => Slot {
                start: std::ptr::NonNull::dangling().as_ptr(),
                len: 0,
                filled: 0,
                _slots: std::marker::PhantomData,
            },
        }
    }
}

/// The memory of one payload, filled from its start.
pub(crate) struct Slot<'a> {
    /// Valid for writes of `len` bytes by the contract of [`PayloadBuffers`].
    start: *mut u8,
    len: usize,
    /// So many bytes are initialised.
    filled: usize,
    _slots: std::marker::PhantomData<&'a mut u8>,
}

impl Slot<'_> {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends bytes. More than fit are cut off, which a wrong checksum then tells.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.len - self.filled);
        // SAFETY: filled + len <= self.len; the source is a live slice and can't overlap memory that is ours alone.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(self.filled), len);
        }
        self.filled += len;
    }

    /// Starts over.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// What was filled in so far.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the first `filled` bytes are initialised, and borrowing self keeps them from being written.
        unsafe { std::slice::from_raw_parts(self.start, self.filled) }
    }

    /// The whole memory, zeroed first.
    pub(crate) fn zeroed(&mut self) -> &mut [u8] {
        // SAFETY: the memory is valid for writes of len bytes, and after the zeros it is initialised.
        unsafe {
            std::ptr::write_bytes(self.start, 0, self.len);
            self.filled = self.len;
            std::slice::from_raw_parts_mut(self.start, self.len)
        }
    }

    /// Fills the whole memory by positioned reads.
    pub(crate) fn read_at(&mut self, file: &RegularFile, offset: u64) -> io::Result<()> {
        self.filled = 0;
        while self.filled < self.len {
            let at = libc::off_t::try_from(offset + self.filled as u64)
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            // SAFETY: the memory from filled on is valid for writes of len - filled bytes; the descriptor is open.
            let read = unsafe {
                libc::pread(
                    file.file().as_raw_fd(),
                    self.start.add(self.filled).cast(),
                    self.len - self.filled,
                    at,
                )
            };
            match usize::try_from(read) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.filled += read,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}
