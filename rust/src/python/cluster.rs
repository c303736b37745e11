//! Training on several machines: `_core.LdsmTraining`, which trains single trees of LdSM.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arrays::{BatchArg, WeightsArg};
use super::classifier::Classifier;
use super::run::{reduce, watched, Reduced};
use crate::file::Bundle;
use crate::learners::ldsm::{self, Ldsm, TrainingSet};
use crate::model::Learner as _;
use crate::params::Params as _;

type Object<'py> = Bound<'py, PyAny>;

/// Rows that are prepared for training LdSM.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct LdsmTraining(TrainingSet);

#[pymethods]
impl LdsmTraining {
    #[new]
    #[pyo3(signature = (params_json, n_classes, X, y, sample_weight=None))]
    fn new(
        params_json: &str,
        n_classes: usize,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: Option<WeightsArg<'_>>,
    ) -> PyResult<Self> {
        let params = ldsm::Params::from_json(params_json)?;
        let examples = BatchArg::take(X, y, sample_weight)?;
        let batch = examples.batch(n_classes, false)?;
        let read = watched(X.py(), None, |control| {
            TrainingSet::read(&params, &batch, None, 1, control)
        })?;
        Ok(Self(read))
    }

    /// Trains the trees of these numbers and returns a model that has only these.
    #[pyo3(signature = (numbers, n_threads=1))]
    fn trees(&self, py: Python<'_>, numbers: Vec<usize>, n_threads: usize) -> PyResult<Classifier> {
        let trees = watched(py, None, |control| {
            Ldsm::with_trees(&self.0, &numbers, n_threads, control)
        })?;
        Ok(Classifier::from_model(Arc::new(trees)))
    }

    /// Trains the scorers and returns the model of all trees, in their order.
    #[pyo3(signature = (trees, n_threads=1))]
    fn model(
        &self,
        py: Python<'_>,
        trees: Vec<Py<Classifier>>,
        n_threads: usize,
    ) -> PyResult<Classifier> {
        let parts = trees.iter().map(|part| part.get().share(py));
        let parts = parts.collect::<PyResult<Vec<_>>>()?;
        let model = watched(py, None, |control| {
            let parts = parts.iter().map(|part| Ldsm::from_bundle(part.to_bundle()));
            Ldsm::join(&self.0, parts, n_threads, control)
        })?;
        Ok(Classifier::from_model(Arc::new(model)))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let rows = py.detach(|| TrainingSet::from_bundle(Bundle::from_bytes(bytes)?));
        Ok(Self(rows?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let rows = &slf.get().0;
        reduce(slf, || rows.to_bundle())
    }

    /// Returns the approximate number of bytes, by which Dask plans its memory.
    fn __sizeof__(&self) -> usize {
        self.0.n_bytes()
    }
}
