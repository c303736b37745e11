//! `_core.Classifier`: every learner, by name.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::arrays::{shaped, to_dict, to_numpy, BatchArg, RowsArg, WeightsArg};
use super::run::{
    attached, brief_or_watched, bundle_bytes, from_bytes, reduced, watched, Lease, Model, Reduced,
    Share, SharedModel, MAX_INSTANT_EFFORT, MAX_INSTANT_ROWS,
};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::Bundle;
use crate::learners;
use crate::model::{FitOptions, LabelSelection, PredictOptions, Query, Task};

type Object<'py> = Bound<'py, PyAny>;
type Progress<'a, 'py> = Option<&'a Object<'py>>;
type Validation<'py> = (Object<'py>, Object<'py>, Option<WeightsArg<'py>>);
type ClassNumbers<'py> = Bound<'py, PyArray1<i32>>;
/// The parameters, once they were read.
type KnownParams = Arc<PyOnceLock<Py<PyAny>>>;
type TopK<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<f32>>);

/// The parameters of a learner, their defaults and ranges, as JSON.
#[pyfunction]
pub(super) fn parameters(learner: &str) -> PyResult<String> {
    let list = learners::find(learner)?.parameters()?;
    let json = serde_json::to_string(&list);
    Ok(json.map_err(|error| Error::data(format!("parameters of {learner}: {error}")))?)
}

/// A model of any learner, for any number of threads.
#[pyclass(frozen, module = "xmtree._core")]
pub(super) struct Classifier {
    model: SharedModel,
    /// Those that its snapshots read are its own.
    params: Mutex<KnownParams>,
    /// Of what reads another model, whose learning waits meanwhile.
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

    /// Learns from scratch, or with `warm_start` adds what is missing. `validation`: rows, labels
    /// and weights whose error early stopping follows.
    #[pyo3(signature = (
        X, y, sample_weight=None, n_threads=1, progress=None, warm_start=false, validation=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named ones, in Python")]
    fn fit(
        &self,
        X: &Object<'_>,
        y: &Object<'_>,
        sample_weight: Option<WeightsArg<'_>>,
        n_threads: usize,
        progress: Progress<'_, '_>,
        warm_start: bool,
        validation: Option<Validation<'_>>,
    ) -> PyResult<()> {
        let examples = BatchArg::take(X, y, sample_weight)?;
        let validation = validation.map(|(x, y, weights)| BatchArg::take(&x, &y, weights));
        let validation = validation.transpose()?;
        let py = X.py();
        let mut taken = self.model.take(py)?;
        let n_classes = taken.model().n_classes();
        let may_miss_values = taken.model().accepts().missing_values;
        let batch = examples.batch(n_classes, may_miss_values)?;
        let validation = match &validation {
            Some(held_out) => Some(held_out.batch(n_classes, may_miss_values)?),
            None => None,
        };
        let effort = taken.model().effort(&batch.rows, Task::Fit);
        let options = FitOptions {
            n_threads,
            warm_start,
        };
        brief_or_watched(py, effort, progress, |control| match &validation {
            None => taken.own().fit(&batch, options, control),
            Some(rows) => taken.own().fit_validated(&batch, rows, options, control),
        })
    }

    /// Learns once, in the order given. `n_classes`, if larger than that of the model, adds
    /// classes. The model then has these `labels`, if any.
    #[pyo3(signature = (
        X, y, sample_weight=None, n_threads=1, progress=None, n_classes=None, labels=None
    ))]
    #[allow(clippy::too_many_arguments)]
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
        let batch = examples.batch(n_classes, taken.model().accepts().missing_values)?;
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
                taken.rename(Some(labels.into()));
            }
        }
        outcome
    }

    /// The best class of each row.
    #[pyo3(signature = (X, n_threads=1))]
    fn predict<'py>(&self, X: &Object<'py>, n_threads: usize) -> PyResult<ClassNumbers<'py>> {
        let options = &PredictOptions::NONE;
        let found = self.answer(X, n_threads, 1, options, |model, query| {
            model.predict(query)
        })?;
        Ok(found.answer.into_pyarray(X.py()))
    }

    /// The k best classes of each row and their scores, best first.
    #[pyo3(signature = (X, k, options="{}", n_threads=1))]
    fn predict_topk<'py>(
        &self,
        X: &Object<'py>,
        k: usize,
        options: &str,
        n_threads: usize,
    ) -> PyResult<TopK<'py>> {
        let options = &PredictOptions::from_json(options)?;
        let found = self.answer(X, n_threads, k, options, |model, query| {
            model.predict_topk(query, k)
        })?;
        let (labels, scores) = found.answer;
        let labels = labels.into_pyarray(X.py()).reshape([found.n_rows, k])?;
        let scores = scores.into_pyarray(X.py()).reshape([found.n_rows, k])?;
        Ok((labels, scores))
    }

    /// The scores of all classes for each row, one row after the other.
    #[pyo3(signature = (X, options="{}", n_threads=1))]
    fn predict_scores<'py>(
        &self,
        X: &Object<'py>,
        options: &str,
        n_threads: usize,
    ) -> PyResult<Object<'py>> {
        let options = &PredictOptions::from_json(options)?;
        let found = self.answer(X, n_threads, 1, options, Model::predict_scores)?;
        let scores = to_numpy(X.py(), found.answer);
        shaped(scores, found.n_rows, found.n_classes)
    }

    /// Classes of each row and their scores, as the arrays of a CSR matrix: those of a score
    /// above `threshold`, the `n_labels` best, or those more likely there than not and `at_least` so
    /// many.
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
            (Some(threshold), _) => LabelSelection::Above(threshold),
            (None, Some(n)) => LabelSelection::Best(n),
            (None, None) => LabelSelection::Likely(at_least),
        };
        let options = &PredictOptions::NONE;
        let found = self.answer(X, n_threads, 1, options, |model, query| {
            model.select_labels(query, selection)
        })?;
        let found = found.answer;
        let (starts, labels) = (found.starts.into_pyarray(py), found.labels.into_pyarray(py));
        (starts, labels, found.scores.into_pyarray(py)).into_pyobject(py)
    }

    /// The best class of each row after the first tree, the first two and so on: rows x trees.
    #[pyo3(signature = (X, n_threads=1))]
    fn staged_predict<'py>(&self, X: &Object<'py>, n_threads: usize) -> PyResult<Object<'py>> {
        let options = &PredictOptions::NONE;
        let found = self.answer(X, n_threads, 1, options, Model::staged_predict)?;
        let n_stages = found.answer.len() / found.n_rows.max(1);
        let labels = found.answer.into_pyarray(X.py());
        shaped(labels.into_any(), found.n_rows, n_stages)
    }

    /// The leaves that each row reaches: where those of each row begin, the tree of each and its
    /// number among the nodes of `trees`.
    #[pyo3(signature = (X, n_threads=1))]
    fn leaves<'py>(&self, X: &Object<'py>, n_threads: usize) -> PyResult<Bound<'py, PyTuple>> {
        let options = &PredictOptions::NONE;
        let found = self.answer(X, n_threads, 1, options, Model::leaves)?;
        let (mut starts, mut trees, mut nodes) = (vec![0], Vec::new(), Vec::new());
        for leaves in found.answer {
            trees.extend(leaves.iter().map(|leaf| leaf.tree as i32));
            nodes.extend(leaves.iter().map(|leaf| leaf.node as i32));
            starts.push(trees.len() as i64);
        }
        let py = X.py();
        let (trees, nodes) = (trees.into_pyarray(py), nodes.into_pyarray(py));
        (starts.into_pyarray(py), trees, nodes).into_pyobject(py)
    }

    /// The model as it is now, whatever it learns later: it is copied where it learns on while
    /// this lives. `brief`: learning waits a moment before that.
    #[pyo3(signature = (brief=false))]
    fn snapshot(&self, py: Python<'_>, brief: bool) -> PyResult<Self> {
        let share = self.model.share(py)?;
        Ok(Self {
            model: SharedModel::new(share.model, share.labels),
            params: Mutex::new(self.known_params()),
            _lease: brief.then_some(share.lease),
        })
    }

    /// The model as it is now, with these labels.
    fn with_labels(&self, py: Python<'_>, labels: Py<PyAny>) -> PyResult<Self> {
        Ok(Self {
            model: SharedModel::new(self.share(py)?.model, Some(labels.into())),
            params: Mutex::new(self.known_params()),
            _lease: None,
        })
    }

    /// What Python calls the classes, for it to say; None if it has not. They change with the
    /// model, in one step.
    #[getter]
    fn labels(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.model.labels().map(|labels| labels.clone_ref(py))
    }

    /// Replaces parameters that do not concern what was learned.
    fn set_params(&self, py: Python<'_>, params_json: &str) -> PyResult<()> {
        let mut taken = self.model.take(py)?;
        py.detach(|| taken.own().set_params(params_json))?;
        *self.params.lock().unwrap_or_else(PoisonError::into_inner) =
            KnownParams::new(PyOnceLock::new());
        Ok(())
    }

    /// What there is to know of the model as a whole, by name.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, self.share(py)?.summary())
    }

    /// How much it rests on which features: columns of equal length by name.
    fn importances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let model = self.share(py)?;
        to_dict(py, py.detach(|| model.importances()))
    }

    /// What there is to know of each tree: a column of values per name.
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

    /// Columns of X; 0 before anything was learned.
    #[getter]
    fn n_features(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.share(py)?.n_features())
    }

    /// Examples learned, each pass counted; 0 where the learner is not online.
    #[getter]
    fn n_examples_seen(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.share(py)?.n_examples_seen())
    }

    #[getter]
    fn params_json(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.share(py)?.params_json()?)
    }

    /// The parameters as a dictionary, which is the same each time: every prediction asks.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let known = self.known_params();
        let params = known.get_or_try_init(py, || {
            let json = self.params_json(py)?;
            let params = py.import("json")?.call_method1("loads", (json,))?;
            PyResult::Ok(params.unbind())
        })?;
        Ok(params.bind(py).clone())
    }

    /// The model as the bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let model = self.share(py)?;
        bundle_bytes(py, || model.to_bundle())
    }

    /// What predictions need of the model, to the bit, as the bytes of a model file.
    fn to_prediction_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let model = self.share(py)?;
        let bytes = watched(py, None, |control| {
            model.to_prediction_bundle(control)?.to_bytes()
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The model from the bytes of a model file, which must be one of `learner`.
    #[staticmethod]
    #[pyo3(signature = (bytes, learner=None))]
    fn from_bytes(py: Python<'_>, bytes: &[u8], learner: Option<&str>) -> PyResult<Self> {
        let bundle = from_bytes(py, bytes, Ok)?;
        Self::from_bundle(py, bundle, learner)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_bytes(slf.py())?)
    }
}

impl Classifier {
    pub(super) fn from_model(model: Arc<Model>) -> Self {
        Self {
            model: SharedModel::new(model, None),
            params: Mutex::new(KnownParams::new(PyOnceLock::new())),
            _lease: None,
        }
    }

    fn known_params(&self) -> KnownParams {
        let params = self.params.lock().unwrap_or_else(PoisonError::into_inner);
        params.clone()
    }

    /// The model, when nothing learns it.
    pub(super) fn share(&self, py: Python<'_>) -> PyResult<Share> {
        self.model.share(py)
    }

    /// The model in `bundle`, which must be one of `learner`.
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

    /// Checks the rows of X and answers a query of their `k` best labels, or of what costs the same.
    fn answer<T: Send>(
        &self,
        X: &Object<'_>,
        n_threads: usize,
        k: usize,
        options: &PredictOptions,
        answer: impl FnOnce(&Model, &Query<'_>) -> Result<T> + Send,
    ) -> PyResult<Found<T>> {
        let (py, x) = (X.py(), RowsArg::take(X)?);
        let model = self.share(py)?;
        let rows = x.rows(model.accepts().missing_values)?;
        let effort = model.effort(&rows, Task::Predict { k, options });
        let work = |control: &Control| {
            let query = Query::new(&rows, n_threads, control).with(options);
            answer(&*model, &query)
        };
        let answer = if effort <= MAX_INSTANT_EFFORT && rows.n_rows() <= MAX_INSTANT_ROWS {
            attached(work)
        } else {
            brief_or_watched(py, effort, None, work)
        };
        Ok(Found {
            n_rows: rows.n_rows(),
            n_classes: model.n_classes(),
            answer: answer?,
        })
    }
}

/// The answer to a query, and what its shape depends on.
struct Found<T> {
    n_rows: usize,
    n_classes: usize,
    answer: T,
}
