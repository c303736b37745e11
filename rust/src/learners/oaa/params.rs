//! The parameters, checked before anything is learned.

use serde::{Deserialize, Serialize};

use crate::classifier::Schedule;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};

/// The loss of all classes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OaaLoss {
    /// [`Loss::Squared`], each class for itself.
    Squared,
    /// [`Loss::Logistic`], each class for itself.
    Logistic,
    /// [`Loss::Quantile`], each class for itself.
    Quantile,
    /// [`Loss::Hinge`], each class for itself.
    Hinge,
    /// [`Loss::SquaredHinge`], each class for itself.
    SquaredHinge,
    /// Cross-entropy of the softmax over all classes: these learn jointly.
    Softmax,
}

impl OaaLoss {
    /// The loss of a single class; none for the softmax.
    pub fn single(self) -> Option<Loss> {
        match self {
            Self::Squared => Some(Loss::Squared),
            Self::Logistic => Some(Loss::Logistic),
            Self::Quantile => Some(Loss::Quantile),
            Self::Hinge => Some(Loss::Hinge),
            Self::SquaredHinge => Some(Loss::SquaredHinge),
            Self::Softmax => None,
        }
    }
}

/// Whether predictions use an average of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Average {
    /// Yes or no.
    Chosen(bool),
    /// Yes, but for "nag", which follows Vowpal Wabbit.
    Auto(AutoWord),
}

/// The word "auto".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoWord {
    /// "auto"
    Auto,
}

/// Parameters of one-against-all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What is minimised.
    pub loss: OaaLoss,
    /// How steps are taken.
    pub optimizer: Optimizer,
    /// What is done to the features first.
    pub scaling: Scaling,
    /// Hash features into 2^`n_bits` columns; none: as many as X has.
    pub n_bits: Option<u32>,
    /// Step size; none: the optimizer's own default.
    pub learning_rate: Option<f64>,
    /// Whether predictions use averaged weights.
    pub average: Average,
    /// Every example moves each weight towards 0 by this times the step size.
    pub l1: f64,
    /// Every example shrinks each weight by this share times the step size.
    pub l2: f64,
    /// Wrong classes to learn per example, each with the weight of K/`n_negatives`;
    /// none: all of them, with weight 1.
    pub n_negatives: Option<u32>,
    /// Passes of `fit` over the data, at most.
    pub n_passes: u32,
    /// Fixes the order of the examples and the choice of negatives.
    pub seed: u64,
    /// Whether `fit` holds examples out and stops when their error no longer falls.
    pub early_stopping: bool,
    /// Share of the examples held out for that.
    pub validation_fraction: f64,
    /// Passes without a new lowest error after which to stop.
    pub patience: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            loss: OaaLoss::SquaredHinge,
            optimizer: Optimizer::Pn,
            scaling: Scaling::Auto,
            n_bits: None,
            learning_rate: None,
            average: Average::Auto(AutoWord::Auto),
            l1: 0.0,
            l2: 0.0,
            n_negatives: None,
            n_passes: 5,
            seed: 0,
            early_stopping: false,
            validation_fraction: 0.1,
            patience: 2,
        }
    }
}

impl Params {
    /// Checks ranges, and that the parameters go together.
    pub fn check(&self) -> Result<()> {
        self.schedule().check()?;
        if let Some(rate) = self.learning_rate {
            if !(rate > 0.0 && (rate as f32).is_finite()) {
                let allowed = "a number above 0, below 3e38, or None";
                return Err(Error::parameter("learning_rate", rate, allowed));
            }
        }
        for (name, value) in [("l1", self.l1), ("l2", self.l2)] {
            // Above 1 a step would throw the weights to the other side.
            if !(0.0..1.0).contains(&value) {
                return Err(Error::parameter(name, value, "at least 0 and below 1"));
            }
        }
        if self.n_negatives == Some(0) {
            return Err(Error::parameter("n_negatives", 0, "at least 1, or None"));
        }
        if self.loss == OaaLoss::Softmax {
            if self.is_adaptive() {
                return Err(Error::parameter(
                    "optimizer",
                    format!("{:?}", self.optimizer).to_lowercase(),
                    "\"pn\" or \"sgd\" where loss is \"softmax\"",
                ));
            }
            if let Some(n) = self.n_negatives {
                return Err(Error::parameter(
                    "n_negatives",
                    n,
                    "None where loss is \"softmax\", which needs all classes",
                ));
            }
        }
        if let Some(bits) = self.n_bits {
            if !(1..=31).contains(&bits) {
                return Err(Error::parameter("n_bits", bits, "from 1 to 31, or None"));
            }
            if self.scaling == Scaling::Standard {
                return Err(Error::parameter(
                    "scaling",
                    "\"standard\"",
                    "\"auto\", \"row\" or \"none\" where n_bits is given",
                ));
            }
        }
        Ok(())
    }

    /// The passes of `fit`.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            n_passes: self.n_passes,
            seed: self.seed,
            early_stopping: self.early_stopping,
            validation_fraction: self.validation_fraction,
            patience: self.patience,
        }
    }

    /// Whether a weight carries sums of its own; the rate then falls by itself.
    pub(super) fn is_adaptive(&self) -> bool {
        matches!(self.optimizer, Optimizer::Nag | Optimizer::Adagrad)
    }

    /// Whether predictions use averaged weights.
    pub fn averages(&self) -> bool {
        match self.average {
            Average::Chosen(chosen) => chosen,
            Average::Auto(_) => self.optimizer != Optimizer::Nag,
        }
    }

    /// The learning rate in use. The defaults were the best compromise on
    /// held-out parts of six data sets, dense and sparse; losses that are
    /// never satisfied need larger steps.
    pub fn rate(&self) -> f64 {
        let default = match (self.optimizer, self.loss) {
            (Optimizer::Nag | Optimizer::Adagrad, _) => 0.5,
            (_, OaaLoss::Softmax | OaaLoss::Logistic) => 5.0,
            _ => 1.0,
        };
        self.learning_rate.unwrap_or(default)
    }

    /// What the weight of the constant feature starts from. A class is wrong for most
    /// examples; from -1 hinge losses start satisfied with those.
    pub(super) fn initial_bias(&self) -> f32 {
        match self.loss {
            OaaLoss::Hinge | OaaLoss::SquaredHinge if self.optimizer != Optimizer::Nag => -1.0,
            _ => 0.0,
        }
    }
}
