//! Options from Python dictionaries. pydantic has checked their shape; the runtime checks the values again.

use dataset_rt_format::Codec;
use dataset_rt_runtime::{OnMismatch, ReaderOptions, WriteOptions};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn option<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<T>
where
    T: FromPyObjectOwned<'py>,
{
    options
        .get_item(name)?
        .ok_or_else(|| PyKeyError::new_err(format!("option {name:?} is missing")))?
        .extract()
        .map_err(Into::into)
}

pub(crate) fn reader_options(options: &Bound<'_, PyDict>) -> PyResult<ReaderOptions> {
    Ok(ReaderOptions {
        seed: option(options, "seed")?,
        prefetch_size: option(options, "prefetch_size")?,
        shuffle: option(options, "shuffle")?,
        replacement: option(options, "replacement")?,
        validate_cache: option(options, "validate_cache")?,
        verify_payloads: option(options, "verify_payloads")?,
        use_mmap: option(options, "use_mmap")?,
        follow_links: option(options, "follow_links")?,
    })
}

pub(crate) fn write_options(
    options: &Bound<'_, PyDict>,
    create_or_reuse: bool,
    profile: bool,
) -> PyResult<WriteOptions> {
    let codec = option::<String>(options, "codec")?;
    let on_mismatch = option::<String>(options, "on_mismatch")?;
    Ok(WriteOptions {
        prefetch_size: option(options, "prefetch_size")?,
        max_shard_bytes: option(options, "max_shard_bytes")?,
        codec: match codec.as_str() {
            "none" => Codec::None,
            "lz4" => Codec::Lz4,
            other => {
                return Err(PyValueError::new_err(format!(
                    "codec must be \"none\" or \"lz4\", found {other:?}"
                )));
            }
        },
        validate_cache: option(options, "validate_cache")?,
        on_mismatch: match on_mismatch.as_str() {
            "error" => OnMismatch::Error,
            "rebuild" => OnMismatch::Rebuild,
            "reuse" => OnMismatch::Reuse,
            other => {
                return Err(PyValueError::new_err(format!(
                    "on_mismatch must be \"error\", \"rebuild\" or \"reuse\", found {other:?}"
                )));
            }
        },
        create_or_reuse,
        profile,
    })
}
