//! Makes index and manifest again, in a new cache, from shards and metadata that are whole.

use std::path::{Path, PathBuf};

use dataset_rt_format::{
    CacheFiles, FileInfo, INDEX_FILE, IndexBuilder, MANIFEST_FILE, METADATA_FILE, Manifest,
    SHARD_DIR, SourceInfo, crc32c, shard_path,
};

use crate::cancel::Cancel;
use crate::disk::{self, OutFile};
use crate::error::{Error, Result};
use crate::reader::{CacheOptions, Problem, Problems, Survey, WholeFiles, survey, verify};
use crate::writer::names::check_source_name;
use crate::writer::publish::{Published, publish_fresh};
use crate::writer::staging::{Staging, Tmp, clean_up};
use crate::writer::{WRITER, created};

/// Bytes copied at once.
const COPY_CHUNK: usize = 1 << 20;

/// What became of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Where the repaired cache stands, if it does.
    pub path: PathBuf,
    /// Samples in it; `None`: nothing was written, and `problems` says why.
    pub samples: Option<u64>,
    /// What is not whole in shards and metadata.
    pub problems: Vec<Problem>,
    /// Problems that are counted only.
    pub omitted: u64,
    /// Files that are not those of the damaged cache.
    pub remade: Vec<&'static str>,
    /// What could not be made again, for people.
    pub lost: Vec<String>,
    /// Whether something vouches for every byte: a sound manifest, or a sound head of the index. Otherwise payloads are
    /// checked, and of the metadata only that its form is right.
    pub proven: bool,
}

/// Writes the cache at `path` anew at `output`, which must be free, with an index and a manifest made from its shards.
///
/// Published like every cache, after the whole of it was checked. The damaged cache is only read.
///
/// # Errors
/// [`Error::Argument`] for an `output` that can't be a cache's folder or lies in the damaged one, [`Error::Exists`] for
/// one that is taken, [`Error::NotFound`], [`Error::Io`], [`Error::Interrupted`]; [`Error::Damaged`] for a cache of a
/// later version. What is too damaged is no error, but in the report.
pub fn repair(
    path: &Path,
    output: &Path,
    options: CacheOptions,
    cancel: &Cancel,
) -> Result<RepairReport> {
    let files = WholeFiles::new(path, options, cancel)?;
    let (base, name, target) = target(files.folder().path(), output)?;
    let mut problems = Problems::default();
    let found = survey(&files, &mut problems)?;
    let mut report = RepairReport {
        path: target.clone(),
        samples: None,
        problems: problems.list,
        omitted: problems.omitted,
        remade: vec![],
        lost: vec![],
        proven: false,
    };
    let Some(found) = found else {
        return Ok(report);
    };
    clean_up(&base);
    disk::create_dir_all(&base)?;
    let staging = match Tmp::enter(&base, true)? {
        Some(tmp) => tmp.stage(&base, &name)?,
        None => return Err(Error::Internal("tmp was not made".to_owned())),
    };
    let index = index_bytes(&found);
    let manifest = manifest(&found, &index, files.folder().path(), &mut report);
    write(&files, &staging.cache(), &index, &manifest)?;
    let checked = CacheOptions {
        follow_links: false,
        ..options
    };
    verify(&staging.cache(), checked, cancel)?;
    report.remade = remade(&files, &found, &index)?;
    cancel.check()?;
    publish(&staging, &target)?;
    report.samples = Some(found.samples);
    report.proven = found.proven;
    Ok(report)
}

/// Where the new cache goes: its parent, its name, its whole path.
fn target(damaged: &Path, output: &Path) -> Result<(PathBuf, String, PathBuf)> {
    let refuse = |message: String| Error::Argument {
        argument: "output",
        message,
    };
    let target =
        std::path::absolute(output).map_err(|source| Error::io("resolve", output, source))?;
    let name = target.file_name().and_then(|name| name.to_str());
    let (Some(name), Some(base)) = (name, target.parent()) else {
        let shown = output.display();
        return Err(refuse(format!("output {shown} is no name of a folder")));
    };
    if let Err(Error::SourceName { reason, .. }) = check_source_name(name) {
        return Err(refuse(format!(
            "output {name:?} can't be a cache's folder: {reason}"
        )));
    }
    if target.symlink_metadata().is_ok() {
        return Err(exists(&target));
    }
    // By their real places: a link or a `..` may lead into the damaged cache.
    let real = |path: &Path| {
        let standing = path.ancestors().find(|place| place.exists());
        standing.and_then(|place| place.canonicalize().ok())
    };
    if let (Some(inside), Some(damaged)) = (real(base), real(damaged))
        && inside.starts_with(damaged)
    {
        return Err(refuse(format!(
            "output {} lies in the cache that is to be repaired",
            output.display()
        )));
    }
    Ok((base.to_path_buf(), name.to_owned(), target.clone()))
}

fn exists(target: &Path) -> Error {
    Error::Exists {
        path: target.to_path_buf(),
        message: "something stands there already, and a repair replaces nothing".to_owned(),
    }
}

fn publish(staging: &Staging, target: &Path) -> Result<()> {
    match publish_fresh(staging, target)? {
        Published::Done => Ok(()),
        Published::Lost => Err(exists(target)),
    }
}

/// The whole index.
fn index_bytes(found: &Survey) -> Vec<u8> {
    let mut builder = IndexBuilder::new(found.codec, found.align);
    let mut bytes = vec![0; usize::try_from(builder.entries_offset()).unwrap_or_default()];
    let start = bytes.len();
    let mut raw_lens = Vec::new();
    for (ordinal, part) in (0..).zip(&found.shards) {
        for (entry, raw_len) in part.footer.index_entries(ordinal) {
            bytes.extend_from_slice(&entry.encode());
            raw_lens.extend_from_slice(&raw_len.to_le_bytes());
        }
    }
    builder.push_entries(bytes.get(start..).unwrap_or_default());
    if found.codec.has_raw_lens() {
        builder.push_raw_lens(&raw_lens);
    }
    let shards = found.shards.len() as u64;
    let parts = builder.finish(shards, found.identity, &found.metadata_sums);
    // Bytes between sections are zero.
    let mut put = |at: u64, section: &[u8]| {
        bytes.resize(usize::try_from(at).unwrap_or(bytes.len()), 0);
        bytes.extend_from_slice(section);
    };
    if let Some(at) = parts.raw_lens_at {
        put(at, &raw_lens);
    }
    put(parts.tail_at, &parts.tail);
    for (slot, byte) in bytes.iter_mut().zip(&parts.head) {
        *slot = *byte;
    }
    bytes
}

/// The manifest: the old one as far as it is sound, and what the files say.
fn manifest(found: &Survey, index: &[u8], damaged: &Path, report: &mut RepairReport) -> Manifest {
    let index = FileInfo {
        size: index.len() as u64,
        crc32c: crc32c(index),
        sha256: None,
    };
    let shards: Vec<_> = found.shards.iter().map(|part| part.info.clone()).collect();
    if let Some(old) = &found.manifest {
        if !old.optional.is_empty() {
            let features = old.optional.join(", ");
            report.lost.push(format!("optional features: {features}"));
        }
        return Manifest {
            optional: vec![],
            payload_bytes: found.payload_bytes,
            stored_bytes: found.stored_bytes,
            samples: found.samples,
            metadata: found.metadata,
            index,
            shards,
            ..old.clone()
        };
    }
    let name = damaged.file_name().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default().into_owned();
    report.lost.extend([
        format!("name of the source: the folder's, {name:?}, is taken for it"),
        "fingerprint of the source".to_owned(),
        "date of writing: the repair's is taken for it".to_owned(),
        "descriptions of fields, texts of the user, media type, if there were any".to_owned(),
    ]);
    Manifest {
        required: vec![],
        optional: vec![],
        identity: found.identity,
        source: SourceInfo {
            name,
            fingerprint: None,
        },
        created: created::now(),
        writer: WRITER.to_owned(),
        samples: found.samples,
        payload_bytes: found.payload_bytes,
        stored_bytes: found.stored_bytes,
        schema: found.schema.clone(),
        codec: found.codec,
        user: None,
        media_type: None,
        align: found.align,
        metadata: found.metadata,
        index,
        shards,
    }
}

/// Writes all files, the manifest last. All is on the disk afterwards.
fn write(files: &WholeFiles<'_>, cache: &Path, index: &[u8], manifest: &Manifest) -> Result<()> {
    manifest.check().map_err(|error| {
        let path = files.folder().file_path(MANIFEST_FILE);
        Error::damaged(path, error)
    })?;
    disk::create_dir(cache)?;
    disk::create_dir(&cache.join(SHARD_DIR))?;
    let shards = manifest.shards.iter().map(|shard| shard_path(&shard.name));
    for path in shards.chain([METADATA_FILE.to_owned()]) {
        let bytes = files.read(&path)?;
        put(files.cancel(), cache.join(&path), bytes.as_ref())?;
    }
    put(files.cancel(), cache.join(INDEX_FILE), index)?;
    disk::sync_dir(&cache.join(SHARD_DIR))?;
    put(
        files.cancel(),
        cache.join(MANIFEST_FILE),
        &manifest.to_bytes(),
    )?;
    disk::sync_dir(cache)
}

fn put(cancel: &Cancel, path: PathBuf, bytes: &[u8]) -> Result<()> {
    let mut file = OutFile::create(path)?;
    for chunk in bytes.chunks(COPY_CHUNK) {
        cancel.check()?;
        file.append(chunk)?;
    }
    file.sync()
}

/// Which files the damaged cache does not have like this.
fn remade(files: &WholeFiles<'_>, found: &Survey, index: &[u8]) -> Result<Vec<&'static str>> {
    let mut remade = Vec::new();
    let same = match files.read(INDEX_FILE) {
        Ok(old) => old.as_ref() == index,
        Err(Error::Damaged { .. }) => false,
        Err(error) => return Err(error),
    };
    if !same {
        remade.push(INDEX_FILE);
    }
    if found.manifest.is_none() {
        remade.push(MANIFEST_FILE);
    }
    Ok(remade)
}
