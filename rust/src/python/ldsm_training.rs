//! `_core.LdsmTraining`: the steps of training LdSM on many machines.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::{RowsArg, TargetsArg, WeightsArg};
use super::classifier::Classifier;
use super::run::{bytes_of, from_bytes, reduced, watched, Reduced};
use crate::data::{Batch, Values};
use crate::error::Result;
use crate::learners::ldsm::{Block, Choice, Params, Part, Plan, Run, TrainingSet};
use crate::params::Params as _;

type Object<'py> = Bound<'py, PyAny>;
type Parts = Vec<Py<LdsmPart>>;
/// Number of a block, and how many there are.
type BlockArg = (usize, usize);

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

    /// Numbers of powers and of costs to choose from and of rounds after the first; None where
    /// there are to be no scorers.
    #[staticmethod]
    fn plan(params_json: &str) -> PyResult<Option<(usize, usize, usize)>> {
        let plan = Plan::of(&Params::from_json(params_json)?);
        Ok(plan.map(|plan| (plan.n_powers, plan.n_costs, plan.n_mining_rounds)))
    }

    #[pyo3(signature = (numbers, n_threads=1))]
    fn trees(&self, py: Python<'_>, numbers: Vec<usize>, n_threads: usize) -> PyResult<LdsmPart> {
        step(py, n_threads, |run| self.0.trees(&numbers, run))
    }

    fn join_trees(&self, py: Python<'_>, parts: Parts) -> PyResult<LdsmPart> {
        step(py, 1, |_| self.0.join_trees(&all(&parts)))
    }

    #[pyo3(signature = (trees, block, n_threads=1))]
    fn first_negatives(
        &self,
        py: Python<'_>,
        trees: &LdsmPart,
        block: BlockArg,
        n_threads: usize,
    ) -> PyResult<LdsmPart> {
        let block = of(block);
        step(py, n_threads, |run| {
            self.0.first_negatives(&trees.0, block, run)
        })
    }

    fn join_negatives(&self, py: Python<'_>, parts: Parts) -> PyResult<LdsmPart> {
        step(py, 1, |_| self.0.join_negatives(&all(&parts)))
    }

    #[pyo3(signature = (trees, n_threads=1))]
    fn candidates(&self, py: Python<'_>, trees: &LdsmPart, n_threads: usize) -> PyResult<LdsmPart> {
        step(py, n_threads, |run| self.0.candidates(&trees.0, run))
    }

    /// Scorers and dual variables of a block of labels. `cost` is given in the last round;
    /// `known` is what `solve` made of the sample, where there was one.
    #[pyo3(signature = (negatives, block, power, cost=None, is_sample=false, duals=None, known=None, n_threads=1))]
    #[expect(clippy::too_many_arguments, reason = "named ones, in Python")]
    fn solve(
        &self,
        py: Python<'_>,
        negatives: Parts,
        block: BlockArg,
        power: usize,
        cost: Option<usize>,
        is_sample: bool,
        duals: Option<Py<LdsmPart>>,
        known: Option<(Py<LdsmPart>, Py<LdsmPart>)>,
        n_threads: usize,
    ) -> PyResult<(LdsmPart, LdsmPart)> {
        let choice = Choice {
            power,
            cost,
            is_sample,
        };
        let known = known.as_ref().map(|(a, b)| (&a.get().0, &b.get().0));
        let duals = duals.as_ref().map(|duals| &duals.get().0);
        let (scorers, duals) = watched(py, None, |control| {
            let run = Run { n_threads, control };
            self.0
                .solve(choice, &all(&negatives), duals, known, of(block), run)
        })?;
        Ok((LdsmPart(scorers), LdsmPart(duals)))
    }

    /// The number of the power that is taken, by the scorers of all blocks for each.
    #[pyo3(signature = (of_powers, candidates, n_threads=1))]
    fn best_power(
        &self,
        py: Python<'_>,
        of_powers: Vec<Parts>,
        candidates: &LdsmPart,
        n_threads: usize,
    ) -> PyResult<usize> {
        watched(py, None, |control| {
            let run = Run { n_threads, control };
            self.0
                .best_power(&all_of_each(&of_powers), &candidates.0, run)
        })
    }

    /// The number of the cost that is taken, likewise.
    #[pyo3(signature = (power, of_costs, candidates, n_threads=1))]
    fn best_cost(
        &self,
        py: Python<'_>,
        power: usize,
        of_costs: Vec<Parts>,
        candidates: &LdsmPart,
        n_threads: usize,
    ) -> PyResult<usize> {
        watched(py, None, |control| {
            let run = Run { n_threads, control };
            self.0
                .best_cost(power, &all_of_each(&of_costs), &candidates.0, run)
        })
    }

    fn index(&self, py: Python<'_>, scorers: Parts) -> PyResult<LdsmPart> {
        step(py, 1, |_| self.0.index(&all(&scorers)))
    }

    #[pyo3(signature = (power, index, negatives, block, n_threads=1))]
    fn mine(
        &self,
        py: Python<'_>,
        power: usize,
        index: &LdsmPart,
        negatives: Parts,
        block: BlockArg,
        n_threads: usize,
    ) -> PyResult<LdsmPart> {
        step(py, n_threads, |run| {
            self.0
                .mine(power, &index.0, &all(&negatives), of(block), run)
        })
    }

    /// The model; `scorers` are those of all blocks, the numbers of power and cost, and the
    /// candidates.
    #[pyo3(signature = (trees, scorers=None, n_threads=1))]
    fn model(
        &self,
        py: Python<'_>,
        trees: &LdsmPart,
        scorers: Option<(Parts, (usize, usize), Py<LdsmPart>)>,
        n_threads: usize,
    ) -> PyResult<Classifier> {
        let scorers = scorers.as_ref();
        let model = watched(py, None, |control| {
            let run = Run { n_threads, control };
            let parts = scorers.map_or_else(Vec::new, |(parts, ..)| all(parts));
            let scorers = scorers.map(|(_, chosen, found)| (&parts[..], *chosen, &found.get().0));
            self.0.model(&trees.0, scorers, run)
        })?;
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

/// Runs a step that makes one part.
fn step(
    py: Python<'_>,
    n_threads: usize,
    work: impl FnOnce(Run<'_>) -> Result<Part> + Send,
) -> PyResult<LdsmPart> {
    watched(py, None, |control| work(Run { n_threads, control })).map(LdsmPart)
}

fn of((number, n_blocks): BlockArg) -> Block {
    Block { number, n_blocks }
}

fn all(parts: &Parts) -> Vec<&Part> {
    parts.iter().map(|part| &part.get().0).collect()
}

fn all_of_each(candidates: &[Parts]) -> Vec<Vec<&Part>> {
    candidates.iter().map(all).collect()
}
