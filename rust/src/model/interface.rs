//! The interface of all classifiers.

use std::any::Any;
use std::fmt::Debug;

use serde::Deserialize;

use super::linear_scorers::{Contributions, PreparedScorers};
use super::schedule::PartStep;
use crate::control::Control;
use crate::data::{Batch, Ragged, Rows};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Report};
use crate::params::Params;

/// Best labels and their scores, row by row.
pub type TopKArrays = (Vec<i32>, Vec<f32>);

/// Rule that selects the label set of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelSelection {
    /// Labels with a score above this value, but at least this many of the highest scores.
    Above(f32, usize),
    /// This many labels of the highest scores.
    Best(usize),
    /// Labels with a probability above 1/2, but at least this many of the highest scores.
    Likely(usize),
}

/// A leaf that a row reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedLeaf {
    /// Number of the tree.
    pub tree: u32,
    /// Number of the node in the tree's [report](Classifier::reports).
    pub node: u32,
}

/// Options of `fit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitOptions {
    /// Number of threads. The model does not depend on it.
    pub n_threads: usize,
    /// Continues with the model: adds missing trees, or makes further passes.
    pub warm_start: bool,
    /// Number of passes of an online learner in this call; the parameter's by default.
    pub n_passes: Option<u32>,
}

impl FitOptions {
    /// Creates options for `n_threads` threads without a warm start.
    pub fn threads(n_threads: usize) -> Self {
        Self {
            n_threads,
            warm_start: false,
            n_passes: None,
        }
    }
}

/// Options of a prediction that override parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PredictOptions {
    /// Number of paths of the beam.
    pub beam_size: Option<u32>,
    /// Weight of the path's log-probability in a score.
    pub path_weight: Option<f64>,
    /// First tree to use.
    pub first_tree: Option<usize>,
    /// End of the trees to use.
    pub last_tree: Option<usize>,
}

impl PredictOptions {
    /// Reads options from JSON.
    pub fn from_json(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::data(format!("prediction options: {e}")))
    }

    /// Returns an error if an option is set, for a learner without options.
    pub fn refuse(&self, learner: &str) -> Result<()> {
        if *self == Self::default() {
            return Ok(());
        }
        Err(Error::data(format!("{learner} has no prediction options")))
    }
}

/// Rows to predict, with options.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The rows.
    pub rows: &'a Rows<'a>,
    /// Options that override parameters.
    pub options: PredictOptions,
    /// Number of threads. Predictions do not depend on it.
    pub n_threads: usize,
    /// Progress and interruption.
    pub control: &'a Control,
}

impl<'a> Query<'a> {
    /// Creates a query without options.
    pub fn new(rows: &'a Rows<'a>, n_threads: usize, control: &'a Control) -> Self {
        Self {
            rows,
            options: PredictOptions::default(),
            n_threads,
            control,
        }
    }

    /// Sets the options.
    #[must_use]
    pub fn with(self, options: &PredictOptions) -> Self {
        Self {
            options: *options,
            ..self
        }
    }
}

/// A task, for an estimate of its effort.
#[derive(Debug, Clone, Copy)]
pub enum Task<'a> {
    /// [`Classifier::partial_fit`]
    PartialFit,
    /// [`Classifier::predict_topk`] and methods of the same cost.
    Predict {
        /// Number of labels per row.
        k: usize,
        /// Options.
        options: &'a PredictOptions,
    },
}

/// A classifier of any kind, trained or not.
///
/// Classes are numbered from 0. [`TopK::NO_LABEL`](super::TopK::NO_LABEL) and a score of minus
/// infinity mean that there are fewer labels. Higher scores are better.
pub trait Classifier: Any + Debug + Send + Sync {
    /// Name of the learner in files and messages.
    fn kind(&self) -> &'static str;

    /// Returns the parameters as JSON.
    fn params_json(&self) -> Result<String>;

    /// Number of classes.
    fn n_classes(&self) -> usize;

    /// Number of columns of X; 0 before training.
    fn n_features(&self) -> usize;

    /// Number of learned examples, counting each pass; 0 if the learner is not online.
    fn n_examples_seen(&self) -> u64 {
        0
    }

    /// Returns whether values of X may be missing.
    fn accepts_missing_values(&self) -> bool {
        false
    }

    /// Learns from scratch, or continues if `options` say so. An error leaves the model unchanged,
    /// but a stopped online learner keeps what it has learned.
    fn fit(&mut self, batch: &Batch<'_>, options: FitOptions, control: &Control) -> Result<()>;

    /// Learns from scratch with early stopping by the error on `validation`, so that no rows of
    /// `batch` are held out.
    fn fit_validated(
        &mut self,
        _batch: &Batch<'_>,
        _validation: &Batch<'_>,
        _options: FitOptions,
        _control: &Control,
    ) -> Result<()> {
        Err(self.cannot("take validation rows"))
    }

    /// Continues learning with one pass over `batch`, in its order.
    fn partial_fit(
        &mut self,
        _batch: &Batch<'_>,
        _n_threads: usize,
        _control: &Control,
    ) -> Result<()> {
        Err(self.cannot("learn online"))
    }

    /// Observes or learns a part of the data; see [`PartStep`].
    fn learn_part(
        &mut self,
        _batch: &Batch<'_>,
        _step: PartStep,
        _n_threads: usize,
        _control: &Control,
    ) -> Result<()> {
        Err(self.cannot("learn from parts"))
    }

    /// Adds the new classes of `batch`, before [`partial_fit`](Self::partial_fit) learns it. An error
    /// leaves the model unchanged.
    fn add_classes(&mut self, _batch: &Batch<'_>) -> Result<()> {
        Err(self.cannot("take new labels"))
    }

    /// Returns the best label of each row.
    fn predict(&self, query: &Query<'_>) -> Result<Vec<i32>> {
        Ok(self.predict_topk(query, 1)?.0)
    }

    /// Returns the `k` best labels of each row and their scores, best first, as arrays of rows x `k`.
    /// Equal scores are in the order of labels.
    fn predict_topk(&self, query: &Query<'_>, k: usize) -> Result<TopKArrays>;

    /// Returns the scores (or probabilities) of all classes: rows x classes.
    fn predict_scores(&self, _query: &Query<'_>) -> Result<Array> {
        Err(self.cannot("score all classes"))
    }

    /// Returns the label set of each row, increasing, and the scores of these labels.
    fn select_labels(&self, _: &Query<'_>, _: LabelSelection) -> Result<Ragged<(u32, f32)>> {
        Err(self.cannot("select label sets"))
    }

    /// Returns the best label of each row by the first tree, the first two and so on: rows x trees.
    fn staged_predict(&self, _query: &Query<'_>) -> Result<Vec<i32>> {
        Err(self.cannot("predict in stages"))
    }

    /// Returns the leaves that each row reaches, tree by tree.
    fn leaves(&self, _query: &Query<'_>) -> Result<Vec<Vec<ReachedLeaf>>> {
        Err(self.cannot("report the leaves of rows"))
    }

    /// Returns the linear scorers of the classes.
    fn scorers(&self) -> Option<PreparedScorers<'_>> {
        None
    }

    /// Returns the contributions of columns to the score of a class, one class for each row: products
    /// of weights and values for linear scorers.
    fn contributions(&self, query: &Query<'_>, classes: &[u32]) -> Result<Vec<Contributions>> {
        let scorers = self.scorers();
        let scorers = scorers.ok_or_else(|| self.cannot("explain its scores"))?;
        scorers.contributions(query.rows, classes, query.n_threads, query.control)
    }

    /// Returns the [weights](PreparedScorers::coefficients) of linear scorers.
    fn coefficients(&self) -> Result<Report> {
        let scorers = self
            .scorers()
            .filter(|scorers| !scorers.preparation.hashes());
        let what = "report weights of columns, as it has no scorers or hashes columns";
        scorers
            .ok_or_else(|| self.cannot(what))?
            .coefficients(self.n_classes())
    }

    /// Replaces parameters that can change after training.
    fn set_params(&mut self, _json: &str) -> Result<()> {
        Err(self.cannot("change its parameters"))
    }

    /// Estimates the number of products of `task`, to decide whether a user will wait for it.
    fn effort(&self, rows: &Rows<'_>, task: Task<'_>) -> usize;

    /// Describes the model as a whole; cheap.
    fn summary(&self) -> Report;

    /// Returns the measures on the validation rows after each round of the last training.
    fn evaluations(&self) -> Report {
        Report::new()
    }

    /// Returns the importance of each feature for the model.
    fn importances(&self) -> Report {
        Report::new()
    }

    /// Describes the nodes of each tree.
    fn reports(&self) -> Vec<Report> {
        Vec::new()
    }

    /// Returns the complete state, from which learning can continue.
    fn to_bundle(&self) -> Bundle;

    /// Returns the state that predictions need, from which learning cannot continue. Predictions
    /// stay the same to the bit, unless `compact` stores some arrays in half the bits, which hardly
    /// changes them. The default is the complete state.
    fn to_prediction_bundle(&self, _compact: bool, _control: &Control) -> Result<Bundle> {
        Ok(self.to_bundle())
    }

    /// Returns an independent copy.
    fn boxed_clone(&self) -> Box<dyn Classifier>;

    /// Creates the error of an operation that this learner does not have.
    fn cannot(&self, what: &str) -> Error {
        Error::data(format!("a model of kind {:?} cannot {what}", self.kind()))
    }
}

/// A classifier that is created by name; see [`Registration`](crate::learners::Registration).
pub trait Learner: Classifier + Sized + 'static {
    /// [`Classifier::kind`], which files contain and which must not change.
    const KIND: &'static str;

    /// Parameters.
    type Params: Params;

    /// Creates an untrained model and checks the parameters. If `label_sets`, rows have label sets.
    fn create(params: Self::Params, n_classes: usize, label_sets: bool) -> Result<Self>;

    /// Restores a model from [`Classifier::to_bundle`] whose kind has been checked.
    fn from_bundle(bundle: Bundle) -> Result<Self>;

    /// Joins models that were trained side by side, each a bundle, to one with these parameters.
    fn join(
        _params: Self::Params,
        _n_classes: usize,
        _label_sets: bool,
        _parts: Vec<Bundle>,
    ) -> Result<Self> {
        Err(Error::data("models of this kind cannot be joined"))
    }

    /// Restores a model from the bytes of a model file.
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bundle = Bundle::from_bytes(bytes)?;
        bundle.expect_kind(Self::KIND)?;
        Self::from_bundle(bundle)
    }

    /// Returns the bytes of a model file.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_bundle().to_bytes()
    }
}

/// Checks of rows and labels against a model.
pub(crate) mod checks {
    use crate::data::{Batch, Rows, Targets};
    use crate::error::{Error, Result};
    use crate::memory::can_alloc;

    /// Maximum number of classes, which are `i32` in results.
    const MAX_CLASSES: usize = i32::MAX as usize;

    /// Lower bound of the bytes per class of an untrained model.
    const BYTES_PER_CLASS: usize = 16;

    /// Returns an error if a model of `n_classes` classes is impossible.
    pub(crate) fn n_classes(n_classes: usize) -> Result<()> {
        if !(1..=MAX_CLASSES).contains(&n_classes) {
            let allowed = format!("from 1 to {MAX_CLASSES}");
            return Err(Error::parameter("n_classes", n_classes, allowed));
        }
        if can_alloc(Some(n_classes * BYTES_PER_CLASS)) {
            return Ok(());
        }
        Err(Error::data(format!("no memory for {n_classes} classes")))
    }

    /// Returns an error if the number of classes of y differs from that of the model.
    pub(crate) fn check_classes(n_given: usize, n_classes: usize) -> Result<()> {
        if n_given == n_classes {
            return Ok(());
        }
        Err(Error::data(format!(
            "y has {n_given} classes, but the model has {n_classes}"
        )))
    }

    /// Creates the error of predictions by an untrained model.
    pub(crate) fn nothing_learned() -> Error {
        Error::data("the model has not been trained yet")
    }

    /// Returns an error if y has other classes than the model, or single labels instead of label
    /// sets, or the reverse.
    pub(crate) fn targets(
        batch: &Batch<'_>,
        learner: &str,
        n_classes: usize,
        label_sets: bool,
    ) -> Result<()> {
        match (batch.targets, label_sets) {
            (Targets::Sets(_), false) => return Err(one_label_per_row(learner)),
            (Targets::One(_), true) => {
                let what = "the model learns label sets, but y has one label per row";
                return Err(Error::data(what));
            }
            _ => {}
        }
        check_classes(batch.targets.n_classes(), n_classes)
    }

    /// Creates the error for label sets, if the learner takes one label per row.
    pub(crate) fn one_label_per_row(learner: &str) -> Error {
        Error::data(format!(
            "{learner} learns one label per row, but y has label sets"
        ))
    }

    /// Returns an error if values may be missing.
    pub(crate) fn no_missing_values(rows: &Rows<'_>, learner: &str) -> Result<()> {
        if rows.may_miss_values() {
            return Err(Error::data(format!(
                "{learner} does not accept missing values in X"
            )));
        }
        Ok(())
    }
}
