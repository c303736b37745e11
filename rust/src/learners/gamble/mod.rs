//! GAMBLE: multiclass boosting with one tree per round, for any number of classes.
//!
//! Huang, Ertekin, Song, Zha & Giles, "Efficient Multiclass Boosting Classification with
//! Active Learning", SDM 2007. A class c of K is encoded as y, 1 at c and -1/(K-1)
//! elsewhere; the loss is exp(-(1/K) y.F). Each round (Algorithm 2) fits a regression tree g
//! to y by weighted least squares, turns its leaves' means into
//! r = K (K-1) g / ((K-2) g + 1), centers them, f = r - mean r, adds f to the committee
//! F and multiplies the weights by exp(-(1/K) y.f). Algorithm 1 fits a second tree to the
//! squares of y. It is the same tree (Theorem 3.2), so it is omitted here.
//!
//! A tree for such labels is a tree that lowers the weighted Gini impurity, which takes
//! O(1) per row and feature for any number of classes (`run_scan`). Leaves list the
//! classes of their rows and one number for all others. So a round costs O(rows x
//! features x depth). Libraries for gradient boosting grow K trees per round instead.
//!
//! SAMME and SAMME.R, the baselines, only differ in the votes of the leaves (`tree`).
//!
//! | file | contents |
//! |---|---|
//! | `columns` | the examples: values as codes, dense and sparse columns |
//! | `sampling` | log weights; samples of rows and features |
//! | `node` | the rows of a node; its splits and their scores |
//! | `histogram`, `run_scan`, `sparse_splitter` | three strategies for finding a split |
//! | `search` | the best split of a node; the choice among the strategies |
//! | `grow` | growing a tree, best first |
//! | `tree` | the trained tree, the votes of its leaves, its report |
//! | `boost` | the rounds: Algorithm 2; warm starts, early stopping |
//! | `frozen` | trees for prediction, and the routing of rows |
//! | `linear` | linear scores beside the votes |
//! | `features`, `logistic` | columns as features; the regression that gives the scores |
//! | `predict` | scores of blocks of rows; the slope of the probabilities |
//! | `shap` | contributions of features to scores |
//! | `model` | the classifier |

mod boost;
mod columns;
mod features;
mod frozen;
mod grow;
mod histogram;
mod linear;
mod logistic;
mod model;
mod node;
mod predict;
mod run_scan;
mod sampling;
mod search;
mod shap;
mod sparse_splitter;
#[cfg(test)]
mod tests;
mod tree;

pub use model::Gamble;

use crate::error::{Error, Result};
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// The rule that turns the tree of a round into votes and new weights.
    pub enum Algorithm {
        /// GAMBLE, Algorithm 2: a leaf gives every class a real number.
        Gamble = "gamble",
        /// SAMME or SAMME.R, by [`Votes`].
        Samme = "samme",
    }
}

choices! {
    /// The votes of the leaves in SAMME.
    pub enum Votes {
        /// SAMME: a leaf votes for one class, and all leaves of a tree have equal votes.
        Discrete = "discrete",
        /// SAMME.R: a leaf gives every class the logarithm of its share.
        Real = "real",
    }
}

impl Algorithm {
    /// Returns the name of the learner, for messages.
    pub fn learner(self) -> &'static str {
        match self {
            Self::Gamble => "GAMBLE",
            Self::Samme => "SAMME",
        }
    }
}

choices! {
    /// The values of a feature between which a split may lie.
    pub enum Splits {
        /// Any two neighboring values.
        Exact = "exact",
        /// 255 bins of neighboring values, with about equally many rows. With at most 255
        /// distinct values, this is the same as exact.
        Binned = "binned",
    }
}

choices! {
    /// The measure on the validation rows by which early stopping chooses the number of rounds.
    pub enum EvalMetric {
        /// Share of the weight of rows whose best class is wrong.
        Error = "error",
        /// Log loss at the temperature that suits the rows best.
        LogLoss = "log_loss",
    }
}

params! {
    /// All parameters. The Python classes document them for users and explain the defaults.
    pub struct Params check check_together {
        /// GAMBLE or SAMME.
        algorithm: Algorithm = Algorithm::Gamble;
        /// Votes of SAMME. GAMBLE has one kind.
        votes: Votes = Votes::Discrete;
        /// Largest number of rounds, with one tree each.
        n_estimators: u32 = 200, Range::COUNT;
        /// Largest number of leaves of a tree.
        max_leaves: u32 = 511, Range::from(2.0);
        /// Smallest number of rows of a leaf.
        min_samples_leaf: u32 = 1, Range::COUNT;
        /// Factor of a tree's votes; a third below sets of categories. It is limited because votes are
        /// stored in single precision and weights change by a factor of e^rate.
        learning_rate: f64 = 0.3, Range::above(0.0).to(100.0);
        /// Share of the features among which a split is chosen, sampled for each split.
        max_features: f64 = 0.3, Range::POSITIVE_SHARE;
        /// Share of the rows from which a tree is grown, sampled for each tree.
        subsample: f64 = 0.7, Range::POSITIVE_SHARE;
        /// Share of the weight that the lightest rows may have which a tree leaves out.
        trim: f64 = 0.1, Range::from(0.0).below(1.0);
        /// Adds linear scores if they lower the error of rows left out of trees. Models of earlier
        /// versions have none. SAMME has none.
        linear: bool = false;
        /// Bounds r below by -K. SAMME has no r.
        clip: bool = true;
        /// Values between which splits may lie.
        splits: Splits = Splits::Binned;
        /// Columns whose values are categories.
        categorical_features: Vec<u32> = Vec::new();
        /// Stops when `eval_metric` no longer falls on validation rows, held out or given.
        early_stopping: bool = false;
        /// Measure of early stopping.
        eval_metric: EvalMetric = EvalMetric::Error;
        /// Share of the rows held out for early stopping.
        validation_fraction: f64 = 0.1, Range::INNER_SHARE;
        /// Number of rounds without a new lowest value after which training stops.
        patience: u32 = 50, Range::COUNT;
        /// Seed of all random samples.
        seed: u64 = 0;
    }
}

impl Params {
    fn check_together(&self) -> Result<()> {
        if self.clip && self.algorithm == Algorithm::Samme {
            return Err(Error::parameter("clip", true, "false with SAMME"));
        }
        if self.linear && self.algorithm == Algorithm::Samme {
            return Err(Error::parameter("linear", true, "false with SAMME"));
        }
        if self.votes == Votes::Real && self.algorithm == Algorithm::Gamble {
            return Err(Error::parameter("votes", "real", "discrete with GAMBLE"));
        }
        Ok(())
    }
}
