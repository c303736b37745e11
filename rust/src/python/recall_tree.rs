//! `_core.RecallTree`.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;


use super::arrays::{LabelsArg, RowsArg, WeightsArg};
use super::run::{brief_or_watched, watched};
use crate::recall_tree::{self, Params};

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
        let effort = model.walk_effort(&batch.rows);
        brief_or_watched(py, effort, progress, |control| {
            model.partial_fit(&batch, n_threads, control)
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
}
