//! `_core.Classifier`, a model of any learner.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::arrays::{shaped, to_dict, to_numpy, BatchArg, RowsArg, WeightsArg};
use super::run::{
    attached, brief_or_watched, reduce, watched, Lease, Model, Reduced, Share, SharedModel,
    MAX_INSTANT_EFFORT, MAX_INSTANT_ROWS,
};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::Bundle;
use crate::learners;
use crate::model::{FitOptions, LabelSelection, PartStep, PredictOptions, Query, Task};

type Object<'py> = Bound<'py, PyAny>;
type Progress<'a, 'py> = Option<&'a Object<'py>>;
type Validation<'py> = (Object<'py>, Object<'py>, Option<WeightsArg<'py>>);
type ClassNumbers<'py> = Bound<'py, PyArray1<i32>>;
pub(super) type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);

/// Returns the parameters of a learner, with their defaults and ranges, as JSON.
#[pyfunction]
pub(super) fn parameters(learner: &str) -> PyResult<String> {
    let list = learners::find(learner)?.parameters()?;
    let json = serde_json::to_string(&list);
    Ok(json.map_err(|error| Error::data(format!("parameters of {learner}: {error}")))?)
}

/// A model of any learner. Any number of threads may use it.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct Classifier {
    model: SharedModel,
    /// Set if this is a brief snapshot of another model, whose learning waits until it is dropped.
    _lease: Option<Lease>,
}

#[pymethods]
impl Classifier {
    #[new]
    #[pyo3(signature = (learner, params_json, n_classes, label_sets=false))]
    fn new(learner: &str, params_json: &str, n_classes: usize, label_sets: bool) -> PyResult<Self> {
        let learner = learners::find(learner)?;
        let model = learner.create(params_json, n_classes, label_sets)?;
        Ok(Self::from_model(model.into()))
    }

    /// Trains from scratch; with `warm_start`, adds the missing trees or makes further passes.
    /// `validation` holds the rows, labels and weights that early stopping uses.
    #[pyo3(signature = (
        X, y, sample_weight=None, n_threads=1, progress=None, warm_start=false, validation=None,
        n_passes=None
    ))]
    fn fit(
        &self,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: Option<WeightsArg<'_>>,
        n_threads: usize,
        progress: Progress<'_, '_>,
        warm_start: bool,
        validation: Option<Validation<'_>>,
        n_passes: Option<u32>,
    ) -> PyResult<()> {
        let examples = BatchArg::take(X, y, sample_weight)?;
        let validation = validation.map(|(x, y, weights)| BatchArg::take(&x, &y, weights));
        let validation = validation.transpose()?;
        let py = X.py();
        let mut taken = self.model.take(py)?;
        let n_classes = taken.model().n_classes();
        let may_miss_values = taken.model().accepts_missing_values();
        let batch = examples.batch(n_classes, may_miss_values)?;
        let validation = match &validation {
            Some(held_out) => Some(held_out.batch(n_classes, may_miss_values)?),
            None => None,
        };
        let options = FitOptions {
            n_threads,
            warm_start,
            n_passes,
        };
        // The effort of further passes is known. Brief work shows no progress.
        let effort = match n_passes {
            Some(n) if warm_start && progress.is_none() => {
                let each = taken.model().effort(&batch.rows, Task::PartialFit);
                each.saturating_mul(n as usize)
            }
            _ => usize::MAX,
        };
        let work = |control: &Control| match &validation {
            None => taken.own().fit(&batch, options, control),
            Some(rows) => taken.own().fit_validated(&batch, rows, options, control),
        };
        brief_or_watched(py, effort, progress, work)
    }

    /// Learns each row once, in the given order. A larger `n_classes` than that of the model adds
    /// classes. `labels`, if given, replace those of the model.
    #[pyo3(signature = (
        X, y, sample_weight=None, n_threads=1, progress=None, n_classes=None, labels=None
    ))]
    fn partial_fit(
        &self,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: Option<WeightsArg<'_>>,
        n_threads: usize,
        progress: Progress<'_, '_>,
        n_classes: Option<usize>,
        labels: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let examples = BatchArg::take(X, y, sample_weight)?;
        let py = X.py();
        let mut taken = self.model.take(py)?;
        let n_known = taken.model().n_classes();
        let n_classes = n_classes.unwrap_or(n_known);
        let batch = examples.batch(n_classes, taken.model().accepts_missing_values())?;
        let effort = taken.model().effort(&batch.rows, Task::PartialFit);
        let outcome = brief_or_watched(py, effort, progress, |control| {
            let model = taken.own();
            if n_classes > n_known {
                model.add_classes(&batch)?;
            }
            model.partial_fit(&batch, n_threads, control)
        });
        if outcome.is_ok() || taken.model().n_classes() > n_known {
            if let Some(labels) = labels {
                taken.share.labels = Some(labels.into());
            }
        }
        outcome
    }

    /// Observes a part of the data, or with its position in the passes, `(rows of all parts, seed,
    /// repeats)`, learns it; see [`PartStep`].
    #[pyo3(signature = (X, y, sample_weight=None, learn=None, n_threads=1))]
    fn learn_part(
        &self,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: Option<WeightsArg<'_>>,
        learn: Option<(u64, u64, bool)>,
        n_threads: usize,
    ) -> PyResult<()> {
        let examples = BatchArg::take(X, y, sample_weight)?;
        let mut taken = self.model.take(X.py())?;
        let batch = examples.batch(taken.model().n_classes(), false)?;
        let step = learn.map_or(PartStep::Observe, |(n_rows, seed, repeats)| {
            PartStep::Learn {
                n_rows,
                seed,
                repeats,
            }
        });
        watched(X.py(), None, |control| {
            taken.own().learn_part(&batch, step, n_threads, control)
        })
    }

    /// Returns the model that consists of `parts`, which were trained side by side.
    #[staticmethod]
    #[pyo3(signature = (learner, params_json, n_classes, label_sets, parts))]
    fn join(
        py: Python<'_>,
        learner: &str,
        params_json: &str,
        n_classes: usize,
        label_sets: bool,
        parts: Vec<Py<Self>>,
    ) -> PyResult<Self> {
        let learner = learners::find(learner)?;
        let parts = parts.iter().map(|part| part.get().share(py));
        let parts = parts.collect::<PyResult<Vec<_>>>()?;
        let joined = py.detach(|| {
            let parts = parts.iter().map(|part| part.to_bundle()).collect();
            learner.join(params_json, n_classes, label_sets, parts)
        })?;
        Ok(Self::from_model(joined.into()))
    }

    /// Returns the best class of each row.
    #[pyo3(signature = (X, n_threads=1))]
    fn predict<'py>(&self, X: &Object<'py>, n_threads: usize) -> PyResult<ClassNumbers<'py>> {
        let options = &PredictOptions::default();
        let classes = self.answer(X, n_threads, 1, options, Model::predict)?;
        Ok(classes.into_pyarray(X.py()))
    }

    /// Returns the k best classes of each row and their scores, best first.
    #[pyo3(signature = (X, k, options="{}", n_threads=1))]
    fn predict_topk<'py>(
        &self,
        X: &Object<'py>,
        k: usize,
        options: &str,
        n_threads: usize,
    ) -> PyResult<TopK<'py>> {
        let options = &PredictOptions::from_json(options)?;
        let ((labels, scores), n_rows) =
            self.answer(X, n_threads, k, options, |model, query| {
                Ok((model.predict_topk(query, k)?, query.rows.n_rows()))
            })?;
        let labels = labels.into_pyarray(X.py()).reshape([n_rows, k])?;
        let scores = scores.into_pyarray(X.py()).reshape([n_rows, k])?;
        Ok((labels, scores))
    }

    /// Returns the scores of all classes for each row.
    #[pyo3(signature = (X, options="{}", n_threads=1))]
    fn predict_scores<'py>(
        &self,
        X: &Object<'py>,
        options: &str,
        n_threads: usize,
    ) -> PyResult<Object<'py>> {
        let options = &PredictOptions::from_json(options)?;
        let (scores, shape) = self.answer(X, n_threads, 1, options, |model, query| {
            let shape = (query.rows.n_rows(), model.n_classes());
            Ok((model.predict_scores(query)?, shape))
        })?;
        shaped(to_numpy(X.py(), scores), shape)
    }

    /// Returns classes of each row and their scores, as the arrays of a CSR matrix. These are the
    /// classes with a score above `threshold`, the `n_labels` best ones, or those with a probability
    /// above 0.5 but at least `at_least`.
    #[pyo3(signature = (X, threshold=None, n_labels=None, at_least=0, n_threads=1))]
    fn select_labels<'py>(
        &self,
        X: &Object<'py>,
        threshold: Option<f32>,
        n_labels: Option<usize>,
        at_least: usize,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = X.py();
        let selection = match (threshold, n_labels) {
            (Some(threshold), _) => LabelSelection::Above(threshold, at_least),
            (None, Some(n)) => LabelSelection::Best(n),
            (None, None) => LabelSelection::Likely(at_least),
        };
        let options = &PredictOptions::default();
        let found = self.answer(X, n_threads, 1, options, |model, query| {
            model.select_labels(query, selection)
        })?;
        let starts: Vec<i64> = found.starts().iter().map(|&start| start as i64).collect();
        let entries = found.entries().iter();
        let (labels, scores): (Vec<i32>, Vec<f32>) =
            entries.map(|&(label, score)| (label as i32, score)).unzip();
        let (starts, labels) = (starts.into_pyarray(py), labels.into_pyarray(py));
        (starts, labels, scores.into_pyarray(py)).into_pyobject(py)
    }

    /// Returns the best class of each row after one tree, two trees and so on, as an array of shape
    /// (rows, trees).
    #[pyo3(signature = (X, n_threads=1))]
    fn staged_predict<'py>(&self, X: &Object<'py>, n_threads: usize) -> PyResult<Object<'py>> {
        let options = &PredictOptions::default();
        let (labels, n_rows) = self.answer(X, n_threads, 1, options, |model, query| {
            Ok((model.staged_predict(query)?, query.rows.n_rows()))
        })?;
        let shape = (n_rows, labels.len() / n_rows.max(1));
        shaped(labels.into_pyarray(X.py()).into_any(), shape)
    }

    /// Returns the leaves that each row reaches: the start of each row's leaves, and for each leaf
    /// its tree and its node in the report of that tree.
    #[pyo3(signature = (X, n_threads=1))]
    fn leaves<'py>(&self, X: &Object<'py>, n_threads: usize) -> PyResult<Bound<'py, PyTuple>> {
        let options = &PredictOptions::default();
        let found = self.answer(X, n_threads, 1, options, Model::leaves)?;
        let (mut starts, mut trees, mut nodes) = (vec![0], Vec::new(), Vec::new());
        for leaves in found {
            trees.extend(leaves.iter().map(|leaf| leaf.tree as i32));
            nodes.extend(leaves.iter().map(|leaf| leaf.node as i32));
            starts.push(trees.len() as i64);
        }
        let py = X.py();
        let (trees, nodes) = (trees.into_pyarray(py), nodes.into_pyarray(py));
        (starts.into_pyarray(py), trees, nodes).into_pyobject(py)
    }

    /// Returns the contributions of columns to the score of the class `classes[i]` for row i, as the
    /// arrays of a CSR matrix. Its last column has the score without features.
    #[pyo3(signature = (X, classes, n_threads=1))]
    fn contributions<'py>(
        &self,
        X: &Object<'py>,
        classes: &Object<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (py, examples) = (X.py(), BatchArg::take(X, classes, None)?);
        let model = self.share(py)?;
        let batch = examples.batch(model.n_classes(), model.accepts_missing_values())?;
        let found = watched(py, None, |control| {
            model.contributions(&Query::new(&batch.rows, n_threads, control), batch.labels())
        })?;
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for entries in found {
            columns.extend(entries.iter().map(|&(column, _)| column as i32));
            values.extend(entries.iter().map(|&(_, value)| value));
            starts.push(columns.len() as i64);
        }
        let (starts, columns) = (starts.into_pyarray(py), columns.into_pyarray(py));
        (starts, columns, values.into_pyarray(py)).into_pyobject(py)
    }

    /// Returns the weights of linear scorers, by name.
    fn coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let model = self.share(py)?;
        to_dict(py, py.detach(|| model.coefficients())?)
    }

    /// Returns the model as it is now. If this model learns while the snapshot lives, it learns on a
    /// copy; for a `brief` snapshot it first waits a moment.
    #[pyo3(signature = (brief=false))]
    fn snapshot(&self, py: Python<'_>, brief: bool) -> PyResult<Self> {
        let share = self.share(py)?;
        Ok(Self {
            _lease: brief.then(|| share.lease.clone()),
            model: SharedModel::new(share),
        })
    }

    /// Returns the model as it is now, with these labels.
    fn with_labels(&self, py: Python<'_>, labels: Py<PyAny>) -> PyResult<Self> {
        let labels = Some(labels.into());
        Ok(Self {
            model: SharedModel::new(Share {
                labels,
                ..self.share(py)?
            }),
            _lease: None,
        })
    }

    /// The classes as Python knows them, or None. They change together with the model.
    #[getter]
    fn labels(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.model.labels().map(|labels| labels.clone_ref(py))
    }

    /// Replaces parameters that do not affect what was learned.
    fn set_params(&self, py: Python<'_>, params_json: &str) -> PyResult<()> {
        let mut taken = self.model.take(py)?;
        Ok(py.detach(|| taken.set_params(params_json))?)
    }

    /// Returns the report of the whole model, by name.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, self.share(py)?.summary())
    }

    /// Returns the measures on the validation rows after each round of the last training, by name.
    fn evaluations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, self.share(py)?.evaluations())
    }

    /// Returns the importance of each feature, as columns of equal length by name.
    fn importances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let model = self.share(py)?;
        to_dict(py, py.detach(|| model.importances()))
    }

    /// Returns the report of each tree, as columns by name.
    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let model = self.share(py)?;
        let reports = py.detach(|| model.reports());
        let dicts = reports.into_iter().map(|report| to_dict(py, report));
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    #[getter]
    fn n_classes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.share(py)?.n_classes())
    }

    /// Number of columns of X; 0 before the first training.
    #[getter]
    fn n_features(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.share(py)?.n_features())
    }

    /// Examples learned, counted in each pass; 0 if the learner is not online.
    #[getter]
    fn n_examples_seen(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.share(py)?.n_examples_seen())
    }

    /// The parameters as a dictionary. It is made once, because every prediction reads it.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let share = self.share(py)?;
        let params = share.params.get_or_try_init(py, || {
            let json = share.params_json()?;
            let loaded = py.import("json")?.call_method1("loads", (json,))?;
            // Python without the lock looks up other keys 100 times as slowly from a second thread.
            let params = PyDict::new(py);
            for (name, value) in loaded.cast::<PyDict>()? {
                params.set_item(
                    PyString::intern(py, name.cast::<PyString>()?.to_str()?),
                    value,
                )?;
            }
            PyResult::Ok(params.into_any().unbind())
        })?;
        Ok(params.bind(py).clone())
    }

    /// Returns the model as the bytes of a model file. `slim` keeps only the parts that predictions
    /// need, which do not change by a bit.
    #[pyo3(signature = (slim=false))]
    fn to_bytes<'py>(&self, py: Python<'py>, slim: bool) -> PyResult<Bound<'py, PyBytes>> {
        let model = self.share(py)?;
        let bytes = watched(py, None, |control| {
            let bundle = if slim {
                model.to_prediction_bundle(false, control)?
            } else {
                model.to_bundle()
            };
            bundle.to_bytes()
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the model in the bytes of a model file, which must be one of `learner`.
    #[staticmethod]
    #[pyo3(signature = (bytes, learner=None))]
    fn from_bytes(py: Python<'_>, bytes: &[u8], learner: Option<&str>) -> PyResult<Self> {
        let bundle = py.detach(|| Bundle::from_bytes(bytes))?;
        Self::from_bundle(py, bundle, learner)
    }

    /// Returns the approximate number of bytes, by which Dask plans its memory.
    fn __sizeof__(&self, py: Python<'_>) -> PyResult<usize> {
        let model = self.share(py)?;
        let arrays = py.detach(|| model.to_bundle());
        let arrays = arrays.arrays().values();
        Ok(arrays.map(crate::file::Array::n_bytes).sum())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let model = slf.get().share(slf.py())?;
        reduce(slf, || model.to_bundle())
    }
}

impl Classifier {
    pub(super) fn from_model(model: Arc<Model>) -> Self {
        Self {
            model: SharedModel::new(model.into()),
            _lease: None,
        }
    }

    /// Returns the state of the model, after learning has ended.
    pub(super) fn share(&self, py: Python<'_>) -> PyResult<Share> {
        self.model.share(py)
    }

    /// Returns the model in `bundle`, which must be one of `learner`.
    pub(super) fn from_bundle(
        py: Python<'_>,
        bundle: Bundle,
        learner: Option<&str>,
    ) -> PyResult<Self> {
        let learner = learner.map(learners::find).transpose()?;
        let model = py.detach(|| {
            learner.map_or(Ok(()), |learner| bundle.expect_kind(learner.kind))?;
            learners::load(bundle)
        })?;
        Ok(Self::from_model(model.into()))
    }

    /// Checks the rows of X and answers a query, which costs about as much as the `k` best labels.
    fn answer<T: Send>(
        &self,
        X: &Object<'_>,
        n_threads: usize,
        k: usize,
        options: &PredictOptions,
        answer: impl FnOnce(&Model, &Query<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (py, x) = (X.py(), RowsArg::take(X)?);
        let model = self.share(py)?;
        let rows = x.rows(model.accepts_missing_values())?;
        let effort = model.effort(&rows, Task::Predict { k, options });
        let work = |control: &Control| {
            let query = Query::new(&rows, n_threads, control).with(options);
            answer(&*model, &query)
        };
        if effort <= MAX_INSTANT_EFFORT && rows.n_rows() <= MAX_INSTANT_ROWS {
            attached(work)
        } else {
            brief_or_watched(py, effort, None, work)
        }
    }
}
