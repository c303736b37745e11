//! Options of LdSM.

use serde::{Deserialize, Serialize};

use super::objective::MOST_CHILDREN;
use crate::data::Scaling;
use crate::error::{Error, Result};

/// How the regressors of a node learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeOptimizer {
    /// "sgd" where more than half of the values are non-zero, else "nag".
    Auto,
    /// Normalised adaptive gradients.
    Nag,
    /// Features standardised by the node's own examples, plain gradient steps.
    Sgd,
}

/// Which probability a regressor's margin m stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeLoss {
    /// The logistic function of 4 m - 2: even where examples are routed, at 1/2,
    /// and there of slope 1.
    Centred,
    /// The logistic function of m; what the authors' program does.
    Logistic,
}

impl NodeLoss {
    /// The probability of going to a child, from its regressor's margin.
    #[inline]
    pub fn probability(self, margin: f32) -> f32 {
        let x = match self {
            Self::Centred => 4.0 * margin - 2.0,
            Self::Logistic => margin,
        };
        1.0 / (1.0 + (-x).exp())
    }
}

/// What scores the labels that the trees find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scorers {
    /// `OneAgainstAll`, unless its weights would take over 2 GiB.
    Auto,
    /// Nothing: the trees' scores are final, as in the paper.
    None,
    /// A linear scorer for each label.
    OneAgainstAll,
}

/// What the scorers minimise, and how their margins z enter the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScorerLoss {
    /// max(0, 1 - y z)^2
    SquaredHinge,
    /// ln(1 + exp(-y z))
    Logistic,
}

impl ScorerLoss {
    /// The loss of a row that has the label.
    #[inline]
    pub fn loss_if_present(self, margin: f32) -> f32 {
        match self {
            Self::SquaredHinge => (1.0 - margin).max(0.0).powi(2),
            Self::Logistic if margin < 0.0 => margin.exp().ln_1p() - margin,
            Self::Logistic => (-margin).exp().ln_1p(),
        }
    }

    /// How likely a row has the label: the probability for which this margin has the
    /// least expected loss.
    #[inline]
    pub fn probability(self, margin: f32) -> f32 {
        match self {
            Self::SquaredHinge => (0.5 * (margin + 1.0)).clamp(0.0, 1.0),
            Self::Logistic => 1.0 / (1.0 + (-margin).exp()),
        }
    }
}

/// Every option; [`Params::check`] refuses values out of range. The Python class
/// documents them for users and says where the defaults come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of trees.
    pub n_estimators: u32,
    /// M: children of a node.
    pub arity: u32,
    /// Nodes of a tree at most, leaves among them.
    pub max_nodes: u32,
    /// Passes of a node over its examples.
    pub n_epochs: u32,
    /// Weight of class integrity in the objective.
    pub lambda1: f64,
    /// Weight of the multi-way penalty in the objective.
    pub lambda2: f64,
    /// Whether every epoch has its own order of examples.
    pub reshuffle: bool,
    /// Which probability a margin stands for in training.
    pub loss: NodeLoss,
    /// How the regressors learn.
    pub optimizer: NodeOptimizer,
    /// Their step size.
    pub learning_rate: f64,
    /// Scaling of the examples.
    pub scaling: Scaling,
    /// Columns are hashed into 2^`n_bits`, if given.
    pub n_bits: Option<u32>,
    /// Whether a node's training ends as soon as an epoch no longer lowers J.
    pub early_stopping: bool,
    /// By how much an epoch must lower J, with early stopping.
    pub min_gain: f64,
    /// Weight of the trees' score in the re-ranking for tail labels; 1: none.
    pub beta: f64,
    /// How fast the score of a label falls with the distance from its examples.
    pub gamma: f64,
    /// What scores the labels that the trees find.
    pub scorers: Scorers,
    /// What the scorers minimise.
    pub scorer_loss: ScorerLoss,
    /// Weight of the scorers' loss in a label's score.
    pub scorer_weight: f64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Params {
    /// Refuses values out of range.
    pub fn check(self) -> Result<Self> {
        for (name, value, from, to) in [
            ("n_estimators", self.n_estimators, 1, u32::MAX),
            ("arity", self.arity, 2, MOST_CHILDREN as u32),
            ("max_nodes", self.max_nodes, 1, MOST_NODES),
            ("n_epochs", self.n_epochs, 1, u32::MAX),
        ] {
            if !(from..=to).contains(&value) {
                let allowed = format!("from {from} to {to}");
                return Err(Error::parameter(name, value, allowed));
            }
        }
        let is_single = |value: f64| (value as f32).is_finite();
        if !(self.learning_rate > 0.0 && is_single(self.learning_rate)) {
            let allowed = "a number above 0, below 3e38";
            return Err(Error::parameter(
                "learning_rate",
                self.learning_rate,
                allowed,
            ));
        }
        for (name, value) in [
            ("lambda1", self.lambda1),
            ("lambda2", self.lambda2),
            ("min_gain", self.min_gain),
            ("gamma", self.gamma),
            ("scorer_weight", self.scorer_weight),
        ] {
            if !(value >= 0.0 && is_single(value)) {
                return Err(Error::parameter(name, value, "from 0 to 3e38"));
            }
        }
        if !(0.0..=1.0).contains(&self.beta) {
            return Err(Error::parameter("beta", self.beta, "from 0 to 1"));
        }
        Ok(self)
    }

    /// Whether nodes standardise, given the share of values that are not zero.
    pub fn is_dense(&self, filled: f64) -> bool {
        match self.optimizer {
            NodeOptimizer::Auto => filled > 0.5,
            NodeOptimizer::Nag => false,
            NodeOptimizer::Sgd => true,
        }
    }
}

/// Node numbers are shown as i32.
const MOST_NODES: u32 = i32::MAX as u32;
