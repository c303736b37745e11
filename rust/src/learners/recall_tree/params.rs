//! Parameters of the Recall Tree.

use crate::data::Batch;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};
use crate::model::PredictOptions;
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// How the scorers of the candidates learn.
    pub enum ScorerLoss {
        /// Cross-entropy of the softmax over the candidates: these learn jointly.
        Softmax = "softmax",
        /// The label's score must exceed its best rival's by `margin`; the two learn.
        Margin = "margin",
        /// (y - p)^2, for each candidate by itself, as all that follow.
        Squared = "squared",
        /// ln(1 + exp(-y p))
        Logistic = "logistic",
        /// |y - p| / 2
        Quantile = "quantile",
        /// max(0, 1 - y p)
        Hinge = "hinge",
    }
}

impl ScorerLoss {
    /// The loss of a single regressor, where candidates learn one by one, as in the paper.
    pub fn single(self) -> Option<Loss> {
        match self {
            Self::Softmax | Self::Margin => None,
            Self::Squared => Some(Loss::Squared),
            Self::Logistic => Some(Loss::Logistic),
            Self::Quantile => Some(Loss::Quantile),
            Self::Hinge => Some(Loss::Hinge),
        }
    }
}

choices! {
    /// What the scorers see of the path through the tree.
    pub enum PathFeatures {
        /// Nothing.
        None = "none",
        /// One indicator for each node, the root excluded.
        All = "all",
        /// An indicator of the final node alone.
        NodeOnly = "node_only",
    }
}

choices! {
    /// How much an example counts for a router.
    pub enum RouterImportance {
        /// Its weight, as in the authors' program.
        None = "none",
        /// The difference of the entropies of routing left and right, as in the paper.
        Entropy = "entropy",
    }
}

params! {
    /// Every parameter. The Python class documents them for users and says where the
    /// defaults come from.
    pub struct Params online(5) check check_together {
        /// F: candidates of a node, at most K. None: 4 ceil(log2 K), K as effective classes.
        max_candidates: Option<u32> = None, Range::COUNT;
        /// D: levels below the root. None: three quarters of log2 K, rounded up.
        max_depth: Option<u32> = None, Range::from(0.0).to(MAX_LEVELS);
        /// Multiplier of the recall bound; 0: descend to the full depth.
        bern_hyper: f64 = 4.0, Range::NOT_NEGATIVE;
        /// Loss of the scorers. With those of a single regressor the routers have it, too, and
        /// all step as in Vowpal Wabbit ("nag"); with the others routers have the hinge loss,
        /// and all take preconditioned steps ("pn").
        loss: ScorerLoss = ScorerLoss::Softmax;
        /// By how much the label's score must be ahead: taken off it in the softmax,
        /// the gap that the margin loss wants.
        margin: f64 = 4.0, Range::NOT_NEGATIVE;
        /// Step size of the scorers, and of the routers where they have the same loss. None: by
        /// loss.
        learning_rate: Option<f64> = None, Range::POSITIVE;
        /// How much an example counts for a router.
        router_importance: RouterImportance = RouterImportance::Entropy;
        /// Whether the tree is the paper's: nodes count the examples that the routers sent there
        /// after they learned from them, and for ever; the stop rule compares the bounds alone; a
        /// node has its own candidates alone; F and D are for all classes, D all of log2 K.
        ///
        /// Else counts are of the examples that came there before, as those to be predicted
        /// will, and fade in a stream as labels arrive; the stop rule compares a child with its
        /// parent on the examples that reached both; a node of few labels takes further
        /// candidates from the nodes above; F and D are for the effective number of classes, 2^H
        /// with H the entropy of the labels in bits, where they are known beforehand.
        paper_tree: bool = false;
        /// What the scorers see of the path through the tree.
        path_features: PathFeatures = PathFeatures::None;
        /// Final nodes whose candidates compete in a prediction. With more than 1024,
        /// scoring all classes is cheaper.
        beam_size: u32 = 4, Range::from(1.0).to(1024.0);
        /// Weight of the path's log-probability in the score, with a beam.
        path_weight: f64 = 0.5, Range::NOT_NEGATIVE;
    }
}

/// Candidates of a node for each bit of the labels' entropy, as in the paper.
const CANDIDATES_PER_BIT: usize = 4;

/// D as a share of the levels of a full tree over the classes: the last ones cost time and gain
/// nothing.
const DEPTH_SHARE: f64 = 0.75;

/// Beyond any use: 2^60 nodes.
const MAX_LEVELS: f64 = 60.0;

impl Params {
    /// Refuses path features where the scorers have no columns for them.
    fn check_together(&self) -> Result<()> {
        if self.path_features != PathFeatures::None && self.loss.single().is_none() {
            let features = format!("{:?}", self.path_features).to_lowercase();
            let allowed = "\"none\" where loss is \"softmax\" or \"margin\"";
            return Err(Error::parameter("path_features", features, allowed));
        }
        Ok(())
    }

    /// With the beam of one prediction, where that sets one.
    #[must_use]
    pub fn with_beam(&self, options: &PredictOptions) -> Self {
        Self {
            beam_size: options.beam_size.unwrap_or(self.beam_size),
            path_weight: options.path_weight.unwrap_or(self.path_weight),
            ..self.clone()
        }
    }

    /// F for labels of `bits` of entropy.
    pub fn candidates(&self, n_classes: usize, bits: f64) -> usize {
        let default = CANDIDATES_PER_BIT * bits.ceil() as usize;
        let most = self.max_candidates.map_or(default, |f| f as usize);
        most.clamp(1, n_classes)
    }

    /// D for labels of `bits` of entropy.
    pub fn depth(&self, bits: f64) -> u32 {
        let share = if self.paper_tree { 1.0 } else { DEPTH_SHARE };
        self.max_depth.unwrap_or((share * bits).ceil() as u32)
    }

    /// Entropy, in bits, of the labels of `batch`, or of classes that all occur
    /// equally often.
    pub fn label_bits(&self, batch: &Batch<'_>, n_classes: usize) -> f64 {
        if self.paper_tree {
            return uniform_bits(n_classes);
        }
        let mut counts = vec![0.0; n_classes];
        let labels = batch.labels();
        for i in batch.present() {
            counts[labels[i as usize] as usize] += f64::from(batch.weight(i as usize));
        }
        let total: f64 = counts.iter().sum();
        let shares = counts.iter().filter(|&&c| c > 0.0).map(|c| c / total);
        let bits: f64 = shares.map(|p| -p * p.log2()).sum();
        // Rounding must not add a level to classes that are all alike.
        bits.min(uniform_bits(n_classes))
    }

    /// Loss of the routers.
    pub fn router_loss(&self) -> Loss {
        self.loss.single().unwrap_or(Loss::Hinge)
    }

    /// Step direction of the routers, and of scorers that learn one by one.
    pub fn optimizer(&self) -> Optimizer {
        match self.loss.single() {
            Some(_) => Optimizer::Nag,
            None => Optimizer::Pn,
        }
    }

    /// Step size of the routers, and how fast it shrinks; adaptive steps do by themselves.
    pub fn router_rate(&self) -> (f64, f64) {
        match self.loss.single() {
            Some(_) => (self.scorer_rate(), 0.0),
            None => (1.0, 1.0),
        }
    }

    /// Step size of the scorers. The softmax is never satisfied and needs larger steps.
    pub fn scorer_rate(&self) -> f64 {
        self.learning_rate.unwrap_or(match self.loss {
            ScorerLoss::Softmax => 9.0,
            ScorerLoss::Margin => 1.0,
            _ => 0.5,
        })
    }
}

/// Entropy, in bits, of `n_classes` that occur equally often.
pub fn uniform_bits(n_classes: usize) -> f64 {
    (n_classes as f64).log2()
}
