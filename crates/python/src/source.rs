//! Pulls samples from a Python iterator, in blocks, while the interpreter is held: the one part of a write that
//! needs it. A block keeps references to `bytes` payloads; everything mutable is copied at once.

use std::time::{Duration, Instant};

use dataset_rt_format::Columns;
use dataset_rt_runtime::{Error, PayloadList, RECORD_ALIGNMENT};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyIterator, PyTuple};

use crate::ending::{iterate, next};
use crate::error::{exception, to_py};
use crate::payload::uninitialised_bytes;
use crate::schema::{Builder, Place};

/// The most samples in a block.
pub(crate) const MAX_BLOCK_SAMPLES: usize = 1024;
/// The most payload bytes, and about the most bytes of text, in a block of more than one sample.
pub(crate) const MAX_BLOCK_BYTES: usize = 1 << 20;
/// A part block older than this is handed on, so that what a slow source yielded is soon on disk.
const MAX_BLOCK_AGE: Duration = Duration::from_millis(200);
/// Longer payloads are not copied but held by a reference. To hold short ones would cost more than the copy: the source
/// could not use their memory again for the next sample, and would wait for memory that is in no cache.
const MAX_COPIED: usize = 8 << 10;

/// Payloads of one block, in order: short ones packed into one buffer, long ones where Python has them.
#[derive(Default)]
pub(crate) struct SourcePayloads {
    slots: Vec<Slot>,
    packed: Vec<u8>,
    objects: Vec<Py<PyAny>>,
    bytes: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    start: Start,
    len: usize,
}

#[derive(Clone, Copy)]
enum Start {
    /// An offset in the buffer.
    Packed(usize),
    /// In an object of the list.
    Held(*const u8),
}

// SAFETY: the pointers lead into immutable bytes objects that this value owns.
#[allow(unsafe_code)]
unsafe impl Send for SourcePayloads {}

impl SourcePayloads {
    /// No payloads; `packed` is memory to use.
    fn new(mut packed: Vec<u8>) -> Self {
        packed.clear();
        // At once: growing would copy. Memory that is not used costs nothing.
        packed.reserve(MAX_BLOCK_BYTES + MAX_COPIED + RECORD_ALIGNMENT);
        Self {
            slots: Vec::with_capacity(MAX_BLOCK_SAMPLES),
            packed,
            objects: Vec::new(),
            bytes: 0,
        }
    }

    #[inline]
    fn push(&mut self, bytes: &Bound<'_, PyBytes>) {
        let content = bytes.as_bytes();
        let len = content.len();
        self.bytes += len;
        let start = if len <= MAX_COPIED {
            let offset = self.packed.len();
            self.packed.extend_from_slice(content);
            self.packed
                .resize(self.packed.len().next_multiple_of(RECORD_ALIGNMENT), 0);
            Start::Packed(offset)
        } else {
            self.objects.push(bytes.clone().into_any().unbind());
            Start::Held(content.as_ptr())
        };
        self.slots.push(Slot { start, len });
    }
}

impl PayloadList for SourcePayloads {
    fn len(&self) -> usize {
        self.slots.len()
    }

    #[allow(unsafe_code)]
    fn get(&self, index: usize) -> &[u8] {
        let Some(&Slot { start, len }) = self.slots.get(index) else {
            return &[];
        };
        match start {
            Start::Packed(offset) => self.packed.get(offset..offset + len).unwrap_or_default(),
            // SAFETY: the slot was made from a slice of an object that this value keeps alive and nobody can change.
            Start::Held(start) => unsafe { std::slice::from_raw_parts(start, len) },
        }
    }

    fn total_bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn take_laid(&mut self) -> Option<Vec<u8>> {
        self.objects
            .is_empty()
            .then(|| std::mem::take(&mut self.packed))
    }
}

impl Drop for SourcePayloads {
    fn drop(&mut self) {
        // Usually dropped by a worker, which must not touch reference counts.
        if !self.objects.is_empty() {
            crate::payload::abandon(self.objects.drain(..));
        }
    }
}

/// One block on its way to the writer.
pub(crate) struct Pulled {
    pub(crate) payloads: SourcePayloads,
    pub(crate) columns: Columns,
    /// The source has ended; this block is the last.
    pub(crate) ended: bool,
}

/// Time spent in the source and in taking its values apart, where a profile is wanted.
#[derive(Default)]
pub(crate) struct PullTimes {
    pub(crate) python_next: Duration,
    pub(crate) python_extract: Duration,
    pub(crate) samples: u64,
}

/// A source being read.
pub(crate) struct Puller<'py> {
    name: String,
    iterator: Bound<'py, PyIterator>,
    builder: Option<Builder<'py>>,
    samples: u64,
    timed: bool,
    pub(crate) times: PullTimes,
}

impl<'py> Puller<'py> {
    pub(crate) fn new(name: &str, source: &Bound<'py, PyAny>, timed: bool) -> PyResult<Self> {
        let iterator = iterate(source)?;
        let name = name.to_owned();
        Ok(Self {
            name,
            iterator,
            builder: None,
            samples: 0,
            timed,
            times: PullTimes::default(),
        })
    }

    /// The schema, known once the first block was pulled.
    pub(crate) fn builder(&self) -> Option<&Builder<'py>> {
        self.builder.as_ref()
    }

    /// Pulls up to one block; none from a source that yields nothing at all. `memory` is used for short payloads.
    ///
    /// # Errors
    /// Whatever the source raises; a typed error for a sample that can't be stored.
    pub(crate) fn pull(&mut self, memory: Vec<u8>) -> PyResult<Option<Pulled>> {
        let py = self.iterator.py();
        let mut payloads = SourcePayloads::new(memory);
        let started = Instant::now();
        let mut ended = false;
        while payloads.slots.len() < MAX_BLOCK_SAMPLES && payloads.bytes < MAX_BLOCK_BYTES {
            let before = self.timed.then(Instant::now);
            let item = next(&self.iterator);
            let after = self.timed.then(Instant::now);
            if let (Some(before), Some(after)) = (before, after) {
                self.times.python_next += after - before;
            }
            let Some(item) = item else {
                ended = true;
                break;
            };
            self.take(&item?, &mut payloads)?;
            self.samples += 1;
            if let Some(after) = after {
                self.times.python_extract += after.elapsed();
                self.times.samples += 1;
            }
            let taken = payloads.slots.len();
            // Looking at this for every sample would cost as much as taking it apart.
            if (taken < 4 || taken.is_multiple_of(16))
                && (started.elapsed() > MAX_BLOCK_AGE || self.text_bytes() > MAX_BLOCK_BYTES as u64)
            {
                break;
            }
        }
        let columns = match &mut self.builder {
            Some(builder) => builder.take_columns(),
            None => return Ok(None),
        };
        let columns = columns.map_err(|error| to_py(py, Error::Internal(error.to_string())))?;
        Ok(Some(Pulled {
            payloads,
            columns,
            ended,
        }))
    }

    /// Bytes of text in the block.
    fn text_bytes(&self) -> u64 {
        self.builder.as_ref().map_or(0, Builder::text_bytes)
    }

    fn take(&mut self, item: &Bound<'py, PyAny>, payloads: &mut SourcePayloads) -> PyResult<()> {
        let place = Place {
            source: &self.name,
            sample: self.samples,
        };
        let (data, metadata) = match item.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?),
            _ => {
                return Err(place.type_error(
                    item.py(),
                    None,
                    "CacheInput(data, metadata) or a tuple of the two",
                    &described(item),
                ));
            }
        };
        let builder = match &mut self.builder {
            Some(builder) => builder,
            none => none.insert(Builder::infer(&metadata, &place)?),
        };
        builder.push(&metadata, &place)?;
        match data.cast::<PyBytes>() {
            Ok(bytes) => {
                check_len(item.py(), bytes.as_bytes().len(), &place)?;
                payloads.push(&bytes);
            }
            Err(_) => payloads.push(&copied(&data, &place)?),
        }
        Ok(())
    }
}

/// A value as an error message shows it.
pub(crate) fn described(value: &Bound<'_, PyAny>) -> String {
    let type_name = value
        .get_type()
        .name()
        .map_or_else(|_| "an object".to_owned(), |name| name.to_string());
    match value.repr() {
        Ok(repr) => {
            let repr = repr.to_string_lossy().into_owned();
            let short: String = repr.chars().take(60).collect();
            let dots = if short.len() < repr.len() { "..." } else { "" };
            format!("{type_name} {short}{dots}")
        }
        Err(_) => type_name,
    }
}

/// Called BEFORE a payload is copied: a copy of one that is refused would be 4 GiB or more.
fn check_len(py: Python<'_>, len: usize, place: &Place<'_>) -> PyResult<()> {
    if u32::try_from(len).is_ok() {
        return Ok(());
    }
    let expected = "a payload of at most 4294967295 bytes";
    Err(place.value_error(py, Some("data"), expected, &format!("{len} bytes")))
}

/// The bytes of a payload that is not a `bytes` object, in one of our own.
fn copied<'py>(data: &Bound<'py, PyAny>, place: &Place<'_>) -> PyResult<Bound<'py, PyBytes>> {
    let py = data.py();
    const EXPECTED: &str =
        "bytes, bytearray, memoryview, an object with a buffer of one-byte items, or a NumPy array";
    let refuse = |found: &str| place.type_error(py, Some("data"), EXPECTED, found);
    if let Ok(bytes) = data.cast::<PyByteArray>() {
        check_len(py, bytes.len(), place)?;
        return copy_of(bytes);
    }
    if is_numpy(data, "ndarray") {
        if data.getattr("dtype")?.getattr("hasobject")?.is_truthy()? {
            return Err(refuse(
                "a NumPy array of Python objects; serialise it first, for example with pickle",
            ));
        }
        check_len(py, data.getattr("nbytes")?.extract()?, place)?;
        return Ok(data.call_method0("tobytes")?.cast_into::<PyBytes>()?);
    }
    if data.is_instance_of::<pyo3::types::PyString>() {
        return Err(refuse(
            "a str; encode it, for example with .encode(\"utf-8\")",
        ));
    }
    let view = match py.import("builtins")?.getattr("memoryview")?.call1((data,)) {
        Ok(view) => view,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            return Err(refuse(&format!(
                "{}; serialise it first, for example with pickle.dumps",
                described(data)
            )));
        }
        Err(error) => return Err(error),
    };
    let item_size = view.getattr("itemsize")?.extract::<usize>()?;
    if item_size != 1 {
        return Err(refuse(&format!(
            "a buffer of {item_size}-byte items; view it as bytes, for example with .tobytes()"
        )));
    }
    check_len(py, view.getattr("nbytes")?.extract()?, place)?;
    let bytes = view.call_method0("tobytes")?;
    view.call_method0("release")?;
    Ok(bytes.cast_into::<PyBytes>()?)
}

#[allow(unsafe_code)]
fn copy_of<'py>(bytes: &Bound<'py, PyByteArray>) -> PyResult<Bound<'py, PyBytes>> {
    let py = bytes.py();
    // Made by the interpreter, which raises MemoryError where there is no memory.
    let (object, start) = uninitialised_bytes(py, bytes.len())?;
    // SAFETY: no code of Python runs between the question for the length and the copy, so that the array keeps its
    // memory; the new object has as many bytes, and nobody else has seen it.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.data(), start.as_ptr(), bytes.len());
    }
    Ok(object.into_bound(py).cast_into::<PyBytes>()?)
}

/// Whether a value is an instance of a NumPy class; never imports NumPy.
pub(crate) fn is_numpy(value: &Bound<'_, PyAny>, class: &str) -> bool {
    let numpy = value
        .py()
        .import("sys")
        .and_then(|sys| sys.getattr("modules"))
        .and_then(|modules| modules.cast_into::<PyDict>().map_err(PyErr::from))
        .and_then(|modules| modules.get_item("numpy"));
    match numpy {
        Ok(Some(numpy)) => numpy
            .getattr(class)
            .and_then(|class| value.is_instance(&class))
            .unwrap_or(false),
        _ => false,
    }
}

impl Place<'_> {
    /// A sample's value has a type that can't be stored.
    pub(crate) fn type_error(
        &self,
        py: Python<'_>,
        field: Option<&str>,
        expected: &str,
        found: &str,
    ) -> PyErr {
        self.error(py, "SampleTypeError", field, expected, found)
    }

    /// A sample's value has the right type and can't be stored.
    pub(crate) fn value_error(
        &self,
        py: Python<'_>,
        field: Option<&str>,
        expected: &str,
        found: &str,
    ) -> PyErr {
        self.error(py, "SampleValueError", field, expected, found)
    }

    fn error(
        &self,
        py: Python<'_>,
        class: &str,
        field: Option<&str>,
        expected: &str,
        found: &str,
    ) -> PyErr {
        let at = field.map_or_else(String::new, |field| format!(", field {field:?}"));
        let message = format!(
            "source {:?}, sample {}{at}: expected {expected}, found {found}",
            self.source, self.sample
        );
        let attributes = PyDict::new(py);
        let filled = attributes
            .set_item("source", self.source)
            .and_then(|()| attributes.set_item("sample", self.sample))
            .and_then(|()| attributes.set_item("field", field))
            .and_then(|()| attributes.set_item("expected", expected))
            .and_then(|()| attributes.set_item("found", found));
        match filled {
            Ok(()) => exception(py, class, &message, &attributes),
            Err(failure) => failure,
        }
    }
}
