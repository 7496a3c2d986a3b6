//! Removing what is ours.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::space::refused;
use super::watch::{Change, Operation, attempt, record};
use crate::error::Result;

/// Removes a directory if it is empty. `true`: it is gone.
pub(crate) fn remove_dir_if_empty(path: &Path) -> bool {
    let removed = attempt(Operation::RemoveDir, path, || std::fs::remove_dir(path));
    match removed {
        Ok(()) => {
            record(Change::RemoveDir { path });
            true
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes a file.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    attempt(Operation::RemoveFile, path, || std::fs::remove_file(path))
        .map_err(|source| refused("remove", path, None, source))?;
    record(Change::RemoveFile { path });
    Ok(())
}

/// Removes the directory `path` with those of its entries for which `ours` says so by their path below it; what is
/// left, and what holds it, stays. No link is followed: entries are reached from the open directory alone.
pub(crate) fn remove_tree(path: &Path, ours: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    let directory = match open_dir(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    remove_entries(directory, path, Path::new(""), ours)?;
    attempt(Operation::RemoveDir, path, || std::fs::remove_dir(path))?;
    record(Change::RemoveDir { path });
    Ok(())
}

fn open_dir(from: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::io::retry_on_intr(|| rustix::fs::openat(from, path, flags, Mode::empty()))
}

fn remove_entries(
    directory: OwnedFd,
    path: &Path,
    below: &Path,
    ours: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    let mut first_error = Ok(());
    // One descriptor a level: this is also how a process that has run out of them cleans up.
    let mut listing = Dir::new(directory)?;
    while let Some(entry) = listing.read() {
        let entry = entry?;
        let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
        if name == Path::new(".") || name == Path::new("..") || !ours(&below.join(name)) {
            continue;
        }
        let removed = remove_entry(listing.fd()?, path, below, name, ours);
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                first_error = first_error.and(Err(error));
            }
            _ => {}
        }
    }
    first_error
}

fn remove_entry(
    directory: BorrowedFd<'_>,
    path: &Path,
    below: &Path,
    name: &Path,
    ours: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    let full = path.join(name);
    let found = rustix::io::retry_on_intr(|| {
        rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
    })?;
    if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
        let inner = open_dir(directory, name)?;
        remove_entries(inner, &full, &below.join(name), ours)?;
        attempt(Operation::RemoveDir, &full, || {
            Ok(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?)
        })?;
        record(Change::RemoveDir { path: &full });
    } else {
        attempt(Operation::RemoveFile, &full, || {
            Ok(rustix::fs::unlinkat(directory, name, AtFlags::empty())?)
        })?;
        record(Change::RemoveFile { path: &full });
    }
    Ok(())
}
