//! Values that are made late, and that a forked child can still get at.
//!
//! A fork copies a process with one of its threads. A lock that another thread holds at that moment is never released
//! in the child, and a value that another thread is making is never finished. So each process has a cell of its own,
//! which takes over from its parent's what was complete.

use std::process;
use std::sync::OnceLock;

/// A cell of the process that made it, and of the processes forked from it since.
#[derive(Debug)]
pub(super) struct PerProcess<T> {
    pid: u32,
    value: T,
    /// Only ever set in a child: its value, and its children's.
    after_fork: OnceLock<Box<PerProcess<T>>>,
}

impl<T> PerProcess<T> {
    /// A cell of this process.
    pub(super) fn new(value: T) -> Self {
        Self::of(process::id(), value)
    }

    fn of(pid: u32, value: T) -> Self {
        Self {
            pid,
            value,
            after_fork: OnceLock::new(),
        }
    }

    /// The value of this process. In a child that has none yet it is made by `inherit` from its parent's, on which
    /// `inherit` must not wait.
    pub(super) fn get(&self, inherit: impl Fn(&T) -> T) -> &T {
        self.get_for(process::id(), inherit)
    }

    fn get_for(&self, pid: u32, inherit: impl Fn(&T) -> T) -> &T {
        let mut cell = self;
        while cell.pid != pid {
            cell = cell
                .after_fork
                .get_or_init(|| Box::new(Self::of(pid, inherit(&cell.value))));
        }
        &cell.value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, TryLockError};

    use super::PerProcess;

    #[test]
    fn a_child_has_its_own_value_and_starts_from_its_parents() {
        let cell = PerProcess::of(1, String::from("parent"));
        let inherit = |value: &String| format!("{value}, child");
        assert_eq!(cell.get_for(1, inherit), "parent");
        assert_eq!(cell.get_for(2, inherit), "parent, child");
        assert_eq!(cell.get_for(2, |_| unreachable!()), "parent, child");
        assert_eq!(cell.get_for(3, inherit), "parent, child, child");
    }

    #[test]
    fn a_lock_held_at_the_fork_does_not_stop_the_child() {
        let cell = PerProcess::of(1, Mutex::new(5));
        let inherit = |parent: &Mutex<i32>| match parent.try_lock() {
            Ok(value) => Mutex::new(*value),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => Mutex::new(0),
        };
        let held = cell.get_for(1, inherit).lock().unwrap();
        assert_eq!(*cell.get_for(2, inherit).lock().unwrap(), 0);
        assert_eq!(*held, 5);
    }
}
