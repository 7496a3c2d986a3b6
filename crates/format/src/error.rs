//! One variant per broken rule; each has the error code that the specification gives to it.

/// A rule of the format that bytes break.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The manifest's checksum, prefix or tail is wrong.
    #[error("manifest_damaged: {0}")]
    ManifestDamaged(String),
}
