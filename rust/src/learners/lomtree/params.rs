//! Options of `LOMtree`.

use serde::{Deserialize, Serialize};

use crate::classifier::Schedule;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};

/// Trees beyond any use, which a slip of the pen would ask for.
const MOST_TREES: u32 = 10_000;

/// Every option; [`Params::check`] refuses what cannot be. The Python class
/// documents them for users and says where the defaults come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Loss of the routers.
    pub loss: Loss,
    /// Step direction of the routers.
    pub optimizer: Optimizer,
    /// Scaling of the examples.
    pub scaling: Scaling,
    /// Columns are hashed into 2^`n_bits`, if given.
    pub n_bits: Option<u32>,
    /// Step size of a router that has seen nothing yet.
    pub learning_rate: f64,
    /// How fast a router's steps shrink: after n trainings the step for an
    /// example of effective dimension d is
    /// rate / sqrt(1 + decay * n / (4 + 0.03 d)). 0: they do not.
    pub decay: f64,
    /// T of the paper as a multiple of (classes - 1).
    pub nodes_per_class: f64,
    /// T of the paper itself; overrules `nodes_per_class`.
    pub max_internal: Option<u32>,
    /// R_S of the paper.
    pub swap_resistance: f64,
    /// A leaf splits once this many of its arrivals are not of its commonest
    /// label. 1: at the second label, as in the paper.
    pub split_threshold: f64,
    /// Depth, in units of log2(classes), from which on every two further levels
    /// double the split threshold: it keeps a leaf that cannot be told apart
    /// from growing into a chain. None: the same threshold everywhere, as in
    /// the paper.
    pub soft_depth: Option<f64>,
    /// Whether a regressor taken from the smallest leaf's parent starts anew.
    pub reset_recycled: bool,
    /// Scores enter the label means cut to [-clamp, clamp], if given.
    pub score_clamp: Option<f64>,
    /// Whether importances count in the tree's statistics as they do in the
    /// regressors. Vowpal Wabbit counts every example as one there.
    pub weighted_counts: bool,
    /// How many examples the parent's histogram counts for in a leaf's answer.
    pub leaf_smoothing: f64,
    /// Number of trees.
    pub n_estimators: u32,
    /// Passes of `fit`.
    #[serde(flatten)]
    pub schedule: Schedule,
}

impl Params {
    /// Refuses what cannot be.
    pub fn check(self) -> Result<Self> {
        self.schedule.check()?;
        // Steps are single precision, where larger numbers are infinite.
        let positive = |name, value: f64| {
            if value > 0.0 && (value as f32).is_finite() {
                Ok(())
            } else {
                Err(Error::parameter(
                    name,
                    value,
                    "a number above 0, below 3e38",
                ))
            }
        };
        let not_negative = |name, value: f64| {
            if value >= 0.0 && (value as f32).is_finite() {
                Ok(())
            } else {
                Err(Error::parameter(name, value, "from 0 to 3e38"))
            }
        };
        positive("learning_rate", self.learning_rate)?;
        not_negative("decay", self.decay)?;
        positive("nodes_per_class", self.nodes_per_class)?;
        not_negative("leaf_smoothing", self.leaf_smoothing)?;
        if let Some(depth) = self.soft_depth {
            not_negative("soft_depth", depth)?;
        }
        if let Some(clamp) = self.score_clamp {
            positive("score_clamp", clamp)?;
        }
        for (name, value) in [
            ("swap_resistance", self.swap_resistance),
            ("split_threshold", self.split_threshold),
        ] {
            if !(value >= 1.0 && value.is_finite()) {
                return Err(Error::parameter(name, value, "a number of 1 or more"));
            }
        }
        if !(1..=MOST_TREES).contains(&self.n_estimators) {
            let allowed = format!("from 1 to {MOST_TREES}");
            return Err(Error::parameter("n_estimators", self.n_estimators, allowed));
        }
        Ok(self)
    }

    /// The score as it enters the label means.
    pub(super) fn clamped(&self, score: f32) -> f64 {
        let score = f64::from(score);
        match self.score_clamp {
            Some(clamp) => score.clamp(-clamp, clamp),
            None => score,
        }
    }

    /// The depth from which on splits become harder.
    pub(super) fn soft_depth(&self, n_classes: usize) -> f64 {
        let levels = (n_classes as f64).log2();
        self.soft_depth
            .map_or(f64::INFINITY, |depth| depth * levels)
    }

    /// T: how many internal nodes a tree over `n_classes` may have.
    pub fn budget(&self, n_classes: usize) -> u32 {
        self.max_internal.unwrap_or_else(|| {
            let nodes = self.nodes_per_class * (n_classes.saturating_sub(1)) as f64;
            // Node numbers are u32, and there are twice as many nodes.
            nodes.min(f64::from(u32::MAX / 4)) as u32
        })
    }
}
