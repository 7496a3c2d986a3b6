//! Daemon threads at the end of the interpreter.
//!
//! Before Python 3.14 a daemon thread that wants the interpreter back while it ends is taken down by `pthread_exit`,
//! which unwinds the thread's stack. Rust code must not be unwound that way: values would be dropped without the
//! interpreter, and the process aborts where a frame can't be left. pyo3 keeps threads that only wait for the
//! interpreter from it. What is left are those that run Python code below ours, such as a source: they stop for good
//! instead, as they do from 3.14 on, before anything of ours is dropped. For that the calls into the interpreter are
//! ones that may unwind, which those of pyo3 are not: a compiler takes those for calls that always return. It keeps one
//! declaration of a function for all who call it, and which one is chance where code of pyo3 is compiled together with
//! ours: so the calls go through pointers that it can't see through.
#![allow(unsafe_code)] // A few functions of the interpreter, under other types.

use std::hint::black_box;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyTuple};

/// Calls something that runs Python code; never returns if the interpreter takes the thread down meanwhile.
pub(crate) fn survive<T>(call: impl FnOnce() -> T) -> T {
    let guard = Stop;
    let result = call();
    std::mem::forget(guard);
    result
}

struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        // A panic of ours is no such end, and goes on.
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

mod raw {
    use pyo3::ffi::PyObject;

    unsafe extern "C-unwind" {
        pub(super) fn PyObject_GetIter(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_GetItem(object: *mut PyObject, key: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_Call(
            callable: *mut PyObject,
            arguments: *mut PyObject,
            keywords: *mut PyObject,
        ) -> *mut PyObject;
    }
}

type Object = *mut ffi::PyObject;
type Unary = unsafe extern "C-unwind" fn(Object) -> Object;
type Binary = unsafe extern "C-unwind" fn(Object, Object) -> Object;
type Ternary = unsafe extern "C-unwind" fn(Object, Object, Object) -> Object;

/// `iter(object)`.
pub(crate) fn iterate<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    let get_iter: Unary = black_box(raw::PyObject_GetIter);
    // SAFETY: the object is alive; a new reference or an exception comes back.
    let iterator = survive(|| unsafe { get_iter(object.as_ptr()) });
    // SAFETY: as above.
    let iterator = unsafe { Bound::from_owned_ptr_or_err(object.py(), iterator) }?;
    Ok(iterator.cast_into::<PyIterator>()?)
}

/// `next(iterator)`, `None` at the end.
pub(crate) fn next<'py>(iterator: &Bound<'py, PyIterator>) -> Option<PyResult<Bound<'py, PyAny>>> {
    let py = iterator.py();
    let next: Unary = black_box(raw::PyIter_Next);
    // SAFETY: the iterator is alive and one; a new reference, an exception or nothing at all comes back.
    let item = survive(|| unsafe { next(iterator.as_ptr()) });
    // SAFETY: as above.
    match unsafe { Bound::from_owned_ptr_or_opt(py, item) } {
        Some(item) => Some(Ok(item)),
        None => PyErr::take(py).map(Err),
    }
}

/// `object[key]`.
pub(crate) fn item<'py>(
    object: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let get_item: Binary = black_box(raw::PyObject_GetItem);
    // SAFETY: both are alive; a new reference or an exception comes back.
    let value = survive(|| unsafe { get_item(object.as_ptr(), key.as_ptr()) });
    // SAFETY: as above.
    unsafe { Bound::from_owned_ptr_or_err(object.py(), value) }
}

/// `callable(*arguments, **keywords)`.
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call: Ternary = black_box(raw::PyObject_Call);
    let none: Object = std::ptr::null_mut();
    let keywords = keywords.map_or(none, |keywords| keywords.as_ptr());
    let result = survive(|| {
        // SAFETY: all are alive, and there may be no keywords; a new reference or an exception comes back.
        unsafe { call(callable.as_ptr(), arguments.as_ptr(), keywords) }
    });
    // SAFETY: as above.
    unsafe { Bound::from_owned_ptr_or_err(callable.py(), result) }
}
