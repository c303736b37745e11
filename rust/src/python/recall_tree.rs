//! `_core.RecallTree`.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::arrays::{LabelsArg, RowsArg, WeightsArg};
use super::run::{brief_or_watched, watched};
use crate::file::LegacyPersist;
use crate::learners::recall_tree::{self, BeamOptions, Params, Report};

type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);

/// Recall Tree.
#[pyclass(module = "xmtree._core")]
pub(super) struct RecallTree(recall_tree::RecallTree);

#[pymethods]
impl RecallTree {
    #[new]
    fn new(params_json: &str, n_classes: usize) -> PyResult<Self> {
        let params: Params = super::params(params_json)?;
        Ok(Self(recall_tree::RecallTree::new(params, n_classes)?))
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
        let model = &mut self.0;
        watched(py, progress, |control| {
            model.fit(&batch, n_threads, control)
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
        let model = &mut self.0;
        let effort = model.walk_effort(&batch.rows, BeamOptions::of(model.params()));
        brief_or_watched(py, effort, progress, |control| {
            model.partial_fit(&batch, n_threads, control)
        })
    }

    #[pyo3(signature = (X, k, beam_size=None, path_weight=None, n_threads=1))]
    fn predict_topk<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'py, PyAny>,
        k: usize,
        beam_size: Option<u32>,
        path_weight: Option<f32>,
        n_threads: usize,
    ) -> PyResult<TopK<'py>> {
        let arg = RowsArg::take(X)?;
        let rows = arg.rows()?;
        let own = BeamOptions::of(self.0.params());
        let beam = BeamOptions {
            size: beam_size.unwrap_or(own.size),
            path_weight: path_weight.unwrap_or(own.path_weight),
        };
        let (labels, scores) = brief_or_watched(py, self.0.effort(&rows, beam), None, |control| {
            self.0.predict_topk(&rows, k, beam, n_threads, control)
        })?;
        let shape = [rows.n_rows(), k];
        Ok((
            labels.into_pyarray(py).reshape(shape)?,
            scores.into_pyarray(py).reshape(shape)?,
        ))
    }

    #[getter]
    fn n_classes(&self) -> usize {
        self.0.n_classes()
    }

    /// F; None before anything was learned.
    #[getter]
    fn max_candidates(&self) -> Option<usize> {
        self.0.max_candidates()
    }

    /// D; None before anything was learned.
    #[getter]
    fn max_depth(&self) -> Option<u32> {
        self.0.max_depth()
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
    fn progressive_recall(&self) -> Option<f64> {
        self.0.progressive_recall()
    }

    #[getter]
    fn n_examples_seen(&self) -> u64 {
        self.0.n_examples_seen()
    }

    #[getter]
    fn params_json(&self) -> PyResult<String> {
        super::to_json(self.0.params())
    }

    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let report = py.detach(|| self.0.report());
        let dicts = report.map(|report| to_dict(py, report)).transpose()?;
        PyList::new(py, dicts)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.to_bytes())?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let model = py.detach(|| recall_tree::RecallTree::from_bytes(bytes))?;
        Ok(Self(model))
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
    let children = report.children.into_pyarray(py);
    dict.set_item("parent", report.parent.into_pyarray(py))?;
    dict.set_item("children", children.reshape([n, report.arity])?)?;
    dict.set_item("depth", report.depth.into_pyarray(py))?;
    dict.set_item("n_examples", report.n_examples.into_pyarray(py))?;
    dict.set_item("n_labels", report.n_labels.into_pyarray(py))?;
    dict.set_item("label", report.label.into_pyarray(py))?;
    dict.set_item("label_entropy", report.label_entropy.into_pyarray(py))?;
    dict.set_item("recall", report.recall.into_pyarray(py))?;
    dict.set_item("recall_bound", report.recall_bound.into_pyarray(py))?;
    dict.set_item("held", report.held.into_pyarray(py))?;
    dict.set_item("n_trained", report.n_trained.into_pyarray(py))?;
    let starts = report.candidate_starts.into_pyarray(py);
    dict.set_item("candidate_starts", starts)?;
    dict.set_item("candidates", report.candidates.into_pyarray(py))?;
    let counts = report.candidate_counts.into_pyarray(py);
    dict.set_item("candidate_counts", counts)?;
    Ok(dict)
}
