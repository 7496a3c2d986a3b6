//! One variant per broken rule; each has the error code that the specification gives to it.

/// Every error code, in the order in which a reader meets them.
pub const ERROR_CODES: [&str; 18] = [
    "manifest_damaged",
    "version_unsupported",
    "feature_unsupported",
    "manifest_invalid",
    "name_invalid",
    "file_missing",
    "file_size",
    "index_damaged",
    "index_invalid",
    "entry_invalid",
    "metadata_damaged",
    "metadata_invalid",
    "shard_damaged",
    "shard_invalid",
    "shard_mismatch",
    "record_damaged",
    "checksum_mismatch",
    "identity_mismatch",
];

/// A rule of the format that bytes break. The file's name is known to the caller and not repeated here,
/// except where one file speaks about another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the message of each variant says what its fields are"
)]
pub enum FormatError {
    // manifest_damaged
    #[error("the manifest has {found} bytes, and no manifest has fewer than {least}")]
    ManifestShort { found: u64, least: u64 },
    #[error(
        "the manifest does not end with its SHA-256: it was cut off, changed, or is of another kind"
    )]
    ManifestTail,
    #[error("the manifest's bytes have the SHA-256 {found}, but its tail says {stated}")]
    ManifestDigest { stated: String, found: String },

    #[error("the manifest does not begin with {{\"format\":\"dataset_rt.cache\",\"version\"")]
    ManifestPrefix,

    // version_unsupported
    #[error("format version {found} is needed, and this library reads version {supported} only")]
    VersionUnsupported { found: u64, supported: u64 },

    // feature_unsupported
    #[error("required features that this library does not know: {}", features.join(", "))]
    FeatureUnsupported { features: Vec<String> },

    // manifest_invalid
    #[error("the manifest is not JSON: {detail}")]
    ManifestJson { detail: String },
    #[error("manifest member {member} is {found}; allowed: {allowed}")]
    ManifestMember {
        member: String,
        found: String,
        allowed: String,
    },
    #[error("manifest member {member} says {stated}, but {what} add up to {sum}")]
    ManifestSum {
        member: &'static str,
        what: &'static str,
        stated: u64,
        sum: u64,
    },
    #[error("two shards are named {name:?}")]
    ShardNameTwice { name: String },
    #[error("two metadata fields are named {name:?}")]
    FieldTwice { name: String },
    #[error("{found} metadata fields; allowed: up to {most}")]
    FieldCount { found: u64, most: u64 },

    // name_invalid
    #[error("shard name {name:?}; allowed: a digit, then 5 to 99 of 0-9, a-z and -")]
    ShardName { name: String },
    #[error("metadata field name {name:?} holds U+0000, which Arrow interfaces cannot carry")]
    FieldNameNul { name: String },
    #[error("metadata field name {name:?} is reserved (weight, cache_id, sample_id)")]
    FieldNameReserved { name: String },
    #[error("metadata field name of {found} bytes; allowed: up to {most} bytes of UTF-8")]
    FieldNameLong { found: u64, most: u64 },

    // file_missing, file_size
    #[error("{name} is missing")]
    FileMissing { name: String },
    #[error("{name} has {found} bytes, but the manifest says {stated}")]
    FileSize {
        name: String,
        stated: u64,
        found: u64,
    },

    // index_damaged
    #[error("the index does not begin with its magic bytes")]
    IndexMagic,
    #[error("the index has {found} bytes, and its header and table need {needed}")]
    IndexShort { found: u64, needed: u64 },
    #[error("the index's header and table have CRC {found:08x}, stated is {stated:08x}")]
    IndexHeadChecksum { stated: u32, found: u32 },
    #[error("section {kind} of the index has CRC {found:08x}, stated is {stated:08x}")]
    IndexSectionChecksum { kind: u32, stated: u32, found: u32 },
    #[error(
        "block {block} of section {kind} of the index has CRC {found:08x}, stated {stated:08x}"
    )]
    IndexBlockChecksum {
        kind: u32,
        block: u64,
        stated: u32,
        found: u32,
    },

    // index_invalid
    #[error("index header: {field} is {found}; allowed: {allowed}")]
    IndexField {
        field: &'static str,
        found: u64,
        allowed: String,
    },
    #[error("index section {kind}: {field} is {found}; allowed: {allowed}")]
    IndexSection {
        kind: u32,
        field: &'static str,
        found: u64,
        allowed: String,
    },
    #[error("the index has no section {kind}, or has it twice or out of order")]
    IndexSections { kind: u32 },
    #[error("the index has the byte {found:#04x} at {offset}, between its sections; allowed: 0")]
    IndexPadding { offset: u64, found: u8 },
    #[error("the index is of the cache {found}, the manifest of the cache {expected}")]
    IndexIdentity { expected: String, found: String },

    // entry_invalid
    #[error("index entry {sample}: shard {shard}, but there are {shards}")]
    EntryShard {
        sample: u64,
        shard: u32,
        shards: u64,
    },
    #[error("index entry {sample}: offset {offset}; allowed: a multiple of {alignment} from 64")]
    EntryOffset {
        sample: u64,
        offset: u64,
        alignment: u64,
    },
    #[error("index entry {sample}: the record ends at {end}, the shard's records before {limit}")]
    EntryEnd { sample: u64, end: u64, limit: u64 },
    #[error("index entry {sample}: {stored_len} stored bytes cannot stand for {raw_len}")]
    EntryLengths {
        sample: u64,
        stored_len: u64,
        raw_len: u64,
    },
    #[error("index entry {sample} is {found}; by the footer of its shard it is {expected}")]
    EntryFooter {
        sample: u64,
        found: String,
        expected: String,
    },

    // metadata_damaged
    #[error("block {block} of the metadata has CRC {found:08x}, stated is {stated:08x}")]
    MetadataBlockChecksum { block: u64, stated: u32, found: u32 },

    // metadata_invalid
    #[error("the metadata does not begin and end with ARROW1")]
    MetadataMagic,
    #[error("metadata: {what} at {offset}, {len} bytes long, is not inside 0..{limit}")]
    MetadataBounds {
        what: &'static str,
        offset: i64,
        len: i64,
        limit: u64,
    },
    #[error("metadata: {what} at {offset}; allowed: multiples of 8")]
    MetadataAlignment { what: &'static str, offset: i64 },
    #[error("metadata: {what} at {offset} is not behind the one before, which ends at {end}")]
    MetadataOverlap {
        what: &'static str,
        offset: i64,
        end: u64,
    },
    #[error("metadata: {what} is not sound: {detail}")]
    MetadataMessage { what: &'static str, detail: String },
    #[error("metadata: {what} is {found}; allowed: {allowed}")]
    MetadataValue {
        what: &'static str,
        found: String,
        allowed: String,
    },
    #[error("metadata field {field}: {found}; by the manifest it is {expected}")]
    MetadataField {
        field: u64,
        found: String,
        expected: String,
    },
    #[error("the metadata has {found} rows, but there are {expected} samples")]
    MetadataRows { found: u64, expected: u64 },
    #[error("metadata: {what} takes {found} bytes, and {rows} rows need {needed}")]
    MetadataBuffer {
        what: &'static str,
        found: u64,
        needed: u64,
        rows: u64,
    },
    #[error("metadata: row {row} of a batch of {rows}")]
    MetadataRow { row: u64, rows: u64 },
    #[error("metadata: text of row {row} of its batch is at {start}..{end}, inside 0..{limit}")]
    TextOffsets {
        row: u64,
        start: i64,
        end: i64,
        limit: u64,
    },
    #[error("metadata: text of row {row} of its batch is not UTF-8")]
    TextUtf8 { row: u64 },
    #[error("metadata: text of {found} bytes; allowed: up to {most}")]
    TextLong { found: u64, most: u64 },
    #[error("metadata: {found} values are null, stated are {stated}")]
    NullCount { stated: u64, found: u64 },
    #[error("columns of {found} rows and {columns} fields where {expected} was needed")]
    ColumnsShape {
        found: u64,
        columns: u64,
        expected: String,
    },

    // shard_damaged
    #[error("the shard's {part} does not have its magic bytes")]
    ShardMagic { part: &'static str },
    #[error("the shard has {found} bytes where its {part} needs {needed}")]
    ShardShort {
        part: &'static str,
        found: u64,
        needed: u64,
    },
    #[error("the shard's {part} has CRC {found:08x}, stated is {stated:08x}")]
    ShardChecksum {
        part: &'static str,
        stated: u32,
        found: u32,
    },

    // shard_invalid
    #[error("shard {part}: {field} is {found}; allowed: {allowed}")]
    ShardField {
        part: &'static str,
        field: &'static str,
        found: u64,
        allowed: String,
    },
    #[error("the shard has the byte {found:#04x} at {offset}, between its records; allowed: 0")]
    ShardPadding { offset: u64, found: u8 },
    #[error("the shard's id by its header and footer is {expected}, its trailer says {found}")]
    ShardId { expected: String, found: String },
    #[error("shard footer, record {record}: {stored_len} stored bytes cannot stand for {raw_len}")]
    ShardRecord {
        record: u64,
        stored_len: u64,
        raw_len: u64,
    },
    #[error("shard {ordinal} of part {part}: {field} is {found}; allowed: {allowed}")]
    ShardChain {
        part: u64,
        ordinal: u32,
        field: &'static str,
        found: u64,
        allowed: String,
    },

    // shard_mismatch
    #[error("the shard's id is {found}, the manifest names {expected}")]
    ShardMismatch { expected: String, found: String },

    // record_damaged
    #[error("the record's {stored_len} stored bytes do not decode to {raw_len}")]
    RecordDecode { stored_len: u64, raw_len: u64 },
    #[error("the payload has CRC {found:08x}, stated is {stated:08x}")]
    RecordChecksum { stated: u32, found: u32 },
    #[error("sample {sample}, stored at {offset}: {source}")]
    Record {
        sample: u64,
        offset: u64,
        source: Box<FormatError>,
    },

    // checksum_mismatch
    #[error("{name} has CRC {found:08x}, the manifest says {stated:08x}")]
    FileChecksum {
        name: String,
        stated: u32,
        found: u32,
    },
    #[error("{name} has SHA-256 {found}, the manifest says {stated}")]
    FileDigest {
        name: String,
        stated: String,
        found: String,
    },

    // identity_mismatch
    #[error("the contents have the identity {found}, the manifest says {stated}")]
    IdentityMismatch { stated: String, found: String },
}

impl FormatError {
    /// The code that the specification gives to the broken rule: one of [`ERROR_CODES`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ManifestShort { .. }
            | Self::ManifestTail
            | Self::ManifestDigest { .. }
            | Self::ManifestPrefix => "manifest_damaged",
            Self::VersionUnsupported { .. } => "version_unsupported",
            Self::FeatureUnsupported { .. } => "feature_unsupported",
            Self::ManifestJson { .. }
            | Self::ManifestMember { .. }
            | Self::ManifestSum { .. }
            | Self::ShardNameTwice { .. }
            | Self::FieldTwice { .. }
            | Self::FieldCount { .. } => "manifest_invalid",
            Self::ShardName { .. }
            | Self::FieldNameNul { .. }
            | Self::FieldNameReserved { .. }
            | Self::FieldNameLong { .. } => "name_invalid",
            Self::FileMissing { .. } => "file_missing",
            Self::FileSize { .. } => "file_size",
            Self::IndexMagic
            | Self::IndexShort { .. }
            | Self::IndexHeadChecksum { .. }
            | Self::IndexSectionChecksum { .. }
            | Self::IndexBlockChecksum { .. } => "index_damaged",
            Self::IndexField { .. }
            | Self::IndexSection { .. }
            | Self::IndexSections { .. }
            | Self::IndexPadding { .. }
            | Self::IndexIdentity { .. } => "index_invalid",
            Self::EntryShard { .. }
            | Self::EntryOffset { .. }
            | Self::EntryEnd { .. }
            | Self::EntryLengths { .. }
            | Self::EntryFooter { .. } => "entry_invalid",
            Self::MetadataBlockChecksum { .. } => "metadata_damaged",
            Self::MetadataMagic
            | Self::MetadataBounds { .. }
            | Self::MetadataAlignment { .. }
            | Self::MetadataOverlap { .. }
            | Self::MetadataMessage { .. }
            | Self::MetadataValue { .. }
            | Self::MetadataField { .. }
            | Self::MetadataRows { .. }
            | Self::MetadataBuffer { .. }
            | Self::MetadataRow { .. }
            | Self::TextOffsets { .. }
            | Self::TextUtf8 { .. }
            | Self::TextLong { .. }
            | Self::NullCount { .. }
            | Self::ColumnsShape { .. } => "metadata_invalid",
            Self::ShardMagic { .. } | Self::ShardShort { .. } | Self::ShardChecksum { .. } => {
                "shard_damaged"
            }
            Self::ShardField { .. }
            | Self::ShardRecord { .. }
            | Self::ShardPadding { .. }
            | Self::ShardId { .. }
            | Self::ShardChain { .. } => "shard_invalid",
            Self::ShardMismatch { .. } => "shard_mismatch",
            Self::RecordDecode { .. } | Self::RecordChecksum { .. } | Self::Record { .. } => {
                "record_damaged"
            }
            Self::FileChecksum { .. } | Self::FileDigest { .. } => "checksum_mismatch",
            Self::IdentityMismatch { .. } => "identity_mismatch",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_of_the_closed_list() {
        let some = [
            FormatError::ManifestTail,
            FormatError::VersionUnsupported {
                found: 2,
                supported: 1,
            },
            FormatError::FeatureUnsupported { features: vec![] },
            FormatError::FieldTwice {
                name: String::new(),
            },
            FormatError::ShardName {
                name: String::new(),
            },
            FormatError::FileMissing {
                name: String::new(),
            },
            FormatError::FileSize {
                name: String::new(),
                stated: 1,
                found: 2,
            },
            FormatError::IndexMagic,
            FormatError::IndexSections { kind: 1 },
            FormatError::EntryShard {
                sample: 1,
                shard: 2,
                shards: 2,
            },
            FormatError::MetadataBlockChecksum {
                block: 0,
                stated: 1,
                found: 2,
            },
            FormatError::MetadataMagic,
            FormatError::ShardMagic { part: "header" },
            FormatError::ShardPadding {
                offset: 65,
                found: 1,
            },
            FormatError::ShardMismatch {
                expected: String::new(),
                found: String::new(),
            },
            FormatError::RecordChecksum {
                stated: 1,
                found: 2,
            },
            FormatError::FileChecksum {
                name: String::new(),
                stated: 1,
                found: 2,
            },
            FormatError::IdentityMismatch {
                stated: String::new(),
                found: String::new(),
            },
        ];
        assert_eq!(some.each_ref().map(FormatError::code), ERROR_CODES);
    }

    #[test]
    fn messages_name_what_was_found_and_what_is_allowed() {
        let error = FormatError::EntryOffset {
            sample: 7,
            offset: 65,
            alignment: 8,
        };
        assert_eq!(
            error.to_string(),
            "index entry 7: offset 65; allowed: a multiple of 8 from 64"
        );
    }
}
