//! Training on several machines: `_core.LdsmTraining`, which trains single trees of LdSM, and
//! functions that train its scorers by groups of labels. Rows and scorers of a group travel as bytes.

use std::sync::Arc;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::arrays::{BatchArg, WeightsArg};
use super::classifier::Classifier;
use super::run::{reduce, watched, Reduced};
use crate::control::Control;
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::learners::ldsm::{self, Ldsm, TrainingSet};
use crate::learners::one_against_some::{
    GroupFacts, GroupScorers, Groups, Piece, ScorerParams, Settings,
};
use crate::model::Learner as _;
use crate::params::Params as _;

type Object<'py> = Bound<'py, PyAny>;
/// A group's rows after mining, and the gains of rows with each of all settings.
type Mined<T> = Option<(T, Vec<Vec<f64>>)>;
/// The rows of each group as bytes, None for no rows.
type Pieces<'py> = Vec<Option<Bound<'py, PyBytes>>>;

const GROUPS: &str = "ldsm_groups";
const PIECE: &str = "ldsm_piece";
const SCORERS: &str = "ldsm_scorers";

fn groups_of(bytes: &[u8]) -> Result<Groups> {
    Groups::new(restored(GROUPS, bytes)?)
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
        let parts = parts.iter().map(|part| Ldsm::from_bundle(part.to_bundle()));
        work(Ldsm::of_trees(parts)?, control)
    })
}

fn stored(kind: &str, value: &impl Persist) -> Result<Vec<u8>> {
    let mut bundle = Bundle::new(kind);
    value.put(&mut bundle);
    bundle.to_bytes()
}

fn restored<P: Persist + Default>(kind: &str, bytes: &[u8]) -> Result<P> {
    let (mut bundle, mut value) = (Bundle::from_bytes(bytes)?, P::default());
    bundle.expect_kind(kind)?;
    value.fill(&mut bundle)?;
    Ok(value)
}

fn stored_pieces(pieces: Vec<Piece>) -> Result<Vec<Option<Vec<u8>>>> {
    let stored = |piece: Piece| {
        let is_filled = piece.examples.len() > 0;
        is_filled.then(|| stored(PIECE, &piece)).transpose()
    };
    pieces.into_iter().map(stored).collect()
}

fn to_python(py: Python<'_>, pieces: Vec<Option<Vec<u8>>>) -> Pieces<'_> {
    let bytes = |piece: Option<Vec<u8>>| piece.map(|bytes| PyBytes::new(py, &bytes));
    pieces.into_iter().map(bytes).collect()
}

/// Returns the rows of each group from rows that the trees have not learned. `number` is that of
/// their partition.
#[pyfunction]
pub(super) fn ldsm_divide<'py>(
    trees: Vec<Py<Classifier>>,
    groups: &[u8],
    number: u64,
    X: &Object<'py>,
    y: &Object<'py>,
    sample_weight: WeightsArg<'py>,
) -> PyResult<Pieces<'py>> {
    let groups = groups_of(groups)?;
    let (n_classes, mean) = (groups.facts.groups.len(), groups.facts.mean_weight);
    let examples = BatchArg::take(X, y, None)?;
    // A weight must not round to 0 in single precision.
    let relative = |weight: &f64| (weight / mean).max(f32::MIN_POSITIVE.into());
    let weights: Vec<f64> = sample_weight.as_slice()?.iter().map(relative).collect();
    let batch = examples.batch(n_classes, false)?;
    let batch = batch.with_weights(Some(&weights));
    let pieces = with_trees(X.py(), &trees, |trees, control| {
        stored_pieces(trees.divide_rows(&batch, &groups, number, control)?)
    })?;
    Ok(to_python(X.py(), pieces))
}

fn read_groups(groups: &[u8], params_json: &str) -> PyResult<(Groups, ScorerParams)> {
    let (groups, params) = (groups_of(groups)?, ldsm::Params::from_json(params_json)?);
    let params = params.scorer_params(groups.has_dense_columns());
    Ok((groups, params))
}

/// Mines negatives for the `pieces` of a group. Returns None if it has no rows.
#[pyfunction]
pub(super) fn ldsm_mine<'py>(
    py: Python<'py>,
    params_json: &str,
    groups: &[u8],
    group: usize,
    pieces: Vec<Option<PyBackedBytes>>,
) -> PyResult<Mined<Bound<'py, PyBytes>>> {
    let (groups, params) = read_groups(groups, params_json)?;
    let pieces: Vec<PyBackedBytes> = pieces.into_iter().flatten().collect();
    if pieces.is_empty() {
        return Ok(None);
    }
    let (piece, gains) = watched(py, None, |control| {
        let pieces = pieces.iter().map(|piece| restored(PIECE, piece));
        let (piece, gains) = groups.mine(group, pieces, params, control)?;
        Ok((stored(PIECE, &piece)?, gains))
    })?;
    Ok(Some((PyBytes::new(py, &piece), gains)))
}

/// Returns the power of inverse document frequencies and the cost that suit all groups best.
#[pyfunction]
pub(super) fn ldsm_choose(
    params_json: &str,
    groups: &[u8],
    gains: Vec<Vec<Vec<f64>>>,
) -> PyResult<Settings> {
    let (groups, params) = read_groups(groups, params_json)?;
    Ok(groups.choose(params, &gains)?)
}

/// Trains the scorers of a group after mining, and returns them as bytes.
#[pyfunction]
pub(super) fn ldsm_scorers<'py>(
    py: Python<'py>,
    params_json: &str,
    groups: &[u8],
    group: usize,
    mined: Mined<PyBackedBytes>,
    settings: Settings,
) -> PyResult<Bound<'py, PyBytes>> {
    let (groups, params) = read_groups(groups, params_json)?;
    let trained = watched(py, None, |control| {
        let piece = mined
            .map(|(piece, _)| restored(PIECE, &piece))
            .transpose()?;
        stored(
            SCORERS,
            &groups.train(group, piece, params, settings, control)?,
        )
    })?;
    Ok(PyBytes::new(py, &trained))
}

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

    /// Trains the scorers on these rows and returns the model of all trees, in their order.
    #[pyo3(signature = (trees, n_threads=1))]
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
    fn groups<'py>(
        &self,
        py: Python<'py>,
        groups: PyReadonlyArray1<'py, u32>,
        n_groups: usize,
        counts: PyReadonlyArray1<'py, u32>,
        n_rows: usize,
        mean_weight: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let facts = self.0.with_columns(GroupFacts {
            groups: groups.as_slice()?.to_vec(),
            n_groups,
            counts: counts.as_slice()?.to_vec(),
            n_rows,
            mean_weight,
            ..GroupFacts::default()
        });
        Ok(PyBytes::new(py, &stored(GROUPS, &facts)?))
    }

    /// Returns the rows of each group of labels.
    fn divide<'py>(
        &self,
        py: Python<'py>,
        trees: Vec<Py<Classifier>>,
        groups: &[u8],
    ) -> PyResult<Pieces<'py>> {
        let groups = groups_of(groups)?;
        let pieces = with_trees(py, &trees, |trees, control| {
            stored_pieces(trees.divide_sample(&self.0, &groups, control)?)
        })?;
        Ok(to_python(py, pieces))
    }

    /// Returns the model of all trees with the scorers of all groups.
    fn join(
        &self,
        py: Python<'_>,
        trees: Vec<Py<Classifier>>,
        groups: &[u8],
        scorers: Vec<PyBackedBytes>,
        settings: Settings,
    ) -> PyResult<Classifier> {
        let groups = groups_of(groups)?;
        let model = with_trees(py, &trees, |trees, control| {
            let parts = scorers.iter().map(|part| restored(SCORERS, part));
            let parts = parts.collect::<Result<Vec<GroupScorers>>>()?;
            trees.with_groups(&self.0, &groups, &parts, settings, control)
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
