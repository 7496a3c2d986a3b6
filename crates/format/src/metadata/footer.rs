//! The footer's schema against the manifest's.

use arrow_ipc::{Endianness, Footer, MetadataVersion, Precision, Type};

use super::errors::value_error;
use crate::error::FormatError;
use crate::schema::{FieldType, Schema};

/// Checks that the footer names the fields of `schema` and nothing that this format does not have.
pub(super) fn check_footer(footer: &Footer<'_>, schema: &Schema) -> Result<(), FormatError> {
    if footer.version() != MetadataVersion::V5 {
        return Err(value_error("version of the footer", footer.version(), "V5"));
    }
    let dictionaries = footer.dictionaries().map_or(0, |blocks| blocks.len());
    if dictionaries != 0 {
        return Err(value_error("number of dictionaries", dictionaries, "0"));
    }
    let Some(found) = footer.schema() else {
        return Err(value_error("schema", "missing", "the manifest's fields"));
    };
    if found.endianness() != Endianness::Little {
        return Err(value_error("endianness", found.endianness(), "Little"));
    }
    let count = found.fields().map_or(0, |fields| fields.len());
    if count != schema.len() {
        let allowed = format!("{} by the manifest", schema.len());
        return Err(value_error("number of fields", count, &allowed));
    }
    let fields = found.fields().into_iter().flatten();
    for (position, (found, expected)) in (0..).zip(fields.zip(schema.fields())) {
        let mut problem = extension(&found).or_else(|| nested(&found));
        let name = found.name().unwrap_or_default();
        let field_type = field_type(&found);
        let same = name == expected.name
            && field_type == Some(expected.field_type)
            && found.nullable() == expected.nullable;
        if !same {
            let described = field_type.map_or_else(
                || format!("{:?}", found.type_type()),
                |field_type| field_type.name().to_owned(),
            );
            problem = Some(describe(name, &described, found.nullable()));
        }
        if let Some(found) = problem {
            let expected = describe(
                &expected.name,
                expected.field_type.name(),
                expected.nullable,
            );
            return Err(FormatError::MetadataField {
                field: position,
                found,
                expected,
            });
        }
    }
    Ok(())
}

fn describe(name: &str, field_type: &str, nullable: bool) -> String {
    format!(
        "{name:?} of {}{field_type}",
        if nullable { "nullable " } else { "" }
    )
}

fn extension(field: &arrow_ipc::Field<'_>) -> Option<String> {
    let keys = field.custom_metadata().into_iter().flatten();
    keys.filter_map(|pair| pair.key())
        .find(|key| key.starts_with("ARROW:extension:"))
        .map(|key| format!("an extension type ({key})"))
}

fn nested(field: &arrow_ipc::Field<'_>) -> Option<String> {
    if field.dictionary().is_some() {
        return Some("dictionary-encoded".to_owned());
    }
    let children = field.children().map_or(0, |children| children.len());
    (children != 0).then(|| format!("a field with {children} children"))
}

pub(super) fn field_type(field: &arrow_ipc::Field<'_>) -> Option<FieldType> {
    match field.type_type() {
        Type::Bool => Some(FieldType::Bool),
        Type::Utf8 => Some(FieldType::Utf8),
        Type::Int => {
            let int = field.type_as_int()?;
            (int.bitWidth() == 64 && int.is_signed()).then_some(FieldType::Int64)
        }
        Type::FloatingPoint => {
            let float = field.type_as_floating_point()?;
            (float.precision() == Precision::DOUBLE).then_some(FieldType::Float64)
        }
        _ => None,
    }
}
