//! `LOMtree`: an online binary tree over labels that nobody arranged beforehand.
//!
//! Choromanska & Langford, "Logarithmic Time Online Multiclass prediction" (NIPS 2015),
//! Algorithm 1. Each internal node's regressor learns to send a label to the side it already
//! leans to more than the average label does, which maximises the purity and balance of the
//! split (Section 2, Eq. 1). A leaf splits while the budget of internal nodes lasts, afterwards
//! by taking over the smallest leaf and its parent (Section 3.1, Swap). With several trees the
//! label distributions of their leaves are averaged.
//!
//! Cost per example: O(depth * (non-zeros + 1)), whatever the number of labels.

mod learner; // Algorithm 1
mod node; // counts and scores per label; the structure: split, Swap, UpdateC
mod predict; // leaf distributions, the frozen tree, predictions for a block of rows
mod report; // J, balance, purity, entropy per node
#[cfg(test)]
mod tests;

pub use learner::LomTree;

use predict::{EnsemblePredictor, FrozenTree};

use crate::control::Control;
use crate::data::{Batch, Preparation};
use crate::error::Result;
use crate::file::{Bundle, Persist, Report};
use crate::linear::{Loss, Optimizer, PathExample};
use crate::model::{Learning, Member, Mistakes, OnlineLearner, PredictOptions, Start};
use crate::params;
use crate::params::Range;
use crate::threads::Lent;
use crate::tree::RoutingMemory;

params! {
    /// Every parameter. The Python class documents them for users.
    pub struct Params online(10) {
        /// Loss of the routers.
        loss: Loss = Loss::Hinge;
        /// Step direction of the routers.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size of a router that has seen nothing yet.
        learning_rate: f64 = 1.0, Range::POSITIVE;
        /// How fast a router's steps shrink; see [`crate::linear::Rate`].
        decay: f64 = 1.0, Range::NOT_NEGATIVE;
        /// T of the paper as a multiple of (classes - 1).
        nodes_per_class: f64 = 64.0, Range::NOT_NEGATIVE;
        /// `R_S` of the paper.
        swap_resistance: f64 = 4.0, Range::from(1.0);
        /// A leaf splits once this many of its arrivals are not of its most common label. 1: at
        /// the second label, as in the paper.
        split_threshold: f64 = 5.0, Range::from(1.0);
        /// Whether the tree counts, grows and answers by the paper's [rules](Rules::PAPER).
        paper_tree: bool = false;
        /// Number of trees.
        n_estimators: u32 = 1, Range::from(1.0).to(10_000.0);
    }
}

impl Params {
    /// T: how many internal nodes a tree over `n_classes` may have.
    fn budget(&self, n_classes: usize) -> u32 {
        let nodes = self.nodes_per_class * (n_classes.saturating_sub(1)) as f64;
        // Node numbers are u32, and there are twice as many nodes.
        nodes.round().min(f64::from(u32::MAX / 4)) as u32
    }

    fn rules(&self) -> Rules {
        if self.paper_tree {
            Rules::PAPER
        } else {
            Rules::DEFAULT
        }
    }
}

/// The rules of counting, growth and answers in which the default differs from the paper.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// Depth, in units of log2(classes), from which on every two further levels double the split
    /// threshold. It keeps a leaf whose labels cannot be separated from growing into a chain.
    soft_depth: f64,
    /// Scores enter the label means cut to [-clamp, clamp].
    score_clamp: f64,
    /// Whether importances count in the tree's statistics as they do in the regressors.
    weighted_counts: bool,
    /// How many examples the parent's label distribution counts for in that of a leaf.
    leaf_smoothing: f64,
}

impl Rules {
    const DEFAULT: Self = Self {
        soft_depth: 2.0,
        score_clamp: 1.0,
        weighted_counts: true,
        leaf_smoothing: 1.0,
    };

    /// Those of the paper and of its authors' program.
    const PAPER: Self = Self {
        soft_depth: f64::INFINITY,
        score_clamp: f64::INFINITY,
        weighted_counts: false,
        leaf_smoothing: 0.0,
    };
}

impl OnlineLearner for LomTree {
    const KIND: &'static str = "lomtree";
    const NARROW: &'static [&'static str] = &["regressors/"];
    type Params = Params;
    type Frozen = FrozenTree;
    type Predictor<'a> = EnsemblePredictor<'a>;
    type Memory = RoutingMemory;

    fn name(_params: &Params) -> &'static str {
        "LOMtree"
    }

    fn n_members(params: &Params) -> usize {
        params.n_estimators as usize
    }

    fn new(params: &Params, start: &Start<'_>) -> Result<Self> {
        Ok(Self::empty(params, start.n_classes, start.preparation))
    }

    /// Tables of labels take any label; what depends on the number of classes follows it.
    fn add_classes(&mut self, n_classes: usize) -> Result<()> {
        self.n_classes = n_classes;
        self.budget = self.params.budget(n_classes);
        Ok(())
    }

    /// Where importances do not count in the tree, rows of importance 0 do.
    fn present(params: &Params, batch: &Batch<'_>) -> Vec<u32> {
        if params.rules().weighted_counts {
            batch.present()
        } else {
            (0..batch.rows.n_rows() as u32).collect()
        }
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        let mut example = PathExample::default();
        for chunk in learning.order.chunks(Control::CHUNK) {
            for &row in chunk {
                let (label, importance) = learning.read(row, &mut example);
                self.regressors.prepare(&mut example, importance);
                let was_right = self.learn_one(&example, label, importance);
                learning.progress.count(!was_right, importance);
            }
            learning.report(chunk.len())?;
        }
        Ok(())
    }

    fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        FrozenTree::new(self, control)
    }

    fn predictor<'a>(
        members: &'a [Member<Self>],
        frozen: Option<&'a [FrozenTree]>,
        _options: &PredictOptions,
        memory: Lent<'a, RoutingMemory>,
    ) -> EnsemblePredictor<'a> {
        EnsemblePredictor::new(members, frozen, memory)
    }

    fn effort(&self, row_values: usize, _k: usize, _options: &PredictOptions) -> usize {
        /// Nodes on a path, about.
        const DEPTH: usize = 32;
        row_values.saturating_mul(DEPTH)
    }

    fn freeze_rows(&self) -> usize {
        self.arena.nodes.len()
    }

    fn nodes_of_terminals(&self, _frozen: &FrozenTree) -> Option<Vec<u32>> {
        let nodes = (0..).zip(self.arena.topology().nodes);
        let leaves = nodes.filter(|&(_, id)| self.arena.node(id).is_leaf());
        Some(leaves.map(|(number, _)| number).collect())
    }

    fn report(&self, progress: &Mistakes) -> Option<Report> {
        let weight = if self.rules.weighted_counts {
            progress.weight
        } else {
            progress.examples as f64
        };
        Some(self.node_report(weight))
    }

    fn for_prediction(&self, _control: &Control) -> Result<Self> {
        let mut slim = self.clone();
        slim.regressors = self.regressors.for_prediction();
        Ok(slim)
    }

    fn put(&self, bundle: &mut Bundle) {
        Persist::put(self, bundle);
    }

    fn take(
        params: &Params,
        n_classes: usize,
        preparation: &Preparation,
        for_prediction: bool,
        bundle: &mut Bundle,
    ) -> Result<Self> {
        let mut tree = Self::empty(params, n_classes, preparation);
        if for_prediction {
            tree.regressors = tree.regressors.for_prediction();
        }
        tree.fill(bundle)?;
        Ok(tree)
    }
}
