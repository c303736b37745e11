//! `_core.Gamble`.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arrays::{LabelsArg, RowsArg, WeightsArg};
use super::run::{brief_or_watched, watched};
use crate::data::Labels;
use crate::file::LegacyPersist;
use crate::learners::gamble::{Gamble, Lesson, Params, Report};

type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);
type Importances<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u64>>);

/// A committee of trees, learned by GAMBLE or SAMME, as the parameters say.
#[pyclass(module = "xmtree._core", name = "Gamble")]
pub(super) struct PyGamble(Gamble);

#[pymethods]
impl PyGamble {
    #[new]
    fn new(params_json: &str, n_classes: usize) -> PyResult<Self> {
        let params: Params = super::params(params_json)?;
        Ok(Self(Gamble::new(params, n_classes)?))
    }

    /// NaN in X is a missing value.
    #[pyo3(signature = (X, y, sample_weight=None, n_threads=1, progress=None))]
    fn fit(
        &mut self,
        py: Python<'_>,
        X: &Bound<'_, PyAny>,
        y: LabelsArg<'_>,
        sample_weight: Option<WeightsArg<'_>>,
        n_threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let rows = RowsArg::take(X)?;
        let labels = Labels::new(y.as_slice()?, self.0.n_classes())?;
        let weights = sample_weight.as_ref().map(|w| w.as_slice()).transpose()?;
        let lesson = Lesson::new(rows.gappy_rows()?, labels, weights)?;
        let model = &mut self.0;
        watched(py, progress, |control| {
            model.fit(&lesson, n_threads, control)
        })
    }

    #[pyo3(signature = (X, k, n_threads=1))]
    fn predict_topk<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'py, PyAny>,
        k: usize,
        n_threads: usize,
    ) -> PyResult<TopK<'py>> {
        let arg = RowsArg::take(X)?;
        let rows = arg.gappy_rows()?;
        let (labels, scores) = brief_or_watched(py, self.0.effort(&rows), None, |control| {
            self.0.predict_topk(&rows, k, n_threads, control)
        })?;
        let shape = [rows.n_rows(), k];
        Ok((
            labels.into_pyarray(py).reshape(shape)?,
            scores.into_pyarray(py).reshape(shape)?,
        ))
    }

    /// The scores of all classes, summed over the trees from `first` up to `last`, which is
    /// not included.
    #[pyo3(signature = (X, first, last, n_threads=1))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'py, PyAny>,
        first: usize,
        last: usize,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let arg = RowsArg::take(X)?;
        let rows = arg.gappy_rows()?;
        let scores = brief_or_watched(py, self.0.effort(&rows), None, |control| {
            self.0.scores(&rows, first, last, n_threads, control)
        })?;
        scores
            .into_pyarray(py)
            .reshape([rows.n_rows(), self.0.n_classes()])
    }

    /// The best class of each row after each tree: rows x trees.
    #[pyo3(signature = (X, n_threads=1))]
    fn staged_predict<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'py, PyAny>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<i32>>> {
        let arg = RowsArg::take(X)?;
        let rows = arg.gappy_rows()?;
        let labels = watched(py, None, |control| {
            self.0.staged_predict(&rows, n_threads, control)
        })?;
        labels
            .into_pyarray(py)
            .reshape([rows.n_rows(), self.0.trees().len()])
    }

    /// By feature: the gain of all splits by it, and how many there are.
    fn importances<'py>(&self, py: Python<'py>) -> Importances<'py> {
        let (gains, splits) = self.0.importances();
        (gains.into_pyarray(py), splits.into_pyarray(py))
    }

    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let reports = py.detach(|| self.0.reports());
        reports.into_iter().map(|r| to_dict(py, r)).collect()
    }

    #[getter]
    fn n_classes(&self) -> usize {
        self.0.n_classes()
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.0.n_features()
    }

    #[getter]
    fn n_trees(&self) -> usize {
        self.0.trees().len()
    }

    #[getter]
    fn params_json(&self) -> PyResult<String> {
        super::to_json(self.0.params())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.to_bytes())?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(Self(py.detach(|| Gamble::from_bytes(bytes))?))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        Ok((from_bytes, (slf.borrow().to_bytes(slf.py())?,)))
    }
}

fn to_dict(py: Python<'_>, report: Report) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let n = report.parent.len();
    dict.set_item("parent", report.parent.into_pyarray(py))?;
    dict.set_item(
        "children",
        report.children.into_pyarray(py).reshape([n, 2])?,
    )?;
    dict.set_item("depth", report.depth.into_pyarray(py))?;
    dict.set_item("n_examples", report.n_examples.into_pyarray(py))?;
    dict.set_item("weight", report.weight.into_pyarray(py))?;
    dict.set_item("label_entropy", report.label_entropy.into_pyarray(py))?;
    dict.set_item("feature", report.feature.into_pyarray(py))?;
    dict.set_item("threshold", report.threshold.into_pyarray(py))?;
    dict.set_item("missing_left", report.missing_left.into_pyarray(py))?;
    dict.set_item("gain", report.gain.into_pyarray(py))?;
    dict.set_item("leaf", report.leaf.into_pyarray(py))?;
    dict.set_item("category_starts", report.category_starts.into_pyarray(py))?;
    dict.set_item("categories", report.categories.into_pyarray(py))?;
    dict.set_item("vote_starts", report.vote_starts.into_pyarray(py))?;
    dict.set_item("vote_classes", report.vote_classes.into_pyarray(py))?;
    dict.set_item("votes", report.votes.into_pyarray(py))?;
    dict.set_item("other_votes", report.other_votes.into_pyarray(py))?;
    Ok(dict)
}
