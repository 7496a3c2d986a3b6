//! Daemon threads at the end of the interpreter.
//!
//! Before Python 3.14 a daemon thread that wants the interpreter back while it ends is taken down by `pthread_exit`,
//! which unwinds the thread's stack. Rust code must not be unwound that way: the process would abort. So wherever
//! Python code runs below ours, such a thread stops for good instead, as it does from 3.14 on.

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
