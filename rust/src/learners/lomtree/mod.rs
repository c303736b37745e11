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

use crate::linear::{Loss, Optimizer};
use crate::params;
use crate::params::Range;

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
