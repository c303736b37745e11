//! The binding: converts arguments, leaves the interpreter while the core
//! works, maps errors. No algorithm lives here.

// pyo3 hands arguments over by value, and X is what scikit-learn calls it.
#![allow(clippy::needless_pass_by_value, non_snake_case)]

mod arrays;
mod calibration;
mod classifier;
mod errors;
mod ldsm_training;
mod metrics;
mod model_io;
mod oaa_training;
mod pickled;
mod run;
mod shared_model;
mod text;

use pyo3::prelude::*;

/// The compiled half of `xmtree`; private, wrapped by the Python package.
#[pymodule]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use super::calibration::{
        fit_line, fit_shares, label_probabilities, share_probabilities, spread_over_labels,
    };
    #[pymodule_export]
    use super::classifier::{parameters, Classifier};
    #[pymodule_export]
    use super::errors::{ModelFileError, UnsortedIndicesError};
    #[pymodule_export]
    use super::ldsm_training::{LdsmPart, LdsmTraining};
    #[pymodule_export]
    use super::metrics::{propensities, Scores};
    #[pymodule_export]
    use super::model_io::{save_estimator, EstimatorFile};
    #[pymodule_export]
    use super::oaa_training::OaaClasses;
    #[pymodule_export]
    use super::text::{
        iter_svmlight, iter_xmc, load_svmlight, load_xmc, save_xmc, scan_svmlight,
        xmc_is_multilabel, LineBlocks, Stream,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("N_SHARING", crate::metrics::N_SHARING)
    }
}
