//! Options of the boosting learners.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How a round turns its tree into votes and new weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// GAMBLE, Algorithm 2: a leaf gives every class a real number.
    Gamble,
    /// SAMME.Discrete: a leaf votes for one class, a tree's votes weigh alike.
    Samme,
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

/// Between which values of a feature a split may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Splits {
    /// Between any two.
    Exact,
    /// Between 255 groups of neighbouring values, of about equally many rows. With
    /// at most 255 distinct values the same as exact.
    Binned,
}

/// Every option; [`Params::check`] refuses values out of range. The Python classes
/// document them for users and say where the defaults come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// GAMBLE or SAMME.
    pub algorithm: Algorithm,
    /// Rounds, one tree each, at most.
    pub n_estimators: u32,
    /// Leaves of a tree, at most.
    pub max_leaves: u32,
    /// Rows of a leaf, at least.
    pub min_samples_leaf: u32,
    /// What a tree's votes are multiplied by.
    pub learning_rate: f64,
    /// Share of the features that a split chooses from, sampled for each split.
    pub max_features: f64,
    /// Share of the rows that a tree is grown from, sampled for each tree.
    pub subsample: f64,
    /// Share of the weight that a tree is not grown from: that of the lightest rows.
    pub trim: f64,
    /// Whether r is at least -K. SAMME has no r.
    pub clip: bool,
    /// Where splits may lie.
    pub splits: Splits,
    /// Columns whose values are names, not numbers.
    pub categorical_features: Vec<u32>,
    /// Whether to hold rows out and stop when their error no longer falls.
    pub early_stopping: bool,
    /// Share of the rows held out for that.
    pub validation_fraction: f64,
    /// Rounds without a new lowest error after which to stop.
    pub patience: u32,
    /// Seed of all samples.
    pub seed: u64,
}

impl Params {
    /// Refuses values out of range.
    pub fn check(self) -> Result<Self> {
        let counts = [
            ("n_estimators", self.n_estimators, 1),
            ("max_leaves", self.max_leaves, 2),
            ("min_samples_leaf", self.min_samples_leaf, 1),
            ("patience", self.patience, 1),
        ];
        for (name, value, least) in counts {
            if value < least {
                return Err(Error::parameter(name, value, format!("at least {least}")));
            }
        }
        // Leaf values are single precision, and the weights change by a factor of e^rate.
        if !(self.learning_rate > 0.0 && self.learning_rate <= 100.0) {
            let allowed = "a number above 0, at most 100";
            return Err(Error::parameter(
                "learning_rate",
                self.learning_rate,
                allowed,
            ));
        }
        for (name, share) in [
            ("max_features", self.max_features),
            ("subsample", self.subsample),
        ] {
            if !(share > 0.0 && share <= 1.0) {
                return Err(Error::parameter(name, share, "above 0, at most 1"));
            }
        }
        if !(self.trim >= 0.0 && self.trim < 1.0) {
            return Err(Error::parameter("trim", self.trim, "from 0 to below 1"));
        }
        if !(self.validation_fraction > 0.0 && self.validation_fraction < 1.0) {
            return Err(Error::parameter(
                "validation_fraction",
                self.validation_fraction,
                "between 0 and 1, both excluded",
            ));
        }
        if self.clip && self.algorithm == Algorithm::Samme {
            return Err(Error::parameter("clip", true, "false with SAMME"));
        }
        Ok(self)
    }
}
