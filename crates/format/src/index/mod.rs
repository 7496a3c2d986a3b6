//! `index.bin`: where each sample is, as fixed-width arrays that are mapped and never parsed whole.

mod build;
mod entry;
mod header;

pub use build::{IndexBuilder, IndexParts, index_prefix_len};
pub use entry::{IndexEntry, check_lengths};
pub use header::{IndexHeader, Section, index_head_len};

/// Numbers of the index's sections.
pub mod section_kind {
    /// Position, stored length and CRC of each sample.
    pub const ENTRIES: u32 = 1;
    /// The raw length of each sample; with a codec only.
    pub const RAW_LENS: u32 = 2;
    /// CRC of each 64 KiB of the entries.
    pub const ENTRY_SUMS: u32 = 17;
    /// CRC of each 64 KiB of the raw lengths.
    pub const RAW_LEN_SUMS: u32 = 18;
    /// CRC of each 64 KiB of `metadata.arrow`.
    pub const METADATA_SUMS: u32 = 32;
    /// Sections from here on have their own CRC in the section table.
    pub(crate) const FIRST_WITH_CRC: u32 = 16;
}

#[cfg(test)]
mod tests;
