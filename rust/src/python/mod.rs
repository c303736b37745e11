//! The binding: converts arguments, leaves the interpreter while the core
//! works, maps errors. No algorithm lives here.

// pyo3 hands arguments over by value, and X is what scikit-learn calls it.
#![allow(clippy::needless_pass_by_value, non_snake_case)]

mod arrays;
mod classifier;
mod cluster;
mod metrics;
mod model_io;
mod run;
mod text;

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

/// The compiled half of `xmtree`; private, wrapped by the Python package.
#[pymodule]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use super::classifier::{parameters, Classifier};
    #[pymodule_export]
    use super::cluster::LdsmTraining;
    #[pymodule_export]
    use super::cluster::OaaClasses;
    #[pymodule_export]
    use super::metrics::{
        fit_line, fit_shares, label_probabilities, propensities, share_probabilities,
        spread_over_labels, Scores,
    };
    #[pymodule_export]
    use super::model_io::{save_estimator, EstimatorFile};
    #[pymodule_export]
    use super::text::{
        iter_lines, iter_svmlight, iter_xmc, load_svmlight, load_xmc, save_xmc, scan_svmlight,
        Stream,
    };
    #[pymodule_export]
    use super::{ModelFileError, UnsortedIndicesError};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("N_SHARING", crate::metrics::N_SHARING)
    }
}
