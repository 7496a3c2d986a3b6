//! The values of a dict in the order of their insertion, without a look-up and without reference counts.

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A walk through the entries of a dict.
pub(crate) struct Entries<'a, 'py> {
    dict: &'a Bound<'py, PyDict>,
    position: isize,
}

impl<'a, 'py> Entries<'a, 'py> {
    pub(crate) fn of(dict: &'a Bound<'py, PyDict>) -> Self {
        Self { dict, position: 0 }
    }

    /// The value of the next entry, if its key is that very object. Equal keys of another identity are not looked for:
    /// names in a program's text are interned, and all dicts of a source usually share theirs.
    ///
    /// # Safety
    /// The value is borrowed from the dict: while it is in use no code of Python may run, and nobody may change the dict.
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn next_of(
        &mut self,
        key: &Bound<'py, PyString>,
    ) -> Option<Borrowed<'a, 'py, PyAny>> {
        let mut found_key = std::ptr::null_mut();
        let mut value = std::ptr::null_mut();
        // SAFETY: the dict is alive and the interpreter held; the position is 0 or what this function left there.
        let found = unsafe {
            pyo3::ffi::PyDict_Next(
                self.dict.as_ptr(),
                &raw mut self.position,
                &raw mut found_key,
                &raw mut value,
            )
        };
        if found == 0 || found_key != key.as_ptr() {
            return None;
        }
        // SAFETY: the dict holds the value, and the caller sees to it that it goes on doing so.
        unsafe { Borrowed::from_ptr_or_opt(self.dict.py(), value) }
    }
}
