//! What every classifier can do, as its callers see it.

use std::fmt::Debug;

use serde::Deserialize;

use crate::control::Control;
use crate::data::{Batch, Rows};
use crate::error::{Error, Result};
use crate::file::{Array, Bundle, Report};
use crate::params::Params;

/// Labels and scores of the best, row by row.
pub type TopKArrays = (Vec<i32>, Vec<f32>);

/// Labels of each row and their scores, as the arrays of a CSR matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SelectedLabels {
    /// Where the labels of each row begin, and the end of the last.
    pub starts: Vec<i64>,
    /// Labels.
    pub labels: Vec<i32>,
    /// Their scores.
    pub scores: Vec<f32>,
}

/// Which labels of a row are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelSelection {
    /// Those of a score above this.
    Above(f32),
    /// So many of the highest scores.
    Best(usize),
    /// Those more likely there than not; where these are fewer than this, so many of the highest
    /// scores.
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

/// What a classifier takes as input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepts {
    /// Rows may have any number of labels.
    pub label_sets: bool,
    /// Values may be missing.
    pub missing_values: bool,
}

/// How `fit` is to go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitOptions {
    /// Threads; the model does not depend on them.
    pub n_threads: usize,
    /// Keep what there is and add what is missing, where the learner can.
    pub warm_start: bool,
}

impl FitOptions {
    /// From scratch, on so many threads.
    pub fn threads(n_threads: usize) -> Self {
        Self {
            n_threads,
            warm_start: false,
        }
    }
}

/// How a prediction is to go about it, where it may differ from the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PredictOptions {
    /// Leaves whose candidates compete.
    pub beam_size: Option<u32>,
    /// Weight of the path's log-probability in a score.
    pub path_weight: Option<f64>,
    /// Only the trees from this one on.
    pub first_tree: Option<usize>,
    /// Only the trees before this one.
    pub last_tree: Option<usize>,
}

impl PredictOptions {
    /// As the parameters say.
    pub const NONE: Self = Self {
        beam_size: None,
        path_weight: None,
        first_tree: None,
        last_tree: None,
    };

    /// From JSON; what is left out is as the parameters say.
    pub fn from_json(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| Error::data(format!("options of prediction: {e}")))
    }

    /// An error where something is asked for that `learner` does not have.
    pub fn refuse(&self, learner: &str) -> Result<()> {
        if *self == Self::NONE {
            return Ok(());
        }
        Err(Error::data(format!(
            "{learner} has no options of prediction"
        )))
    }
}

/// Rows to be predicted, and how.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The rows.
    pub rows: &'a Rows<'a>,
    /// What may differ from the parameters.
    pub options: PredictOptions,
    /// Threads; answers do not depend on them.
    pub n_threads: usize,
    /// Progress and interruption.
    pub control: &'a Control,
}

impl<'a> Query<'a> {
    /// As the parameters of the model say.
    pub fn new(rows: &'a Rows<'a>, n_threads: usize, control: &'a Control) -> Self {
        Self {
            rows,
            options: PredictOptions::NONE,
            n_threads,
            control,
        }
    }

    /// With other options.
    #[must_use]
    pub fn with(self, options: &PredictOptions) -> Self {
        Self {
            options: *options,
            ..self
        }
    }
}

/// What a classifier is to do.
#[derive(Debug, Clone, Copy)]
pub enum Task<'a> {
    /// [`Classifier::fit`]
    Fit,
    /// [`Classifier::partial_fit`]
    PartialFit,
    /// [`Classifier::predict_topk`] and what costs the same.
    Predict {
        /// Labels wanted.
        k: usize,
        /// How.
        options: &'a PredictOptions,
    },
}

/// A learned or learning classifier, whatever its algorithm.
///
/// Class numbers run from 0 to `n_classes`; in answers [`TopK::NO_LABEL`](super::TopK::NO_LABEL) and minus
/// infinity stand where there is no further label. Scores are the higher the better.
pub trait Classifier: Debug + Send + Sync {
    /// Name of the learner in files and messages.
    fn kind(&self) -> &'static str;

    /// The parameters as JSON.
    fn params_json(&self) -> Result<String>;

    /// Number of classes.
    fn n_classes(&self) -> usize;

    /// Columns of X; 0 before anything was learned.
    fn n_features(&self) -> usize;

    /// Examples learned, each pass counted; 0 where the learner is not online.
    fn n_examples_seen(&self) -> u64 {
        0
    }

    /// What it takes as input.
    fn accepts(&self) -> Accepts;

    /// Learns from scratch. On an error it stays as it was; stopped half way an online learner
    /// keeps what it has learned.
    fn fit(&mut self, batch: &Batch<'_>, options: FitOptions, control: &Control) -> Result<()>;

    /// As [`fit`](Self::fit), but early stopping follows the error on `validation`: none of the
    /// rows of `batch` are held out.
    fn fit_validated(
        &mut self,
        _batch: &Batch<'_>,
        _validation: &Batch<'_>,
        _options: FitOptions,
        _control: &Control,
    ) -> Result<()> {
        Err(self.cannot("take validation rows"))
    }

    /// Learns `batch` once, in its order, on top of what is known.
    fn partial_fit(
        &mut self,
        _batch: &Batch<'_>,
        _n_threads: usize,
        _control: &Control,
    ) -> Result<()> {
        Err(self.cannot("learn online"))
    }

    /// Adds the classes that `batch` is over and the model is not, before
    /// [`partial_fit`](Self::partial_fit) learns it: refused, and nothing changed, where the batch
    /// would be.
    fn add_classes(&mut self, _batch: &Batch<'_>) -> Result<()> {
        Err(self.cannot("take new labels"))
    }

    /// The best label of each row.
    fn predict(&self, query: &Query<'_>) -> Result<Vec<i32>> {
        Ok(self.predict_topk(query, 1)?.0)
    }

    /// The `k` best labels of each row and their scores, best first, ties to the lower label:
    /// arrays of rows x `k`.
    fn predict_topk(&self, query: &Query<'_>, k: usize) -> Result<TopKArrays>;

    /// The scores (or probabilities) of all classes: rows x classes.
    fn predict_scores(&self, _query: &Query<'_>) -> Result<Array> {
        Err(self.cannot("score all classes"))
    }

    /// Labels by their scores, any number per row.
    fn select_labels(
        &self,
        _query: &Query<'_>,
        _selection: LabelSelection,
    ) -> Result<SelectedLabels> {
        Err(self.cannot("select label sets"))
    }

    /// The best label of each row by the first tree, the first two and so on: rows x trees.
    fn staged_predict(&self, _query: &Query<'_>) -> Result<Vec<i32>> {
        Err(self.cannot("predict in stages"))
    }

    /// The leaves that each row reaches on its way to a prediction, tree after tree.
    fn leaves(&self, _query: &Query<'_>) -> Result<Vec<Vec<ReachedLeaf>>> {
        Err(self.cannot("tell the leaves of rows"))
    }

    /// Replaces parameters that do not concern what was learned.
    fn set_params(&mut self, _json: &str) -> Result<()> {
        Err(self.cannot("change its parameters"))
    }

    /// About how many products `task` takes, to decide whether a person will wait for it.
    fn effort(&self, rows: &Rows<'_>, task: Task<'_>) -> usize;

    /// What there is to know of the model as a whole: cheap.
    fn summary(&self) -> Report;

    /// How much the model rests on which features.
    fn importances(&self) -> Report {
        Report::new()
    }

    /// What there is to know of each tree.
    fn reports(&self) -> Vec<Report> {
        Vec::new()
    }

    /// The whole state, with everything needed to go on learning.
    fn to_bundle(&self) -> Bundle;

    /// What predictions need, no more, with weights in half the bits where predictions hardly
    /// change: a model of it predicts and does not learn on. All of it where that is all there is.
    fn to_compact_bundle(&self, _control: &Control) -> Result<Bundle> {
        Ok(self.to_bundle())
    }

    /// What predictions need, to the bit. All of it where that is all there is.
    fn to_prediction_bundle(&self, _control: &Control) -> Result<Bundle> {
        Ok(self.to_bundle())
    }

    /// A copy, which learns on by itself.
    fn boxed_clone(&self) -> Box<dyn Classifier>;

    /// The error for what this learner has no way to do.
    fn cannot(&self, what: &str) -> Error {
        Error::data(format!("a model of kind {:?} cannot {what}", self.kind()))
    }
}

/// A classifier that can be made by name: see [`Registration`](crate::learners::Registration).
pub trait Learner: Classifier + Sized + 'static {
    /// [`Classifier::kind`]. It never changes.
    const KIND: &'static str;

    /// Its parameters.
    type Params: Params;

    /// A model of checked parameters that has learned nothing. `label_sets`: whether rows will
    /// have sets of labels.
    fn create(params: Self::Params, n_classes: usize, label_sets: bool) -> Result<Self>;

    /// The inverse of [`Classifier::to_bundle`]; the kind has been checked.
    fn from_bundle(bundle: Bundle) -> Result<Self>;

    /// From the bytes of a model file.
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bundle = Bundle::from_bytes(bytes)?;
        bundle.expect_kind(Self::KIND)?;
        Self::from_bundle(bundle)
    }

    /// The bytes of a model file.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_bundle().to_bytes()
    }
}

/// Checks of rows and labels against the classes and columns of a model.
pub(crate) mod checks {
    use crate::data::{Batch, Rows, Targets};
    use crate::error::{Error, Result};
    use crate::memory::can_alloc;

    /// Class numbers are `i32` where they go out.
    const MOST_CLASSES: usize = i32::MAX as usize;

    /// Bytes that a class takes before anything is learned of it, at least.
    const BYTES_PER_CLASS: usize = 16;

    /// An error where there can be no model of so many classes.
    pub(crate) fn n_classes(n_classes: usize) -> Result<()> {
        if !(1..=MOST_CLASSES).contains(&n_classes) {
            let allowed = format!("from 1 to {MOST_CLASSES}");
            return Err(Error::parameter("n_classes", n_classes, allowed));
        }
        if can_alloc(Some(n_classes * BYTES_PER_CLASS)) {
            return Ok(());
        }
        Err(Error::data(format!("no memory for {n_classes} classes")))
    }

    /// An error where y has not the classes of the model.
    pub(crate) fn check_classes(of_y: usize, n_classes: usize) -> Result<()> {
        if of_y == n_classes {
            return Ok(());
        }
        Err(Error::data(format!(
            "y has {of_y} classes, the model {n_classes}"
        )))
    }

    /// An error where nothing was learned yet: there is nothing to predict with.
    pub(crate) fn nothing_learned() -> Error {
        Error::data("nothing was learned yet")
    }

    /// An error where y has not the classes of the model, or sets of labels where it must not.
    pub(crate) fn targets(
        batch: &Batch<'_>,
        learner: &str,
        n_classes: usize,
        label_sets: bool,
    ) -> Result<()> {
        match (batch.targets, label_sets) {
            (Targets::Sets(_), false) => return Err(one_label_per_row(learner)),
            (Targets::One(_), true) => {
                let what = "the model learns sets of labels, y holds single labels";
                return Err(Error::data(what));
            }
            _ => {}
        }
        check_classes(batch.targets.n_classes(), n_classes)
    }

    /// The error for sets of labels where the learner takes one label per row.
    pub(crate) fn one_label_per_row(learner: &str) -> Error {
        Error::data(format!(
            "{learner} learns one label per row, y holds sets of labels"
        ))
    }

    /// An error where values may be missing.
    pub(crate) fn no_missing_values(rows: &Rows<'_>, learner: &str) -> Result<()> {
        if rows.may_miss_values() {
            return Err(Error::data(format!(
                "{learner} takes no missing values in X"
            )));
        }
        Ok(())
    }
}
