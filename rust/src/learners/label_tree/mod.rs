//! Filter tree and random tree: a fixed balanced binary tree over the labels, with one label per
//! leaf and a router at each internal node.
//!
//! Both predict top down, and each router chooses a side. They differ in the examples that a router
//! learns from. In the *random tree*, every router above the leaf of a label learns from all
//! examples of the label. The *filter tree* (Beygelzimer, Langford & Ravikumar, "Error-Correcting
//! Tournaments", 2009) is a single-elimination tournament, played from the leaves upwards: a router
//! learns only from examples whose label has won all matches below. So it learns to choose between
//! the two labels that reach it, not between all labels of its sides. Therefore the multiclass regret
//! is at most log2 K times the mean regret of the routers.
//!
//! Learning or predicting an example takes at most ceil(log2 K) routers.
//!
//! With the logistic loss, the random tree is a *conditional probability tree* (Beygelzimer, Langford,
//! Lifshits, Sorkin & Strehl, UAI 2009, Section 4): the score of a router is the logit of the
//! probability that the label is on its right side, and a label has the product of the probabilities
//! on its path. For label sets it becomes a *probabilistic label tree* (`label_sets`). Both predict by
//! best-first search.

mod label_sets;
mod learner;
mod predict;
#[cfg(test)]
mod tests;

pub use learner::LabelTree;
pub use predict::BlockPredictor;

use learner::Layout;

use crate::control::Control;
use crate::data::{Preparation, Targets};
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist, Record, Report};
use crate::linear::{Loss, Optimizer};
use crate::memory::can_alloc;
use crate::model::{checks, Learning, Member, Mistakes, OnlineLearner, PredictOptions, Start};
use crate::params::Range;
use crate::threads::Lent;
use crate::tree::{FrozenRouters, RoutingMemory};
use crate::{choices, params};

/// Bytes of a class, approximately, in a new tree together with its frozen form.
const BYTES_PER_CLASS: usize = 256;

/// Name in files of whether the tree is one for label sets.
const LABEL_SETS: &str = "label_sets";

choices! {
    /// The examples that a router learns from.
    pub enum Policy {
        /// Examples whose label has won all matches below: the filter tree.
        Filter = "filter",
        /// All examples whose label lies below the router: the random tree.
        Random = "random",
    }
}

choices! {
    /// The order of the labels at the leaves.
    pub enum LabelOrder {
        /// A permutation that the seed determines.
        Random = "random",
        /// The order of the classes.
        Given = "given",
        /// The most frequent label first. Of equally frequent labels, the lower class comes first.
        Frequency = "frequency",
    }
}

choices! {
    /// The label that is predicted.
    pub enum Prediction {
        /// The label that the routers lead to.
        Path = "path",
        /// The label with the largest product of probabilities on its path.
        MostProbable = "most_probable",
    }
}

params! {
    /// The parameters. The Python classes document them for users.
    pub struct Params online(5) {
        /// Filter tree or random tree.
        policy: Policy = Policy::Filter;
        /// Loss of the routers. None: the hinge loss; for label sets the logistic loss, the only one
        /// for them.
        loss: Option<Loss> = None;
        /// Optimizer of the routers.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size of a router before its first example.
        learning_rate: f64 = 1.0, Range::POSITIVE;
        /// Decay of the step size; see [`crate::linear::Rate`].
        decay: f64 = 0.3, Range::NOT_NEGATIVE;
        /// Order of the labels at the leaves. None: "given" for the filter tree, "random" for the
        /// random tree.
        label_order: Option<LabelOrder> = None;
        /// The label that is predicted. None: that of the path. Rows with label sets have no path.
        prediction: Option<Prediction> = None;
    }
}

impl OnlineLearner for LabelTree {
    const KIND: &'static str = "label_tree";
    const NARROW_ARRAYS: &'static [&'static str] = &["regressors/"];
    type Params = Params;
    type Frozen = FrozenRouters;
    type Predictor<'a> = BlockPredictor<'a>;
    type Memory = RoutingMemory;

    fn name(params: &Params) -> &'static str {
        match params.policy {
            Policy::Filter => "the filter tree",
            Policy::Random => "the random tree",
        }
    }

    fn check_label_sets(params: &Params) -> Result<()> {
        if params.policy == Policy::Filter {
            return Err(checks::one_label_per_row(Self::name(params)));
        }
        if let Some(loss) = params.loss.filter(|loss| *loss != Loss::Logistic) {
            let allowed = r#""logistic" or None for label sets"#;
            return Err(Error::parameter("loss", serde_json::json!(loss), allowed));
        }
        if params.prediction == Some(Prediction::Path) {
            let allowed = r#""most_probable" or None for label sets"#;
            return Err(Error::parameter("prediction", r#""path""#, allowed));
        }
        Ok(())
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let n_classes = start.n_classes;
        let label_sets = matches!(start.batch.targets, Targets::Sets(_));
        if !can_alloc(n_classes.checked_mul(BYTES_PER_CLASS << u32::from(label_sets))) {
            return Err(Error::data(format!("no memory for {n_classes} classes")));
        }
        let label_order = params.label_order.unwrap_or(match params.policy {
            Policy::Filter => LabelOrder::Given,
            Policy::Random => LabelOrder::Random,
        });
        let order = label_order.arrange(start.batch, n_classes, params.seed);
        let width = start.preparation.width();
        let layout = Layout::new(order);
        Ok(Self::from_layout(params, layout, width, label_sets))
    }

    fn add_classes(&mut self, _n_classes: usize) -> Result<()> {
        Err(Error::data(
            "a tree over a fixed order of labels cannot take new ones; \
             OAAClassifier, LOMTreeClassifier and RecallTreeClassifier can",
        ))
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        let targets = learning.batch.targets;
        if self.label_sets != matches!(targets, Targets::Sets(_)) {
            // Only a forged file has such a tree.
            return Err(Error::data("the tree does not fit the form of the labels"));
        }
        if self.label_sets {
            let mut set = Vec::new();
            return learning.each(|example, row, importance| {
                targets.read(row, &mut set);
                self.regressors.prepare(example, importance);
                self.learn_set(example, &set, importance)
            });
        }
        let labels = learning.batch.labels();
        learning.each(|example, row, importance| {
            self.regressors.prepare(example, importance);
            self.learn_one(example, labels[row], importance)
        })
    }

    /// The terminals of the routers are labels.
    fn freeze(&self, control: &Control) -> Result<FrozenRouters> {
        FrozenRouters::new(self, control, |label| label)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [FrozenRouters]>,
        _options: &PredictOptions,
        memory: Lent<'a, RoutingMemory>,
    ) -> BlockPredictor<'a> {
        BlockPredictor::new(&members[0], frozen.map(|frozen| &frozen[0]), memory)
    }

    fn effort(&self, row_values: usize, k: usize, _options: &PredictOptions) -> usize {
        let depth = self.examples.len().ilog2() as usize + 1;
        row_values.saturating_mul(depth).saturating_mul(k)
    }

    /// Copying 16 routers takes about as long as predicting a row.
    fn freeze_rows(&self) -> usize {
        self.examples.len().div_ceil(16)
    }

    fn report(&self, _progress: &Mistakes) -> Option<Report> {
        Some(self.node_report())
    }

    fn nodes_of_terminals(&self, _frozen: &FrozenRouters) -> Option<Vec<u32>> {
        // A row with a label set has no single path.
        (!self.label_sets).then(|| self.layout.leaf_of.clone())
    }

    fn for_prediction(&self, _control: &Control) -> Result<Self> {
        let mut slim = self.clone();
        slim.regressors = self.regressors.for_prediction();
        Ok(slim)
    }

    fn put(&self, bundle: &mut Bundle) {
        bundle.put("order", &self.layout.order[..]);
        if self.label_sets {
            bundle.put_meta(LABEL_SETS, &true);
        }
        Persist::put(self, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let order = u32::take(Some(n_classes), "order", bundle)?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..n_classes as u32) {
            return Err(bundle.damaged("a label of the order is out of range or stands twice"));
        }
        // Files of trees for one label per row lack the entry.
        let label_sets = bundle.meta().contains_key(LABEL_SETS) && bundle.take_meta(LABEL_SETS)?;
        let (layout, width) = (Layout::new(order), preparation.width());
        let mut tree = Self::from_layout(params, layout, width, label_sets);
        if for_prediction {
            tree.regressors = tree.regressors.for_prediction();
        }
        tree.fill(bundle)?;
        Ok(tree)
    }
}
