//! The only place of this crate that changes the disk: create, write, sync, rename, remove.
//!
//! Every change passes [`attempt`], where a test can make it fail or stop the process; so faults and power cuts are
//! tried at each step instead of by luck. System calls that a signal interrupts are repeated. An operation that
//! fails is an error of its caller, always.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// How often a rename that finds its target busy is tried, and how long to wait between (10, 20, 30, ... ms).
const BUSY_ATTEMPTS: u32 = 8;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

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

fn record(change: Change<'_>) {
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
fn attempt<T>(
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

/// The error for a refused operation. Where space or quota is the cause it says how much was needed (`None`: one
/// block of the file system) and how much is free.
fn refused(operation: &'static str, path: &Path, needed: Option<u64>, source: io::Error) -> Error {
    let hint = if is_full(&source) {
        space_hint(path, needed)
    } else {
        String::new()
    };
    Error::Io {
        operation,
        path: path.to_path_buf(),
        hint,
        source,
    }
}

fn space_hint(path: &Path, needed: Option<u64>) -> String {
    match file_system_of(path) {
        Some(found) => format!(
            "; {} bytes needed, {} bytes free",
            needed.unwrap_or(found.f_frsize),
            free_on(&found)
        ),
        None => {
            format!(
                "; {} bytes needed, the number of free bytes is unknown",
                needed.unwrap_or(1)
            )
        }
    }
}

/// What the system says of the file system that `path` is on, or would be on.
fn file_system_of(path: &Path) -> Option<rustix::fs::StatVfs> {
    path.ancestors().find_map(|place| {
        let place = if place.as_os_str().is_empty() {
            Path::new(".")
        } else {
            place
        };
        rustix::io::retry_on_intr(|| rustix::fs::statvfs(place)).ok()
    })
}

fn free_on(found: &rustix::fs::StatVfs) -> u64 {
    found.f_bavail.saturating_mul(found.f_frsize)
}

/// Bytes that this user may still write below `path`; `None` where the system does not say.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    file_system_of(path).map(|found| free_on(&found))
}

/// Whether an error says that space or quota is used up.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::NOSPC | Errno::DQUOT)
    )
}

/// A new file that is written from front to back, with a head that may be written last.
#[derive(Debug)]
pub(crate) struct OutFile {
    file: File,
    path: PathBuf,
    len: u64,
}

impl OutFile {
    /// Makes the file; an existing one, or a link in its place, is an error.
    pub(crate) fn create(path: PathBuf) -> Result<Self> {
        let file = attempt(Operation::CreateFile, &path, || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)
        })
        .map_err(|source| refused("create", &path, None, source))?;
        record(Change::CreateFile { path: &path });
        Ok(Self { file, path, len: 0 })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes appended so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends `bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut file = &self.file;
            let written = attempt(Operation::Write, &self.path, || file.write(rest))
                .and_then(some_progress)
                .map_err(|source| self.write_refused(rest, source))?;
            self.record_write(rest, written, self.len);
            rest = rest.get(written..).unwrap_or_default();
            self.len += written as u64;
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`, over what is there or into a gap.
    pub(crate) fn write_at(&mut self, bytes: &[u8], mut offset: u64) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = attempt(Operation::Write, &self.path, || {
                self.file.write_at(rest, offset)
            })
            .and_then(some_progress)
            .map_err(|source| self.write_refused(rest, source))?;
            self.record_write(rest, written, offset);
            rest = rest.get(written..).unwrap_or_default();
            offset += written as u64;
        }
        Ok(())
    }

    fn record_write(&self, rest: &[u8], written: usize, offset: u64) {
        record(Change::Write {
            path: &self.path,
            offset,
            bytes: rest.get(..written).unwrap_or_default(),
        });
    }

    fn write_refused(&self, rest: &[u8], source: io::Error) -> Error {
        refused("write", &self.path, Some(rest.len() as u64), source)
    }

    /// Reads back into `out` from `offset`, exactly.
    pub(crate) fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(out, offset)
            .map_err(|source| Error::io("read", self.path.clone(), source))
    }

    /// Waits until the file is on the disk. After an error nothing is known about its bytes: the file is lost.
    pub(crate) fn sync(&self) -> Result<()> {
        attempt(Operation::SyncFile, &self.path, || self.file.sync_all())
            .map_err(|source| refused("sync", &self.path, Some(self.len), source))?;
        record(Change::SyncFile { path: &self.path });
        Ok(())
    }
}

/// A write that takes no byte would be repeated for ever.
fn some_progress(written: usize) -> io::Result<usize> {
    if written == 0 {
        Err(io::ErrorKind::WriteZero.into())
    } else {
        Ok(written)
    }
}

/// Writes a file that is no part of a cache, whole or not at all: beside its place first, then over it.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let mut file = OutFile::create(part.clone())?;
    let placed = file.append(bytes).and_then(|()| {
        attempt(Operation::Rename, path, || std::fs::rename(&part, path))
            .map_err(|source| refused("write", path, None, source))?;
        record(Change::Rename {
            from: &part,
            to: path,
        });
        Ok(())
    });
    if placed.is_err() {
        // The first error is the one to report.
        let _ = remove_file(&part);
    }
    placed
}

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
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

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

#[cfg(test)]
mod tests;
