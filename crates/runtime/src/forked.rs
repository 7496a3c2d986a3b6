//! Noticing a fork without a system call a question.
//!
//! A forked child has one thread. Locks that other threads held at that moment stay locked for ever, so whatever is
//! guarded by one is left alone in the child and made anew; who owns such things compares generations first.
#![allow(unsafe_code)] // One registration with the C library, one pointer that is set once a process.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static REGISTERED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// How many forks lie between the first process that asked and this one.
pub(crate) fn generation() -> u64 {
    if !REGISTERED.load(Ordering::Relaxed) && !REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler only adds to an atomic, which the child of a fork may do.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    GENERATION.load(Ordering::Relaxed)
}

struct Node<T> {
    generation: u64,
    value: T,
}

/// A value that each process has for itself: a forked child gets a new one, and leaks what it inherited.
pub(crate) struct PerProcess<T> {
    node: AtomicPtr<Node<T>>,
    make: fn() -> T,
}

impl<T: Sync + 'static> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Self {
            node: AtomicPtr::new(std::ptr::null_mut()),
            make,
        }
    }

    pub(crate) fn get(&'static self) -> &'static T {
        let generation = generation();
        let mut current = self.node.load(Ordering::Acquire);
        loop {
            // SAFETY: the pointer is null or came from Box::into_raw below, and is never freed once stored here.
            if let Some(node) = unsafe { current.as_ref() }
                && node.generation == generation
            {
                return &node.value;
            }
            let fresh = Box::into_raw(Box::new(Node {
                generation,
                value: (self.make)(),
            }));
            match self
                .node
                .compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => current = fresh,
                Err(other) => {
                    // SAFETY: fresh came from Box::into_raw and was not stored anywhere.
                    drop(unsafe { Box::from_raw(fresh) });
                    current = other;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{PerProcess, generation};

    static VALUE: PerProcess<Mutex<u32>> = PerProcess::new(|| Mutex::new(1));

    #[test]
    fn a_child_gets_its_own_value_even_when_the_lock_was_held() {
        let before = generation();
        let mut held = VALUE.get().lock().unwrap();
        *held = 2;
        // SAFETY: the child only asks for the value and leaves by _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let fresh = generation() == before + 1 && VALUE.get().try_lock().is_ok_and(|v| *v == 1);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(if fresh { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 0);
        drop(held);
        assert_eq!(*VALUE.get().lock().unwrap(), 2);
    }
}
