//! Training on several machines: `_core.LdsmTraining`, which trains single trees of LdSM, and
//! functions that train its scorers by groups of labels. Rows and scorers of a group travel as bytes.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::arrays::{BatchArg, WeightsArg};
use super::classifier::Classifier;
use super::parts::{all_restored, kept, ldsm_of, restored, stored};
use super::run::{reduce, watched, Reduced};
use crate::control::Control;
use crate::error::Result;
use crate::file::Bundle;
use crate::learners::ldsm::{self, Ldsm, TrainingSet};
use crate::learners::one_against_some::{GroupFacts, Groups, Layout, Settings};
use crate::params::Params as _;

type Object<'py> = Bound<'py, PyAny>;

fn groups_of(bytes: &[u8]) -> Result<Groups> {
    Ok(Groups::new(restored(bytes)?))
}

/// Calls `work` with the model of all `trees`.
fn with_trees<T: Send>(
    py: Python<'_>,
    trees: &[Py<Classifier>],
    work: impl FnOnce(Ldsm, &Control) -> Result<T> + Send,
) -> PyResult<T> {
    let parts = trees.iter().map(|part| part.get().share(py));
    let parts = parts.collect::<PyResult<Vec<_>>>()?;
    watched(py, None, |control| {
        let parts = parts.iter().map(|part| ldsm_of(part).cloned());
        work(Ldsm::of_trees(parts)?, control)
    })
}

/// Returns the share of so many rows that no tree learns, and that of the others that a tree leaves
/// out at least.
#[pyfunction]
pub(super) fn ldsm_left_out(n_rows: usize) -> (f64, f64) {
    TrainingSet::left_out(n_rows)
}

/// Returns the rows of each group. `number` is that of their partition, and `learned` says which trees
/// have learned each row. Without it these are the rows of the fit, which come once more at the end.
#[pyfunction]
#[pyo3(signature = (trees, groups, number, X, y, sample_weight, learned=None))]
pub(super) fn ldsm_divide(
    trees: Vec<Py<Classifier>>,
    groups: &[u8],
    number: u64,
    X: &Object<'_>,
    y: &Object<'_>,
    sample_weight: WeightsArg<'_>,
    learned: Option<PyReadonlyArray2<'_, bool>>,
) -> PyResult<Vec<Vec<u8>>> {
    let facts: GroupFacts = restored(groups)?;
    // A weight must not round to 0 in single precision.
    let relative = |weight: &f64| (weight / facts.mean_weight).max(f32::MIN_POSITIVE.into());
    let weights: Vec<f64> = sample_weight.as_slice()?.iter().map(relative).collect();
    let examples = BatchArg::take(X, y, None)?;
    let batch = examples.batch(facts.groups.len(), false)?;
    let batch = batch.with_weights(Some(&weights));
    let learned = learned
        .as_ref()
        .map(PyReadonlyArray2::as_slice)
        .transpose()?;
    with_trees(X.py(), &trees, |trees, control| {
        let pieces = trees.divide(&batch, number, learned, &Groups::new(facts), control)?;
        pieces.into_iter().map(stored).collect()
    })
}

/// Mines negatives for the `pieces` of a group, which are empty for places without rows. Returns all
/// its rows, and the gains of rows with each of all settings.
#[pyfunction]
pub(super) fn ldsm_mine(
    py: Python<'_>,
    groups: &[u8],
    group: usize,
    pieces: Vec<PyBackedBytes>,
) -> PyResult<(Vec<u8>, Vec<Vec<f64>>)> {
    let groups = groups_of(groups)?;
    watched(py, None, |control| {
        let filled = pieces.iter().filter(|piece| !piece.is_empty());
        let pieces = filled.map(|piece| restored(piece));
        let (piece, gains) = groups.mine(group, pieces, control)?;
        Ok((stored(piece)?, gains))
    })
}

/// Returns the power of inverse document frequencies and the cost that suit all groups best.
#[pyfunction]
pub(super) fn ldsm_choose(groups: &[u8], gains: Vec<Vec<Vec<f64>>>) -> PyResult<Settings> {
    Ok(groups_of(groups)?.choose(&gains)?)
}

/// Trains the scorers of a group after mining. Returns them, and counts of their weights.
#[pyfunction]
pub(super) fn ldsm_scorers(
    py: Python<'_>,
    groups: &[u8],
    group: usize,
    mined: (PyBackedBytes, Object<'_>),
    settings: Settings,
    fit: &[u8],
) -> PyResult<(Vec<u8>, Vec<u8>)> {
    let (groups, mined) = (groups_of(groups)?, mined.0);
    watched(py, None, |control| {
        let (mined, fit) = (restored(&mined)?, restored(fit)?);
        let (scorers, counts) = groups.train(group, mined, settings, &fit, control)?;
        Ok((stored(scorers)?, stored(counts)?))
    })
}

/// Returns how the scorers of all groups are stored and indexed, from the counts of their weights.
#[pyfunction]
pub(super) fn ldsm_layout(
    groups: &[u8],
    fit: &[u8],
    counts: Vec<PyBackedBytes>,
) -> PyResult<Layout> {
    Ok(groups_of(groups)?.layout(&restored(fit)?, &all_restored(&counts)?)?)
}

/// Returns the scorers of a group in this layout, as a part of the model of this name, and their
/// margins for the rows of the fit. Scorers are written to `file` instead if it is given.
#[pyfunction]
pub(super) fn ldsm_margins(
    py: Python<'_>,
    groups: &[u8],
    fit: &[u8],
    layout: Layout,
    model: String,
    group: usize,
    file: Option<PathBuf>,
    trained: (PyBackedBytes, Object<'_>),
) -> PyResult<(Vec<u8>, Vec<u8>)> {
    let trained = trained.0;
    watched(py, None, |_| {
        let (groups, fit) = (groups_of(groups)?, restored(fit)?);
        let (mut part, margins) = groups.margins(group, restored(&trained)?, layout, &fit)?;
        part.model = model;
        Ok((kept(part, file)?, stored(margins)?))
    })
}

/// Returns the join of trees and scorers from the margins of all groups.
#[pyfunction]
pub(super) fn ldsm_join(
    py: Python<'_>,
    groups: &[u8],
    fit: &[u8],
    settings: Settings,
    margins: Vec<PyBackedBytes>,
) -> PyResult<Vec<u8>> {
    watched(py, None, |_| {
        let margins = all_restored(&margins)?;
        stored(groups_of(groups)?.join(&restored(fit)?, &margins, settings)?)
    })
}

/// Returns the model of all trees, in their order, with the join and the scorers of all groups;
/// without weights if there are no groups.
#[pyfunction]
pub(super) fn ldsm_model(
    py: Python<'_>,
    trees: Vec<Py<Classifier>>,
    join: &[u8],
    parts: Vec<PyBackedBytes>,
) -> PyResult<Classifier> {
    let model = with_trees(py, &trees, |trees, _| {
        trees.joined(restored(join)?, &all_restored(&parts)?)
    })?;
    Ok(Classifier::from_model(Arc::new(model)))
}

/// Rows that are prepared for training LdSM.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct LdsmTraining(TrainingSet);

#[pymethods]
impl LdsmTraining {
    #[new]
    fn new(
        params_json: &str,
        n_classes: usize,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: WeightsArg<'_>,
    ) -> PyResult<Self> {
        let params = ldsm::Params::from_json(params_json)?;
        let examples = BatchArg::take(X, y, Some(sample_weight))?;
        let batch = examples.batch(n_classes, false)?;
        let read = watched(X.py(), None, |control| {
            TrainingSet::read(&params, &batch, None, 1, control)
        })?;
        Ok(Self(read))
    }

    /// Returns the set with one row, for `with_rows` on other machines.
    fn first_row(&self) -> Self {
        Self(self.0.first_row())
    }

    /// Returns a set of other rows with the same parameters and preparation.
    fn with_rows(
        &self,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: WeightsArg<'_>,
    ) -> PyResult<Self> {
        let examples = BatchArg::take(X, y, Some(sample_weight))?;
        let batch = examples.batch(self.0.examples.n_labels, false)?;
        let read = watched(X.py(), None, |control| self.0.with_rows(&batch, control))?;
        Ok(Self(read))
    }

    /// Trains the trees of these numbers and returns a model that has only these. Unless they learn all
    /// rows, each leaves some out if there are to be scorers.
    fn trees(
        &self,
        py: Python<'_>,
        numbers: Vec<usize>,
        learn_all: bool,
        n_threads: usize,
    ) -> PyResult<Classifier> {
        let trees = watched(py, None, |control| {
            Ldsm::with_trees(&self.0, &numbers, learn_all, n_threads, control)
        })?;
        Ok(Classifier::from_model(Arc::new(trees)))
    }

    /// Returns the model of all trees, in their order, with scorers that are trained on these rows.
    fn model(
        &self,
        py: Python<'_>,
        trees: Vec<Py<Classifier>>,
        n_threads: usize,
    ) -> PyResult<Classifier> {
        let model = with_trees(py, &trees, |trees, control| {
            trees.complete(&self.0, n_threads, control)
        })?;
        Ok(Classifier::from_model(Arc::new(model)))
    }

    /// Returns facts about groups of labels as bytes: the group of each label, the number of groups,
    /// the number of rows with each label, and of all rows and their mean weight.
    fn groups(
        &self,
        groups: Vec<u32>,
        n_groups: usize,
        counts: Vec<u32>,
        n_rows: usize,
        mean_weight: f64,
    ) -> PyResult<Vec<u8>> {
        let facts = self.0.complete(GroupFacts {
            groups,
            n_groups,
            counts,
            n_rows,
            mean_weight,
            ..GroupFacts::default()
        });
        Ok(stored(facts)?)
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
