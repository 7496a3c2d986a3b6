//! Errors that several files of this folder make.

use crate::error::FormatError;

pub(super) fn message_error(what: &'static str, detail: &str) -> FormatError {
    // Flatbuffers adds where it stood in the buffer, over several lines.
    let detail = detail.lines().next().unwrap_or_default().to_owned();
    FormatError::MetadataMessage { what, detail }
}

pub(super) fn value_error(
    what: &'static str,
    found: impl std::fmt::Debug,
    allowed: &str,
) -> FormatError {
    FormatError::MetadataValue {
        what,
        found: format!("{found:?}"),
        allowed: allowed.to_owned(),
    }
}
