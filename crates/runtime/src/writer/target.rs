//! What stands at the place of a cache: nothing, a whole cache, a damaged one of ours, or something else.
//!
//! Something is ours only if it holds our files alone and one of them begins with bytes that nobody else writes. What
//! is not ours is never changed.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dataset_rt_format::constants::{INDEX_MAGIC, SHARD_MAGIC};
use dataset_rt_format::{
    FormatError, INDEX_FILE, MANIFEST_FILE, METADATA_FILE, Manifest, SHARD_DIR, SHARD_SUFFIX,
    check_shard_name,
};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::{Folder, steady};
use crate::reader::{Cache, CacheOptions, verify};

/// How every manifest of every version begins.
const MANIFEST_MAGIC: &[u8] = b"{\"format\":\"dataset_rt.cache\",\"version\":";

/// What stands at a path.
#[derive(Debug)]
pub(crate) enum Target {
    /// Nothing.
    Absent,
    /// A complete cache.
    Whole(Place, Box<Manifest>),
    /// Our files, but no usable cache: why.
    Damaged(Place, String),
    /// A cache of ours that needs a newer version of this library.
    TooNew(FormatError),
    /// Something that is not ours: what.
    Foreign(String),
}

/// A directory, so that it can be told whether it is still the same one. An inode alone does not tell: file systems
/// give the number of a removed directory to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    device: u64,
    inode: u64,
    /// Time of the last change, which a rename is too.
    changed: (i64, i64),
    /// Reached by a link, which only its owner may change.
    pub(crate) is_link: bool,
}

impl Place {
    /// What has this name now; `None`: nothing, or nothing that can be looked at.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let link = fs::symlink_metadata(path).ok()?;
        Some(Self::new(&link, &fs::metadata(path).ok()?))
    }

    fn new(link: &Metadata, found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
            is_link: link.is_symlink(),
        }
    }
}

/// Whether a path below a cache's directory has a name that we give.
pub(crate) fn is_cache_path(below: &Path) -> bool {
    let parts: Vec<Option<&str>> = below
        .components()
        .map(|part| part.as_os_str().to_str())
        .collect();
    match parts.as_slice() {
        [Some(MANIFEST_FILE | METADATA_FILE | INDEX_FILE | SHARD_DIR)] => true,
        [Some(SHARD_DIR), Some(file)] => is_shard_file(file),
        _ => false,
    }
}

fn is_shard_file(file: &str) -> bool {
    file.strip_suffix(SHARD_SUFFIX)
        .is_some_and(|name| check_shard_name(name).is_ok())
}

/// Looks at `path`. With `check` every file is read and compared with the checksum that the manifest states.
///
/// # Errors
/// [`Error::Io`] when something is there but can't be looked at, [`Error::Interrupted`].
pub(crate) fn inspect(path: &Path, check: bool, cancel: &Cancel) -> Result<Target> {
    steady(path, || inspect_once(path, check, cancel))
}

fn inspect_once(path: &Path, check: bool, cancel: &Cancel) -> Result<Target> {
    let link = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Target::Absent),
        found => found.map_err(|source| Error::io("look at", path, source))?,
    };
    let Ok(metadata) = fs::metadata(path) else {
        return Ok(Target::Foreign("a link to nothing".to_owned()));
    };
    if !metadata.is_dir() {
        return Ok(Target::Foreign("a file".to_owned()));
    }
    let place = Place::new(&link, &metadata);
    if let Some(what) = foreign_part(path)? {
        return Ok(Target::Foreign(what));
    }
    let examined = examine(path, check, cancel);
    let damaged = |reason| Ok(Target::Damaged(place, reason));
    match examined {
        Ok(manifest) => Ok(Target::Whole(place, Box::new(manifest))),
        Err(Error::Damaged { source, .. })
            if matches!(source.code(), "version_unsupported" | "feature_unsupported") =>
        {
            Ok(Target::TooNew(source))
        }
        Err(Error::Damaged {
            path: file, source, ..
        }) => {
            let file = file.strip_prefix(path).unwrap_or(&file);
            damaged(format!("{}: {source}", file.display()))
        }
        // Some of our files are there, or were a moment ago.
        Err(Error::NotFound { .. }) if path.symlink_metadata().is_err() => Ok(Target::Absent),
        Err(Error::NotFound { message, .. }) => damaged(message),
        Err(error) => Err(error),
    }
}

/// Opens the cache as a reader does, or with `check` looks at every byte of it.
fn examine(path: &Path, check: bool, cancel: &Cancel) -> Result<Manifest> {
    cancel.check()?;
    // A reader allows links only when it is told to, and whoever reuses the cache may not be.
    let follow_links = false;
    if check {
        let options = CacheOptions {
            use_mmap: true,
            follow_links,
        };
        return verify(path, options, cancel);
    }
    let options = CacheOptions {
        use_mmap: false,
        follow_links,
    };
    Ok(Cache::open(path, options)?.manifest().clone())
}

/// What makes a directory one that is not ours; `None`: it is ours.
fn foreign_part(path: &Path) -> Result<Option<String>> {
    let mut magic = false;
    let mut entries = 0;
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let folder = path.join(&below);
        let listing =
            fs::read_dir(&folder).map_err(|source| Error::io("list", folder.clone(), source))?;
        for entry in listing {
            let entry = entry.map_err(|source| Error::io("list", folder.clone(), source))?;
            let inside = below.join(entry.file_name());
            let kind = entry
                .file_type()
                .map_err(|source| Error::io("look at", entry.path(), source))?;
            let expected = if inside == Path::new(SHARD_DIR) {
                kind.is_dir()
            } else {
                kind.is_file()
            };
            if !is_cache_path(&inside) || !expected {
                return Ok(Some(format!(
                    "a folder with {}, which is no file of a cache",
                    inside.display()
                )));
            }
            entries += 1;
            if kind.is_dir() {
                folders.push(inside);
            } else if !magic {
                magic = begins_with_magic(path, &inside);
            }
        }
    }
    Ok(match (entries, magic) {
        (0, _) => Some("an empty folder".to_owned()),
        (_, false) => Some("a folder without any file that begins like one of a cache".to_owned()),
        (_, true) => None,
    })
}

fn begins_with_magic(cache: &Path, inside: &Path) -> bool {
    let magic: &[u8] = match inside.file_name().and_then(OsStr::to_str) {
        Some(MANIFEST_FILE) => MANIFEST_MAGIC,
        Some(INDEX_FILE) => &INDEX_MAGIC,
        // Any program may write Arrow files.
        Some(METADATA_FILE) | None => return false,
        Some(_) => &SHARD_MAGIC,
    };
    let head = Folder::new(cache, false)
        .and_then(|folder| folder.open_file(inside.to_str().unwrap_or_default()))
        .and_then(|file| file.read_vec(0, magic.len() as u64));
    head.is_ok_and(|head| head == magic)
}
