//! The parameters, and what follows from them.

use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// The loss of all classes together.
    pub enum OaaLoss {
        /// [`Loss::Squared`], each class for itself.
        Squared = "squared",
        /// [`Loss::Logistic`], each class for itself.
        Logistic = "logistic",
        /// [`Loss::Quantile`], each class for itself.
        Quantile = "quantile",
        /// [`Loss::Hinge`], each class for itself.
        Hinge = "hinge",
        /// [`Loss::SquaredHinge`], each class for itself.
        SquaredHinge = "squared_hinge",
        /// Cross-entropy of the softmax over all classes: these learn jointly.
        Softmax = "softmax",
    }
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

params! {
    /// Every parameter. The Python class documents them for users.
    pub struct Params online(5) check check_together {
        /// What is minimised.
        loss: OaaLoss = OaaLoss::SquaredHinge;
        /// How steps are taken.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size; none: the optimizer's own default.
        learning_rate: Option<f64> = None, Range::POSITIVE;
        /// Wrong classes to learn per example, each with the weight of K/`n_negatives`;
        /// none: all of them, with weight 1.
        n_negatives: Option<u32> = None, Range::COUNT;
        /// After `fit` weights smaller than this are dropped, and the others held sparsely; none:
        /// all are kept.
        prune: Option<f64> = None, Range::POSITIVE;
    }
}

impl Params {
    fn check_together(&self) -> Result<()> {
        if self.loss == OaaLoss::Softmax {
            if self.is_adaptive() {
                return Err(Error::parameter(
                    "optimizer",
                    format!("{:?}", self.optimizer).to_lowercase(),
                    "\"pn\" where loss is \"softmax\"",
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
        if let Some(prune) = self.prune {
            let conflict = match (self.loss, self.early_stopping) {
                (OaaLoss::Softmax, _) => Some("loss is \"softmax\", whose classes learn together"),
                (_, true) => Some("early_stopping is on, which compares all classes in each pass"),
                _ => None,
            };
            if let Some(conflict) = conflict {
                return Err(Error::parameter(
                    "prune",
                    prune,
                    format!("None where {conflict}"),
                ));
            }
        }
        if self.n_bits.is_some() && self.scaling == Scaling::Standard {
            return Err(Error::parameter(
                "scaling",
                "\"standard\"",
                "\"auto\", \"row\" or \"none\" where n_bits is given",
            ));
        }
        Ok(())
    }

    /// Whether a weight carries sums of its own: the rate then falls by itself, and predictions use
    /// the last weights as Vowpal Wabbit's do. With "pn" they use an average.
    pub(super) fn is_adaptive(&self) -> bool {
        self.optimizer == Optimizer::Nag
    }

    /// The learning rate in use. The defaults were the best compromise on
    /// held-out parts of six data sets, dense and sparse; losses that are
    /// never satisfied need larger steps.
    pub fn rate(&self) -> f64 {
        let default = match (self.optimizer, self.loss) {
            (Optimizer::Nag, _) => 0.5,
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
