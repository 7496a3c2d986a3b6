//! Which fields and how many rows a `metadata.arrow` has, from the file alone: for caches whose manifest is lost.

use arrow_ipc::{Endianness, Footer, MetadataVersion, root_as_footer_with_opts};
use flatbuffers::VerifierOptions;

use super::batch::{Place, read_batch};
use super::errors::{message_error, value_error};
use super::footer::field_type;
use super::frame::FILE_START;
use super::layout::{footer_range, slice};
use crate::error::FormatError;
use crate::schema::{Field, FieldType, Schema};

/// The fields, without descriptions, and the number of rows of a file whose whole bytes are `file`.
/// [`MetadataLayout::parse_bytes`](super::MetadataLayout::parse_bytes) with both makes all further checks.
///
/// # Errors
/// Codes `metadata_invalid`, and for names that no manifest may have `name_invalid` and `manifest_invalid`.
pub fn metadata_contents(file: &[u8]) -> Result<(Schema, u64), FormatError> {
    let mut read = |start: u64, len: u64| {
        let range = start..start.saturating_add(len);
        slice(file, &range).map(std::borrow::Cow::Borrowed)
    };
    let range = footer_range::<FormatError>(file.len() as u64, &mut read)?;
    let options = VerifierOptions::default();
    let footer = root_as_footer_with_opts(&options, slice(file, &range)?)
        .map_err(|error| message_error("footer", &error.to_string()))?;
    let schema = schema(&footer)?;
    let fields = schema.fields();
    let types: Vec<FieldType> = fields.iter().map(|field| field.field_type).collect();
    let nullable: Vec<bool> = fields.iter().map(|field| field.nullable).collect();
    let mut rows = 0_u64;
    let mut end = FILE_START as u64;
    let blocks = footer.recordBatches().into_iter().flatten();
    for block in blocks {
        let place = Place::of(block, end, range.start)?;
        end = place.end();
        let bytes = slice(file, &place.message)?;
        rows = rows.saturating_add(read_batch(bytes, &place, rows, &types, &nullable)?.rows);
    }
    Ok((schema, rows))
}

fn schema(footer: &Footer<'_>) -> Result<Schema, FormatError> {
    if footer.version() != MetadataVersion::V5 {
        return Err(value_error("version of the footer", footer.version(), "V5"));
    }
    let Some(schema) = footer.schema() else {
        return Err(value_error("schema", "missing", "a list of fields"));
    };
    if schema.endianness() != Endianness::Little {
        return Err(value_error("endianness", schema.endianness(), "Little"));
    }
    let mut fields = Vec::new();
    for field in schema.fields().into_iter().flatten() {
        let Some(field_type) = field_type(&field) else {
            let allowed = "Bool, Int64, Float64, Utf8";
            return Err(value_error("type of a field", field.type_type(), allowed));
        };
        let mut made = Field::new(field.name().unwrap_or_default(), field_type);
        made.nullable = field.nullable();
        fields.push(made);
    }
    Schema::new(fields)
}
