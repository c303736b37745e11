//! Parameters of LdSM.

use super::objective::MAX_CHILDREN;
use super::regressors::NodeLoss;
use crate::data::{Precision, Scaling};
use crate::learners::one_against_some::ScorerParams;
use crate::params::Range;
use crate::{choices, params};

/// Number of negatives of each kind by default.
pub const N_NEGATIVES: u32 = 30;
/// The same if rows have dense columns: their scorers confuse more labels, and a negative takes less
/// time.
const N_DENSE_NEGATIVES: u32 = 100;

choices! {
    /// Scorers of labels beside the trees.
    pub enum Scorers {
        /// A linear scorer for each label, trained on the rows with the label and on rows for
        /// which the trees find it likely.
        OneAgainstSome = "one_against_some",
        /// No scorers: the trees' scores are final, as in the paper.
        None = "none",
    }
}

params! {
    /// The parameters of LdSM. The Python class documents them for users;
    /// `docs/experiments/ldsm.md` says where the defaults come from.
    pub struct Params {
        /// Number of trees.
        n_estimators: u32 = 10, Range::COUNT;
        /// M, the number of children of a node.
        arity: u32 = 2, Range::from(2.0).to(MAX_CHILDREN as f64);
        /// Largest number of nodes of a tree, leaves included. Reports number them as `i32`.
        max_nodes: u32 = 16_000, Range::from(1.0).to(f64::from(i32::MAX));
        /// Leaves are only split if their priority is higher than this or than a hundredth of the
        /// root's.
        min_priority: f64 = 60.0, Range::NOT_NEGATIVE;
        /// Largest number of passes of a node over its examples.
        n_epochs: u32 = 10, Range::COUNT;
        /// Largest number of steps of a node, which takes one per example and pass. It always takes
        /// one pass.
        max_updates: Option<u32> = Some(20_000), Range::COUNT;
        /// Weight of class integrity in the objective.
        lambda1: f64 = 2.0, Range::NOT_NEGATIVE;
        /// Weight of the multi-way penalty in the objective.
        lambda2: f64 = 1.0, Range::NOT_NEGATIVE;
        /// The probability that a margin stands for in training.
        loss: NodeLoss = NodeLoss::Centred;
        /// Step size of the regressors.
        learning_rate: f64 = 0.1, Range::POSITIVE;
        /// Scaling of the examples.
        scaling: Scaling = Scaling::Log;
        /// Columns are hashed to 2^`n_bits` columns, if given.
        n_bits: Option<u32> = None, Range::BITS;
        /// Drop weights and labels of trees that matter little, and store the others in 8 bits.
        slim_trees: bool = true;
        /// Keep statistics of the training in the trees.
        keep_statistics: bool = false;
        /// Weight of the trees' score in the re-ranking for tail labels; 1 disables it.
        beta: f64 = 1.0, Range::from(0.0).to(1.0);
        /// Scorers of labels beside the trees.
        scorers: Scorers = Scorers::OneAgainstSome;
        /// Largest number of labels of each kind that a row becomes a negative example of. The kinds
        /// are labels that the trees find likely, labels drawn by frequency, and in each round of
        /// mining labels that the scorers find likely. None: [`N_NEGATIVES`], or
        /// [`N_DENSE_NEGATIVES`] if rows have dense columns.
        n_negatives: Option<u32> = None, Range::from(0.0).to(f64::from(u32::MAX));
        /// Positives of a scorer weigh (inverse propensity of the label)^`tail_weight`, 1 on
        /// average.
        tail_weight: f64 = 0.5, Range::NOT_NEGATIVE;
        /// C of the scorers' problems, the weight of losses against |w|^2 / 2; None: fitted.
        cost: Option<f64> = None, Range::POSITIVE;
        /// Smaller weights of a scorer are dropped.
        weight_threshold: f64 = 0.1, Range::NOT_NEGATIVE;
        /// Seed of all random numbers.
        seed: u64 = 0;
    }
}

impl Params {
    /// Returns the precision of a tree's weights and histograms.
    pub fn precision(&self) -> Precision {
        if self.slim_trees {
            Precision::Bits8
        } else {
            Precision::Exact
        }
    }

    /// Returns the parameters of the scorers' training on rows with or without dense columns.
    pub fn scorer_params(&self, has_dense_columns: bool) -> ScorerParams {
        let n_negatives = if has_dense_columns {
            N_DENSE_NEGATIVES
        } else {
            N_NEGATIVES
        };
        ScorerParams {
            n_negatives: self.n_negatives.unwrap_or(n_negatives) as usize,
            tail_weight: self.tail_weight,
            cost: self.cost,
            weight_threshold: self.weight_threshold,
            seed: self.seed,
        }
    }

    /// Returns whether trees grown with `other` can be added to a model with these parameters: all
    /// that trees share, and all that is trained once for all of them, must be the same.
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
