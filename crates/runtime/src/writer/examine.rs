//! Whether our files make up a usable cache: what opening it would find, and with a whole check every byte.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use dataset_rt_format::constants::INDEX_HEADER_LEN;
use dataset_rt_format::{
    Crc32c, FormatError, INDEX_FILE, IndexHeader, MANIFEST_FILE, METADATA_FILE, Manifest,
    MetadataLayout, Section, index_head_len, shard_path,
};

use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// Bytes read at once when a file is checked whole.
const CHECK_CHUNK: usize = 1 << 20;

/// Why something of ours is no cache.
pub(crate) enum Defect {
    /// A rule of the format, and the file that breaks it.
    Format(String, FormatError),
    /// It can't be told.
    Other(Error),
}

impl From<Error> for Defect {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// A part of the metadata that was read, or why not.
enum Part {
    Format(FormatError),
    Io(io::Error),
}

impl From<FormatError> for Part {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

/// Opens a regular file. A link is not followed and a FIFO does not block.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// Checks the manifest, that all it names is there in the right size, and the structure of index and metadata; with
/// `whole` also the checksum of every file.
pub(crate) fn examine(path: &Path, whole: bool, cancel: &Cancel) -> Result<Manifest, Defect> {
    let manifest = read_manifest(path)?;
    for (name, file) in [
        (METADATA_FILE, &manifest.metadata),
        (INDEX_FILE, &manifest.index),
    ] {
        examine_file(path, name, file.size, whole.then_some(file.crc32c), cancel)?;
    }
    for shard in &manifest.shards {
        let name = shard_path(&shard.name);
        examine_file(
            path,
            &name,
            shard.size,
            whole.then_some(shard.crc32c),
            cancel,
        )?;
    }
    examine_index(path, &manifest)?;
    examine_metadata(path, &manifest)?;
    Ok(manifest)
}

fn read_manifest(path: &Path) -> Result<Manifest, Defect> {
    let full = path.join(MANIFEST_FILE);
    let broken = |error| Defect::Format(MANIFEST_FILE.to_owned(), error);
    let mut bytes = Vec::new();
    match open(&full).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(broken(FormatError::FileMissing {
                name: MANIFEST_FILE.to_owned(),
            }));
        }
        Err(source) => return Err(Error::io("read", full, source).into()),
        Ok(_) => {}
    }
    Manifest::parse(&bytes).map_err(broken)
}

fn examine_file(
    path: &Path,
    name: &str,
    size: u64,
    crc: Option<u32>,
    cancel: &Cancel,
) -> Result<(), Defect> {
    cancel.check()?;
    let broken = |error| Err(Defect::Format(name.to_owned(), error));
    let full = path.join(name);
    let io_error = |source| Defect::Other(Error::io("read", full.clone(), source));
    let found = match fs::symlink_metadata(&full) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return broken(FormatError::FileMissing {
                name: name.to_owned(),
            });
        }
        found => found.map_err(io_error)?.len(),
    };
    if found != size {
        return broken(FormatError::FileSize {
            name: name.to_owned(),
            stated: size,
            found,
        });
    }
    let Some(stated) = crc else { return Ok(()) };
    let mut file = open(&full).map_err(io_error)?;
    let mut running = Crc32c::new();
    let mut chunk = vec![0; CHECK_CHUNK];
    loop {
        cancel.check()?;
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(filled) => running.update(chunk.get(..filled).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io_error(error)),
        }
    }
    let found = running.value();
    if found != stated {
        return broken(FormatError::FileChecksum {
            name: name.to_owned(),
            stated,
            found,
        });
    }
    Ok(())
}

/// Reads a part of a file whose size was checked.
fn read_part(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn examine_index(path: &Path, manifest: &Manifest) -> Result<(), Defect> {
    let full = path.join(INDEX_FILE);
    let broken = |error| Defect::Format(INDEX_FILE.to_owned(), error);
    let io_error = |source| Defect::Other(Error::io("read", full.clone(), source));
    let file = open(&full).map_err(io_error)?;
    let size = manifest.index.size;
    let start = read_part(&file, 0, INDEX_HEADER_LEN.min(size)).map_err(io_error)?;
    let needed = index_head_len(&start, size).map_err(broken)?;
    let head = read_part(&file, 0, needed.min(size)).map_err(io_error)?;
    let header = IndexHeader::decode(&head, size, Some(manifest)).map_err(broken)?;
    let sums: [Option<&Section>; 3] = [
        Some(&header.entry_sums),
        header.raw_len_sums.as_ref(),
        Some(&header.metadata_sums),
    ];
    for section in sums.into_iter().flatten() {
        let bytes = read_part(&file, section.offset, section.length).map_err(io_error)?;
        section.check_crc(&bytes).map_err(broken)?;
    }
    Ok(())
}

fn examine_metadata(path: &Path, manifest: &Manifest) -> Result<(), Defect> {
    let full = path.join(METADATA_FILE);
    let file = open(&full).map_err(|source| Error::io("read", full.clone(), source))?;
    let mut read = |offset, len| match read_part(&file, offset, len) {
        Ok(bytes) => Ok(Cow::Owned(bytes)),
        Err(error) => Err(Part::Io(error)),
    };
    let size = manifest.metadata.size;
    match MetadataLayout::parse(size, &manifest.schema, manifest.samples, &mut read) {
        Ok(_) => Ok(()),
        Err(Part::Format(error)) => Err(Defect::Format(METADATA_FILE.to_owned(), error)),
        Err(Part::Io(source)) => Err(Error::io("read", full, source).into()),
    }
}
