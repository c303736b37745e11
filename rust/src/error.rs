//! The one error type of the crate.

use std::fmt::Display;

/// What can go wrong. Every message names the parameter, row, line or file,
/// what came and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter is outside of what its learner accepts.
    #[error("{name} must be {allowed}, got {got}")]
    Parameter {
        /// Name of the parameter as the user spells it.
        name: String,
        /// The value that came.
        got: String,
        /// The values that would have been accepted.
        allowed: String,
    },
    /// The input arrays do not fit together or hold something unusable.
    #[error("{0}")]
    Data(String),
    /// What was asked for takes more memory than there is.
    #[error("{0}")]
    Memory(String),
    /// The column indices of a row are not strictly increasing. Kept apart
    /// from [`Error::Data`] because the caller can sort a copy and come again.
    #[error(
        "row {row}: column indices are unsorted or repeated (index {index} follows {previous})"
    )]
    Unsorted {
        /// The offending row.
        row: usize,
        /// The index that came too late.
        index: i64,
        /// The index before it.
        previous: i64,
    },
    /// A text file holds a line that cannot be read.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file's name as it was given.
        file: String,
        /// Line number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The system starts no further thread.
    #[error("{0}")]
    Threads(String),
    /// A model file or serialised model is damaged, foreign or too new.
    #[error("{0}")]
    ModelFile(String),
    /// The operating system refused to read or write.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's own words.
        source: std::io::Error,
    },
    /// The caller asked for the work to stop. Whatever was learned until then
    /// is kept and usable.
    #[error("stopped")]
    Stopped,
}

/// `Result` with the crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A [`Error::Parameter`] from anything that can be printed.
    pub fn parameter(name: &str, got: impl Display, allowed: impl Display) -> Self {
        Self::Parameter {
            name: name.into(),
            got: got.to_string(),
            allowed: allowed.to_string(),
        }
    }

    /// An [`Error::Data`] from anything that can be printed.
    pub fn data(what: impl Display) -> Self {
        Self::Data(what.to_string())
    }

    /// An [`Error::Io`] for `path`.
    pub fn io(path: impl Display, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_string(),
            source,
        }
    }
}
