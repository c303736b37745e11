//! The parameters and the values derived from them.

use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// The loss summed over all classes.
    pub enum OaaLoss {
        /// [`Loss::Squared`] of each class separately.
        Squared = "squared",
        /// [`Loss::Logistic`] of each class separately.
        Logistic = "logistic",
        /// [`Loss::Quantile`] of each class separately.
        Quantile = "quantile",
        /// [`Loss::Hinge`] of each class separately.
        Hinge = "hinge",
        /// [`Loss::SquaredHinge`] of each class separately.
        SquaredHinge = "squared_hinge",
        /// Cross-entropy of the softmax over all classes, which are learned jointly.
        Softmax = "softmax",
    }
}

impl OaaLoss {
    /// Returns the loss of a single class, or none for the softmax.
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

params! {
    /// All parameters. The Python class documents them for users.
    pub struct Params online(5) check check_together {
        /// Loss to minimize.
        loss: OaaLoss = OaaLoss::SquaredHinge;
        /// Rule for the steps.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size; none for the optimizer's own default.
        learning_rate: Option<f64> = None, Range::POSITIVE;
        /// Wrong classes to learn per example, each with weight K/`n_negatives`; none for all of
        /// them, with weight 1.
        n_negatives: Option<u32> = None, Range::COUNT;
        /// Weights smaller than this are dropped after `fit`, and the others are stored sparsely;
        /// none to keep all weights.
        prune: Option<f64> = None, Range::POSITIVE;
    }
}

impl Params {
    fn check_together(&self) -> Result<()> {
        if self.loss == OaaLoss::Softmax {
            if self.is_adaptive() {
                let allowed = "\"pn\" where loss is \"softmax\"";
                return Err(Error::parameter("optimizer", "nag", allowed));
            }
            if let Some(n) = self.n_negatives {
                let allowed = "None where loss is \"softmax\", which needs all classes";
                return Err(Error::parameter("n_negatives", n, allowed));
            }
        }
        if let Some(prune) = self.prune {
            let conflict = if self.loss == OaaLoss::Softmax {
                "loss is \"softmax\", whose classes learn jointly"
            } else if self.early_stopping {
                "early_stopping is on, which compares all classes in each pass"
            } else {
                return Ok(());
            };
            let allowed = format!("None where {conflict}");
            return Err(Error::parameter("prune", prune, allowed));
        }
        Ok(())
    }

    /// Returns true if each weight keeps its own sum of gradients. Its learning rate then falls by
    /// itself, and predictions use the last weights, as Vowpal Wabbit does; "pn" averages them.
    pub(super) fn is_adaptive(&self) -> bool {
        self.optimizer == Optimizer::Nag
    }

    /// Returns the learning rate. The defaults were the best compromise on held-out parts of six
    /// data sets, dense and sparse. The softmax and the logistic loss never reach zero and need
    /// larger steps.
    pub fn rate(&self) -> f64 {
        let default = match (self.optimizer, self.loss) {
            (Optimizer::Nag, _) => 0.5,
            (_, OaaLoss::Softmax | OaaLoss::Logistic) => 5.0,
            _ => 1.0,
        };
        self.learning_rate.unwrap_or(default)
    }

    /// Returns the initial weight of the constant feature. Each class is wrong for most examples;
    /// with -1 the hinge losses of these are zero from the start.
    pub(super) fn initial_bias(&self) -> f32 {
        match self.loss {
            OaaLoss::Hinge | OaaLoss::SquaredHinge if !self.is_adaptive() => -1.0,
            _ => 0.0,
        }
    }
}
