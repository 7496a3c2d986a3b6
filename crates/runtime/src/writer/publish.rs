//! The one step that makes a finished cache visible.

use std::path::Path;

use crate::disk::{self, Renamed};
use crate::error::{Error, Result};
use crate::writer::staging::Staging;
use crate::writer::target::Place;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// The cache stands, and the directory that names it is on the disk.
    Done,
    /// Something else stands there, or stands there by now; nothing was changed.
    Lost,
}

/// Gives the finished cache its name, which must be free.
///
/// # Errors
/// [`Error::Io`]; the cache does not stand then.
pub(crate) fn publish_fresh(staging: &Staging, target: &Path) -> Result<Published> {
    let cache = staging.cache();
    match disk::rename_dir_noreplace(&cache, target)? {
        Renamed::Occupied => Ok(Published::Lost),
        Renamed::Done => {
            settle(target, || {
                disk::rename_dir_noreplace(target, &cache).map(|_| ())
            })?;
            Ok(Published::Done)
        }
    }
}

/// Puts the finished cache in the place of the one that stood there when the write began. The old one is then in the
/// staging folder, and is removed with it.
///
/// # Errors
/// [`Error::Io`]; the old cache stands then.
pub(crate) fn publish_over(staging: &Staging, target: &Path, old: Place) -> Result<Published> {
    let cache = staging.cache();
    let name = target.file_name().unwrap_or_default();
    match Place::of(target) {
        None => publish_fresh(staging, target),
        Some(found) if found != old => Ok(Published::Lost),
        Some(_) => {
            let swapped = disk::exchange_dirs(&cache, target, &|| staging.make_aside(name))?;
            settle(target, || disk::exchange_back(&cache, target, &swapped))?;
            Ok(Published::Done)
        }
    }
}

/// Brings the new name to the disk. Where that fails the step is taken back, since a success that a power cut can undo
/// is none.
fn settle(target: &Path, undo: impl FnOnce() -> Result<()>) -> Result<()> {
    let base = target.parent().filter(|base| !base.as_os_str().is_empty());
    let Err(mut error) = disk::sync_dir(base.unwrap_or(Path::new("."))) else {
        return Ok(());
    };
    if undo().is_err()
        && let Error::Io { hint, .. } = &mut error
    {
        hint.push_str("; the cache stands, and may be gone after a power cut");
    }
    Err(error)
}
