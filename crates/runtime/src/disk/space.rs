//! Refusals, and the room that is left.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::error::Error;

/// The error for a refused operation. Where space or quota is the cause it says how much was needed (`None`: one
/// block of the file system) and how much is free.
pub(super) fn refused(
    operation: &'static str,
    path: &Path,
    needed: Option<u64>,
    source: io::Error,
) -> Error {
    let hint = if is_full(&source) {
        space_hint(path, needed)
    } else {
        String::new()
    };
    Error::Io {
        operation,
        path: path.to_path_buf(),
        hint,
        source,
    }
}

fn space_hint(path: &Path, needed: Option<u64>) -> String {
    match file_system_of(path) {
        Some(found) => format!(
            "; {} bytes needed, {} bytes free",
            needed.unwrap_or(found.f_frsize),
            free_on(&found)
        ),
        None => {
            format!(
                "; {} bytes needed, the number of free bytes is unknown",
                needed.unwrap_or(1)
            )
        }
    }
}

/// What the system says of the file system that `path` is on, or would be on.
fn file_system_of(path: &Path) -> Option<rustix::fs::StatVfs> {
    path.ancestors().find_map(|place| {
        let place = if place.as_os_str().is_empty() {
            Path::new(".")
        } else {
            place
        };
        rustix::io::retry_on_intr(|| rustix::fs::statvfs(place)).ok()
    })
}

fn free_on(found: &rustix::fs::StatVfs) -> u64 {
    found.f_bavail.saturating_mul(found.f_frsize)
}

/// Bytes that this user may still write below `path`; `None` where the system does not say.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    file_system_of(path).map(|found| free_on(&found))
}

/// Whether an error says that space or quota is used up.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::NOSPC | Errno::DQUOT)
    )
}
