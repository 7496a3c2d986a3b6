//! What can go wrong in the runtime. Each variant carries what a caller needs to act, and the Python layer maps
//! each to one exception class.

use std::io;
use std::path::PathBuf;

use dataset_rt_format::FormatError;

/// Result of runtime operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether a refused value has the wrong type or a wrong value of the right type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The value is of a type that is never accepted here.
    Type,
    /// The type is right, the value is not.
    Value,
}

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is outside of what is allowed.
    #[error("{message}")]
    Argument {
        /// Name of the argument.
        argument: &'static str,
        /// What was found and what is allowed.
        message: String,
    },
    /// A source name that can't be a folder name on every platform.
    #[error("source name {name:?} is refused: {reason}")]
    SourceName {
        /// The name as given.
        name: String,
        /// Which rule it breaks.
        reason: String,
    },
    /// A source yielded nothing.
    #[error("source {source_name:?}: cache source yielded no samples")]
    EmptySource {
        /// Name of the source.
        source_name: String,
    },
    /// The target of a write exists.
    #[error("{}: {message}", path.display())]
    Exists {
        /// The target.
        path: PathBuf,
        /// What stands there and what to do.
        message: String,
    },
    /// The stored cache is not the one that the source describes, and the policy says error.
    #[error("{}: {message}", path.display())]
    Mismatch {
        /// The cache.
        path: PathBuf,
        /// What differs and what to do.
        message: String,
    },
    /// There is no cache at a path.
    #[error("{}: {message}", path.display())]
    NotFound {
        /// The path looked at.
        path: PathBuf,
        /// What is missing.
        message: String,
    },
    /// A file of a cache is not what the format or the manifest says.
    #[error("{}: {source}", path.display())]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// Cache position and sample, where one sample is concerned.
        sample: Option<(u64, u64)>,
        /// Byte offset in the file, where known.
        offset: Option<u64>,
        /// The rule that is broken.
        source: FormatError,
    },
    /// Two caches that are loaded together disagree on a field's type.
    #[error("field {field:?} is {first_type} in {} but {second_type} in {}", first.display(), second.display())]
    SchemaConflict {
        /// Name of the field.
        field: String,
        /// The cache that came first.
        first: PathBuf,
        /// Its type.
        first_type: &'static str,
        /// The cache that disagrees.
        second: PathBuf,
        /// Its type.
        second_type: &'static str,
    },
    /// The operating system refused an operation.
    #[error("{}: can't {operation}: {source}{hint}", path.display())]
    Io {
        /// What was tried: "open", "write", "sync", ...
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// More for the reader, such as bytes needed and free; starts with "; " or is empty.
        hint: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A value in an incoming active table.
    #[error("{message}")]
    Table {
        /// Type or value.
        fault: Fault,
        /// Column concerned.
        column: String,
        /// First row concerned, where one is.
        row: Option<u64>,
        /// What was found and what is allowed.
        message: String,
    },
    /// No such sample.
    #[error("{message}")]
    UnknownSample {
        /// Cache position asked for.
        cache_id: u64,
        /// Sample asked for.
        sample_id: u64,
        /// What is allowed.
        message: String,
    },
    /// An index outside of a sequence.
    #[error("index {index} is out of range for {len} rows")]
    Index {
        /// As asked.
        index: i64,
        /// Length of the sequence.
        len: u64,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A fault of this library.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

impl Error {
    /// Whether the process or the system has no file descriptor left.
    pub(crate) fn is_out_of_descriptors(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    }

    /// An operating system error on a path.
    pub fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            operation,
            path: path.into(),
            hint: String::new(),
            source,
        }
    }

    /// A broken rule of the format in a file.
    pub fn damaged(path: impl Into<PathBuf>, source: FormatError) -> Self {
        Self::Damaged {
            path: path.into(),
            sample: None,
            offset: None,
            source,
        }
    }
}
