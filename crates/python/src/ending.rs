//! Daemon threads at the end of the interpreter.
//!
//! Before Python 3.14 a daemon thread that wants the interpreter back while it ends is taken down by `pthread_exit`,
//! which unwinds the thread's stack. Rust code must not be unwound that way: values would be dropped without the
//! interpreter, and the process aborts where a frame can't be left. pyo3 keeps threads that only wait for the
//! interpreter from it; what is left are those that run Python code below ours, such as a source. Two things keep the
//! process whole:
//!
//! * Before the interpreter begins to end, threads in [`survive`] are asked to stop, and waited for a moment. They stop
//!   for good between two pieces of Python code, where they hold nothing.
//! * Who is in Python code for longer stops for good when it is unwound, before anything of ours is dropped. For that
//!   the calls into the interpreter are declared as ones that unwind, which those of pyo3 are not.
#![allow(unsafe_code)] // Three functions of the interpreter, declared again.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

/// How long the end waits for threads that run Python code below ours.
const PATIENCE: Duration = Duration::from_millis(250);

/// The thread that ends the interpreter; 0 = it goes on.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// Threads in [`survive`], and the process that they are threads of: a fork brings none of them along.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MARK: Cell<u8> = const { Cell::new(0) };
}

/// A number that no other living thread has.
fn this_thread() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

fn is_asked_to_stop() -> bool {
    let ending = ENDING.load(Ordering::SeqCst);
    ending != 0 && ending != this_thread()
}

fn enter() {
    let process = std::process::id();
    if PROCESS.swap(process, Ordering::SeqCst) != process {
        INSIDE.store(0, Ordering::SeqCst);
    }
    INSIDE.fetch_add(1, Ordering::SeqCst);
}

fn leave() {
    INSIDE.fetch_sub(1, Ordering::SeqCst);
}

/// Ends a thread as far as anybody can tell, without the interpreter.
fn stop(py: Python<'_>) -> ! {
    py.detach(|| {
        loop {
            std::thread::park();
        }
    })
}

/// Calls something that runs Python code and comes back soon, or calls [`pause`] now and then. Never returns while
/// another thread ends the interpreter.
pub(crate) fn survive<T>(py: Python<'_>, call: impl FnOnce() -> T) -> T {
    enter();
    pause(py);
    let result = unless_unwound(call);
    pause(py);
    leave();
    result
}

/// Inside of [`survive`]: never returns while another thread ends the interpreter.
pub(crate) fn pause(py: Python<'_>) {
    if is_asked_to_stop() {
        leave();
        stop(py);
    }
}

/// Calls something; never returns if the interpreter takes the thread down meanwhile.
pub(crate) fn unless_unwound<T>(call: impl FnOnce() -> T) -> T {
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

/// Asks all other threads that run Python code below ours to stop, and waits a moment until they have. For `atexit`:
/// exit functions that come later, and run on the same thread, may use everything.
#[pyfunction]
fn end_of_interpreter(py: Python<'_>) {
    ENDING.store(this_thread(), Ordering::SeqCst);
    let deadline = Instant::now() + PATIENCE;
    while PROCESS.load(Ordering::SeqCst) == std::process::id()
        && INSIDE.load(Ordering::SeqCst) > 0
        && Instant::now() < deadline
    {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
    }
}

/// Has [`end_of_interpreter`] called where it is needed.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    if py.version_info() < (3, 14) {
        let function = wrap_pyfunction!(end_of_interpreter, module)?;
        py.import("atexit")?.call_method1("register", (function,))?;
    }
    Ok(())
}

mod raw {
    use pyo3::ffi::PyObject;

    unsafe extern "C-unwind" {
        pub(super) fn PyObject_GetIter(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_Call(
            callable: *mut PyObject,
            arguments: *mut PyObject,
            keywords: *mut PyObject,
        ) -> *mut PyObject;
    }
}

/// As `iter` of Python; see [`unless_unwound`].
pub(crate) fn iterate<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    let py = object.py();
    // SAFETY: the object is alive; a new reference or an exception comes back.
    let iterator = unless_unwound(|| unsafe { raw::PyObject_GetIter(object.as_ptr()) });
    // SAFETY: as above.
    let iterator = unsafe { Bound::from_owned_ptr_or_err(py, iterator) }?;
    Ok(iterator.cast_into::<PyIterator>()?)
}

/// As `next` of Python, `None` at the end; see [`unless_unwound`].
pub(crate) fn next<'py>(iterator: &Bound<'py, PyIterator>) -> Option<PyResult<Bound<'py, PyAny>>> {
    let py = iterator.py();
    // SAFETY: the iterator is alive and one; a new reference, an exception or nothing at all comes back.
    let item = unless_unwound(|| unsafe { raw::PyIter_Next(iterator.as_ptr()) });
    // SAFETY: as above.
    match unsafe { Bound::from_owned_ptr_or_opt(py, item) } {
        Some(item) => Some(Ok(item)),
        None => PyErr::take(py).map(Err),
    }
}

/// Calls an object of Python; see [`unless_unwound`].
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let none: *mut ffi::PyObject = std::ptr::null_mut();
    let result = unless_unwound(|| {
        // SAFETY: all are alive; a new reference or an exception comes back.
        unsafe { raw::PyObject_Call(callable.as_ptr(), arguments.as_ptr(), none) }
    });
    // SAFETY: as above.
    unsafe { Bound::from_owned_ptr_or_err(callable.py(), result) }
}
