//! Measures, seen from Python.

use numpy::ndarray::Ix2;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Either, IndexArray, LabelSetsArg, SparseArg, ValueArray};
use super::run::brief_or_watched;
use crate::metrics::{self, Ranking, Weights};

/// y_pred as it came: C-contiguous labels or scores of two dimensions, or scores as a
/// CSR matrix. The Python side brings everything else into one of these forms.
enum RankingArg<'py> {
    Labels(IndexArray<'py, Ix2>),
    Dense(ValueArray<'py, Ix2>),
    Sparse(SparseArg<'py>),
}

impl<'py> RankingArg<'py> {
    fn take(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Some(labels) = Either::of(y) {
            return Ok(Self::Labels(labels));
        }
        if let Some(scores) = Either::of(y) {
            return Ok(Self::Dense(scores));
        }
        if y.hasattr("indptr")? {
            return SparseArg::take(y).map(Self::Sparse);
        }
        Err(PyTypeError::new_err(
            "y_pred must be a CSR matrix or an array of two dimensions, of labels (int32, int64) \
             or scores (float32, float64)",
        ))
    }

    /// The checked view; labels must be below `bound`, if there is one.
    fn ranking(&self, bound: Option<usize>) -> PyResult<Ranking<'_>> {
        let ranking = match self {
            Self::Labels(y) => {
                let (n_rows, width) = y.shape("y_pred")?;
                Ranking::labels(y.view()?, n_rows, width, bound)
            }
            Self::Dense(y) => {
                let (n_rows, width) = y.shape("y_pred")?;
                Ranking::dense(y.view()?, n_rows, width)
            }
            Self::Sparse(y) => {
                let (starts, columns, scores) = y.views()?;
                Ranking::sparse(starts, columns, scores, y.n_cols)
            }
        };
        Ok(ranking?)
    }
}

/// Takes in batches of rows and reports the measures over all of them.
#[pyclass(module = "xmtree._core")]
pub(super) struct Scores(metrics::Scores);

#[pymethods]
impl Scores {
    #[new]
    #[pyo3(signature = (cuts, propensities=None, unseen=None, skip_empty=false))]
    fn new(
        cuts: Vec<usize>,
        propensities: Option<Vec<f64>>,
        unseen: Option<f64>,
        skip_empty: bool,
    ) -> PyResult<Self> {
        let weights = propensities.map(|p| Weights::new(&p, unseen)).transpose()?;
        Ok(Self(metrics::Scores::new(&cuts, weights, skip_empty)?))
    }

    /// Takes in a batch; one that is refused changes nothing.
    #[pyo3(signature = (y_true, n_labels, y_pred, bounded=false))]
    fn add(
        &mut self,
        py: Python<'_>,
        y_true: &Bound<'_, PyAny>,
        n_labels: usize,
        y_pred: &Bound<'_, PyAny>,
        bounded: bool,
    ) -> PyResult<()> {
        let truth = LabelSetsArg::take(y_true)?;
        let truth = truth.label_sets(n_labels)?;
        let ranking = RankingArg::take(y_pred)?;
        let ranking = ranking.ranking(bounded.then_some(n_labels))?;
        let effort = truth.total().saturating_add(ranking.n_values());
        brief_or_watched(py, effort, None, |control| {
            self.0.add(&truth, &ranking, control)
        })
    }

    /// Every measure over all rows so far, one value per cut.
    fn measures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.0.measures()?;
        let named = PyDict::new(py);
        named.set_item("precision", found.precision.into_pyarray(py))?;
        named.set_item("ndcg", found.ndcg.into_pyarray(py))?;
        named.set_item("recall", found.recall.into_pyarray(py))?;
        if let (Some(psp), Some(psndcg)) = (found.psp, found.psndcg) {
            named.set_item("psp", psp.into_pyarray(py))?;
            named.set_item("psndcg", psndcg.into_pyarray(py))?;
        }
        Ok(named)
    }
}

/// Propensities from how many of the training rows carry each label.
#[pyfunction]
pub(super) fn propensities<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'py, i64>,
    n_rows: usize,
    a: f64,
    b: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let found = metrics::propensities(counts.as_slice()?, n_rows, a, b)?;
    Ok(found.into_pyarray(py))
}
