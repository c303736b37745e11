//! The error type of the crate.

use std::fmt::Display;

/// Errors of the crate. Every message names the parameter, row, line or file, the value that was
/// given and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter has a value that its learner does not accept.
    #[error("{name} must be {allowed}, got {got}")]
    Parameter {
        /// Name of the parameter as the user spells it.
        name: String,
        /// The value that was given.
        got: String,
        /// The values that are accepted.
        allowed: String,
    },
    /// The input arrays do not fit together or hold values that cannot be used.
    #[error("{0}")]
    Data(String),
    /// The request needs more memory than is available.
    #[error("{0}")]
    Memory(String),
    /// The column indices of a row are not strictly increasing. This is not an [`Error::Data`]
    /// because the caller can sort a copy and try again.
    #[error(
        "row {row}: column indices are unsorted or repeated (index {index} follows {previous})"
    )]
    Unsorted {
        /// The row.
        row: usize,
        /// The index that is not above the one before it.
        index: i64,
        /// The index before it.
        previous: i64,
    },
    /// A line of a text file cannot be read.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file's name as it was given.
        file: String,
        /// Line number, from 1.
        line: u64,
        /// The fault of the line.
        what: String,
    },
    /// The system cannot start another thread.
    #[error("{0}")]
    Threads(String),
    /// A model file or serialized model is damaged, no xmtree model, or of another version.
    #[error("{0}")]
    ModelFile(String),
    /// The operating system could not read or write a file.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The caller stopped the work. An online model keeps what it has learned so far.
    #[error("stopped")]
    Stopped,
}

/// `Result` with the crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Returns an [`Error::Data`] unless data are sound.
pub(crate) fn require(is_sound: bool, what: impl Display) -> Result<()> {
    is_sound.then_some(()).ok_or_else(|| Error::data(what))
}

impl Error {
    /// Creates an [`Error::Parameter`].
    pub fn parameter(name: &str, got: impl Display, allowed: impl Display) -> Self {
        Self::Parameter {
            name: name.into(),
            got: got.to_string(),
            allowed: allowed.to_string(),
        }
    }

    /// Creates an [`Error::Data`].
    pub fn data(what: impl Display) -> Self {
        Self::Data(what.to_string())
    }

    /// Creates an [`Error::Io`] for `path`.
    pub fn io(path: impl Display, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_string(),
            source,
        }
    }
}
