//! `_core.LdsmTraining`: the steps of training LdSM on many machines.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::{RowsArg, TargetsArg, WeightsArg};
use super::classifier::Classifier;
use super::run::{bytes_of, from_bytes, reduced, watched, Reduced};
use crate::data::{Batch, Values};
use crate::error::Result;
use crate::learners::ldsm::{step_names, Block, Params, Part, Run, TrainingSet};
use crate::params::Params as _;

type Object<'py> = Bound<'py, PyAny>;
type Parts = Vec<Py<LdsmPart>>;

/// What a step hands on to others, on whatever machine they run.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct LdsmPart(Part);

#[pymethods]
impl LdsmPart {
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, || self.0.to_bundle())
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        from_bytes(py, bytes, Part::from_bundle).map(Self)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_bytes(slf.py())?)
    }

    /// Bytes that it holds, about.
    fn __sizeof__(&self) -> usize {
        self.0.n_bytes()
    }
}

/// Rows to be learned by LdSM, prepared, and the steps of it.
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
        let params = Params::from_json(params_json)?;
        let (x, y) = (RowsArg::take(X)?, TargetsArg::take(y)?);
        let weights = sample_weight.as_ref().map(|weights| weights.as_slice());
        let weights = weights.transpose()?.map(Values::F64);
        let batch = Batch::new(x.rows(false)?, y.targets(n_classes)?, weights)?;
        let read = watched(X.py(), None, |control| {
            TrainingSet::read(&params, &batch, None, 1, control)
        })?;
        Ok(Self(read))
    }

    /// Names of the steps that scorers are trained in; none where there are to be no scorers.
    #[staticmethod]
    fn steps(params_json: &str) -> PyResult<Vec<&'static str>> {
        Ok(step_names(&Params::from_json(params_json)?))
    }

    /// The trees of these numbers.
    #[pyo3(signature = (numbers, n_threads=1))]
    fn trees(&self, py: Python<'_>, numbers: Vec<usize>, n_threads: usize) -> PyResult<LdsmPart> {
        step(py, n_threads, |run| self.0.trees(&numbers, run)).map(LdsmPart)
    }

    /// What the first step begins with, from all trees.
    #[pyo3(signature = (trees, n_threads=1))]
    fn start(&self, py: Python<'_>, trees: Parts, n_threads: usize) -> PyResult<LdsmPart> {
        step(py, n_threads, |run| self.0.start(&all(&trees), run)).map(LdsmPart)
    }

    /// Does block `number` of `n_blocks` of the next step.
    #[pyo3(signature = (state, number, n_blocks, n_threads=1))]
    fn work(
        &self,
        py: Python<'_>,
        state: &LdsmPart,
        number: usize,
        n_blocks: usize,
        n_threads: usize,
    ) -> PyResult<LdsmPart> {
        let block = Block { number, n_blocks };
        step(py, n_threads, |run| self.0.work(&state.0, block, run)).map(LdsmPart)
    }

    /// What the step after begins with, from the work of all blocks.
    #[pyo3(signature = (state, works, n_threads=1))]
    fn advance(
        &self,
        py: Python<'_>,
        state: &LdsmPart,
        works: Parts,
        n_threads: usize,
    ) -> PyResult<LdsmPart> {
        step(py, n_threads, |run| {
            self.0.advance(&state.0, &all(&works), run)
        })
        .map(LdsmPart)
    }

    /// The model of all trees and, after the last step, of the scorers.
    #[pyo3(signature = (trees, state=None, n_threads=1))]
    fn model(
        &self,
        py: Python<'_>,
        trees: Parts,
        state: Option<Py<LdsmPart>>,
        n_threads: usize,
    ) -> PyResult<Classifier> {
        let state = state.as_ref().map(|state| &state.get().0);
        let model = step(py, n_threads, |run| self.0.model(&all(&trees), state, run))?;
        Ok(Classifier::of(Arc::new(model)))
    }

    /// Rows that have a label.
    #[getter]
    fn n_examples(&self) -> usize {
        self.0.n_examples()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, || self.0.to_bundle())
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

/// Runs a step on so many threads, watching for Ctrl-C.
fn step<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    work: impl FnOnce(Run<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    watched(py, None, |control| work(Run { n_threads, control }))
}

fn all(parts: &Parts) -> Vec<&Part> {
    parts.iter().map(|part| &part.get().0).collect()
}
