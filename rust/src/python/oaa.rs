//! One-against-all, seen from Python.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::{RowsArg, TargetsArg, WeightsArg};
use super::run::brief_or_watched;
use crate::control::Control;
use crate::data::Batch;
use crate::error::Result;
use crate::file::LegacyPersist;
use crate::learners::oaa::{Oaa, Params};

type Progress<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
type Weights<'py> = Option<WeightsArg<'py>>;
type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);

/// One linear regressor per class, all of which learn from every example.
#[pyclass(module = "xmtree._core", name = "Oaa")]
pub(super) struct PyOaa(Oaa);

#[pymethods]
impl PyOaa {
    #[new]
    fn new(params_json: &str, n_classes: usize, multilabel: bool) -> PyResult<Self> {
        let params: Params = super::params(params_json)?;
        Ok(Self(Oaa::new(params, n_classes, multilabel)?))
    }

    /// Starts anew and learns in as many passes as the parameters say.
    #[pyo3(signature = (X, y, sample_weight=None, n_threads=1, progress=None))]
    fn fit(
        &mut self,
        py: Python<'_>,
        X: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        sample_weight: Weights<'_>,
        n_threads: usize,
        progress: Progress<'_, '_>,
    ) -> PyResult<()> {
        self.learn(
            py,
            (X, y, sample_weight),
            progress,
            self.0.params().n_passes as usize,
            |oaa, batch, control| oaa.fit(batch, n_threads, control),
        )
    }

    /// Learns once, in the order given.
    #[pyo3(signature = (X, y, sample_weight=None, n_threads=1, progress=None))]
    fn partial_fit(
        &mut self,
        py: Python<'_>,
        X: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        sample_weight: Weights<'_>,
        n_threads: usize,
        progress: Progress<'_, '_>,
    ) -> PyResult<()> {
        self.learn(
            py,
            (X, y, sample_weight),
            progress,
            1,
            |oaa, batch, control| oaa.partial_fit(batch, n_threads, control),
        )
    }

    /// `partial_fit` that returns the class predicted for each row just
    /// before it was learned, -1 for none.
    #[pyo3(signature = (X, y, sample_weight=None, n_threads=1, progress=None))]
    fn learn_predict<'py>(
        &mut self,
        py: Python<'py>,
        X: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        sample_weight: Weights<'_>,
        n_threads: usize,
        progress: Progress<'_, '_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let predicted = self.learn(
            py,
            (X, y, sample_weight),
            progress,
            1,
            |oaa, batch, control| oaa.learn_predict(batch, n_threads, control),
        )?;
        Ok(predicted.into_pyarray(py).into_any())
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
        let effort = self.0.effort(&rows);
        let (labels, scores) = brief_or_watched(py, effort, None, work)?;
        let shape = [rows.n_rows(), k];
        let labels = labels.into_pyarray(py).reshape(shape)?;
        Ok((labels, scores.into_pyarray(py).reshape(shape)?))
    }

    /// The scores of all classes for each row.
    #[pyo3(signature = (X, n_threads=1))]
    fn decision_function<'py>(
        &self,
        py: Python<'py>,
        X: &Bound<'_, PyAny>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let x = RowsArg::take(X)?;
        let rows = x.rows()?;
        let work = |control: &Control| self.0.decision_function(&rows, n_threads, control);
        let effort = self.0.effort(&rows);
        let scores = brief_or_watched(py, effort, None, work)?;
        scores
            .into_pyarray(py)
            .reshape([rows.n_rows(), self.0.n_classes()])
    }

    #[getter]
    fn n_classes(&self) -> usize {
        self.0.n_classes()
    }

    #[getter]
    fn n_features(&self) -> Option<usize> {
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

    /// The model as the bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.to_bytes())?))
    }

    /// The model from the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(Self(py.detach(|| Oaa::from_bytes(bytes))?))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let bytes = slf.borrow().to_bytes(py)?;
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (bytes,)))
    }
}

impl PyOaa {
    /// Checks all that came before `work` changes anything.
    fn learn<T: Send>(
        &mut self,
        py: Python<'_>,
        (x, y, weights): (&Bound<'_, PyAny>, &Bound<'_, PyAny>, Weights<'_>),
        progress: Progress<'_, '_>,
        passes: usize,
        work: impl FnOnce(&mut Oaa, &Batch<'_>, &Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let n_classes = self.0.n_classes();
        let x = RowsArg::take(x)?;
        let weights = weights.as_ref().map(|w| w.as_slice()).transpose()?;
        let y = TargetsArg::take(y, self.0.is_multilabel())?;
        let batch = Batch::new(x.rows()?, y.targets(n_classes)?, weights)?;
        let effort = self.0.effort(&batch.rows).saturating_mul(passes);
        let oaa = &mut self.0;
        brief_or_watched(py, effort, progress, |control| work(oaa, &batch, control))
    }
}
