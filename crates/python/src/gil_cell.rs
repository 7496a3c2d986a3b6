//! State of an object that only threads holding the interpreter touch: a lock's two atomic operations a sample would
//! be a measurable part of its cost.
#![allow(unsafe_code)] // The interpreter's own lock stands for ours, which the compiler can't see.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A value that one thread at a time may use, the one that holds the interpreter.
///
/// This package is built for interpreters with a global lock alone: the stable ABI it is built for has no other.
pub(crate) struct GilCell<T> {
    in_use: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: `in_use` and `value` are touched by `borrow` and `Borrowed` alone. Both exist only where a token shows that
// the thread holds the interpreter; the interpreter's lock orders such threads, and `in_use` keeps a second borrow
// out, be it of this thread or of one that came by while the first let go of the interpreter.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            in_use: Cell::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, until the result is dropped: before code of the user may run and before this thread waits.
    ///
    /// # Errors
    /// `RuntimeError` when the value is in use, which nobody does who keeps to that.
    #[inline]
    pub(crate) fn borrow<'py>(&'py self, _py: Python<'py>) -> PyResult<Borrowed<'py, T>> {
        if self.in_use.replace(true) {
            return Err(PyRuntimeError::new_err("in use by another call"));
        }
        Ok(Borrowed {
            cell: self,
            _attached: PhantomData,
        })
    }
}

/// The value of a [`GilCell`].
pub(crate) struct Borrowed<'py, T> {
    cell: &'py GilCell<T>,
    /// Keeps it in the thread that holds the interpreter.
    _attached: PhantomData<Python<'py>>,
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `in_use` is ours until the drop, so that there is no other reference.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for Borrowed<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for Borrowed<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.cell.in_use.set(false);
    }
}
