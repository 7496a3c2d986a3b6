//! Directories that get another name: a free one, or each other's.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::space::refused;
use super::watch::{Change, Operation, attempt, record};
use crate::error::Result;

/// How often a rename that finds its target busy is tried, and how long to wait between (10, 20, 30, ... ms).
const BUSY_ATTEMPTS: u32 = 8;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// What came of a rename that replaces nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renamed {
    /// The new name is ours.
    Done,
    /// Something has the new name; nothing was changed.
    Occupied,
}

/// Whether the system lacks an operation, as opposed to refusing this use of it.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP)
    )
}

fn is_occupied(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR)
    )
}

/// Repeats a rename that meets EBUSY, a bounded number of times: network and overlay file systems say it of names
/// that are free a moment later.
fn while_busy(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut pause = BUSY_PAUSE;
    for _ in 1..BUSY_ATTEMPTS {
        match call() {
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                thread::sleep(pause);
                pause += BUSY_PAUSE;
            }
            outcome => return outcome,
        }
    }
    call()
}

/// Gives the directory `from` the name `to`, which must be free.
///
/// Where the kernel or the file system can't refuse an existing name by itself, the name is looked up first. A plain
/// rename never replaces a file or a directory with entries by a directory, so what the second way can still replace
/// is an empty directory made between the two calls.
pub(crate) fn rename_dir_noreplace(from: &Path, to: &Path) -> Result<Renamed> {
    let first = while_busy(|| {
        attempt(Operation::RenameNoReplace, to, || {
            Ok(rustix::fs::renameat_with(
                CWD,
                from,
                CWD,
                to,
                RenameFlags::NOREPLACE,
            )?)
        })
    });
    let outcome = match first {
        Err(error) if is_missing(&error) => {
            if to.symlink_metadata().is_ok() {
                return Ok(Renamed::Occupied);
            }
            while_busy(|| attempt(Operation::Rename, to, || std::fs::rename(from, to)))
        }
        outcome => outcome,
    };
    match outcome {
        Ok(()) => {
            record(Change::Rename { from, to });
            Ok(Renamed::Done)
        }
        Err(error) if is_occupied(&error) && to.symlink_metadata().is_ok() => Ok(Renamed::Occupied),
        Err(source) => Err(refused("rename", to, None, source)),
    }
}

/// How two directories were swapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Swapped {
    /// In one step: each has the other's name.
    AtOnce,
    /// In two: what stood there has this name.
    Aside(PathBuf),
}

/// Puts the directory `new` in the place of `standing`, in one step where the system can. Else `standing` goes to the
/// free name that `make_aside` answers, and then `new` to its place; an error leaves both where they were, as far as
/// the system lets it. Whoever stops between the two steps leaves `standing` at the name aside, so that must be one
/// that is found again, also after a power cut.
pub(crate) fn exchange_dirs(
    new: &Path,
    standing: &Path,
    make_aside: &dyn Fn() -> Result<PathBuf>,
) -> Result<Swapped> {
    match exchange(new, standing) {
        Ok(()) => Ok(Swapped::AtOnce),
        Err(error) if is_missing(&error) => {
            let aside = make_aside()?;
            rename(standing, &aside)?;
            // What was moved goes back; if even that fails, the first error is the one to report.
            if let Err(error) = rename(new, standing) {
                let _ = rename(&aside, standing);
                return Err(error);
            }
            Ok(Swapped::Aside(aside))
        }
        Err(source) => Err(refused("swap", standing, None, source)),
    }
}

/// Takes [`exchange_dirs`] back, in steps of the same kind.
pub(crate) fn exchange_back(new: &Path, standing: &Path, swapped: &Swapped) -> Result<()> {
    match swapped {
        Swapped::AtOnce => {
            exchange(new, standing).map_err(|source| refused("swap", standing, None, source))
        }
        Swapped::Aside(aside) => {
            rename(standing, new)?;
            if let Err(error) = rename(aside, standing) {
                let _ = rename(new, standing);
                return Err(error);
            }
            Ok(())
        }
    }
}

fn exchange(first: &Path, second: &Path) -> io::Result<()> {
    while_busy(|| {
        attempt(Operation::Exchange, second, || {
            let flags = RenameFlags::EXCHANGE;
            Ok(rustix::fs::renameat_with(CWD, first, CWD, second, flags)?)
        })
    })?;
    record(Change::Exchange { first, second });
    Ok(())
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    while_busy(|| attempt(Operation::Rename, to, || std::fs::rename(from, to)))
        .map_err(|source| refused("rename", to, None, source))?;
    record(Change::Rename { from, to });
    Ok(())
}
