//! Parameters of LdSM.

use super::objective::MOST_CHILDREN;
use crate::data::Scaling;
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// How the regressors of a node learn.
    pub enum NodeOptimizer {
        /// `Sgd` where more than half of the values are non-zero, else `Nag`.
        Auto = "auto",
        /// Normalised adaptive gradients.
        Nag = "nag",
        /// Features standardised by the node's own examples, plain gradient steps.
        Sgd = "sgd",
    }
}

choices! {
    /// Which probability a regressor's margin m stands for.
    pub enum NodeLoss {
        /// The logistic function of 4 m - 2: 1/2 where examples are routed, at m = 1/2,
        /// and of slope 1 there.
        Centred = "centred",
        /// The logistic function of m, as in the authors' program.
        Logistic = "logistic",
    }
}

impl NodeLoss {
    /// The number whose logistic function is the probability that a margin stands for.
    #[inline]
    pub fn logit(self, margin: f32) -> f32 {
        match self {
            Self::Centred => 4.0 * margin - 2.0,
            Self::Logistic => margin,
        }
    }

    /// The probability of going to a child, from its regressor's margin.
    #[inline]
    pub fn probability(self, margin: f32) -> f32 {
        1.0 / (1.0 + (-self.logit(margin)).exp())
    }
}

choices! {
    /// What scores labels beside the trees.
    pub enum Scorers {
        /// A sparse linear scorer for each label, trained on the rows that have the label and
        /// on rows for which trees take it to be likely.
        OneAgainstSome = "one_against_some",
        /// Nothing: the trees' scores are final, as in the paper.
        None = "none",
    }
}

params! {
    /// Every parameter. The Python class documents them for users;
    /// `docs/experiments/ldsm.md` says where the defaults come from.
    pub struct Params {
        /// Number of trees.
        n_estimators: u32 = 10, Range::COUNT;
        /// M: children of a node.
        arity: u32 = 2, Range::from(2.0).to(MOST_CHILDREN as f64);
        /// Nodes of a tree at most, leaves among them. Their numbers go out as `i32`.
        max_nodes: u32 = 16_000, Range::from(1.0).to(f64::from(i32::MAX));
        /// Leaves of no greater priority are not split, unless it is a hundredth of the root's.
        min_priority: f64 = 60.0, Range::NOT_NEGATIVE;
        /// Passes of a node over its examples.
        n_epochs: u32 = 10, Range::COUNT;
        /// Steps of a node, a pass over its examples having one for each: further passes, up to
        /// `n_epochs`, are taken as long as there are no more than this.
        max_updates: Option<u32> = Some(20_000), Range::COUNT;
        /// Weight of class integrity in the objective.
        lambda1: f64 = 2.0, Range::NOT_NEGATIVE;
        /// Weight of the multi-way penalty in the objective.
        lambda2: f64 = 1.0, Range::NOT_NEGATIVE;
        /// Whether every epoch has its own order of examples.
        reshuffle: bool = true;
        /// Which probability a margin stands for in training.
        loss: NodeLoss = NodeLoss::Centred;
        /// How the regressors learn.
        optimizer: NodeOptimizer = NodeOptimizer::Auto;
        /// Their step size.
        learning_rate: f64 = 0.1, Range::POSITIVE;
        /// Scaling of the examples.
        scaling: Scaling = Scaling::Log;
        /// Columns are hashed into 2^`n_bits`, if given.
        n_bits: Option<u32> = None, Range::BITS;
        /// Whether a node's training ends as soon as an epoch no longer lowers J.
        early_stopping: bool = false;
        /// By how much an epoch must lower J, with early stopping.
        min_gain: f64 = 0.0, Range::NOT_NEGATIVE;
        /// Share of a node's squared margins that its dropped weights may make up.
        pruned_share: f64 = 0.15, Range::from(0.0).below(1.0);
        /// Labels of a leaf that have less than this share of the most frequent one's weight are
        /// dropped.
        leaf_threshold: f64 = 0.3, Range::from(0.0).to(1.0);
        /// Whether weights of nodes and histograms of leaves are held in 8 bits.
        quantize: bool = true;
        /// Whether trees keep what training knew of their nodes.
        keep_statistics: bool = false;
        /// Weight of the trees' score in the re-ranking for tail labels; 1: none.
        beta: f64 = 1.0, Range::from(0.0).to(1.0);
        /// How fast the score of a label falls with the distance from its examples.
        gamma: f64 = 1e-4, Range::NOT_NEGATIVE;
        /// What scores labels beside the trees.
        scorers: Scorers = Scorers::OneAgainstSome;
        /// Weight of the scorers' loss in a label's score; none: fitted.
        scorer_weight: Option<f64> = None, Range::NOT_NEGATIVE;
        /// Share of the rows that each tree leaves out.
        held_out_share: f64 = 0.2, Range::PART;
        /// Labels that a row is no example of although trees find them likely, at most.
        n_hard_negatives: u32 = 30, Range::from(0.0).to(f64::from(u32::MAX));
        /// Labels drawn by frequency that a row is no example of, at most.
        n_random_negatives: u32 = 30, Range::from(0.0).to(f64::from(u32::MAX));
        /// Labels that a row is no example of although scorers find them likely, at most so
        /// many for each round of mining.
        n_mined_negatives: u32 = 30, Range::from(0.0).to(f64::from(u32::MAX));
        /// Positives of a scorer weigh (inverse propensity of the label)^`tail_weight`, 1 on
        /// average.
        tail_weight: f64 = 0.5, Range::NOT_NEGATIVE;
        /// Scorers' features are scaled by this power of their inverse document frequencies;
        /// none: 0 or 1, which is fitted.
        idf_power: Option<f64> = None, Range::NOT_NEGATIVE;
        /// C of the scorers' problems: what losses weigh against |w|^2 / 2.
        /// None: fitted.
        cost: Option<f64> = None, Range::POSITIVE;
        /// Weights of a scorer that are smaller are dropped.
        weight_threshold: f64 = 0.1, Range::NOT_NEGATIVE;
        /// Seed of everything random.
        seed: u64 = 0;
    }
}

impl Params {
    /// Whether nodes standardise, given the share of values that are not zero.
    pub fn is_dense(&self, filled: f64) -> bool {
        match self.optimizer {
            NodeOptimizer::Auto => filled > 0.5,
            NodeOptimizer::Nag => false,
            NodeOptimizer::Sgd => true,
        }
    }
}
