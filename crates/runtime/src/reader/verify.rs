//! The whole check of a cache: every byte of every file, and what the files say about each other.

use std::path::Path;

use dataset_rt_format::{CacheFiles, FormatError, MANIFEST_FILE, Manifest};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::Folder;
use crate::mapped::{self, Map};

use super::cache::{CacheOptions, explain_missing_manifest};

/// Checks a cache whole, in the order of the specification, and returns its manifest: sums and structure of every
/// file, every payload, positions, footers, values, totals and the identity.
///
/// Works on the caller's thread, at some GB/s from memory. Without maps each file is read into memory in turn.
///
/// # Errors
/// The first problem: [`Error::Damaged`] with its file and, for a payload, its sample (of cache 0, as a cache does not
/// know its position among others); [`Error::NotFound`], [`Error::Io`], and [`Error::Interrupted`] between files.
pub fn verify(path: &Path, options: CacheOptions, cancel: &Cancel) -> Result<Manifest> {
    dataset_rt_format::verify(&WholeFiles::new(path, options, cancel)?)
}

/// The files of a cache, each read or mapped whole.
pub(crate) struct WholeFiles<'a> {
    folder: Folder,
    use_mmap: bool,
    cancel: &'a Cancel,
}

impl<'a> WholeFiles<'a> {
    /// Looks at the folder alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::Io`].
    pub(crate) fn new(path: &Path, options: CacheOptions, cancel: &'a Cancel) -> Result<Self> {
        mapped::ensure_guard();
        let folder = Folder::new(path, options.follow_links)?;
        folder.open()?;
        let use_mmap = options.use_mmap;
        Ok(Self {
            folder,
            use_mmap,
            cancel,
        })
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        self.cancel
    }
}

/// A whole file.
pub(crate) enum Bytes {
    Map(Map),
    Read(Vec<u8>),
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Map(map) => map.bytes(),
            Self::Read(bytes) => bytes,
        }
    }
}

impl CacheFiles for WholeFiles<'_> {
    type Bytes = Bytes;
    type Error = Error;

    fn size(&self, path: &str) -> Result<Option<u64>> {
        match self.folder.stat(path) {
            Ok(id) => Ok(Some(id.size)),
            Err(error) if path == MANIFEST_FILE => {
                Err(explain_missing_manifest(&self.folder, error))
            }
            Err(error) => Err(error),
        }
    }

    fn read(&self, path: &str) -> Result<Bytes> {
        self.cancel.check()?;
        let file = self.folder.open_file(path)?;
        // A page that is lost while a map is read gives zeros, and the file's checksum tells.
        let map = self
            .use_mmap
            .then(|| Map::new(file.file(), file.id().size))
            .flatten();
        match map {
            Some(map) => Ok(Bytes::Map(map)),
            None => Ok(Bytes::Read(file.read_vec(0, file.id().size)?)),
        }
    }

    fn refuse(&self, path: &str, error: FormatError) -> Error {
        let path = self.folder.file_path(path);
        match error {
            FormatError::Record {
                sample,
                offset,
                source,
            } => Error::Damaged {
                path,
                sample: Some((0, sample)),
                offset: Some(offset),
                source: *source,
            },
            source => Error::damaged(path, source),
        }
    }
}
