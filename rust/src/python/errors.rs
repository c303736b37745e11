//! Core errors as Python exceptions.

use pyo3::exceptions::{
    PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

use crate::error::Error;

pyo3::create_exception!(
    xmtree._core,
    ModelFileError,
    PyValueError,
    "A model file is damaged, from something else, or of a newer version."
);
pyo3::create_exception!(
    xmtree._core,
    UnsortedIndicesError,
    PyValueError,
    "Column indices of a row are not strictly increasing; sort a copy and come again."
);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Parameter { .. } | Error::Data(_) | Error::Line { .. } => {
                PyValueError::new_err(message)
            }
            Error::Threads(_) => PyRuntimeError::new_err(message),
            Error::Memory(_) => PyMemoryError::new_err(message),
            Error::Unsorted { .. } => UnsortedIndicesError::new_err(message),
            Error::ModelFile(_) => ModelFileError::new_err(message),
            // OSError(errno, text, path) lets Python pick FileNotFoundError and its like.
            Error::Io { path, source } => match source.raw_os_error() {
                Some(code) => PyOSError::new_err((code, source.to_string(), path)),
                None => PyOSError::new_err(message),
            },
            Error::Stopped => PyKeyboardInterrupt::new_err(()),
        }
    }
}
