//! Whether a cache that stands is the one that a source describes, and what follows.

use std::path::Path;

use dataset_rt_format::Manifest;

use crate::error::{Error, Result};
use crate::writer::target::{Place, Target};

/// What `from_cache_sources` does where the cache that stands is not the one that the source describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMismatch {
    /// The source gets an error; the cache stays.
    #[default]
    Error,
    /// A new cache takes its place once it is complete.
    Rebuild,
    /// The cache is used all the same, unless it is damaged.
    Reuse,
}

/// A cache that is used instead of being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reuse {
    pub(crate) created: String,
    pub(crate) reason: String,
    pub(crate) by_name_only: bool,
    pub(crate) mismatch: bool,
    pub(crate) samples: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) stored_bytes: u64,
}

/// What to do with a source.
#[derive(Debug)]
pub(crate) enum Decision {
    /// Use what stands.
    Reuse(Reuse),
    /// Write it; for this reason.
    Fresh(String),
    /// Write it, then swap it for what stands.
    Rebuild(Place, String),
}

const REBUILD_HINT: &str =
    "from_cache_sources with WriterConfig(on_mismatch=\"rebuild\") replaces it";

/// The decision of `from_cache_sources`.
///
/// # Errors
/// [`Error::Exists`] for what is not ours, [`Error::Mismatch`] where the policy says so,
/// [`Error::Damaged`] for a cache of a later version, which no policy replaces.
pub(crate) fn decide(
    path: &Path,
    target: Target,
    fingerprint: Option<&str>,
    policy: OnMismatch,
) -> Result<Decision> {
    match target {
        Target::Absent => Ok(Decision::Fresh("no cache stood there".to_owned())),
        Target::Foreign(what) => Err(foreign(path, &what)),
        Target::TooNew(error) => Err(Error::damaged(path, error)),
        Target::Damaged(place, reason) => match policy {
            OnMismatch::Rebuild => rebuild(
                path,
                place,
                format!("the cache that stood there was damaged ({reason})"),
            ),
            OnMismatch::Error | OnMismatch::Reuse => Err(Error::Mismatch {
                path: path.to_path_buf(),
                message: format!(
                    "the cache that stands there is damaged ({reason}); {REBUILD_HINT}"
                ),
            }),
        },
        Target::Whole(place, manifest) => {
            let stored = manifest.source.fingerprint.as_deref();
            let difference = match (fingerprint, stored) {
                (None, _) => {
                    let reason = format!(
                        "a cache of that name, written {}, stands there; the source has no \
                         fingerprint, so its content was not compared",
                        manifest.created
                    );
                    return Ok(Decision::Reuse(reuse(&manifest, reason, true, false)));
                }
                (Some(wanted), Some(stored)) if wanted == stored => {
                    let reason = format!("its fingerprint {wanted:?} is the source's");
                    return Ok(Decision::Reuse(reuse(&manifest, reason, false, false)));
                }
                (Some(wanted), Some(stored)) => {
                    format!("its fingerprint is {stored:?}, the source's is {wanted:?}")
                }
                (Some(wanted), None) => {
                    format!("it has no fingerprint, the source's is {wanted:?}")
                }
            };
            match policy {
                OnMismatch::Error => Err(Error::Mismatch {
                    path: path.to_path_buf(),
                    message: format!(
                        "the cache that stands there (written {}) is not the source's: {difference}; \
                         WriterConfig(on_mismatch=\"rebuild\") replaces it, \"reuse\" uses it as it is",
                        manifest.created
                    ),
                }),
                OnMismatch::Rebuild => rebuild(
                    path,
                    place,
                    format!("of the cache that stood there: {difference}"),
                ),
                OnMismatch::Reuse => {
                    let reason = format!(
                        "on_mismatch=\"reuse\", though of the cache written {}: {difference}",
                        manifest.created
                    );
                    Ok(Decision::Reuse(reuse(&manifest, reason, false, true)))
                }
            }
        }
    }
}

/// The decision of `write_cache`, which replaces nothing.
///
/// # Errors
/// [`Error::Exists`] unless nothing stands at `path`.
pub(crate) fn decide_fresh(path: &Path, target: Target) -> Result<Decision> {
    let message = match target {
        Target::Absent => return Ok(Decision::Fresh("no cache stood there".to_owned())),
        Target::Foreign(what) => return Err(foreign(path, &what)),
        Target::Whole(_, manifest) => format!(
            "a complete cache, written {}, stands there and write_cache replaces none; \
             from_cache_sources uses it",
            manifest.created
        ),
        Target::Damaged(_, reason) => {
            format!("a damaged cache stands there ({reason}); {REBUILD_HINT}")
        }
        Target::TooNew(error) => format!("a cache of a later version stands there: {error}"),
    };
    Err(Error::Exists {
        path: path.to_path_buf(),
        message,
    })
}

fn foreign(path: &Path, what: &str) -> Error {
    Error::Exists {
        path: path.to_path_buf(),
        message: format!(
            "{what} stands there; it is not a dataset_rt cache and is left alone: move it away, or \
             give the source another name"
        ),
    }
}

fn rebuild(path: &Path, place: Place, reason: String) -> Result<Decision> {
    if place.is_link {
        return Err(Error::Mismatch {
            path: path.to_path_buf(),
            message: format!(
                "{reason}; a link stands there, and what a link leads to is not replaced"
            ),
        });
    }
    Ok(Decision::Rebuild(place, reason))
}

fn reuse(manifest: &Manifest, reason: String, by_name_only: bool, mismatch: bool) -> Reuse {
    Reuse {
        created: manifest.created.clone(),
        reason,
        by_name_only,
        mismatch,
        samples: manifest.samples,
        payload_bytes: manifest.payload_bytes,
        stored_bytes: manifest.stored_bytes,
    }
}
