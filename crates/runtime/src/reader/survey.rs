//! What a cache still has when index, manifest or both are not to be trusted: shards and metadata by themselves.
//!
//! A shard tells by its own checksums whether it is whole. The metadata does not: its sums stand in the index, its
//! checksum in the manifest, and both stand for it in the identity. One of these is enough.

use dataset_rt_format::{
    BlockSums, CacheFiles, ChainLink, Codec, FileInfo, FormatError, INDEX_FILE, IndexHeader,
    MANIFEST_FILE, METADATA_FILE, Manifest, MetadataLayout, SHARD_DIR, SHARD_SUFFIX, Schema,
    ShardFooter, ShardHeader, ShardInfo, ShardTrailer, check_chain, check_shard_name, crc32c,
    decode_sums, identity_of_metadata, metadata_contents, shard_path,
};

use crate::error::{Error, Result};

use super::problem::Problems;
use super::verify::WholeFiles;

/// A cache as its shards and metadata give it.
pub(crate) struct Survey {
    /// The manifest, if it is sound.
    pub(crate) manifest: Option<Manifest>,
    pub(crate) schema: Schema,
    pub(crate) codec: Codec,
    pub(crate) align: u8,
    /// In the order of the samples.
    pub(crate) shards: Vec<Part>,
    pub(crate) metadata: FileInfo,
    pub(crate) metadata_sums: Vec<u32>,
    pub(crate) samples: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) identity: [u8; 32],
    /// Whether manifest or index vouch for the metadata; otherwise only its form is known to be right.
    pub(crate) proven: bool,
}

/// A whole shard.
pub(crate) struct Part {
    pub(crate) info: ShardInfo,
    pub(crate) footer: ShardFooter,
    link: ChainLink,
}

/// What the index says about itself, if its head is sound.
struct IndexFacts {
    identity: [u8; 32],
    metadata_sums: Option<Vec<u32>>,
}

/// Reads shards and metadata whole. `None`: something in them is not whole, and `problems` says what.
///
/// # Errors
/// What keeps from looking: [`Error::Io`], [`Error::Interrupted`]; [`Error::Damaged`] for a cache of a later version.
pub(crate) fn survey(files: &WholeFiles<'_>, problems: &mut Problems) -> Result<Option<Survey>> {
    let before = problems.len();
    let manifest = read_manifest(files)?;
    let shards = read_shards(files, manifest.as_ref(), problems)?;
    let whole = problems.len() == before;
    let samples = shards.iter().map(|part| part.info.samples).sum();
    let expected = whole.then_some(samples);
    let Some(metadata) = read_metadata(files, manifest.as_ref(), expected, problems)? else {
        return Ok(None);
    };
    let Some(first) = shards.first().filter(|_| problems.len() == before) else {
        return Ok(None);
    };
    let header = *first.footer.header();
    let refuse = |name: &str, error| Error::damaged(files.folder().file_path(name), error);
    let identity = identity_of(&shards, &metadata).map_err(|error| refuse(METADATA_FILE, error))?;
    let index = read_index(files, manifest.as_ref())?;
    let stated = manifest.as_ref().map(|manifest| manifest.identity);
    let (by, stated) = match (stated, &index) {
        (Some(stated), _) => (MANIFEST_FILE, Some(stated)),
        (None, Some(index)) => (INDEX_FILE, Some(index.identity)),
        (None, None) => (MANIFEST_FILE, None),
    };
    if let Some(stated) = stated.filter(|stated| *stated != identity) {
        let hex = |id: [u8; 32]| id.iter().map(|byte| format!("{byte:02x}")).collect();
        let error = FormatError::IdentityMismatch {
            stated: hex(stated),
            found: hex(identity),
        };
        problems.add(refuse(by, error), 0..0)?;
        return Ok(None);
    }
    let entries = || shards.iter().flat_map(|part| part.footer.entries());
    Ok(Some(Survey {
        schema: metadata.schema,
        codec: header.codec,
        align: header.align,
        metadata: metadata.info,
        metadata_sums: metadata.sums,
        samples,
        payload_bytes: entries().map(|entry| u64::from(entry.raw_len)).sum(),
        stored_bytes: entries().map(|entry| u64::from(entry.stored_len)).sum(),
        identity,
        proven: stated.is_some(),
        manifest,
        shards,
    }))
}

/// The manifest, unless it is missing or damaged. A folder without any file of a cache is an error.
fn read_manifest(files: &WholeFiles<'_>) -> Result<Option<Manifest>> {
    let parsed = files.size(MANIFEST_FILE).and_then(|_| {
        let bytes = files.read(MANIFEST_FILE)?;
        Manifest::parse(bytes.as_ref()).map_err(|error| files.refuse(MANIFEST_FILE, error))
    });
    match parsed {
        Ok(manifest) => Ok(Some(manifest)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an error says that bytes are wrong; a cache of a later version is no damaged one.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Damaged { source, .. }
        if !matches!(source.code(), "version_unsupported" | "feature_unsupported"))
}

/// Turns a damage into a problem, anything else into an error.
fn note<T>(result: Result<T>, problems: &mut Problems) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_damage(&error) => problems.add(error, 0..0).map(|()| None),
        Err(error) => Err(error),
    }
}

fn read_index(files: &WholeFiles<'_>, manifest: Option<&Manifest>) -> Result<Option<IndexFacts>> {
    let bytes = match files.read(INDEX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if is_damage(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let bytes = bytes.as_ref();
    let Ok(header) = IndexHeader::decode(bytes, bytes.len() as u64, manifest) else {
        return Ok(None);
    };
    let section = header.metadata_sums;
    let stored = slice(bytes, section.offset, section.length);
    let metadata_sums = section
        .check_crc(stored)
        .is_ok()
        .then(|| decode_sums(stored));
    Ok(Some(IndexFacts {
        identity: header.identity,
        metadata_sums,
    }))
}

/// Every shard that the manifest names, or that is there.
fn read_shards(
    files: &WholeFiles<'_>,
    manifest: Option<&Manifest>,
    problems: &mut Problems,
) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let named: Vec<(String, Option<&ShardInfo>)> = match manifest {
        Some(manifest) => {
            let shards = manifest.shards.iter();
            shards.map(|info| (info.name.clone(), Some(info))).collect()
        }
        None => {
            let names = note(list_shards(files), problems)?.unwrap_or_default();
            names.into_iter().map(|name| (name, None)).collect()
        }
    };
    for (name, info) in named {
        if let Some(part) = read_shard(files, name, info, problems)? {
            parts.push(part);
        }
    }
    if manifest.is_none() {
        parts.sort_by_key(|part| part.link.key());
    }
    let packing = match (manifest, parts.first()) {
        (Some(manifest), _) => Some((manifest.codec, manifest.align)),
        (None, Some(part)) => Some((part.footer.header().codec, part.footer.header().align)),
        (None, None) => None,
    };
    if let Some((codec, align)) = packing {
        for part in &parts {
            let checked = part.footer.header().check_packing(codec, align);
            note(
                checked.map_err(|error| files.refuse(&shard_path(&part.info.name), error)),
                problems,
            )?;
        }
    }
    let links: Vec<ChainLink> = parts.iter().map(|part| part.link).collect();
    let chained = check_chain(&links).map_err(|error| files.refuse(SHARD_DIR, error));
    note(chained, problems)?;
    if parts.is_empty() && problems.len() == 0 {
        let name = "any shard".to_owned();
        let error = files.refuse(SHARD_DIR, FormatError::FileMissing { name });
        problems.add(error, 0..0)?;
    }
    Ok(parts)
}

/// Names of the shards in the folder, for caches without a manifest.
fn list_shards(files: &WholeFiles<'_>) -> Result<Vec<String>> {
    // Opened first, so that a link in its place is refused.
    let directory = files.folder().open()?.open_directory(SHARD_DIR)?;
    let path = directory.path().to_path_buf();
    let listing =
        std::fs::read_dir(&path).map_err(|source| Error::io("list", path.clone(), source))?;
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|source| Error::io("list", path.clone(), source))?;
        let file = entry.file_name();
        let name = file
            .to_str()
            .and_then(|file| file.strip_suffix(SHARD_SUFFIX));
        if let Some(name) = name.filter(|name| check_shard_name(name).is_ok()) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn read_shard(
    files: &WholeFiles<'_>,
    name: String,
    info: Option<&ShardInfo>,
    problems: &mut Problems,
) -> Result<Option<Part>> {
    let path = shard_path(&name);
    let Some(bytes) = note(files.read(&path), problems)? else {
        return Ok(None);
    };
    let bytes = bytes.as_ref();
    let Some((trailer, footer)) = note(read_tail(files, &path, bytes, info), problems)? else {
        return Ok(None);
    };
    let before = problems.len();
    let codec = footer.header().codec;
    let mut payload = Vec::new();
    let first = footer.header().first;
    for (record, (entry, raw_len)) in (first..).zip(footer.index_entries(0)) {
        files.cancel().check()?;
        let stored = slice(bytes, entry.offset, u64::from(entry.stored_len));
        let checked = check_record(codec, stored, raw_len, entry.crc, &mut payload);
        if let Err(error) = checked {
            let error = FormatError::Record {
                sample: record,
                offset: entry.offset,
                source: Box::new(error),
            };
            problems.add(files.refuse(&path, error), 0..0)?;
        }
    }
    let padding = footer
        .check_padding(bytes)
        .map_err(|error| files.refuse(&path, error));
    note(padding, problems)?;
    if problems.len() != before {
        return Ok(None);
    }
    let found = crc32c(bytes);
    Ok(Some(Part {
        link: ChainLink::new(footer.header(), &trailer),
        info: ShardInfo {
            name,
            size: trailer.file_size,
            samples: trailer.count,
            id: trailer.id,
            crc32c: found,
            sha256: info
                .filter(|info| info.crc32c == found)
                .and_then(|info| info.sha256),
        },
        footer,
    }))
}

fn read_tail(
    files: &WholeFiles<'_>,
    path: &str,
    bytes: &[u8],
    info: Option<&ShardInfo>,
) -> Result<(ShardTrailer, ShardFooter)> {
    let read = || {
        let header = ShardHeader::decode(bytes)?;
        let trailer = ShardTrailer::decode(bytes, bytes.len() as u64, header.codec, info)?;
        let range = trailer.footer_range();
        let footer = slice(bytes, range.start, range.end - range.start);
        let footer = ShardFooter::decode(bytes, &trailer, footer)?;
        Ok((trailer, footer))
    };
    read().map_err(|error| files.refuse(path, error))
}

/// The metadata, whole.
struct Rows {
    bytes: super::verify::Bytes,
    schema: Schema,
    layout: MetadataLayout,
    info: FileInfo,
    sums: Vec<u32>,
}

fn read_metadata(
    files: &WholeFiles<'_>,
    manifest: Option<&Manifest>,
    samples: Option<u64>,
    problems: &mut Problems,
) -> Result<Option<Rows>> {
    let Some(bytes) = note(files.read(METADATA_FILE), problems)? else {
        return Ok(None);
    };
    let mut sums = BlockSums::new();
    sums.push(bytes.as_ref());
    let (found, sums) = (sums.crc(), sums.finish());
    let stated = read_index(files, manifest)?.and_then(|index| index.metadata_sums);
    let read = || {
        let file = bytes.as_ref();
        if let Some(stated) = stated.filter(|_| manifest.is_none()) {
            for (block, sum) in (0..).zip(&sums) {
                let at = usize::try_from(block).ok();
                let stated = at.and_then(|at| stated.get(at)).copied().unwrap_or(0);
                if stated != *sum {
                    let found = *sum;
                    return Err(FormatError::MetadataBlockChecksum {
                        block,
                        stated,
                        found,
                    });
                }
            }
        }
        if let Some(stated) = manifest
            .map(|m| m.metadata.crc32c)
            .filter(|crc| *crc != found)
        {
            let name = METADATA_FILE.to_owned();
            return Err(FormatError::FileChecksum {
                name,
                stated,
                found,
            });
        }
        let (schema, rows) = match manifest {
            Some(manifest) => (manifest.schema.clone(), manifest.samples),
            None => metadata_contents(file)?,
        };
        let layout = MetadataLayout::parse_bytes(file, &schema, rows)?;
        layout.check_values(file)?;
        match samples {
            Some(expected) if expected != rows => Err(FormatError::MetadataRows {
                found: rows,
                expected,
            }),
            _ => Ok((schema, layout)),
        }
    };
    let read = read().map_err(|error| files.refuse(METADATA_FILE, error));
    let Some((schema, layout)) = note(read, problems)? else {
        return Ok(None);
    };
    let info = FileInfo {
        size: bytes.as_ref().len() as u64,
        crc32c: found,
        sha256: manifest.and_then(|manifest| manifest.metadata.sha256),
    };
    Ok(Some(Rows {
        bytes,
        schema,
        layout,
        info,
        sums,
    }))
}

/// The digest of the contents.
fn identity_of(shards: &[Part], rows: &Rows) -> std::result::Result<[u8; 32], FormatError> {
    let mut entries = shards.iter().flat_map(|part| part.footer.entries());
    identity_of_metadata(&rows.schema, &rows.layout, rows.bytes.as_ref(), |_| {
        Ok(entries.next().map(|entry| (entry.raw_len, entry.crc)))
    })
}

/// Decodes a record and compares the payload with its checksum.
pub(crate) fn check_record(
    codec: Codec,
    stored: &[u8],
    raw_len: u32,
    crc: u32,
    payload: &mut Vec<u8>,
) -> std::result::Result<(), FormatError> {
    let raw_len = usize::try_from(raw_len).unwrap_or(usize::MAX);
    let found = if stored.len() == raw_len {
        crc32c(stored)
    } else {
        payload.clear();
        payload.resize(raw_len, 0);
        codec.decode(stored, payload)?;
        crc32c(payload)
    };
    if found == crc {
        return Ok(());
    }
    Err(FormatError::RecordChecksum { stated: crc, found })
}

/// Bytes of a range; none where the file does not have it.
pub(crate) fn slice(file: &[u8], start: u64, len: u64) -> &[u8] {
    let start = usize::try_from(start).ok();
    let len = usize::try_from(len).ok();
    start
        .zip(len)
        .and_then(|(start, len)| file.get(start..start.checked_add(len)?))
        .unwrap_or_default()
}
