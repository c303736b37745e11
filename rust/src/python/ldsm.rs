//! LdSM, seen from Python.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arrays::{LabelSetsArg, LabelsArg, RowsArg, WeightsArg};
use super::run::brief_or_watched;
use crate::control::Control;
use crate::data::Labels;
use crate::ldsm::{self, Wanted};
use crate::passes::{Batch, Targets};

type Progress<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);
type Csr<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<f32>>,
);

/// An ensemble of M-ary trees over label sets.
#[pyclass(module = "xmtree._core")]
pub(super) struct Ldsm(ldsm::Ldsm);

#[pymethods]
impl Ldsm {
    #[new]
    fn new(params_json: &str, n_classes: usize) -> PyResult<Self> {
        let params: ldsm::Params = super::params(params_json)?;
        Ok(Self(ldsm::Ldsm::new(params, n_classes)?))
    }

    /// Grows all trees, or those that are missing.
    #[pyo3(signature = (X, y, sample_weight=None, n_threads=1, progress=None, adds=false))]
    #[allow(clippy::too_many_arguments)]
    fn fit(
        &mut self,
        py: Python<'_>,
        X: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        sample_weight: Option<WeightsArg<'_>>,
        n_threads: usize,
        progress: Progress<'_, '_>,
        adds: bool,
    ) -> PyResult<()> {
        let n_classes = self.0.n_classes();
        let x = RowsArg::take(X)?;
        let weights = sample_weight.as_ref().map(|w| w.as_slice()).transpose()?;
        let run = |ldsm: &mut ldsm::Ldsm, targets: Targets<'_>| {
            let batch = Batch::new(x.rows()?, targets, weights)?;
            let effort = ldsm.fit_effort(&batch.rows);
            brief_or_watched(py, effort, progress, |control| {
                ldsm.fit(&batch, adds, n_threads, control)
            })
        };
        if y.hasattr("indptr")? {
            let y = LabelSetsArg::take(y)?;
            return run(&mut self.0, Targets::Sets(y.label_sets(n_classes)?));
        }
        let y: LabelsArg<'_> = y.extract().map_err(|_| {
            PyTypeError::new_err("y must be a CSR indicator or a uint32 array of one dimension")
        })?;
        let labels = Labels::new(y.as_slice()?, n_classes)?;
        run(&mut self.0, Targets::One(labels))
    }

    /// The k best classes of each row and their scores, best first.
    #[pyo3(signature = (X, k, n_threads=1))]
    fn predict_topk<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'_, PyAny>,
        k: usize,
        n_threads: usize,
    ) -> PyResult<TopK<'py>> {
        let x = RowsArg::take(X)?;
        let rows = x.rows()?;
        let work = |control: &Control| self.0.predict_topk(&rows, k, n_threads, control);
        let (labels, scores) = brief_or_watched(py, self.0.effort(&rows), None, work)?;
        let shape = [rows.n_rows(), k];
        let labels = labels.into_pyarray(py).reshape(shape)?;
        Ok((labels, scores.into_pyarray(py).reshape(shape)?))
    }

    /// Classes of each row and their scores, as the arrays of a CSR matrix: those
    /// of a score above `threshold`, the `n_labels` best, or as many as are expected.
    #[pyo3(signature = (X, threshold=None, n_labels=None, n_threads=1))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'_, PyAny>,
        threshold: Option<f32>,
        n_labels: Option<usize>,
        n_threads: usize,
    ) -> PyResult<Csr<'py>> {
        let x = RowsArg::take(X)?;
        let rows = x.rows()?;
        let wanted = match (threshold, n_labels) {
            (Some(threshold), _) => Wanted::Above(threshold),
            (None, Some(n)) => Wanted::Best(n),
            (None, None) => Wanted::Expected,
        };
        let work = |control: &Control| self.0.scores(&rows, wanted, n_threads, control);
        let found = brief_or_watched(py, self.0.effort(&rows), None, work)?;
        Ok((
            found.starts.into_pyarray(py),
            found.labels.into_pyarray(py),
            found.scores.into_pyarray(py),
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
    fn params_json(&self) -> PyResult<String> {
        super::to_json(self.0.params())
    }
}
