//! Tables across the boundary by the Arrow C data interface, as capsules.

use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{
    Array, LargeBinaryArray, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};

use crate::ending::call;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

fn arrow_error(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("Arrow: {error}"))
}

/// Record batches on their way to Python.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl NativeTable {
    /// # Errors
    /// `ValueError` without batches, since nothing would tell the columns.
    pub(crate) fn new(batches: Vec<RecordBatch>) -> PyResult<Self> {
        let schema = batches
            .first()
            .map(RecordBatch::schema)
            .ok_or_else(|| PyValueError::new_err("a table without record batches"))?;
        Ok(Self { schema, batches })
    }

    /// A table of one batch.
    pub(crate) fn single(batch: RecordBatch) -> Self {
        Self {
            schema: batch.schema(),
            batches: vec![batch],
        }
    }
}

#[pymethods]
impl NativeTable {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore the wish when it can't meet it.
        drop(requested_schema);
        stream_capsule(py, self.schema.clone(), self.batches.clone())
    }
}

fn stream_capsule(
    py: Python<'_>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let reader: Box<dyn RecordBatchReader + Send> = Box::new(RecordBatchIterator::new(
        batches.into_iter().map(Ok),
        schema,
    ));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// Reads all batches of an object with `__arrow_c_stream__`.
///
/// # Errors
/// `TypeError` when the object has no such method or returns something else; `ValueError` when the stream fails.
#[allow(unsafe_code)]
pub(crate) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    let export = object.getattr("__arrow_c_stream__")?;
    let capsule = call(&export, &PyTuple::empty(object.py()), None)?;
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| PyTypeError::new_err("__arrow_c_stream__ did not return a capsule"))?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds an initialised stream (checked above); `from_raw` moves it out and
    // leaves a released one behind, so that the capsule's destructor does nothing.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
    let reader = RecordBatchStreamReader::try_new(stream).map_err(|error| arrow_error(&error))?;
    reader
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| arrow_error(&error))
}

/// The payloads of a batch as one LargeBinary array over the memory of a `bytes` object.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeBinary {
    array: LargeBinaryArray,
}

/// Keeps a `bytes` object alive for as long as Arrow refers to its memory. Arrow may let go on any thread.
struct BytesOwner(AssertUnwindSafe<Option<Py<PyAny>>>);

impl Drop for BytesOwner {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            crate::payload::abandon([object]);
        }
    }
}

impl NativeBinary {
    #[allow(unsafe_code)]
    pub(crate) fn new(py: Python<'_>, bytes: &Py<PyBytes>, offsets: &[i64]) -> PyResult<Self> {
        let content = bytes.bind(py).as_bytes();
        let values = match std::ptr::NonNull::new(content.as_ptr().cast_mut()) {
            Some(start) if !content.is_empty() => {
                let owner = Arc::new(BytesOwner(AssertUnwindSafe(Some(
                    bytes.clone_ref(py).into_any(),
                ))));
                // SAFETY: the memory is that of an immutable bytes object, which `owner` keeps alive.
                unsafe { Buffer::from_custom_allocation(start, content.len(), owner) }
            }
            _ => Buffer::from(Vec::<u8>::new()),
        };
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.to_vec()));
        let array = LargeBinaryArray::try_new(offsets, values, None)
            .map_err(|error| arrow_error(&error))?;
        Ok(Self { array })
    }
}

#[pymethods]
impl NativeBinary {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&DataType::LargeBinary)
            .map_err(|error| arrow_error(&error))?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let (array, schema): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&self.array.to_data()).map_err(|error| arrow_error(&error))?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        PyTuple::new(py, [schema, array])
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let field = Field::new("data", DataType::LargeBinary, false);
        let schema = Arc::new(Schema::new(vec![field.clone()]));
        let columns =
            StructArray::try_new(vec![field].into(), vec![Arc::new(self.array.clone())], None)
                .map_err(|error| arrow_error(&error))?;
        stream_capsule(py, schema, vec![RecordBatch::from(columns)])
    }
}
