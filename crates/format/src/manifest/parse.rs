//! Reading a manifest. The ORDER of checks is part of the format: tail, version, required features, then
//! the members.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::members::Members;
use super::root::{Root, SHARDS, ShardList};
use super::{FileInfo, Manifest, PREFIX, ShardInfo, SourceInfo, TAIL_END, TAIL_LEN, TAIL_START};
use crate::codec::Codec;
use crate::constants::{
    FORMAT_VERSION, MAX_ALIGN, MAX_FIELDS, MAX_INTEGER, MAX_SHARDS, SHARD_HEADER_LEN,
    SHARD_SIZE_LIMIT,
};
use crate::cursor::{hex, parse_hex};
use crate::error::FormatError;
use crate::layout::{INDEX_FILE, METADATA_FILE, check_shard_name};
use crate::schema::{Field, FieldType, Schema, check_field_name};
use crate::shard::shard_file_size;

impl Manifest {
    /// Reads a manifest from the bytes of its whole file.
    ///
    /// # Errors
    /// Codes `manifest_damaged`, `version_unsupported`, `feature_unsupported`, `manifest_invalid` and
    /// `name_invalid`, whichever rule is broken first.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        check_tail(bytes)?;
        let version = version(bytes)?;
        if version != FORMAT_VERSION {
            return Err(FormatError::VersionUnsupported {
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        let Root { members, shards } =
            serde_json::from_slice(bytes).map_err(|error| FormatError::ManifestJson {
                detail: error.to_string(),
            })?;
        let root = Members::top(&members);
        let required = root.texts("required")?;
        let optional = root.texts("optional")?;
        if !required.is_empty() {
            return Err(FormatError::FeatureUnsupported { features: required });
        }
        let (manifest, fields) = read_members(&root, shards, optional)?;
        check_count(fields.len(), manifest.shards.len())?;
        fields
            .iter()
            .try_for_each(|field| check_field_name(&field.name))?;
        manifest
            .shards
            .iter()
            .try_for_each(|shard| check_shard_name(&shard.name))?;
        let manifest = Self {
            schema: Schema::new(fields)?,
            ..manifest
        };
        manifest.check_shards()?;
        Ok(manifest)
    }

    /// Checks what a writer could have got wrong, since [`to_bytes`](Self::to_bytes) checks nothing:
    /// ranges, names and sums.
    ///
    /// # Errors
    /// Codes `manifest_invalid` and `name_invalid`.
    pub fn check(&self) -> Result<(), FormatError> {
        Self::parse(&self.to_bytes()).map(drop)
    }

    /// Checks that shards have different names and that their samples add up.
    fn check_shards(&self) -> Result<(), FormatError> {
        let mut names = HashSet::with_capacity(self.shards.len());
        let mut sum = 0_u64;
        for shard in &self.shards {
            if !names.insert(shard.name.as_str()) {
                return Err(FormatError::ShardNameTwice {
                    name: shard.name.clone(),
                });
            }
            sum = sum.saturating_add(shard.samples);
        }
        if sum != self.samples {
            let (member, what, stated) = ("samples", "the shards", self.samples);
            return Err(FormatError::ManifestSum {
                member,
                what,
                stated,
                sum,
            });
        }
        Ok(())
    }
}

fn check_count(fields: usize, shards: usize) -> Result<(), FormatError> {
    if fields > MAX_FIELDS {
        let (found, most) = (fields as u64, MAX_FIELDS as u64);
        return Err(FormatError::FieldCount { found, most });
    }
    if !(1..=MAX_SHARDS).contains(&(shards as u64)) {
        return Err(FormatError::ManifestMember {
            member: "shards".to_owned(),
            found: format!("a list of {shards}"),
            allowed: "1..=2^24 shards".to_owned(),
        });
    }
    Ok(())
}

fn check_tail(bytes: &[u8]) -> Result<(), FormatError> {
    let Some((body, tail)) = bytes.split_last_chunk::<TAIL_LEN>() else {
        let (found, least) = (bytes.len() as u64, TAIL_LEN as u64);
        return Err(FormatError::ManifestShort { found, least });
    };
    let stated = std::str::from_utf8(tail)
        .ok()
        .and_then(|tail| tail.strip_prefix(TAIL_START))
        .and_then(|tail| tail.strip_suffix(TAIL_END))
        .filter(|digits| parse_hex::<32>(digits).is_some())
        .ok_or(FormatError::ManifestTail)?;
    let found = hex(&Sha256::digest(body));
    if found != stated {
        return Err(FormatError::ManifestDigest {
            stated: stated.to_owned(),
            found,
        });
    }
    Ok(())
}

/// The number behind the prefix, read without a JSON parser: later versions may not be JSON behind it.
fn version(bytes: &[u8]) -> Result<u64, FormatError> {
    let rest = bytes
        .strip_prefix(PREFIX.as_bytes())
        .ok_or(FormatError::ManifestPrefix)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = rest
        .get(..digits)
        .and_then(|digits| std::str::from_utf8(digits).ok());
    let text = text.unwrap_or_default();
    match text.parse::<u64>() {
        Ok(version)
            if version <= MAX_INTEGER
                && (text == "0" || !text.starts_with('0'))
                && rest.get(digits) == Some(&b',') =>
        {
            Ok(version)
        }
        _ => Err(FormatError::ManifestMember {
            member: "version".to_owned(),
            found: format!("{text:?}, or has something else than a comma behind it"),
            allowed: "an integer up to 2^53-1 without leading zeros".to_owned(),
        }),
    }
}

/// Members whose types, ranges and forms are right, and whose names are not yet checked. The fields are
/// apart from the manifest, whose schema is still empty.
fn read_members(
    root: &Members<'_>,
    shards: Option<ShardList>,
    optional: Vec<String>,
) -> Result<(Manifest, Vec<Field>), FormatError> {
    let source = root.object("source")?;
    let fingerprint = match source.get("fingerprint") {
        Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        _ => return Err(source.error("fingerprint", "text, null")),
    };
    let created = root.text("created")?;
    if !is_utc_time(created) {
        return Err(root.error("created", "a time like 2025-01-31T23:59:59Z"));
    }
    let codec = root.object("codec")?;
    let Some(codec) = Codec::from_name(codec.text("name")?) else {
        return Err(codec.error("name", "none, lz4"));
    };
    let manifest = Manifest {
        required: Vec::new(),
        optional,
        identity: root.hex("identity")?,
        source: SourceInfo {
            name: source.text("name")?.to_owned(),
            fingerprint,
        },
        created: created.to_owned(),
        writer: root.text("writer")?.to_owned(),
        samples: root.integer("samples", 1)?,
        payload_bytes: root.integer("payload_bytes", 0)?,
        stored_bytes: root.integer("stored_bytes", 0)?,
        schema: Schema::default(),
        codec,
        user: user(root)?,
        media_type: root.optional_text("media_type")?,
        align: alignment(root)?,
        metadata: named_file(root, "metadata", METADATA_FILE)?,
        index: named_file(root, "index", INDEX_FILE)?,
        shards: match shards {
            Some(list) => list.finish(codec)?,
            None => return Err(root.error("shards", "a list")),
        },
    };
    Ok((manifest, fields(root)?))
}

fn fields(root: &Members<'_>) -> Result<Vec<Field>, FormatError> {
    let mut fields = Vec::new();
    for (position, value) in root.list("fields")?.iter().enumerate() {
        let field = Members::item(value, "fields", position)?;
        let field_type = FieldType::from_name(field.text("type")?)
            .ok_or_else(|| field.error("type", "bool, int64, float64, utf8"))?;
        fields.push(Field {
            name: field.text("name")?.to_owned(),
            field_type,
            nullable: field.boolean("nullable")?,
            description: field.optional_text("description")?,
        });
    }
    Ok(fields)
}

fn user(root: &Members<'_>) -> Result<Option<BTreeMap<String, String>>, FormatError> {
    let Some(value) = root.get("user") else {
        return Ok(None);
    };
    let allowed = || root.error("user", "an object of texts");
    let mut texts = BTreeMap::new();
    for (key, value) in value.as_object().ok_or_else(allowed)? {
        let text = value.as_str().ok_or_else(allowed)?;
        texts.insert(key.clone(), text.to_owned());
    }
    Ok(Some(texts))
}

fn alignment(root: &Members<'_>) -> Result<u8, FormatError> {
    let bytes = root.integer("alignment", 1)?;
    (0..=MAX_ALIGN)
        .find(|align| bytes == 1 << *align)
        .ok_or_else(|| root.error("alignment", "a power of two in 1..=4096"))
}

fn named_file(root: &Members<'_>, member: &str, name: &str) -> Result<FileInfo, FormatError> {
    let members = root.object(member)?;
    if members.text("name")? != name {
        return Err(members.error("name", name));
    }
    file(&members)
}

fn file(file: &Members<'_>) -> Result<FileInfo, FormatError> {
    Ok(FileInfo {
        size: file.integer("size", 0)?,
        crc32c: file.crc("crc32c")?,
        sha256: file.optional_hex("sha256")?,
    })
}

/// The shard at `position` of the list. Without a codec its size is not compared with the number of its samples.
pub(super) fn shard(
    value: &Value,
    position: usize,
    codec: Option<Codec>,
) -> Result<ShardInfo, FormatError> {
    let shard = Members::item(value, SHARDS, position)?;
    let name = shard.text("name")?.to_owned();
    let FileInfo {
        size,
        crc32c,
        sha256,
    } = file(&shard)?;
    let samples = shard.integer("samples", 1)?;
    if let Some(codec) = codec {
        check_shard_size(size, samples, position, codec)?;
    }
    Ok(ShardInfo {
        name,
        size,
        samples,
        id: shard.hex("id")?,
        crc32c,
        sha256,
    })
}

pub(super) fn check_shard_size(
    size: u64,
    samples: u64,
    position: usize,
    codec: Codec,
) -> Result<(), FormatError> {
    let least = shard_file_size(SHARD_HEADER_LEN, samples, codec);
    if (least..SHARD_SIZE_LIMIT).contains(&size) {
        return Ok(());
    }
    Err(FormatError::ManifestMember {
        member: format!("{SHARDS}[{position}].size"),
        found: size.to_string(),
        allowed: format!("{least}..2^40 for {samples} samples"),
    })
}

/// Whether `text` is a time of RFC 3339 in UTC: `2025-01-31T23:59:59Z`, with a fraction of any length.
fn is_utc_time(text: &str) -> bool {
    let pattern = b"dddd-dd-ddTdd:dd:dd";
    let bytes = text.as_bytes();
    let (Some(head), Some(rest)) = (bytes.get(..pattern.len()), bytes.get(pattern.len()..)) else {
        return false;
    };
    let shape = head.iter().zip(pattern).all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        _ => byte == form,
    });
    let two = |at: usize| {
        text.get(at..at + 2)
            .and_then(|digits| digits.parse::<u8>().ok())
    };
    let within = |at, range: std::ops::RangeInclusive<u8>| {
        two(at).is_some_and(|number| range.contains(&number))
    };
    let fraction = match rest {
        [b'Z'] => true,
        [b'.', digits @ .., b'Z'] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    // 60 is a leap second.
    shape
        && fraction
        && within(5, 1..=12)
        && within(8, 1..=31)
        && within(11, 0..=23)
        && within(14, 0..=59)
        && within(17, 0..=60)
}
