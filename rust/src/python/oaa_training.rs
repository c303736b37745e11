//! `_core.OaaClasses`: training one-against-all on many machines, a block of classes at a time.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::{BatchArg, WeightsArg};
use super::classifier::Classifier;
use super::run::{bytes_of, from_bytes, reduced, watched, Reduced};
use crate::learners::oaa::{ClassBlock, Params};
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
        let params = Params::from_json(params_json)?;
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
            &Params::from_json(params_json)?,
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
        Ok(Classifier::of(Arc::new(model)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, || self.0.to_bundle())
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
