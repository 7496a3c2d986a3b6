//! Memory of Python `bytes` objects that workers fill without holding the interpreter.
//!
//! The consumer allocates the objects and keeps the only references until a block is delivered, so nobody else can
//! see them while a worker writes. Workers never touch a reference count: what is abandoned in flight goes to a
//! list that the next call from Python empties.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use dataset_rt_runtime::PayloadBuffers;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// References given up by threads that don't hold the interpreter: a list that grows at its head. There is no lock,
/// since a thread of the parent might hold it at a fork.
static ABANDONED: AtomicPtr<Abandoned> = AtomicPtr::new(std::ptr::null_mut());

struct Abandoned {
    _objects: Vec<Py<PyAny>>,
    next: *mut Abandoned,
}

/// Gives up references from any thread; they are released by the next [`release_abandoned`].
pub(crate) fn abandon(objects: impl IntoIterator<Item = Py<PyAny>>) {
    let entry = Box::into_raw(Box::new(Abandoned {
        _objects: objects.into_iter().collect(),
        next: std::ptr::null_mut(),
    }));
    let mut head = ABANDONED.load(Ordering::Relaxed);
    loop {
        // SAFETY: the entry is ours alone until it is the head.
        #[allow(unsafe_code)]
        unsafe {
            (*entry).next = head;
        }
        match ABANDONED.compare_exchange_weak(head, entry, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Releases what other threads gave up. Call where the interpreter is held and no lock of ours is.
pub(crate) fn release_abandoned(_py: Python<'_>) {
    if ABANDONED.load(Ordering::Relaxed).is_null() {
        return;
    }
    let mut next = ABANDONED.swap(std::ptr::null_mut(), Ordering::Acquire);
    while !next.is_null() {
        // SAFETY: made by Box::into_raw above; the swap took the whole list, so that nobody else has it.
        #[allow(unsafe_code)]
        let entry = unsafe { Box::from_raw(next) };
        next = entry.next;
    }
}

/// A `bytes` object of `len` bytes with unspecified content, and where they are.
#[allow(unsafe_code)]
pub(crate) fn uninitialised_bytes(
    py: Python<'_>,
    len: usize,
) -> PyResult<(Py<PyAny>, NonNull<u8>)> {
    let size = isize::try_from(len)
        .map_err(|_| PyOverflowError::new_err(format!("a payload of {len} bytes is too large")))?;
    // SAFETY: a null source asks for an object of `size` bytes whose content the caller sets; the result is a new
    // reference or null with an exception set, which `from_owned_ptr_or_err` turns into an error.
    let object = unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            pyo3::ffi::PyBytes_FromStringAndSize(std::ptr::null(), size),
        )
    }?;
    // SAFETY: `object` is a bytes object; the pointer stays valid as long as it lives, since bytes never move.
    let start = unsafe { pyo3::ffi::PyBytes_AsString(object.as_ptr()) }.cast::<u8>();
    match NonNull::new(start) {
        Some(start) => Ok((object.unbind(), start)),
        None => Err(PyErr::fetch(py)),
    }
}

/// Has the C library keep freed payload memory for the next payloads.
///
/// The GNU library gives memory at the end of the heap back to the system whenever more than 128 KiB of it are free,
/// and serves larger requests by maps of their own: then each block of large payloads meets its pages anew, which
/// costs several times as much as copying into them. It raises both bounds by itself once a large request was freed.
/// So one is made, without touching its memory. Other C libraries are left as they are.
pub(crate) fn keep_freed_memory(py: Python<'_>) {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if !ASKED.swap(true, Ordering::Relaxed) {
        // Without memory for it all stays as it was.
        drop(uninitialised_bytes(py, LARGE_REQUEST));
    }
}

/// More than the payloads that are in flight while all is in memory. Freed memory is kept up to twice as much.
const LARGE_REQUEST: usize = 16 << 20;

/// One `bytes` object per payload of a block.
pub(crate) struct SamplePayloads {
    objects: Vec<Option<Py<PyAny>>>,
    starts: Vec<NonNull<u8>>,
}

// SAFETY: the pointers lead into objects that this value owns references to; whoever holds the value may write.
#[allow(unsafe_code)]
unsafe impl Send for SamplePayloads {}

impl SamplePayloads {
    /// Allocates one object per length.
    ///
    /// # Errors
    /// `MemoryError` when the interpreter can't allocate.
    pub(crate) fn allocate(py: Python<'_>, lengths: &[u32]) -> PyResult<Self> {
        let mut objects = Vec::with_capacity(lengths.len());
        let mut starts = Vec::with_capacity(lengths.len());
        for &len in lengths {
            let (object, start) = uninitialised_bytes(py, len as usize)?;
            objects.push(Some(object));
            starts.push(start);
        }
        Ok(Self { objects, starts })
    }

    /// Hands out payload `index`, once.
    #[inline]
    pub(crate) fn take(&mut self, index: usize) -> Option<Py<PyAny>> {
        self.objects.get_mut(index).and_then(Option::take)
    }
}

// SAFETY: `slot(i)` is the start of an object of `lengths[i]` bytes that only this value refers to until `take`,
// which the consumer calls after the block was filled.
#[allow(unsafe_code)]
unsafe impl PayloadBuffers for SamplePayloads {
    fn slot(&self, index: usize) -> *mut u8 {
        self.starts[index].as_ptr()
    }
}

impl Drop for SamplePayloads {
    fn drop(&mut self) {
        if self.objects.iter().any(Option::is_some) {
            abandon(self.objects.drain(..).flatten());
        }
    }
}

/// The `bytes` object of one payload.
pub(crate) struct SinglePayload {
    object: Py<PyAny>,
    start: NonNull<u8>,
}

// SAFETY: as for `SamplePayloads`.
#[allow(unsafe_code)]
unsafe impl Send for SinglePayload {}

impl SinglePayload {
    /// Allocates an object of `len` bytes.
    ///
    /// # Errors
    /// `MemoryError` when the interpreter can't allocate.
    pub(crate) fn allocate(py: Python<'_>, len: u32) -> PyResult<Self> {
        let (object, start) = uninitialised_bytes(py, len as usize)?;
        Ok(Self { object, start })
    }

    pub(crate) fn into_object(self) -> Py<PyAny> {
        self.object
    }
}

// SAFETY: the one slot is the start of an object of its length that only this value refers to until `into_object`. It
// is made, filled and dropped by one thread, which holds the interpreter all the time.
#[allow(unsafe_code)]
unsafe impl PayloadBuffers for SinglePayload {
    fn slot(&self, _index: usize) -> *mut u8 {
        self.start.as_ptr()
    }
}

/// One `bytes` object for the payloads of each batch of a block, one after the other.
pub(crate) struct BatchPayloads {
    batches: Vec<BatchPayload>,
    /// Samples a batch.
    size: usize,
}

struct BatchPayload {
    object: Option<Py<PyAny>>,
    start: NonNull<u8>,
    /// One more than samples.
    offsets: Vec<i64>,
}

// SAFETY: as for `SamplePayloads`.
#[allow(unsafe_code)]
unsafe impl Send for BatchPayloads {}

impl BatchPayload {
    fn allocate(py: Python<'_>, lengths: &[u32]) -> PyResult<Self> {
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        let mut end = 0_i64;
        offsets.push(end);
        for &len in lengths {
            end += i64::from(len);
            offsets.push(end);
        }
        let total = usize::try_from(end).unwrap_or(usize::MAX);
        let (object, start) = uninitialised_bytes(py, total)?;
        Ok(Self {
            object: Some(object),
            start,
            offsets,
        })
    }
}

impl BatchPayloads {
    /// Allocates room for the lengths of each batch of `size` samples together; the last batch has what is left, and
    /// there is one of no samples where there are no lengths.
    ///
    /// # Errors
    /// `MemoryError` when the interpreter can't allocate.
    pub(crate) fn allocate(py: Python<'_>, lengths: &[u32], size: usize) -> PyResult<Self> {
        let size = size.max(1);
        let mut batches = Self {
            batches: Vec::with_capacity(lengths.len().div_ceil(size)),
            size,
        };
        for lengths in lengths.chunks(size) {
            batches.batches.push(BatchPayload::allocate(py, lengths)?);
        }
        if lengths.is_empty() {
            batches.batches.push(BatchPayload::allocate(py, lengths)?);
        }
        Ok(batches)
    }

    /// Hands out the buffer of a batch and its offsets, once.
    pub(crate) fn take(
        &mut self,
        py: Python<'_>,
        batch: usize,
    ) -> PyResult<(Py<PyBytes>, Vec<i64>)> {
        let batch = self.batches.get_mut(batch);
        let object = batch.and_then(|batch| {
            let object = batch.object.take()?;
            Some((object, std::mem::take(&mut batch.offsets)))
        });
        let Some((object, offsets)) = object else {
            let message = "the buffer of a batch was taken twice";
            return Err(pyo3::exceptions::PyRuntimeError::new_err(message));
        };
        let bytes = object.into_bound(py).cast_into::<PyBytes>()?.unbind();
        Ok((bytes, offsets))
    }
}

// SAFETY: slot(i) starts at its sample's offset in the object of its batch and the next one starts `lengths[i]` later,
// all within one object that only this value refers to until `take`, which the consumer calls after the block was
// filled.
#[allow(unsafe_code)]
unsafe impl PayloadBuffers for BatchPayloads {
    fn slot(&self, index: usize) -> *mut u8 {
        let batch = &self.batches[index / self.size];
        let offset = usize::try_from(batch.offsets[index % self.size]).unwrap_or(0);
        // SAFETY: offsets never exceed the size of the object.
        unsafe { batch.start.as_ptr().add(offset) }
    }
}

impl Drop for BatchPayloads {
    fn drop(&mut self) {
        if self.batches.iter().any(|batch| batch.object.is_some()) {
            abandon(self.batches.drain(..).filter_map(|batch| batch.object));
        }
    }
}
