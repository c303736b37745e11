//! The Python binding. It converts arguments, releases the interpreter while the core works, and
//! maps errors. It contains no algorithm.

// pyo3 passes arguments by value, Python passes many by name, and X is scikit-learn's name.
#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    non_snake_case
)]

mod arrays;
mod classifier;
mod cluster;
mod metrics;
mod model_io;
mod ngrams;
mod parts;
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
    "A model file is damaged, is not a model file, or has a newer version."
);
pyo3::create_exception!(
    xmtree._core,
    UnsortedIndicesError,
    PyValueError,
    "The column indices of a row are not strictly increasing; sort a copy and try again."
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
            // With OSError(errno, text, path) Python chooses a subclass such as FileNotFoundError.
            Error::Io { path, source } => match source.raw_os_error() {
                Some(code) => PyOSError::new_err((code, source.to_string(), path)),
                None => PyOSError::new_err(message),
            },
            Error::Stopped => PyKeyboardInterrupt::new_err(()),
        }
    }
}

/// The compiled half of `xmtree`. Private: the Python package wraps it.
// No state is global, and a model is behind a mutex, so Python may run without the global lock.
#[pymodule(gil_used = false)]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use super::classifier::{parameters, Classifier};
    #[pymodule_export]
    use super::cluster::{
        ldsm_choose, ldsm_divide, ldsm_join, ldsm_layout, ldsm_left_out, ldsm_margins, ldsm_mine,
        ldsm_model, ldsm_scorers, LdsmTraining,
    };
    #[pymodule_export]
    use super::metrics::{
        fit_line, fit_shares, label_probabilities, propensities, share_probabilities,
        spread_over_labels, Scores,
    };
    #[pymodule_export]
    use super::model_io::{save_estimator, EstimatorFile};
    #[pymodule_export]
    use super::ngrams::{weigh_counts, NgramCounter};
    #[pymodule_export]
    use super::parts::{ldsm_topk, ldsm_whole};
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
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
