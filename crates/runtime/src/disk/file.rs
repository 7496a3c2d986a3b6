//! Files that are written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::remove::remove_file;
use super::space::refused;
use super::watch::{Change, Operation, attempt, record};
use crate::error::{Error, Result};

/// A new file that is written from front to back, with a head that may be written last.
#[derive(Debug)]
pub(crate) struct OutFile {
    file: File,
    path: PathBuf,
    len: u64,
    /// So many of them are on their way to the disk.
    begun: u64,
}

/// The disk is set to work whenever so many bytes wait, so that the sync at the end has little left to wait for.
const BEGIN_EVERY: u64 = 8 << 20;

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
        Ok(Self {
            file,
            path,
            len: 0,
            begun: 0,
        })
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
        if self.len - self.begun >= BEGIN_EVERY {
            begin_writing(&self.file, self.begun, self.len - self.begun);
            self.begun = self.len;
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

/// Has the system begin to write a range to the disk, without waiting for it. What goes wrong is told by the sync that
/// follows: this call takes no error away from it, since it does not wait.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // The one system call that rustix has no function for.
fn begin_writing(file: &File, offset: u64, len: u64) {
    use std::os::fd::AsRawFd;
    if let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) {
        // SAFETY: the descriptor is open; the call touches no memory of ours.
        let _ = unsafe {
            libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
        };
    }
}

#[cfg(not(target_os = "linux"))]
fn begin_writing(_: &File, _: u64, _: u64) {}

/// A write that takes no byte would be repeated for ever.
pub(super) fn some_progress(written: usize) -> io::Result<usize> {
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
