//! Parameters of the boosting learners.

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
        max_leaves: u32 = 511, Range::from(2.0).to(f64::from(u32::MAX));
        /// Rows of a leaf, at least.
        min_samples_leaf: u32 = 1, Range::COUNT;
        /// What a tree's votes are multiplied by. Leaf values are single precision, and the
        /// weights change by a factor of e^rate.
        learning_rate: f64 = 0.3, Range::above(0.0).to(100.0);
        /// Share of the features that a split chooses from, sampled for each split.
        max_features: f64 = 0.3, Range::SHARE;
        /// Share of the rows that a tree is grown from, sampled for each tree.
        subsample: f64 = 0.7, Range::SHARE;
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
        validation_fraction: f64 = 0.1, Range::PART;
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
