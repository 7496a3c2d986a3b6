//! Names and types of metadata fields.

use std::collections::HashSet;

use crate::constants::{MAX_FIELD_NAME, MAX_FIELDS, RESERVED_FIELD_NAMES};
use crate::error::FormatError;

/// The type of a metadata field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// True or false.
    Bool,
    /// Integers from -2^63 to 2^63 - 1.
    Int64,
    /// IEEE 754 binary64, bit for bit.
    Float64,
    /// Text in UTF-8.
    Utf8,
}

impl FieldType {
    /// All types, in the order of their tags.
    pub const ALL: [Self; 4] = [Self::Bool, Self::Int64, Self::Float64, Self::Utf8];

    /// The type's name in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int64 => "int64",
            Self::Float64 => "float64",
            Self::Utf8 => "utf8",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|field_type| field_type.name() == name)
    }

    /// The type's number in the cache identity.
    #[must_use]
    pub fn tag(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::Int64 => 2,
            Self::Float64 => 3,
            Self::Utf8 => 4,
        }
    }
}

/// One metadata field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Exact code points; the empty name is allowed.
    pub name: String,
    /// The type of its values.
    pub field_type: FieldType,
    /// Whether values may be missing.
    pub nullable: bool,
    /// What the field means, for people.
    pub description: Option<String>,
}

impl Field {
    /// A field without nulls and without a description.
    #[must_use]
    pub fn new(name: impl Into<String>, field_type: FieldType) -> Self {
        Self {
            name: name.into(),
            field_type,
            nullable: false,
            description: None,
        }
    }
}

/// The metadata fields of a cache in the writer's order, names checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Schema {
    fields: Vec<Field>,
}

impl Schema {
    /// Checks names and number of the fields.
    ///
    /// # Errors
    /// [`FormatError::FieldCount`], [`FormatError::FieldTwice`] or what [`check_field_name`] returns.
    pub fn new(fields: Vec<Field>) -> Result<Self, FormatError> {
        if fields.len() > MAX_FIELDS {
            return Err(FormatError::FieldCount {
                found: fields.len() as u64,
                most: MAX_FIELDS as u64,
            });
        }
        let mut names = HashSet::with_capacity(fields.len());
        for field in &fields {
            check_field_name(&field.name)?;
            if !names.insert(field.name.as_str()) {
                return Err(FormatError::FieldTwice {
                    name: field.name.clone(),
                });
            }
        }
        Ok(Self { fields })
    }

    /// The fields in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// How many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }
}

/// Checks one field name: no U+0000, not reserved, at most 1,024 bytes.
///
/// # Errors
/// [`FormatError::FieldNameNul`], [`FormatError::FieldNameReserved`] or [`FormatError::FieldNameLong`].
pub fn check_field_name(name: &str) -> Result<(), FormatError> {
    if name.len() > MAX_FIELD_NAME {
        return Err(FormatError::FieldNameLong {
            found: name.len() as u64,
            most: MAX_FIELD_NAME as u64,
        });
    }
    if name.contains('\0') {
        return Err(FormatError::FieldNameNul {
            name: name.to_owned(),
        });
    }
    if RESERVED_FIELD_NAMES.contains(&name) {
        return Err(FormatError::FieldNameReserved {
            name: name.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(names: &[&str]) -> &'static str {
        let fields = names
            .iter()
            .map(|name| Field::new(*name, FieldType::Int64))
            .collect();
        Schema::new(fields).map_or_else(|error| error.code(), |_| "")
    }

    #[test]
    fn types_by_name_and_tag() {
        for (tag, field_type) in (1..).zip(FieldType::ALL) {
            assert_eq!(FieldType::from_name(field_type.name()), Some(field_type));
            assert_eq!(field_type.tag(), tag);
        }
        assert_eq!(FieldType::from_name("Bool"), None);
    }

    #[test]
    fn names() {
        // The two last differ in Unicode form alone, and are two fields.
        assert_eq!(code(&["", "a b", "Weight", "caf\u{e9}", "cafe\u{301}"]), "");
        assert_eq!(code(&["a\0b"]), "name_invalid");
        for reserved in ["weight", "cache_id", "sample_id"] {
            assert_eq!(code(&[reserved]), "name_invalid");
        }
        assert_eq!(code(&["x".repeat(1024).as_str()]), "");
        assert_eq!(code(&["x".repeat(1025).as_str()]), "name_invalid");
        assert_eq!(code(&["a", "b", "a"]), "manifest_invalid");
    }

    #[test]
    fn count() {
        let names: Vec<String> = (0..=4096).map(|i| i.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(code(&names[..4096]), "");
        assert_eq!(code(&names), "manifest_invalid");
    }
}
