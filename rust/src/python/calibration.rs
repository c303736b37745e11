//! The maps from scores to probabilities, seen from Python.

use numpy::{
    IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::alloc::try_alloc;
use crate::metrics::{self, softmax, Line, RankedScores, Scale, Shares};

/// Slope, rest, slope and intercept of the best label of [`Shares`].
type SharesTuple = (f64, f64, f64, f64);

/// What scores are, by its name.
pub(super) struct ScaleArg(Scale);

impl<'py> FromPyObject<'_, 'py> for ScaleArg {
    type Error = PyErr;

    fn extract(name: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match name.extract::<&str>()? {
            "logit" => Ok(Self(Scale::Logit)),
            "share" => Ok(Self(Scale::Share)),
            "probability" => Ok(Self(Scale::Probability)),
            other => Err(PyValueError::new_err(format!(
                "no scale of scores: {other}"
            ))),
        }
    }
}

/// Fits [`Shares`] to scores of shape (n, m), each row falling, minus infinity where there is
/// none, by whether the best label of each row is right, and weights; None without rows.
#[pyfunction]
pub(super) fn fit_shares(
    py: Python<'_>,
    scores: PyReadonlyArray2<'_, f32>,
    scale: ScaleArg,
    is_right: PyReadonlyArray1<'_, bool>,
    weights: PyReadonlyArray1<'_, f64>,
    n_classes: usize,
) -> PyResult<Option<SharesTuple>> {
    let ranked = RankedScores {
        width: scores.shape()[1],
        scores: scores.as_slice()?,
        scale: scale.0,
    };
    let (is_right, weights) = (is_right.as_slice()?, weights.as_slice()?);
    let found = py.detach(|| Shares::fit(ranked, is_right, weights, n_classes));
    Ok(found.map(|found| {
        (
            found.slope,
            found.rest,
            found.top.slope,
            found.top.intercept,
        )
    }))
}

/// Slope and intercept of the [`Line`] that fits scores, each with whether its label is there and a
/// weight.
#[pyfunction]
pub(super) fn fit_line(
    scores: PyReadonlyArray1<'_, f32>,
    is_there: PyReadonlyArray1<'_, bool>,
    weights: PyReadonlyArray1<'_, f64>,
) -> PyResult<(f64, f64)> {
    let weights = weights.as_slice()?;
    let points = scores.as_slice()?.iter().zip(is_there.as_slice()?);
    let points = points
        .zip(weights)
        .map(|((&score, &is_there), &weight)| (score.into(), is_there, weight));
    let line = Line::fit(&points.collect::<Vec<_>>());
    Ok((line.slope, line.intercept))
}

/// Probabilities of labels of which a row has one, from scores of shape (n, m): by [`Shares`] from
/// rows that fall, without them the softmax of each row, 0 where it has no score.
#[pyfunction]
#[pyo3(signature = (scores, scale, n_classes, shares=None))]
pub(super) fn share_probabilities(
    scores: PyReadonlyArray2<'_, f32>,
    scale: ScaleArg,
    n_classes: usize,
    shares: Option<SharesTuple>,
) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let py = scores.py();
    let [n_rows, width] = [scores.shape()[0], scores.shape()[1]];
    let mut chances = scores.as_slice()?.to_vec();
    let shares = shares.map(|(slope, rest, top_slope, intercept)| Shares {
        slope,
        rest,
        top: Line {
            slope: top_slope,
            intercept,
        },
    });
    let map = |row: &mut [f32]| match shares {
        Some(shares) => shares.apply(scale.0, n_classes, row),
        None => softmax(scale.0, row),
    };
    // Leaving the interpreter takes longer than a row.
    if n_rows > 1 {
        py.detach(|| chances.chunks_exact_mut(width.max(1)).for_each(map));
    } else {
        map(&mut chances);
    }
    chances.into_pyarray(py).reshape([n_rows, width])
}

/// Probabilities of labels of which a row may have any number: the logistic function of
/// `slope * score + intercept`.
#[pyfunction]
pub(super) fn label_probabilities(
    scores: PyReadonlyArray2<'_, f32>,
    slope: f64,
    intercept: f64,
) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let py = scores.py();
    let line = Line { slope, intercept };
    let chances = scores.as_slice()?.iter();
    let chances = chances.map(|&score| line.probability(score.into()) as f32);
    let chances: Vec<f32> = chances.collect();
    chances
        .into_pyarray(py)
        .reshape([scores.shape()[0], scores.shape()[1]])
}

/// Probabilities of all classes, of shape (n, `n_classes`), from those of the classes `codes`, both
/// of shape (n, m). With `has_one` labels of probability 0 share what is left of 1.
#[pyfunction]
pub(super) fn spread_over_labels<'py>(
    codes: PyReadonlyArray2<'py, i32>,
    chances: PyReadonlyArray2<'py, f32>,
    n_classes: usize,
    has_one: bool,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let n_rows = codes.shape()[0];
    let mut all = try_alloc(n_rows, n_classes, 0.0)?;
    let width = codes.shape()[1].max(1);
    let rows = codes.as_slice()?.chunks_exact(width);
    let rows = rows.zip(chances.as_slice()?.chunks_exact(width));
    for ((codes, chances), all) in rows.zip(all.chunks_exact_mut(n_classes.max(1))) {
        metrics::spread_over_labels(codes, chances, has_one, all);
    }
    all.into_pyarray(codes.py()).reshape([n_rows, n_classes])
}
