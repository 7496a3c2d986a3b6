//! A length that a file claims must not decide how much memory is asked for.

use std::alloc::{GlobalAlloc, Layout, System};

/// The most that may be asked for at once. Inputs have up to 64 KiB, and a record becomes 255 times as long at most.
const MOST: usize = 24 << 20;

/// The system's allocator, which ends the process when a target asks for more than its input can be worth.
pub struct Bound;

fn check(size: usize) {
    if size > MOST {
        // Nothing here may allocate.
        std::process::abort();
    }
}

// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Bound {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
