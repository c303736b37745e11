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
        learning.each(|example, label, importance| {
            self.regressors.prepare(example, importance);
            self.learn_one(example, label, importance)
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
        /// Nodes on a path, about.
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
    /// The nodes, breadth first, and the whole tree; costs as much as the label tables are long.
    /// `weight` is that of all examples learned, as the tree counts them.
    ///
    /// Arrivals at recycled nodes count from Swap on. J, beta and alpha are those of the router
    /// over all examples that it has sent on, each as it went when it was learned: NaN at leaves
    /// and where Swap took a child out, as its counts went with it. With a swap resistance of 4
    /// or more no `n_recycled` exceeds `recycle_bound` (Lemma 3; see [`Arena::swap`]).
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
        // 0 where no example has come.
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

/// J, beta and alpha of an internal node over all examples that its router has sent on, by their
/// arrivals at its children. NaN where these are not all.
fn split_of_node(arena: &Arena, node: &Node) -> [f64; 3] {
    /// Counts of weights are rounded, by less than this part of them.
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
    // Many roundings could lead beyond 1.
    [objective.min(1.0), balance, purity]
}

/// J, beta and alpha of a split, from how often each label went left and right:
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

/// What a leaf predicts; of an internal node's labels the lowest of the most frequent.
fn most_frequent(node: &Node) -> u32 {
    if node.is_leaf() {
        return node.majority;
    }
    node.label_arrivals()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        .map_or(node.majority, |(label, _)| label)
}

fn entropy(node: &Node, arrivals: f64) -> f64 {
    if arrivals == 0.0 {
        return 0.0;
    }
    let shares = node.label_arrivals().map(|(_, n)| n / arrivals);
    let mut shares: Vec<f64> = shares.filter(|&share| share > 0.0).collect();
    // One order of summation, whatever order the table has.
    shares.sort_unstable_by(f64::total_cmp);
    let sum: f64 = shares.iter().map(|share| -share * share.ln()).sum();
    sum.max(0.0)
}
