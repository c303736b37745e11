//! Ranking measures, and the maps from scores to probabilities.

use numpy::ndarray::Ix2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Either, IndexArray, LabelSetsArg, RowsArg};
use super::run::brief_or_watched;
use crate::error::{Error, Result};
use crate::memory::try_alloc;
use crate::metrics::{
    self, softmax, Line, Outcome, RankedScores, Ranking, Scale, Shares, SharesParameters, Weights,
};

/// y_pred as Python passes it: C-contiguous labels or scores of two dimensions, or scores as a CSR
/// matrix. The Python code converts all other input.
enum RankingArg<'py> {
    Labels(IndexArray<'py, Ix2>),
    Scores(RowsArg<'py>),
}

impl<'py> RankingArg<'py> {
    fn take(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Some(labels) = Either::borrow(y) {
            return Ok(Self::Labels(labels));
        }
        RowsArg::find(y)?.map(Self::Scores).ok_or_else(|| {
            PyTypeError::new_err(
                "y_pred must be a CSR matrix of scores, or an array of two dimensions, of labels \
                 (int32, int64) or scores (float32, float64)",
            )
        })
    }

    /// Checks the ranking and returns a view. Labels must be below `bound`, if it is given.
    fn ranking(&self, bound: Option<usize>) -> PyResult<Ranking<'_>> {
        let ranking = match self {
            Self::Labels(y) => {
                let (n_rows, width) = y.shape("y_pred")?;
                Ranking::labels(y.view()?, n_rows, width, bound)
            }
            Self::Scores(RowsArg::Dense(y)) => {
                let (n_rows, width) = y.shape("y_pred")?;
                Ranking::dense(y.view()?, n_rows, width)
            }
            Self::Scores(RowsArg::Csr(y)) => {
                let (starts, columns, scores) = y.views()?;
                Ranking::sparse(starts, columns, scores, y.n_cols)
            }
        };
        Ok(ranking?)
    }
}

/// Computes the measures over all rows of any number of batches.
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

    /// Adds a batch. A batch that is refused changes nothing.
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
        let effort = truth.parts().1.len().saturating_add(ranking.n_values());
        brief_or_watched(py, effort, None, |control| {
            self.0.add(&truth, &ranking, control)
        })
    }

    /// Returns every measure over all rows so far, a value for each cut.
    fn measures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        for (name, values) in self.0.measures()? {
            named.set_item(name, values.into_pyarray(py))?;
        }
        Ok(named)
    }
}

/// Returns the propensities of labels that occur in `counts` of the `n_rows` training rows.
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

/// Returns the scale of this name.
fn scale_by_name(name: &str) -> Result<Scale> {
    match name {
        "logit" => Ok(Scale::Logit),
        "share" => Ok(Scale::Share),
        "probability" => Ok(Scale::Probability),
        other => Err(Error::parameter(
            "scale",
            other,
            "logit, share or probability",
        )),
    }
}

/// Fits [`Shares`] and returns None without rows. `scores` has shape (n, m); each row is in
/// descending order and ends with minus infinity if it has fewer labels. `hits`, of the same shape,
/// says which labels are right.
#[pyfunction]
pub(super) fn fit_shares(
    py: Python<'_>,
    scores: PyReadonlyArray2<'_, f32>,
    scale: &str,
    hits: PyReadonlyArray2<'_, bool>,
    weights: PyReadonlyArray1<'_, f64>,
    n_classes: usize,
) -> PyResult<Option<SharesParameters>> {
    let ranked = RankedScores {
        width: scores.shape()[1],
        scores: scores.as_slice()?,
        scale: scale_by_name(scale)?,
    };
    let (hits, weights) = (hits.as_slice()?, weights.as_slice()?);
    let found = py.detach(|| Shares::fit(ranked, hits, weights, n_classes));
    Ok(found.map(|found| found.parameters()))
}

/// Returns slope and intercept of the [`Line`] that fits the scores of labels best. `is_there` says
/// if the row has the label.
#[pyfunction]
pub(super) fn fit_line(
    scores: PyReadonlyArray1<'_, f32>,
    is_there: PyReadonlyArray1<'_, bool>,
    weights: PyReadonlyArray1<'_, f64>,
) -> PyResult<(f64, f64)> {
    let weights = weights.as_slice()?;
    let points = scores.as_slice()?.iter().zip(is_there.as_slice()?);
    let points = points.zip(weights);
    let points = points.map(|((&score, &is_right), &weight)| Outcome {
        row: score.into(),
        is_right,
        weight,
    });
    let line = Line::fit(&points.collect::<Vec<_>>());
    Ok((line.slope, line.intercept))
}

/// Returns the probabilities of labels, of which each row has one, from scores of shape (n, m). With
/// `shares` each row of scores is in descending order. Without it the result is the softmax of each
/// row, and 0 for a label without a score.
#[pyfunction]
#[pyo3(signature = (scores, scale, n_classes, shares=None))]
pub(super) fn share_probabilities<'py>(
    scores: PyReadonlyArray2<'py, f32>,
    scale: &str,
    n_classes: usize,
    shares: Option<SharesParameters>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let py = scores.py();
    let [n_rows, width] = [scores.shape()[0], scores.shape()[1]];
    let mut probabilities = scores.as_slice()?.to_vec();
    let scale = scale_by_name(scale)?;
    let shares = shares.map(Shares::from);
    let map = |row: &mut [f32]| match shares {
        Some(shares) => shares.apply(scale, n_classes, row),
        None => softmax(scale, row),
    };
    // Releasing the interpreter takes longer than a single row.
    if n_rows > 1 {
        py.detach(|| probabilities.chunks_exact_mut(width.max(1)).for_each(map));
    } else {
        map(&mut probabilities);
    }
    probabilities.into_pyarray(py).reshape([n_rows, width])
}

/// Returns the probabilities of labels of label sets: the logistic function of
/// `slope * score + intercept`.
#[pyfunction]
pub(super) fn label_probabilities(
    scores: PyReadonlyArray2<'_, f32>,
    slope: f64,
    intercept: f64,
) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let line = Line { slope, intercept };
    let probability = |&score: &f32| line.probability(score.into()) as f32;
    let probabilities: Vec<f32> = scores.as_slice()?.iter().map(probability).collect();
    let shape = [scores.shape()[0], scores.shape()[1]];
    probabilities.into_pyarray(scores.py()).reshape(shape)
}

/// Returns the probabilities of all classes, of shape (n, `n_classes`), from those of the classes
/// `codes`, both of shape (n, m). With `has_one` each row has exactly one label, and the classes of
/// probability 0 share the rest of 1.
#[pyfunction]
pub(super) fn spread_over_labels<'py>(
    codes: PyReadonlyArray2<'py, i32>,
    probabilities: PyReadonlyArray2<'py, f32>,
    n_classes: usize,
    has_one: bool,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let n_rows = codes.shape()[0];
    let mut all = try_alloc(n_rows, n_classes, 0.0)?;
    let width = codes.shape()[1].max(1);
    let rows = codes.as_slice()?.chunks_exact(width);
    let rows = rows.zip(probabilities.as_slice()?.chunks_exact(width));
    for ((codes, probabilities), all) in rows.zip(all.chunks_exact_mut(n_classes.max(1))) {
        metrics::spread_over_labels(codes, probabilities, has_one, all);
    }
    all.into_pyarray(codes.py()).reshape([n_rows, n_classes])
}
