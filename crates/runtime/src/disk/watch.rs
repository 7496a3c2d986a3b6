//! What stands between a change of the disk and the system: tests that refuse it, and tests that note it down.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A change of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A directory is made.
    CreateDir,
    /// A file is made.
    CreateFile,
    /// Bytes are written to a file.
    Write,
    /// A file's bytes are brought to the disk.
    SyncFile,
    /// A directory's entries are brought to the disk.
    SyncDir,
    /// A rename that the kernel refuses where the new name exists.
    RenameNoReplace,
    /// Two names are swapped.
    Exchange,
    /// A plain rename.
    Rename,
    /// A file is removed.
    RemoveFile,
    /// A directory is removed.
    RemoveDir,
}

/// Called before each change with its path (of a rename: the new name); an error takes the place of the change.
pub type Hook = Arc<dyn Fn(Operation, &Path) -> io::Result<()> + Send + Sync>;

static HOOKED: AtomicBool = AtomicBool::new(false);
static HOOK: RwLock<Option<Hook>> = RwLock::new(None);

/// Sets or clears the hook of this process. For tests.
pub fn set_hook(hook: Option<Hook>) {
    let mut slot = HOOK.write().unwrap_or_else(PoisonError::into_inner);
    HOOKED.store(hook.is_some(), Ordering::SeqCst);
    *slot = hook;
}

fn consult(operation: Operation, path: &Path) -> io::Result<()> {
    if !HOOKED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // Cloned, so that a hook that waits does not keep others from being set.
    let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner).clone();
    hook.map_or(Ok(()), |hook| hook(operation, path))
}

/// A change of the disk that took place, with all that it takes to do it again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields of an operation's own name")]
pub enum Change<'a> {
    CreateDir {
        path: &'a Path,
    },
    CreateFile {
        path: &'a Path,
    },
    Write {
        path: &'a Path,
        offset: u64,
        bytes: &'a [u8],
    },
    SyncFile {
        path: &'a Path,
    },
    SyncDir {
        path: &'a Path,
    },
    Rename {
        from: &'a Path,
        to: &'a Path,
    },
    Exchange {
        first: &'a Path,
        second: &'a Path,
    },
    RemoveFile {
        path: &'a Path,
    },
    RemoveDir {
        path: &'a Path,
    },
}

/// Called after each change, before anything that depends on it.
pub type Recorder = Arc<dyn Fn(&Change<'_>) + Send + Sync>;

static RECORDED: AtomicBool = AtomicBool::new(false);
static RECORDER: RwLock<Option<Recorder>> = RwLock::new(None);

/// Sets or clears the recorder of this process. For tests.
pub fn set_recorder(recorder: Option<Recorder>) {
    let mut slot = RECORDER.write().unwrap_or_else(PoisonError::into_inner);
    RECORDED.store(recorder.is_some(), Ordering::SeqCst);
    *slot = recorder;
}

pub(super) fn record(change: Change<'_>) {
    if !RECORDED.load(Ordering::Relaxed) {
        return;
    }
    let recorder = RECORDER
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    if let Some(recorder) = recorder {
        recorder(&change);
    }
}

/// One system call that changes the disk, repeated while signals interrupt it.
pub(super) fn attempt<T>(
    operation: Operation,
    path: &Path,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match consult(operation, path).and_then(|()| call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
