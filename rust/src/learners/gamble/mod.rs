//! GAMBLE: multiclass boosting with one tree a round, whatever the number of classes.
//!
//! Huang, Ertekin, Song, Zha & Giles, "Efficient Multiclass Boosting Classification with
//! Active Learning", SDM 2007. A class c of K is encoded as y, 1 at c and -1/(K-1)
//! elsewhere; the loss is exp(-(1/K) y.F). Each round (Algorithm 2) fits a regression tree g
//! to y by weighted least squares, turns its leaves' means into
//! r = K (K-1) g / ((K-2) g + 1), centres them, f = r - mean r, adds f to the committee
//! F and multiplies the weights by exp(-(1/K) y.f). Algorithm 1 fits a second tree, to
//! the squares of y; it is the same tree (Theorem 3.2), so there is none here.
//!
//! A tree for such labels is one that lowers the weighted Gini impurity, and that takes
//! O(1) per row and feature whatever the number of classes (`runs`). Leaves list the
//! classes of their rows and one number for all others. So a round costs O(rows x
//! features x depth). Where libraries for gradient boosting grow K trees a round, this
//! grows one.
//!
//! SAMME.Discrete, the baseline, differs in the leaves' votes alone (`samme`).
//!
//! | file | what it holds |
//! |---|---|
//! | `columns` | the examples: values as codes, dense and sparse columns |
//! | `sampling` | log weights; samples of rows and features |
//! | `node` | a node's rows, and its splits |
//! | `cuts`, `run_scan`, `sparse_splitter` | three ways to find a split |
//! | `grow` | a tree, best first; the choice among the strategies |
//! | `tree` | the learned tree, the votes of its leaves, its report |
//! | `boost` | the rounds: Algorithm 2; warm starts, early stopping |
//! | `frozen` | learned trees as rows traverse them |
//! | `predict` | scores of blocks of rows; the slope of the probabilities |
//! | `model` | the classifier |

mod boost;
mod columns;
mod cuts;
mod frozen;
mod grow;
mod model;
mod node;
mod predict;
mod run_scan;
mod sampling;
mod sparse_splitter;
#[cfg(test)]
mod tests;
mod tree;

pub use model::Gamble;

use crate::error::{Error, Result};
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// How a round turns its tree into votes and new weights.
    pub enum Algorithm {
        /// GAMBLE, Algorithm 2: a leaf gives every class a real number.
        Gamble = "gamble",
        /// SAMME.Discrete: a leaf votes for one class, a tree's votes weigh alike.
        Samme = "samme",
    }
}

impl Algorithm {
    /// Name of the learner, for messages.
    pub fn learner(self) -> &'static str {
        match self {
            Self::Gamble => "GAMBLE",
            Self::Samme => "SAMME",
        }
    }
}

choices! {
    /// Between which values of a feature a split may lie.
    pub enum Splits {
        /// Between any two.
        Exact = "exact",
        /// Between 255 groups of neighbouring values, of about equally many rows. With
        /// at most 255 distinct values the same as exact.
        Binned = "binned",
    }
}

params! {
    /// Every parameter. The Python classes document them for users and say where the defaults
    /// come from.
    pub struct Params check check_together {
        /// GAMBLE or SAMME.
        algorithm: Algorithm = Algorithm::Gamble;
        /// Rounds, one tree each, at most.
        n_estimators: u32 = 200, Range::COUNT;
        /// Leaves of a tree, at most.
        max_leaves: u32 = 511, Range::from(2.0);
        /// Rows of a leaf, at least.
        min_samples_leaf: u32 = 1, Range::COUNT;
        /// What a tree's votes are multiplied by. Leaf values are single precision, and the
        /// weights change by a factor of e^rate.
        learning_rate: f64 = 0.3, Range::above(0.0).to(100.0);
        /// Share of the features that a split chooses from, sampled for each split.
        max_features: f64 = 0.3, Range::POSITIVE_SHARE;
        /// Share of the rows that a tree is grown from, sampled for each tree.
        subsample: f64 = 0.7, Range::POSITIVE_SHARE;
        /// Share of the weight that a tree is not grown from: that of the lightest rows.
        trim: f64 = 0.1, Range::from(0.0).below(1.0);
        /// Whether r is at least -K. SAMME has no r.
        clip: bool = true;
        /// Where splits may lie.
        splits: Splits = Splits::Binned;
        /// Columns whose values are names, not numbers.
        categorical_features: Vec<u32> = Vec::new();
        /// Whether to hold rows out and stop when their error no longer falls.
        early_stopping: bool = false;
        /// Share of the rows held out for that.
        validation_fraction: f64 = 0.1, Range::INNER_SHARE;
        /// Rounds without a new lowest error after which to stop.
        patience: u32 = 50, Range::COUNT;
        /// Seed of all samples.
        seed: u64 = 0;
    }
}

impl Params {
    fn check_together(&self) -> Result<()> {
        if self.clip && self.algorithm == Algorithm::Samme {
            return Err(Error::parameter("clip", true, "false with SAMME"));
        }
        Ok(())
    }
}
