//! Memory for a value a row.

/// An empty vector with room for so many values, in large pages where it is large: a column of millions of rows is written
/// once, and then half of the time would go into page faults.
pub(super) fn with_room<T>(values: usize) -> Vec<T> {
    let vec = Vec::with_capacity(values);
    #[cfg(target_os = "linux")]
    prefer_large_pages(&vec);
    vec
}

#[cfg(target_os = "linux")]
fn prefer_large_pages<T>(vec: &Vec<T>) {
    const LARGE_PAGE: usize = 2 << 20;
    let start = vec.as_ptr().addr().next_multiple_of(LARGE_PAGE);
    let end = vec.as_ptr().addr() + vec.capacity() * size_of::<T>();
    let len = end.saturating_sub(start) / LARGE_PAGE * LARGE_PAGE;
    if len < 2 * LARGE_PAGE {
        return;
    }
    // SAFETY: the range lies within the vector's allocation, and the advice changes no byte of it. It is only advice: that
    // it may be refused, or outlive the vector on memory that is used again, does no harm.
    #[allow(unsafe_code)]
    unsafe {
        let at = vec.as_ptr().with_addr(start).cast_mut().cast();
        libc::madvise(at, len, libc::MADV_HUGEPAGE);
    }
}
