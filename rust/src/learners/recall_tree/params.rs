//! Parameters of the Recall Tree.

use serde::{Deserialize, Serialize};

use crate::classifier::Schedule;
use crate::data::Batch;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};

/// The learner's name in messages.
pub(super) const NAME: &str = "Recall Tree";

/// How the scorers of the candidates learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScorerLoss {
    /// Cross-entropy of the softmax over the candidates: these learn jointly.
    Softmax,
    /// The label's score must exceed its best rival's by `margin`; the two learn.
    Margin,
    /// (y - p)^2, for each candidate by itself, as all that follow.
    Squared,
    /// ln(1 + exp(-y p))
    Logistic,
    /// |y - p| / 2
    Quantile,
    /// max(0, 1 - y p)
    Hinge,
    /// max(0, 1 - y p)^2 / 2
    SquaredHinge,
}

impl ScorerLoss {
    /// The loss of a single candidate, where they learn one by one.
    pub fn single(self) -> Option<Loss> {
        match self {
            Self::Softmax | Self::Margin => None,
            Self::Squared => Some(Loss::Squared),
            Self::Logistic => Some(Loss::Logistic),
            Self::Quantile => Some(Loss::Quantile),
            Self::Hinge => Some(Loss::Hinge),
            Self::SquaredHinge => Some(Loss::SquaredHinge),
        }
    }
}

/// What the scorers see of the path through the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathFeatures {
    /// Nothing.
    None,
    /// One indicator for each node, the root excluded.
    All,
    /// An indicator of the final node alone.
    NodeOnly,
}

/// How much an example counts for a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouterImportance {
    /// Its weight, as in the authors' program.
    None,
    /// The difference of the entropies of routing left and right, as in the paper.
    Entropy,
}

/// The number of classes that F and D are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassCount {
    /// 2^H, H the entropy of the labels in bits, where they are known beforehand.
    Effective,
    /// All.
    All,
}

/// Every parameter; [`Params::check`] refuses values out of range. The Python class
/// documents them for users and says where the defaults come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// F: candidates of a node, at most K; overrules `candidates_per_level`.
    pub max_candidates: Option<u32>,
    /// F as a multiple of ceil(log2 K).
    pub candidates_per_level: f64,
    /// D; overrules `depth_share`.
    pub max_depth: Option<u32>,
    /// D as a share of the levels of a full tree over the classes, rounded up.
    pub depth_share: f64,
    /// How many classes F and D are for.
    pub class_count: ClassCount,
    /// Multiplier of the recall bound; 0: descend to the full depth.
    pub bern_hyper: f64,
    /// Children of a node.
    pub arity: u32,
    /// Loss of the scorers.
    pub loss: ScorerLoss,
    /// By how much the label's score must be ahead: taken off it in the softmax,
    /// the gap that the margin loss wants.
    pub margin: f64,
    /// Loss of the routers. None: that of the scorers where it is one of a
    /// single regressor, else hinge.
    pub router_loss: Option<Loss>,
    /// Step direction of routers and scorers.
    pub optimizer: Optimizer,
    /// Scaling of the examples.
    pub scaling: Scaling,
    /// Columns are hashed into 2^`n_bits`, if given.
    pub n_bits: Option<u32>,
    /// Step size of the scorers. None: by optimiser and loss.
    pub learning_rate: Option<f64>,
    /// Step size of the routers. None: by optimiser.
    pub router_rate: Option<f64>,
    /// How fast steps shrink; 0: they do not.
    pub decay: f64,
    /// How much an example counts for a router.
    pub router_importance: RouterImportance,
    /// Whether training examples are routed at random near a router's border.
    pub randomized_routing: bool,
    /// Whether a node's histogram is of the examples that the routers sent there
    /// before they learned from them, as they will those to be predicted. False:
    /// afterwards, as in the paper.
    pub honest: bool,
    /// Whether a node that has seen fewer labels than it may have candidates
    /// takes further ones from the nodes above.
    pub back_off: bool,
    /// What the scorers see of the path through the tree.
    pub path_features: PathFeatures,
    /// Final nodes whose candidates compete in a prediction.
    pub beam_size: u32,
    /// Weight of the path's log-probability in the score, with a beam.
    pub path_weight: f64,
    /// Examples that the scorers learn from at once, as they stood before them.
    pub batch_size: u32,
    /// Passes of `fit`.
    #[serde(flatten)]
    pub schedule: Schedule,
}

impl Params {
    /// Refuses values out of range and options that do not go together.
    pub fn check(self) -> Result<Self> {
        self.schedule.check()?;
        let positive = |name, value: Option<f64>| match value {
            Some(value) if !(value > 0.0 && (value as f32).is_finite()) => {
                let allowed = "a number above 0, below 3e38, or None";
                Err(Error::parameter(name, value, allowed))
            }
            _ => Ok(()),
        };
        let not_negative = |name, value: f64| {
            if value >= 0.0 && (value as f32).is_finite() {
                Ok(())
            } else {
                Err(Error::parameter(name, value, "from 0 to 3e38"))
            }
        };
        positive("depth_share", Some(self.depth_share))?;
        positive("candidates_per_level", Some(self.candidates_per_level))?;
        positive("learning_rate", self.learning_rate)?;
        positive("router_rate", self.router_rate)?;
        not_negative("decay", self.decay)?;
        not_negative("bern_hyper", self.bern_hyper)?;
        not_negative("path_weight", self.path_weight)?;
        not_negative("margin", self.margin)?;
        for (name, value, from, to) in [
            (
                "max_candidates",
                self.max_candidates.unwrap_or(1),
                1,
                u32::MAX,
            ),
            ("max_depth", self.max_depth.unwrap_or(1), 0, MOST_LEVELS),
            ("arity", self.arity, 2, MOST_CHILDREN),
            ("beam_size", self.beam_size, 1, MOST_PATHS),
            ("batch_size", self.batch_size, 1, MOST_EXAMPLES),
        ] {
            if !(from..=to).contains(&value) {
                return Err(Error::parameter(
                    name,
                    value,
                    format!("from {from} to {to}"),
                ));
            }
        }
        if self.is_adaptive() {
            let needs = |name, value: String, what| {
                Err(Error::parameter(
                    name,
                    value,
                    format!("{what} where optimizer is \"nag\" or \"adagrad\""),
                ))
            };
            if self.loss.single().is_none() {
                let loss = format!("{:?}", self.loss).to_lowercase();
                return needs("loss", loss, "the loss of a single regressor");
            }
            if self.batch_size > 1 {
                return needs("batch_size", self.batch_size.to_string(), "1");
            }
        }
        Ok(self)
    }

    /// F for labels of `bits` of entropy.
    pub fn candidates(&self, n_classes: usize, bits: f64) -> usize {
        let default = self.candidates_per_level * bits.ceil();
        let most = self.max_candidates.map_or(default as usize, |f| f as usize);
        most.clamp(1, n_classes)
    }

    /// D for labels of `bits` of entropy.
    pub fn depth(&self, bits: f64) -> u32 {
        let levels = bits / f64::from(self.arity).log2();
        let share = (self.depth_share * levels).ceil() as u32;
        self.max_depth.unwrap_or(share.min(MOST_LEVELS))
    }

    /// Entropy, in bits, of the labels of `batch`, or of classes that all occur
    /// equally often.
    pub fn label_bits(&self, batch: &Batch<'_>, n_classes: usize) -> Result<f64> {
        if self.class_count == ClassCount::All {
            return Ok(uniform_bits(n_classes));
        }
        let mut counts = vec![0.0; n_classes];
        let labels = batch.one_label_each(NAME)?.as_slice();
        for i in batch.present() {
            counts[labels[i as usize] as usize] += f64::from(batch.weight(i as usize));
        }
        let total: f64 = counts.iter().sum();
        let shares = counts.iter().filter(|&&c| c > 0.0).map(|c| c / total);
        let bits: f64 = shares.map(|p| -p * p.log2()).sum();
        // Rounding must not add a level to classes that are all alike.
        Ok(bits.min(uniform_bits(n_classes)))
    }

    /// Loss of the routers.
    pub fn router_loss(&self) -> Loss {
        let scorers = self.loss.single();
        self.router_loss.or(scorers).unwrap_or(Loss::Hinge)
    }

    /// Whether a weight carries sums of its own; the rate then falls by itself.
    pub fn is_adaptive(&self) -> bool {
        matches!(self.optimizer, Optimizer::Nag | Optimizer::Adagrad)
    }

    /// Step size of the routers.
    pub fn router_rate(&self) -> f64 {
        let default = if self.is_adaptive() { 0.5 } else { 1.0 };
        self.router_rate.unwrap_or(default)
    }

    /// Step size of the scorers. Losses that are never satisfied need larger steps.
    pub fn scorer_rate(&self) -> f64 {
        let default = match (self.is_adaptive(), self.loss) {
            (true, _) => 0.5,
            (_, ScorerLoss::Softmax | ScorerLoss::Logistic) => 9.0,
            _ => 1.0,
        };
        self.learning_rate.unwrap_or(default)
    }

    /// How fast the steps of routers and scorers shrink; those of the adaptive
    /// optimisers do by themselves.
    pub fn decay(&self) -> f64 {
        if self.is_adaptive() {
            0.0
        } else {
            self.decay
        }
    }
}

/// Entropy, in bits, of `n_classes` that occur equally often.
pub fn uniform_bits(n_classes: usize) -> f64 {
    (n_classes as f64).log2()
}

/// Beyond any use: 2^60 nodes.
const MOST_LEVELS: u32 = 60;
/// Routers are compared one by one.
const MOST_CHILDREN: u32 = 16;
/// Beyond it scoring all classes is cheaper.
const MOST_PATHS: u32 = 1024;
/// Beyond it there is nothing to gain.
const MOST_EXAMPLES: u32 = 4096;
