//! Parameters of `LOMtree`.

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
        nodes_per_class: f64 = 64.0, Range::POSITIVE;
        /// T of the paper itself; overrules `nodes_per_class`.
        max_internal: Option<u32> = None, Range::from(0.0).to(f64::from(u32::MAX));
        /// `R_S` of the paper.
        swap_resistance: f64 = 4.0, Range::from(1.0);
        /// A leaf splits once this many of its arrivals are not of its most common label. 1: at
        /// the second label, as in the paper.
        split_threshold: f64 = 5.0, Range::from(1.0);
        /// Depth, in units of log2(classes), from which on every two further levels double the
        /// split threshold. It keeps a leaf whose labels cannot be separated from growing into a
        /// chain. None: the same threshold everywhere, as in the paper.
        soft_depth: Option<f64> = Some(2.0), Range::NOT_NEGATIVE;
        /// Scores enter the label means cut to [-clamp, clamp], if given.
        score_clamp: Option<f64> = Some(1.0), Range::POSITIVE;
        /// Whether importances count in the tree's statistics as they do in the regressors.
        /// Vowpal Wabbit counts every example as one there.
        weighted_counts: bool = true;
        /// How many examples the parent's label distribution counts for in that of a leaf.
        leaf_smoothing: f64 = 1.0, Range::NOT_NEGATIVE;
        /// Number of trees.
        n_estimators: u32 = 1, Range::from(1.0).to(10_000.0);
    }
}

impl Params {
    /// The score as it enters the label means.
    pub(super) fn clamped(&self, score: f32) -> f64 {
        let score = f64::from(score);
        self.score_clamp
            .map_or(score, |clamp| score.clamp(-clamp, clamp))
    }

    /// `soft_depth` in levels.
    pub(super) fn soft_levels(&self, n_classes: usize) -> f64 {
        let levels = (n_classes as f64).log2();
        self.soft_depth
            .map_or(f64::INFINITY, |depth| depth * levels)
    }

    /// T: how many internal nodes a tree over `n_classes` may have.
    pub(super) fn budget(&self, n_classes: usize) -> u32 {
        self.max_internal.unwrap_or_else(|| {
            let nodes = self.nodes_per_class * (n_classes.saturating_sub(1)) as f64;
            // Node numbers are u32, and there are twice as many nodes.
            nodes.min(f64::from(u32::MAX / 4)) as u32
        })
    }
}
