//! The binding: converts arguments, leaves the interpreter while the core
//! works, maps errors. No algorithm lives here.

// pyo3 hands arguments over by value, and X is what scikit-learn calls it.
#![allow(clippy::needless_pass_by_value, non_snake_case)]

mod arrays;
mod errors;
mod gamble;

mod lomtree;
mod metrics;
mod model_io;
mod oaa;
mod recall_tree;
mod run;
mod text;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{de::DeserializeOwned, Serialize};

use crate::data::Labels;
use crate::data::{Batch, Targets};

use arrays::{LabelsArg, RowsArg, WeightsArg};

/// The compiled half of `xmtree`; private, wrapped by the Python package.
#[pymodule]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use super::errors::{ModelFileError, UnsortedIndicesError};
    #[pymodule_export]
    use super::gamble::PyGamble;
    #[pymodule_export]
    #[pymodule_export]
    use super::lomtree::LomTree;
    #[pymodule_export]
    use super::metrics::{propensities, Scores};
    #[pymodule_export]
    use super::model_io::{load_estimator, save_estimator};
    #[pymodule_export]
    use super::text::{
        load_svmlight, load_xmc, save_xmc, scan_svmlight, xmc_is_multilabel, SvmlightStream,
        XmcStream,
    };

    #[pymodule_export]
    use super::oaa::PyOaa;

    #[pymodule_export]
    use super::recall_tree::RecallTree;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Parameters cross the border as JSON, so that one struct defines them.
fn params<P: DeserializeOwned>(json: &str) -> PyResult<P> {
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(format!("parameters: {e}")))
}

fn to_json(params: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(params).map_err(|e| PyValueError::new_err(format!("parameters: {e}")))
}

/// Checks all of a learner's input at once, before anything changes.
fn batch<'a>(
    rows: &'a RowsArg<'_>,
    labels: &'a LabelsArg<'_>,
    weights: Option<&'a WeightsArg<'_>>,
    n_classes: usize,
) -> PyResult<Batch<'a>> {
    let targets = Targets::One(Labels::new(labels.as_slice()?, n_classes)?);
    let weights = weights.map(|w| w.as_slice()).transpose()?;
    Ok(Batch::new(rows.rows()?, targets, weights)?)
}
