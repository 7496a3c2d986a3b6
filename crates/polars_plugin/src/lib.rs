//! Polars expression shells over pure functions of the runtime.
//!
//! Each shell aligns its inputs, calls one function of [`dataset_rt_runtime`] and wraps the result: the arithmetic is
//! tested there in seconds, the shells from Python on both engines. Output types are always given by a function,
//! never by a constant: only then does the macro catch a panic at that point, and a panic across the C boundary would
//! end the process.
#![forbid(unsafe_code)]

mod class_weights;
mod columns;
mod draws;
mod dtypes;
mod duplicates;
mod keys;
mod kwargs;
mod labels;
mod payloads;
mod shares;
mod splits;
mod value_weights;
