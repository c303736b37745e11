//! LdSM, seen from Python.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::arrays::{RowsArg, TargetsArg, WeightsArg};
use super::run::brief_or_watched;
use crate::control::Control;
use crate::data::Batch;
use crate::file::LegacyPersist;
use crate::learners::ldsm::{self, LabelSelection, NodeStats, Report};

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
        let y = TargetsArg::take(y, y.hasattr("indptr")?)?;
        let batch = Batch::new(x.rows()?, y.targets(n_classes)?, weights)?;
        let effort = self.0.fit_effort(&batch.rows);
        let ldsm = &mut self.0;
        brief_or_watched(py, effort, progress, |control| {
            ldsm.fit(&batch, adds, n_threads, control)
        })
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
    /// of a score above `threshold`, the `n_labels` best, or those more likely there than not.
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
        let selection = match (threshold, n_labels) {
            (Some(threshold), _) => LabelSelection::Above(threshold),
            (None, Some(n)) => LabelSelection::Best(n),
            (None, None) => LabelSelection::Likely,
        };
        let work = |control: &Control| self.0.scores(&rows, selection, n_threads, control);
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

    /// How many trees from number `first` on have collapsed.
    fn n_collapsed(&self, first: usize) -> usize {
        self.0.n_collapsed(first)
    }

    #[getter]
    fn n_trees(&self) -> usize {
        self.0.trees().len()
    }

    #[getter]
    fn has_scorers(&self) -> bool {
        self.0.has_scorers()
    }

    #[getter]
    fn params_json(&self) -> PyResult<String> {
        super::to_json(self.0.params())
    }

    /// Takes over options that only prediction and further trees heed.
    fn set_params(&mut self, params_json: &str) -> PyResult<()> {
        Ok(self.0.set_params(super::params(params_json)?)?)
    }

    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let reports = py.detach(|| self.0.report());
        let dicts = reports.into_iter().map(|report| to_dict(py, report));
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.to_bytes())?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(Self(py.detach(|| ldsm::Ldsm::from_bytes(bytes))?))
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
    let children = report.children.into_pyarray(py);
    dict.set_item("children", children.reshape([n, report.arity])?)?;
    dict.set_item("depth", report.depth.into_pyarray(py))?;
    dict.set_item("n_examples", report.n_examples.into_pyarray(py))?;
    dict.set_item("label_entropy", report.label_entropy.into_pyarray(py))?;
    dict.set_item("label_starts", report.label_starts.into_pyarray(py))?;
    dict.set_item("labels", report.labels.into_pyarray(py))?;
    dict.set_item("label_counts", report.label_counts.into_pyarray(py))?;
    for (name, of) in NodeStats::NAMED {
        let values: Vec<f64> = report.stats.iter().map(of).collect();
        dict.set_item(name, values.into_pyarray(py))?;
    }
    let curves = report.j_by_epoch.into_pyarray(py);
    dict.set_item("j_by_epoch", curves.reshape([n, report.n_epochs])?)?;
    dict.set_item("n_weights", report.n_weights.into_pyarray(py))?;
    Ok(dict)
}
