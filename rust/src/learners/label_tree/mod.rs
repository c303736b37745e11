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

mod learner;
#[cfg(test)]
mod tests;

pub use learner::LabelTree;

use learner::Layout;

use crate::control::Control;
use crate::data::{Preparation, Rows};
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist, Record, Report};
use crate::linear::{Loss, Optimizer};
use crate::memory::can_alloc;
use crate::model::{Learning, Member, Mistakes, OnlineLearner, PredictOptions, Predictor, Start};
use crate::params::Range;
use crate::threads::Lent;
use crate::tree::{BestFirst, FrozenRouters, Routers, RoutingMemory};
use crate::{choices, params};

/// Bytes of a class, approximately, in a new tree together with its frozen form.
const BYTES_PER_CLASS: usize = 256;

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

params! {
    /// The parameters. The Python classes document them for users.
    pub struct Params online(5) {
        /// Filter tree or random tree.
        policy: Policy = Policy::Filter;
        /// Loss of the routers.
        loss: Loss = Loss::Hinge;
        /// Optimizer of the routers.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size of a router before its first example.
        learning_rate: f64 = 1.0, Range::POSITIVE;
        /// Decay of the step size; see [`crate::linear::Rate`].
        decay: f64 = 0.3, Range::NOT_NEGATIVE;
        /// Order of the labels at the leaves. None: "given" for the filter tree, "random" for the
        /// random tree.
        label_order: Option<LabelOrder> = None;
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

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        let n_classes = start.n_classes;
        if !can_alloc(n_classes.checked_mul(BYTES_PER_CLASS)) {
            return Err(Error::data(format!("no memory for {n_classes} classes")));
        }
        let label_order = params.label_order.unwrap_or(match params.policy {
            Policy::Filter => LabelOrder::Given,
            Policy::Random => LabelOrder::Random,
        });
        let order = label_order.arrange(start.batch, n_classes, params.seed);
        let width = start.preparation.width();
        Ok(Self::from_layout(params, Layout::new(order), width))
    }

    fn add_classes(&mut self, _n_classes: usize) -> Result<()> {
        Err(Error::data(
            "a tree over a fixed order of labels cannot take new ones; \
             OAAClassifier, LOMTreeClassifier and RecallTreeClassifier can",
        ))
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        learning.each(|example, label, importance| {
            self.regressors.prepare(example, importance);
            self.learn_one(example, label, importance)
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
        Some(self.layout.leaf_of.clone())
    }

    fn for_prediction(&self, _control: &Control) -> Result<Self> {
        let mut slim = self.clone();
        slim.regressors = self.regressors.for_prediction();
        Ok(slim)
    }

    fn put(&self, bundle: &mut Bundle) {
        bundle.put("order", &self.layout.order[..]);
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
        let mut tree = Self::from_layout(params, Layout::new(order), preparation.width());
        if for_prediction {
            tree.regressors = tree.regressors.for_prediction();
        }
        tree.fill(bundle)?;
        Ok(tree)
    }
}

/// A predictor of blocks of rows, for one thread.
#[derive(Debug)]
pub struct BlockPredictor<'a> {
    member: &'a Member<LabelTree>,
    routers: Routers<'a, LabelTree>,
    memory: Lent<'a, RoutingMemory>,
    terminals: Vec<u32>,
    search: BestFirst,
}

impl<'a> BlockPredictor<'a> {
    /// Creates a predictor that uses the frozen form of `member` if there is one.
    fn new(
        member: &'a Member<LabelTree>,
        frozen: Option<&'a FrozenRouters>,
        memory: Lent<'a, RoutingMemory>,
    ) -> Self {
        Self {
            member,
            routers: Routers::new(frozen, &member.learner),
            memory,
            terminals: Vec::new(),
            search: BestFirst::default(),
        }
    }

    fn route(&mut self) {
        let RoutingMemory { block, groups } = &mut *self.memory;
        self.terminals.resize(block.len(), 0);
        self.routers.route(block, groups, &mut self.terminals);
    }
}

impl Predictor for BlockPredictor<'_> {
    fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        _control: &Control,
    ) -> Result<()> {
        let width = self.routers.width();
        self.memory
            .block
            .fill(&self.member.preparation, rows, which, width);
        Ok(())
    }

    /// Writes the label of the leaf where the path of each row ends.
    fn best(&mut self, labels: &mut [i32], _control: &Control) -> Result<()> {
        self.route();
        for (label, &terminal) in labels.iter_mut().zip(&self.terminals) {
            *label = terminal as i32;
        }
        Ok(())
    }

    /// A terminal is the leaf of a label.
    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        self.route();
        for (row, &label) in self.terminals.iter().enumerate() {
            visit(row, 0, label);
        }
    }

    /// Scores are log-probabilities. The first label is always that of [`best`](Self::best). If it is
    /// not the most probable one, its score is set just above that of the second label.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()> {
        let n_classes = self.member.learner.examples.len();
        let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
        for (row, (labels, scores)) in rows.enumerate() {
            if row % Control::CHUNK == 0 {
                control.check()?;
            }
            let (k, block) = (k.min(n_classes), &self.memory.block);
            let (root, look) = (self.routers.root(), self.routers.look(block, row));
            let best = self.search.best_labels(root, &look, k, n_classes);
            for (&(cost, label), (l, s)) in best.iter().zip(labels.iter_mut().zip(scores)) {
                *l = label as i32;
                // Subtracting from 0 gives 0 where negation would give -0.
                *s = 0.0 - cost;
            }
        }
        Ok(())
    }
}
