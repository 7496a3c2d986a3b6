//! What Polars expressions compute, as functions of slices: no Polars here.

mod draws;
mod duplicates;
mod hash;
mod hashed;
mod minhash;
mod ordering;
mod shares;
mod shingles;
mod smallest;
mod splits;

pub use draws::{
    Drawing, draw_counts, per_class, sample_with_replacement, sample_without_replacement,
    shuffle_key, shuffle_keys,
};
pub use duplicates::duplicate_ranks;
pub use hash::{KeyType, TupleHasher, hash_bytes, hash_integer};
pub use hashed::{Groups, by_group};
pub use minhash::{MinHash, band_hashes, simhash};
pub use ordering::{
    bucket_of, buckets, check_edges, curriculum, length_group_keys, ordered_float, ordered_integer,
};
pub use shares::Shares;
pub use shingles::{ShingleUnit, Shingles};
pub use splits::{by_rank, leaks, stratified, stratified_groups};
