//! `_core.LabelTree`.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arrays::{LabelsArg, RowsArg, WeightsArg};
use super::run::{brief_or_watched, watched};
use crate::file::LegacyPersist;
use crate::learners::label_tree::{LabelTree, Params, Report};

type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);

/// Filter tree or random tree, as the parameters say.
#[pyclass(module = "xmtree._core", name = "LabelTree")]
pub(super) struct PyLabelTree(LabelTree);

#[pymethods]
impl PyLabelTree {
    #[new]
    fn new(params_json: &str, n_classes: usize) -> PyResult<Self> {
        let params: Params = super::params(params_json)?;
        Ok(Self(LabelTree::new(params, n_classes)?))
    }

    /// One tree learns on one thread, whatever `n_threads`.
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
        let _ = n_threads;
        let rows = RowsArg::take(X)?;
        let batch = super::batch(&rows, &y, sample_weight.as_ref(), self.0.n_classes())?;
        let tree = &mut self.0;
        watched(py, progress, |control| tree.fit(&batch, control))
    }

    /// One tree learns on one thread, whatever `n_threads`.
    #[pyo3(signature = (X, y, sample_weight=None, n_threads=1, progress=None))]
    fn partial_fit(
        &mut self,
        py: Python<'_>,
        X: &Bound<'_, PyAny>,
        y: LabelsArg<'_>,
        sample_weight: Option<WeightsArg<'_>>,
        n_threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = n_threads;
        let rows = RowsArg::take(X)?;
        let batch = super::batch(&rows, &y, sample_weight.as_ref(), self.0.n_classes())?;
        let tree = &mut self.0;
        let effort = tree.walk_effort(&batch.rows);
        brief_or_watched(py, effort, progress, |control| {
            tree.partial_fit(&batch, control)
        })
    }

    #[pyo3(signature = (X, n_threads=1))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'py, PyAny>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let arg = RowsArg::take(X)?;
        let rows = arg.rows()?;
        let effort = self.0.effort(&rows, 1);
        let labels = brief_or_watched(py, effort, None, |control| {
            self.0.predict(&rows, n_threads, control)
        })?;
        Ok(labels.into_pyarray(py))
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
        let rows = arg.rows()?;
        let effort = self.0.effort(&rows, k);
        let (labels, scores) = brief_or_watched(py, effort, None, |control| {
            self.0.predict_topk(&rows, k, n_threads, control)
        })?;
        let shape = [rows.n_rows(), k];
        Ok((
            labels.into_pyarray(py).reshape(shape)?,
            scores.into_pyarray(py).reshape(shape)?,
        ))
    }

    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let report = py.detach(|| self.0.report());
        report.into_iter().map(|r| to_dict(py, r)).collect()
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
    fn progressive_loss(&self) -> Option<f64> {
        self.0.progressive_loss()
    }

    #[getter]
    fn n_examples_seen(&self) -> u64 {
        self.0.n_examples_seen()
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
        Ok(Self(py.detach(|| LabelTree::from_bytes(bytes))?))
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
    dict.set_item("n_labels", report.n_labels.into_pyarray(py))?;
    dict.set_item("label", report.label.into_pyarray(py))?;
    dict.set_item("label_entropy", report.label_entropy.into_pyarray(py))?;
    dict.set_item("n_trained", report.n_trained.into_pyarray(py))?;
    dict.set_item("n_won", report.n_won.into_pyarray(py))?;
    Ok(dict)
}
