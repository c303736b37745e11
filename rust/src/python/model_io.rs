//! Estimator files: a model of the core with the state that only Python knows.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{to_array, to_numpy};
use super::classifier::Classifier;
use super::run::watched;
use crate::error::Error;
use crate::file::Bundle;

/// Kind of the outer bundle, in which the core model is nested.
const KIND: &str = "estimator";
/// Name of the nested core model.
const MODEL: &str = "model";
/// Name of the metadata, JSON that Python writes.
const META: &str = "estimator";

/// Writes an estimator: its core model, `arrays` of one dimension (uint8, int64, uint64 or float64),
/// and `meta`, which is JSON. `compact` writes only the parts that predictions need.
#[pyfunction]
pub(super) fn save_estimator(
    py: Python<'_>,
    path: PathBuf,
    meta: &str,
    arrays: &Bound<'_, PyDict>,
    model: &Bound<'_, Classifier>,
    compact: bool,
) -> PyResult<()> {
    let mut bundle = Bundle::new(KIND);
    for (name, array) in arrays.iter() {
        let name: String = name.extract()?;
        bundle.put(&name, to_array(&array)?);
    }
    let meta: serde_json::Value =
        serde_json::from_str(meta).map_err(|e| Error::data(format!("meta is not JSON: {e}")))?;
    bundle.put_meta(META, &meta);
    let model = model.get().share(py)?;
    watched(py, None, move |control| {
        let model = if compact {
            model.to_prediction_bundle(true, control)?
        } else {
            model.to_bundle()
        };
        bundle.nest(MODEL, model);
        bundle.write(&path)
    })
}

/// A file of [`save_estimator`], read or, with `mmap`, mapped into memory.
#[pyclass(module = "xmtree._core")]
pub(super) struct EstimatorFile {
    /// The metadata, as JSON.
    #[pyo3(get)]
    meta: String,
    arrays: Bundle,
    /// `None` after it was taken.
    model: Option<Bundle>,
}

#[pymethods]
impl EstimatorFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, mmap: bool) -> PyResult<Self> {
        watched(py, None, move |_| {
            let mut bundle = if mmap {
                Bundle::map(&path)?
            } else {
                Bundle::read(&path)?
            };
            bundle.expect_kind(KIND)?;
            let model = Some(bundle.unnest(MODEL)?);
            let meta: serde_json::Value = bundle.take_meta(META)?;
            Ok(Self {
                meta: meta.to_string(),
                arrays: bundle,
                model,
            })
        })
    }

    /// Returns the arrays by name.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        for (name, array) in self.arrays.arrays() {
            named.set_item(name, to_numpy(py, array.clone()))?;
        }
        Ok(named)
    }

    /// Takes the core model, which must be one of `learner`, out of this object.
    fn take_model(&mut self, py: Python<'_>, learner: &str) -> PyResult<Classifier> {
        let gone = || Error::data("the model was taken before");
        let model = self.model.take().ok_or_else(gone)?;
        Classifier::from_bundle(py, model, Some(learner))
    }
}
