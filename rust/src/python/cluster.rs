//! Training on many machines: `_core.OaaClasses`, one-against-all a block of classes at a time, and
//! `_core.LdsmTraining`, trees of LdSM by their numbers.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::{BatchArg, WeightsArg};
use super::classifier::Classifier;
use super::run::{bundle_bytes, from_bytes, reduced, watched, Reduced};
use crate::learners::ldsm::{self, Ldsm, TrainingSet};
use crate::learners::oaa::{self, ClassBlock};
use crate::model::Learner as _;
use crate::params::Params as _;

type Object<'py> = Bound<'py, PyAny>;

/// What was learned of a block of classes.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct OaaClasses(ClassBlock);

#[pymethods]
impl OaaClasses {
    /// Learns block `block[0]` of `block[1]`.
    #[new]
    #[pyo3(signature = (params_json, n_classes, label_sets, X, y, sample_weight, block, n_threads=1))]
    #[expect(clippy::too_many_arguments, reason = "named ones, in Python")]
    fn new(
        params_json: &str,
        n_classes: usize,
        label_sets: bool,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: Option<WeightsArg<'_>>,
        block: (usize, usize),
        n_threads: usize,
    ) -> PyResult<Self> {
        let params = oaa::Params::from_json(params_json)?;
        let examples = BatchArg::take(X, y, sample_weight)?;
        let batch = examples.batch(n_classes, false)?;
        let learned = watched(X.py(), None, |control| {
            ClassBlock::train(&params, label_sets, &batch, block, n_threads, control)
        })?;
        Ok(Self(learned))
    }

    /// How many blocks there can be.
    #[staticmethod]
    fn most(params_json: &str, n_classes: usize) -> PyResult<usize> {
        Ok(ClassBlock::most(
            &oaa::Params::from_json(params_json)?,
            n_classes,
        ))
    }

    /// The model of all classes.
    #[staticmethod]
    fn join(py: Python<'_>, blocks: Vec<Py<Self>>) -> PyResult<Classifier> {
        let model = watched(py, None, |_| {
            let blocks: Vec<&ClassBlock> = blocks.iter().map(|block| &block.get().0).collect();
            ClassBlock::join(&blocks)
        })?;
        Ok(Classifier::from_model(Arc::new(model)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bundle_bytes(py, || self.0.to_bundle())
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        from_bytes(py, bytes, ClassBlock::from_bundle).map(Self)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_bytes(slf.py())?)
    }

    /// Bytes that it holds, about.
    fn __sizeof__(&self) -> usize {
        self.0.n_bytes()
    }
}

/// Rows to be learned by LdSM, prepared.
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

    /// A model that has the trees of these numbers alone.
    #[pyo3(signature = (numbers, n_threads=1))]
    fn trees(&self, py: Python<'_>, numbers: Vec<usize>, n_threads: usize) -> PyResult<Classifier> {
        let trees = watched(py, None, |control| {
            Ldsm::with_trees(&self.0, &numbers, n_threads, control)
        })?;
        Ok(Classifier::from_model(Arc::new(trees)))
    }

    /// The model of all trees, in their order; it trains the scorers.
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

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bundle_bytes(py, || self.0.to_bundle())
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        from_bytes(py, bytes, TrainingSet::from_bundle).map(Self)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_bytes(slf.py())?)
    }

    /// Bytes that it holds, about.
    fn __sizeof__(&self) -> usize {
        self.0.n_bytes()
    }
}
