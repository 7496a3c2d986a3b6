//! Pure functions behind the expressions: columns as slices in, one value a row out.
//!
//! Nothing here knows Polars, starts threads or does IO. A column comes as [`Chunk`]s, classes and groups as
//! [`Codes`], and a family of functions is one file.

mod class_weights;
mod classes;
mod codes;
mod labels;
mod memory;
mod numbers;
mod select;
mod table;
mod value_weights;

pub use class_weights::{
    Normalize, balanced_weight, effective_number_weight, mixture_weight, temperature_weight,
    unimax_weight,
};
pub use classes::{Classes, NullClass};
pub use codes::{Chunk, Codes, MAX_ROWS, NO_CLASS, Nulls, Validity, Word};
pub use labels::{cap_per_class, repeat_factor};
pub use numbers::{NullNumber, Numbers};
pub use value_weights::{
    clip_weight, doremi_weight, effective_sample_size, expected_share, focal_weight,
    hard_example_weight, normalize_weight, prioritized_correction, prioritized_weight,
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
