//! The only place of this crate that changes the disk: create, write, sync, rename, remove.
//!
//! Every change passes [`attempt`], where a test can make it fail or stop the process; so faults and power cuts are
//! tried at each step instead of by luck. System calls that a signal interrupts are repeated. An operation that
//! fails is an error of its caller, always.

mod file;
mod remove;
mod rename;
mod space;
mod watch;

use std::fs::{DirBuilder, File};
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::error::{Error, Result};
use space::refused;
use watch::{attempt, record};

pub(crate) use file::{OutFile, replace_file};
pub(crate) use remove::{remove_dir_if_empty, remove_file, remove_tree};
pub(crate) use rename::{Renamed, exchange_back, exchange_dirs, rename_dir_noreplace};
pub(crate) use space::{free_bytes, is_full};
pub use watch::{Change, Hook, Operation, Recorder, set_hook, set_recorder};

/// Makes one directory. `false`: something has that name already.
pub(crate) fn create_dir(path: &Path) -> Result<bool> {
    match attempt(Operation::CreateDir, path, || {
        DirBuilder::new().create(path)
    }) {
        Ok(()) => {
            record(Change::CreateDir { path });
            Ok(true)
        }
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(refused("create directory", path, None, source)),
    }
}

/// Makes a directory with the parents that are missing, each brought to the disk.
pub(crate) fn create_dir_all(path: &Path) -> Result<()> {
    let mut missing = Vec::new();
    let mut place = path;
    while !place.as_os_str().is_empty() && !place.is_dir() {
        missing.push(place);
        match place.parent() {
            Some(parent) => place = parent,
            None => break,
        }
    }
    for directory in missing.into_iter().rev() {
        if !create_dir(directory)? && !directory.is_dir() {
            let source = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(Error::io("create directory", directory, source));
        }
        if let Some(parent) = directory.parent() {
            sync_dir(if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            })?;
        }
    }
    Ok(())
}

/// Waits until a directory's entries are on the disk. File systems that have no such operation say so, and are
/// taken to need none.
pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    let synced = attempt(Operation::SyncDir, path, || File::open(path)?.sync_all());
    match synced {
        Err(source)
            if matches!(
                source.raw_os_error().map(Errno::from_raw_os_error),
                Some(Errno::INVAL | Errno::OPNOTSUPP)
            ) =>
        {
            Ok(())
        }
        other => {
            other.map_err(|source| refused("sync", path, None, source))?;
            record(Change::SyncDir { path });
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
