//! Pure functions behind the expressions: columns as slices in, one value a row out.
//!
//! Nothing here knows Polars or starts threads, and only `payloads` does IO. A column comes as [`Chunk`]s, classes and
//! groups as [`Codes`], and a family of functions is one file. What must be the same in every frame, splits and draws,
//! goes by hashes of values: there groups are [`Groups`].

mod class_cuts;
mod class_weights;
mod classes;
mod codes;
mod draws;
mod duplicates;
mod hash;
mod hashed;
mod labels;
mod memory;
mod minhash;
mod numbers;
mod ordering;
mod payloads;
mod power;
mod priorities;
mod select;
mod shares;
mod shingles;
mod smallest;
mod splits;
mod table;
mod value_weights;

pub use class_weights::{
    Normalize, balanced_weight, effective_number_weight, mixture_weight, temperature_weight,
    unimax_weight,
};
pub use classes::{Classes, NullClass};
pub use codes::{Chunk, Codes, MAX_ROWS, NO_CLASS, Nulls, Validity, Word};
pub use draws::{
    Drawing, draw_counts, per_class, repeat_counts, sample_with_replacement,
    sample_without_replacement, shuffle_key, shuffle_keys,
};
pub use duplicates::duplicate_ranks;
pub use hash::{KeyType, TupleHasher, hash_bytes, hash_integer};
pub use hashed::{GroupCodes, Groups, by_group};
pub use labels::{cap_per_class, repeat_factor};
pub use minhash::{MinHash, band_hashes, simhash};
pub use numbers::{NullNumber, Numbers};
pub use ordering::{
    bucket_of, buckets, check_edges, curriculum, length_group_keys, ordered_float, ordered_integer,
};
pub use payloads::{HEAD_LEN, Ids, Unreadable, mime, payload_facts, payload_heads, payloads};
pub use priorities::{prioritized_correction, prioritized_weight};
pub use shares::{Shares, fold};
pub use shingles::{ShingleUnit, Shingles};
pub use splits::{by_rank, leaks, stratified, stratified_groups};
pub use value_weights::{
    clip_weight, doremi_weight, effective_sample_size, expected_share, focal_weight,
    hard_example_weight, normalize_weight,
};

use crate::error::{Error, Fault};

/// A value of a column that is refused.
fn refused(column: &str, row: Option<usize>, message: String) -> Error {
    Error::Table {
        fault: Fault::Value,
        column: column.to_owned(),
        row: row.map(|row| row as u64),
        message,
    }
}
