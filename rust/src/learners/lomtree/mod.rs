//! `LOMtree`: a binary tree over the labels, whose structure is learned online.
//!
//! Choromanska & Langford, "Logarithmic Time Online Multiclass prediction" (NIPS 2015), Algorithm 1.
//! The regressor of an internal node compares the mean score of a label with that of all examples,
//! and learns to send the label further to that side. This maximizes the purity and balance of the
//! split (Section 2, Eq. 1). A leaf splits while the budget of internal nodes lasts. Afterwards it
//! takes over the smallest leaf and its parent (Section 3.1, Swap). The label distributions of
//! several trees are averaged.
//!
//! An example costs O(depth * (non-zeros + 1)), for any number of labels.

mod learner; // Algorithm 1
mod node; // counts and scores per label; structure: split, Swap, UpdateC
mod predict; // leaf distributions, the frozen tree, predictions for a block of rows
#[cfg(test)]
mod tests;

pub use learner::LomTree;

use node::{Arena, LabelStat, Node};
use predict::{EnsemblePredictor, FrozenTree};

use crate::control::Control;
use crate::data::{Batch, Preparation};
use crate::error::Result;
use crate::file::{Bundle, Persist, Report};
use crate::linear::{Loss, Optimizer};
use crate::model::{Learning, Member, Mistakes, OnlineLearner, PredictOptions, Start};
use crate::params;
use crate::params::Range;
use crate::threads::Lent;
use crate::tree::RoutingMemory;

params! {
    /// All parameters. The Python class documents them for users.
    pub struct Params online(10) {
        /// Loss of the routers.
        loss: Loss = Loss::Hinge;
        /// Rule for the steps of the routers.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size of a new router.
        learning_rate: f64 = 1.0, Range::POSITIVE;
        /// Speed at which a router's steps shrink; see [`crate::linear::Rate`].
        decay: f64 = 1.0, Range::NOT_NEGATIVE;
        /// T of the paper as a multiple of (classes - 1).
        nodes_per_class: f64 = 64.0, Range::NOT_NEGATIVE;
        /// `R_S` of the paper.
        swap_resistance: f64 = 4.0, Range::from(1.0);
        /// Number of arrivals of labels other than the most common one at which a leaf splits. With
        /// 1 it splits at the second label, as in the paper.
        split_threshold: f64 = 5.0, Range::from(1.0);
        /// Use the paper's [rules](Rules::PAPER) of counting, growth and prediction.
        paper_tree: bool = false;
        /// Number of trees.
        n_estimators: u32 = 1, Range::from(1.0).to(10_000.0);
    }
}

impl Params {
    /// Returns T, the largest number of internal nodes of a tree over `n_classes`.
    fn budget(&self, n_classes: usize) -> u32 {
        let nodes = self.nodes_per_class * (n_classes.saturating_sub(1)) as f64;
        // Node numbers are u32, and a tree has twice as many nodes.
        nodes.round().min(f64::from(u32::MAX / 4)) as u32
    }
}

/// Rules of counting, growth and prediction in which the default differs from the paper.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// Depth in units of log2(classes) beyond which the split threshold doubles every two levels. It
    /// keeps a leaf whose labels cannot be separated from growing into a chain.
    soft_depth: f64,
    /// Largest absolute score that enters the label means.
    score_clamp: f64,
    /// Count importances in the statistics of the tree, as the regressors do.
    weighted_counts: bool,
    /// Number of examples for which the parent's label distribution counts at a leaf.
    leaf_smoothing: f64,
}

impl Rules {
    const DEFAULT: Self = Self {
        soft_depth: 2.0,
        score_clamp: 1.0,
        weighted_counts: true,
        leaf_smoothing: 1.0,
    };

    /// Rules of the paper and of its authors' program.
    const PAPER: Self = Self {
        soft_depth: f64::INFINITY,
        score_clamp: f64::INFINITY,
        weighted_counts: false,
        leaf_smoothing: 0.0,
    };
}

impl OnlineLearner for LomTree {
    const KIND: &'static str = "lomtree";
    const NARROW_ARRAYS: &'static [&'static str] = &["regressors/"];
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

    /// Updates the budget. The label tables take any label.
    fn add_classes(&mut self, n_classes: usize) -> Result<()> {
        self.n_classes = n_classes;
        self.budget = self.params.budget(n_classes);
        Ok(())
    }

    /// Returns all rows for the paper's tree, which counts rows of importance 0 too.
    fn present(params: &Params, batch: &Batch<'_>) -> Vec<u32> {
        if params.paper_tree {
            (0..batch.rows.n_rows() as u32).collect()
        } else {
            batch.present()
        }
    }

    fn learn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        let labels = learning.batch.labels();
        learning.each(|example, row, importance| {
            self.regressors.prepare(example, importance);
            self.learn_one(example, labels[row], importance)
        })
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
        /// Typical number of nodes on a path.
        const NODES_PER_PATH: usize = 32;
        row_values.saturating_mul(NODES_PER_PATH)
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

impl LomTree {
    /// Reports the nodes, breadth first, and the whole tree. O(size of the label tables). `weight` is
    /// the weight of all examples learned, as the tree counts them.
    ///
    /// Arrivals at recycled nodes are counted from the Swap on. J, beta and alpha describe the
    /// router over all examples that it routed, each by its side when it was learned. They are NaN
    /// at leaves, and where Swap removed a child with its counts. With a swap resistance of at least
    /// 4, no `n_recycled` exceeds `recycle_bound` (Lemma 3; see [`Arena::swap`]).
    fn node_report(&self, weight: f64) -> Report {
        let tree = self.arena.topology();
        let nodes = || tree.nodes.iter().map(|&id| self.arena.node(id));
        let arrivals: Vec<f64> = nodes().map(Node::arrivals).collect();
        let entropies = nodes().zip(&arrivals);
        let entropies: Vec<f64> = entropies.map(|(node, &n)| entropy(node, n)).collect();
        let splits: Vec<[f64; 3]> = nodes()
            .map(|node| split_of_node(&self.arena, node))
            .collect();
        let (mut weighted, mut at_leaves) = (0.0, 0.0);
        for (at, _) in nodes().enumerate().filter(|(_, node)| node.is_leaf()) {
            weighted += arrivals[at] * entropies[at];
            at_leaves += arrivals[at];
        }
        // The largest sum is 0 before any example.
        let leaf_entropy = weighted / at_leaves.max(f64::MIN_POSITIVE);
        let mut report = tree.report();
        report.column("n_examples", arrivals);
        report.column("n_labels", nodes().map(|node| node.labels.len() as u32));
        report.column("label", nodes().map(most_frequent));
        report.column("label_entropy", entropies);
        report.column("smallest_leaf", nodes().map(|node| node.size));
        report.column("n_recycled", nodes().map(|node| node.recycled));
        for (at, name) in ["objective", "balance", "purity"].into_iter().enumerate() {
            report.column(name, splits.iter().map(|split| split[at]));
        }
        report.scalar("n_swaps", self.arena.n_swaps);
        report.scalar("n_internal", self.arena.n_internal);
        report.scalar("max_internal", self.budget);
        report.scalar("leaf_entropy", leaf_entropy); // G_t
        report.scalar("recycle_bound", weight.max(1.0).log2());
        report
    }
}

/// Returns J, beta and alpha of an internal node, by the arrivals at its children of all examples
/// that its router routed; NaN if some of these are missing.
fn split_of_node(arena: &Arena, node: &Node) -> [f64; 3] {
    /// Largest relative rounding error of counts of weights.
    const MAX_ROUNDING: f64 = 1e-6;
    if node.is_leaf() {
        return [f64::NAN; 3];
    }
    let mut labels: Vec<(u32, &LabelStat)> = node.labels.iter().collect();
    labels.sort_unstable_by_key(|&(label, _)| label);
    let at_child = |child, label| {
        let stat = arena.node(child).labels.get(label);
        stat.map_or(0.0, LabelStat::arrivals)
    };
    let mut sides = Vec::new();
    for (label, stat) in labels {
        let (left, right) = (at_child(node.left, label), at_child(node.right, label));
        let trained = stat.count.0;
        if (left + right - trained).abs() > MAX_ROUNDING * trained {
            return [f64::NAN; 3];
        }
        sides.push((left, right));
    }
    let [objective, balance, purity] = split_quality(&sides);
    // Rounding errors could add up to more than 1.
    [objective.min(1.0), balance, purity]
}

/// Returns J, beta and alpha of a split, from the numbers of examples of each label that went left
/// and right:
/// - J of Eq. 1: twice the mean over labels of |P(right) - P(right | label)|;
/// - beta: P(right);
/// - alpha: mean over labels of min(P(right | label), P(left | label)).
fn split_quality(sides: &[(f64, f64)]) -> [f64; 3] {
    let sums = |(l, r), &(left, right)| (l + left, r + right);
    let (left, right): (f64, f64) = sides.iter().fold((0.0, 0.0), sums);
    let all = left + right;
    let balance = right / all;
    let (mut objective, mut purity) = (0.0f64, 0.0);
    for &(left, right) in sides.iter().filter(|(left, right)| left + right > 0.0) {
        let n = left + right;
        let share = n / all;
        objective += 2.0 * share * (balance - right / n).abs();
        purity += share * (left.min(right) / n);
    }
    [objective, balance, purity]
}

/// Returns the label that a leaf predicts, or the lowest of an internal node's most frequent labels.
fn most_frequent(node: &Node) -> u32 {
    if node.is_leaf() {
        return node.majority;
    }
    node.label_arrivals()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        .map_or(node.majority, |(label, _)| label)
}

/// Returns the entropy of the labels at a node, in nats.
fn entropy(node: &Node, arrivals: f64) -> f64 {
    if arrivals == 0.0 {
        return 0.0;
    }
    let shares = node.label_arrivals().map(|(_, n)| n / arrivals);
    let mut shares: Vec<f64> = shares.filter(|&share| share > 0.0).collect();
    // The order of summation must not depend on the order of the table.
    shares.sort_unstable_by(f64::total_cmp);
    let sum: f64 = shares.iter().map(|share| -share * share.ln()).sum();
    sum.max(0.0)
}
