//! `_core.LomTree`.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::arrays::{LabelsArg, RowsArg, WeightsArg};
use super::run::{brief_or_watched, watched};
use crate::file::LegacyPersist;
use crate::learners::lomtree::{Forest, Params, Report};

type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);

/// `LOMtree`, one tree or several.
#[pyclass(module = "xmtree._core")]
pub(super) struct LomTree(Forest);

#[pymethods]
impl LomTree {
    #[new]
    fn new(params_json: &str, n_classes: usize) -> PyResult<Self> {
        let params: Params = super::params(params_json)?;
        Ok(Self(Forest::new(params, n_classes)?))
    }

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
        let batch = super::batch(&rows, &y, sample_weight.as_ref(), self.0.n_classes())?;
        let forest = &mut self.0;
        watched(py, progress, |control| {
            forest.fit(&batch, n_threads, control)
        })
    }

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
        let rows = RowsArg::take(X)?;
        let batch = super::batch(&rows, &y, sample_weight.as_ref(), self.0.n_classes())?;
        let forest = &mut self.0;
        let effort = forest.walk_effort(&batch.rows);
        brief_or_watched(py, effort, progress, |control| {
            forest.partial_fit(&batch, n_threads, control)
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
        let rows = arg.rows()?;
        let (labels, scores) = brief_or_watched(py, self.0.effort(&rows), None, |control| {
            self.0.predict_topk(&rows, k, n_threads, control)
        })?;
        let shape = [rows.n_rows(), k];
        Ok((
            labels.into_pyarray(py).reshape(shape)?,
            scores.into_pyarray(py).reshape(shape)?,
        ))
    }

    #[pyo3(signature = (X, n_threads=1))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'py, PyAny>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let arg = RowsArg::take(X)?;
        let rows = arg.rows()?;
        let scores = rows.n_rows().saturating_mul(self.0.n_classes());
        let effort = self.0.effort(&rows).saturating_add(scores);
        let shares = brief_or_watched(py, effort, None, |control| {
            self.0.predict_proba(&rows, n_threads, control)
        })?;
        shares
            .into_pyarray(py)
            .reshape([rows.n_rows(), self.0.n_classes()])
    }

    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let reports = py.detach(|| self.0.reports());
        PyList::new(
            py,
            reports
                .into_iter()
                .map(|r| to_dict(py, r))
                .collect::<PyResult<Vec<_>>>()?,
        )
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
        Ok(Self(py.detach(|| Forest::from_bytes(bytes))?))
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
    dict.set_item("smallest_leaf", report.smallest_leaf.into_pyarray(py))?;
    dict.set_item("n_recycled", report.n_recycled.into_pyarray(py))?;
    dict.set_item("objective", report.objective.into_pyarray(py))?;
    dict.set_item("balance", report.balance.into_pyarray(py))?;
    dict.set_item("purity", report.purity.into_pyarray(py))?;
    dict.set_item("n_swaps", report.n_swaps)?;
    dict.set_item("n_internal", report.n_internal)?;
    dict.set_item("max_internal", report.max_internal)?;
    dict.set_item("leaf_entropy", report.leaf_entropy)?;
    dict.set_item("recycle_bound", report.recycle_bound)?;
    Ok(dict)
}
