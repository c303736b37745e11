//! Parameters of LdSM.

use super::objective::MOST_CHILDREN;
use crate::data::{Precision, Scaling};
use crate::learners::one_against_some::ScorerParams;
use crate::params::Range;
use crate::{choices, params};

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

    /// Whether each pass over a node's examples has an order of its own. The authors' program, whose
    /// loss is the logistic one, keeps one order for a tree.
    pub fn reshuffles(self) -> bool {
        self == Self::Centred
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
        /// Which probability a margin stands for in training.
        loss: NodeLoss = NodeLoss::Centred;
        /// Step size of the regressors.
        learning_rate: f64 = 0.1, Range::POSITIVE;
        /// Scaling of the examples.
        scaling: Scaling = Scaling::Log;
        /// Columns are hashed into 2^`n_bits`, if given.
        n_bits: Option<u32> = None, Range::BITS;
        /// Whether a tree holds less than it has learned: the weights and labels that matter, in 8 bits.
        slim_trees: bool = true;
        /// Whether trees keep what training knew of their nodes.
        keep_statistics: bool = false;
        /// Weight of the trees' score in the re-ranking for tail labels; 1: none.
        beta: f64 = 1.0, Range::from(0.0).to(1.0);
        /// What scores labels beside the trees.
        scorers: Scorers = Scorers::OneAgainstSome;
        /// Labels that a row becomes a negative example of at most: so many that the trees find
        /// likely, so many drawn by frequency, and in each round of mining so many that the scorers
        /// find likely.
        n_negatives: u32 = 30, Range::from(0.0).to(f64::from(u32::MAX));
        /// Positives of a scorer weigh (inverse propensity of the label)^`tail_weight`, 1 on
        /// average.
        tail_weight: f64 = 0.5, Range::NOT_NEGATIVE;
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
    /// How a tree holds weights and histograms.
    pub fn precision(&self) -> Precision {
        if self.slim_trees {
            Precision::Bits8
        } else {
            Precision::Exact
        }
    }

    /// How scorers are trained.
    pub fn scorer_params(&self) -> ScorerParams {
        ScorerParams {
            n_negatives: self.n_negatives as usize,
            tail_weight: self.tail_weight,
            cost: self.cost,
            weight_threshold: self.weight_threshold,
            seed: self.seed,
        }
    }

    /// Whether trees that are grown with `other` can join those of a model with these parameters:
    /// what the trees share, and what is trained once for all of them, is the same.
    pub fn fits(&self, other: &Self) -> bool {
        self.arity == other.arity
            && self.scaling == other.scaling
            && self.n_bits == other.n_bits
            && self.scorers == other.scorers
            && self.n_negatives == other.n_negatives
            && self.tail_weight == other.tail_weight
            && self.cost == other.cost
            && self.weight_threshold == other.weight_threshold
            && (self.beta < 1.0) == (other.beta < 1.0)
    }
}
