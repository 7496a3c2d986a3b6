//! Opening the files of a cache safely.
//!
//! What is opened is a regular file that lies in the cache folder itself: each step below the folder refuses
//! symbolic links (unless links are allowed, as snapshots of a model hub need), nothing waits for the other end of
//! a FIFO, and devices, sockets and folders in place of a file are errors. The folder may be reached by a link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dataset_rt_format::FormatError;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{Error, Result};
use crate::reader::give_up_files;

/// Which file stood at a path: another inode or another size is another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
}

/// How often a look at a folder is repeated that another folder came in the way of.
const LOOKS: usize = 16;

/// Looks at a folder of several files. Where another folder took its name meanwhile, as when a cache is rebuilt, the
/// look may have met files of both, or the old ones on their way out: it is repeated, a bounded number of times.
pub(crate) fn steady<T>(path: &Path, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..LOOKS {
        let before = standing(path);
        match look() {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            outcome if standing(path) == before => return outcome,
            _ => {}
        }
    }
    look()
}

/// Which folder has this name. The time of the last change is a part, because file systems give the number of a
/// removed folder to the next one.
fn standing(path: &Path) -> Option<(u64, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
}

/// A cache folder. No descriptor is held, so that many open caches cost none.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    follow_links: bool,
}

/// An open folder, for several files in a row.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    follow_links: bool,
}

/// An open regular file.
#[derive(Debug)]
pub(crate) struct RegularFile {
    file: File,
    path: PathBuf,
    id: FileId,
}

impl Folder {
    /// A folder by its path; made absolute, so that a later change of the working directory does no harm.
    pub(crate) fn new(path: &Path, follow_links: bool) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|e| Error::io("resolve", path, e))?;
        Ok(Self { path, follow_links })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder itself.
    ///
    /// # Errors
    /// [`Error::NotFound`] when nothing or something else than a folder is there.
    pub(crate) fn open(&self) -> Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open_at(CWD, &self.path, flags) {
            Ok(fd) => Ok(Directory {
                fd,
                path: self.path.clone(),
                follow_links: self.follow_links,
            }),
            Err(Errno::NOENT) => Err(Error::NotFound {
                path: self.path.clone(),
                message: "there is no cache: no such folder".to_owned(),
            }),
            Err(Errno::NOTDIR) => Err(Error::NotFound {
                path: self.path.clone(),
                message: "there is no cache: not a folder".to_owned(),
            }),
            Err(errno) => Err(Error::io("open", &self.path, errno.into())),
        }
    }

    /// Opens a file below the folder; `relative` has one or two names joined by `/`.
    pub(crate) fn open_file(&self, relative: &str) -> Result<RegularFile> {
        among_openers(|| {
            let directory = self.open()?;
            match relative.split_once('/') {
                Some((sub, name)) => directory.open_directory(sub)?.open_file(name),
                None => directory.open_file(relative),
            }
        })
    }

    /// What [`Directory::stat`] says of a file below the folder.
    pub(crate) fn stat(&self, relative: &str) -> Result<FileId> {
        let directory = self.open()?;
        match relative.split_once('/') {
            Some((sub, name)) => directory.open_directory(sub)?.stat(name),
            None => directory.stat(relative),
        }
    }

    pub(crate) fn file_path(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    /// What stands at a file's path now, `None` when that can't be told or is no regular file.
    pub(crate) fn peek(&self, relative: &str) -> Option<FileId> {
        let path = self.path.join(relative);
        let stat = retry_on_intr(|| rustix::fs::statat(CWD, &path, at_flags(self.follow_links)));
        stat.ok().filter(is_regular).map(|stat| file_id(&stat))
    }
}

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open_directory(&self, name: &str) -> Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | self.link_flag();
        match open_at(self.fd.as_fd(), Path::new(name), flags) {
            Ok(fd) => Ok(Directory {
                fd,
                path: self.path.join(name),
                follow_links: self.follow_links,
            }),
            Err(errno) => Err(self.explain(name, "a folder", errno)),
        }
    }

    pub(crate) fn open_file(&self, name: &str) -> Result<RegularFile> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | self.link_flag();
        let fd = match open_at(self.fd.as_fd(), Path::new(name), flags) {
            Ok(fd) => fd,
            Err(errno) => return Err(self.explain(name, "a regular file", errno)),
        };
        let path = self.path.join(name);
        let stat = rustix::fs::fstat(&fd).map_err(|e| Error::io("examine", &path, e.into()))?;
        if !is_regular(&stat) {
            return Err(not_regular(path, kind(&stat), "a regular file"));
        }
        Ok(RegularFile {
            file: File::from(fd),
            path,
            id: file_id(&stat),
        })
    }

    /// The file's identity and size without opening it.
    pub(crate) fn stat(&self, name: &str) -> Result<FileId> {
        let flags = at_flags(self.follow_links);
        match retry_on_intr(|| rustix::fs::statat(&self.fd, name, flags)) {
            Ok(stat) if is_regular(&stat) => Ok(file_id(&stat)),
            Ok(stat) => Err(not_regular(
                self.path.join(name),
                kind(&stat),
                "a regular file",
            )),
            Err(errno) => Err(self.explain(name, "a regular file", errno)),
        }
    }

    fn link_flag(&self) -> OFlags {
        if self.follow_links {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        }
    }

    /// The system's codes for "that is a link" and "that is a socket" vary, so look at what is there.
    fn explain(&self, name: &str, wanted: &str, errno: Errno) -> Error {
        let path = self.path.join(name);
        if errno == Errno::NOENT {
            return Error::damaged(
                path,
                FormatError::FileMissing {
                    name: name.to_owned(),
                },
            );
        }
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if kind(&stat) != wanted => not_regular(path, kind(&stat), wanted),
            _ => Error::io("open", path, errno.into()),
        }
    }
}

impl RegularFile {
    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// [`FormatError::FileSize`] unless the file had `size` bytes when it was opened.
    pub(crate) fn expect_size(&self, size: u64) -> Result<()> {
        expect_size(&self.path, self.id, size)
    }

    /// Fills `out` from `offset`; a file that ends before is damaged.
    pub(crate) fn read_exact_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(out, offset)
            .map_err(|e| self.read_error(e, offset))
    }

    /// `len` bytes from `offset`, whose bounds were checked against the file's size.
    pub(crate) fn read_vec(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        if offset.checked_add(len).is_none_or(|end| end > self.id.size) {
            return Err(self.read_error(io::ErrorKind::UnexpectedEof.into(), offset));
        }
        // A file may claim more than there is memory: that must be an error, not the end of the process.
        let mut bytes = Vec::new();
        usize::try_from(len)
            .ok()
            .and_then(|len| {
                bytes
                    .try_reserve_exact(len)
                    .ok()
                    .map(|()| bytes.resize(len, 0))
            })
            .ok_or_else(|| Error::io("read", &self.path, io::ErrorKind::OutOfMemory.into()))?;
        self.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    pub(crate) fn read_error(&self, error: io::Error, offset: u64) -> Error {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            // It had these bytes when it was opened.
            let found = self.file.metadata().map_or(0, |metadata| metadata.len());
            let name = format!("{} (changed after it was opened)", file_name(&self.path));
            return Error::Damaged {
                path: self.path.clone(),
                sample: None,
                offset: Some(offset),
                source: FormatError::FileSize {
                    name,
                    stated: self.id.size,
                    found,
                },
            };
        }
        Error::io("read", &self.path, error)
    }
}

/// Opens a name in a folder. Where the process has no descriptor left, the shards that are kept open for later
/// reads give way to what is needed now.
fn open_at(folder: BorrowedFd<'_>, name: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let open = || retry_on_intr(|| rustix::fs::openat(folder, name, flags, Mode::empty()));
    for _ in 0..GIVE_WAYS {
        match open() {
            // Tried again even if nothing was kept: another thread may have met the same and just given all up.
            Err(Errno::MFILE | Errno::NFILE) => give_up_files(),
            opened => return opened,
        }
    }
    open()
}

/// How often kept shards give way to one opening: what they leave may be taken by another thread at once.
const GIVE_WAYS: usize = 4;

/// How many threads are inside [`among_openers`]. (A forked child may count threads that it has not: then it tries
/// again in vain, a bounded number of times.)
static OPENERS: AtomicUsize = AtomicUsize::new(0);
/// How often opening a file is tried again while others open theirs.
const OPENINGS: u32 = 16;

/// Opens a file, on the way to which folders are held open as well. Threads that do so at the same time can take the
/// last descriptors from each other, so that none gets to its file: each lets go of all it has and tries again, after
/// waits that differ.
fn among_openers<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    struct Opener(usize);
    impl Drop for Opener {
        fn drop(&mut self) {
            OPENERS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let opener = Opener(OPENERS.fetch_add(1, Ordering::Relaxed));
    let mut alone = false;
    for attempt in 0..OPENINGS {
        match open() {
            // Once more after the last of the others has left.
            Err(error) if error.is_out_of_descriptors() && !alone => {
                alone = OPENERS.load(Ordering::Relaxed) == 1;
                let place = u32::try_from(opener.0).unwrap_or(u32::MAX);
                let wait = Duration::from_micros(100) * (1 + place.min(8)) * (1 + attempt);
                std::thread::sleep(wait);
            }
            outcome => return outcome,
        }
    }
    open()
}

/// [`FormatError::FileSize`] unless the sizes agree.
pub(crate) fn expect_size(path: &Path, id: FileId, size: u64) -> Result<()> {
    if id.size == size {
        return Ok(());
    }
    let source = FormatError::FileSize {
        name: file_name(path),
        stated: size,
        found: id.size,
    };
    Err(Error::damaged(path, source))
}

fn not_regular(path: PathBuf, found: &str, wanted: &str) -> Error {
    let advice = if found == "a symbolic link" {
        "; follow_links allows links out of the cache folder"
    } else {
        ""
    };
    let name = format!("{wanted} (found {found}{advice})");
    Error::damaged(path, FormatError::FileMissing { name })
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn at_flags(follow_links: bool) -> AtFlags {
    if follow_links {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_NOFOLLOW
    }
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

fn kind(stat: &Stat) -> &'static str {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something unknown",
    }
}

// The widths of these fields differ between platforms.
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
fn file_id(stat: &Stat) -> FileId {
    FileId {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        size: stat.st_size as u64,
    }
}

#[cfg(test)]
mod tests {
    //! Whatever stands in place of a cache file is an error or the file, never a hang.
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode};

    use super::Folder;
    use crate::error::Error;

    fn text(error: Error) -> String {
        error.to_string()
    }

    #[test]
    fn a_look_is_repeated_while_other_folders_take_the_name() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("s");
        std::fs::create_dir(&path).unwrap();
        let mut looks = 0;
        let found = super::steady(&path, || {
            looks += 1;
            if looks < 3 {
                std::fs::rename(&path, base.path().join(looks.to_string())).unwrap();
                std::fs::create_dir(&path).unwrap();
                return Err(Error::Internal("files of two folders".to_owned()));
            }
            Ok(looks)
        });
        assert_eq!(found.unwrap(), 3);
        // What is wrong with a folder that stays is told at once, and a name that never rests at some time.
        let mut looks = 0;
        let refused: Result<(), Error> = super::steady(&path, || {
            looks += 1;
            Err(Error::Internal("damaged".to_owned()))
        });
        assert!(refused.is_err());
        assert_eq!(looks, 1);
        let mut looks = 0;
        let refused: Result<(), Error> = super::steady(&path, || {
            looks += 1;
            std::fs::rename(&path, base.path().join(format!("gone-{looks}"))).unwrap();
            std::fs::create_dir(&path).unwrap();
            Err(Error::Internal("damaged".to_owned()))
        });
        assert!(refused.is_err());
        assert_eq!(looks, super::LOOKS);
    }

    #[test]
    fn opens_files_and_names_what_is_in_their_place() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plain"), b"12345").unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/inner"), b"123").unwrap();
        symlink("plain", dir.path().join("link")).unwrap();
        symlink("sub", dir.path().join("sublink")).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, dir.path().join("fifo"), FileType::Fifo, mode, 0).unwrap();

        let folder = Folder::new(dir.path(), false).unwrap();
        assert_eq!(folder.open_file("plain").unwrap().id().size, 5);
        assert_eq!(folder.open_file("sub/inner").unwrap().id().size, 3);
        assert_eq!(
            folder.peek("plain"),
            Some(folder.open_file("plain").unwrap().id())
        );
        assert!(text(folder.open_file("fifo").unwrap_err()).contains("FIFO"));
        assert!(text(folder.open_file("sub").unwrap_err()).contains("folder"));
        assert!(text(folder.open_file("link").unwrap_err()).contains("symbolic link"));
        assert!(text(folder.open_file("sublink/inner").unwrap_err()).contains("symbolic link"));
        assert!(text(folder.open_file("none").unwrap_err()).contains("none is missing"));
        assert!(text(folder.open_file("plain/x").unwrap_err()).contains("regular file"));

        let folder = Folder::new(dir.path(), true).unwrap();
        assert_eq!(folder.open_file("link").unwrap().id().size, 5);
        assert_eq!(folder.open_file("sublink/inner").unwrap().id().size, 3);
        assert!(text(folder.open_file("fifo").unwrap_err()).contains("FIFO"));
    }

    #[test]
    fn the_folder_may_be_a_link_and_must_be_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("cache")).unwrap();
        std::fs::write(dir.path().join("cache/f"), b"1").unwrap();
        symlink("cache", dir.path().join("alias")).unwrap();
        let folder = Folder::new(&dir.path().join("alias"), false).unwrap();
        assert!(folder.open_file("f").is_ok());
        for other in ["none", "cache/f"] {
            let folder = Folder::new(&dir.path().join(other), false).unwrap();
            assert!(matches!(folder.open(), Err(Error::NotFound { .. })));
        }
    }
}
