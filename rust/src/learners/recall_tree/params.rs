//! Parameters of the Recall Tree.

use crate::classifier::PredictOptions;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};
use crate::params::Range;
use crate::tree::NodeId;
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
        /// max(0, 1 - y p)^2 / 2
        SquaredHinge = "squared_hinge",
    }
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

impl PathFeatures {
    /// The nodes of a path that have an indicator. For `All`, the root has none.
    pub(super) fn nodes(self, path: &[NodeId]) -> &[NodeId] {
        match self {
            Self::None => &[],
            Self::All => &path[1..],
            Self::NodeOnly => &path[path.len().saturating_sub(1)..],
        }
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

choices! {
    /// The number of classes that F and D are chosen for.
    pub enum ClassCount {
        /// 2^H, H the entropy of the labels in bits, where they are known beforehand.
        Effective = "effective",
        /// All.
        All = "all",
    }
}

params! {
    /// Every parameter. The Python class documents them for users and says where the
    /// defaults come from.
    pub struct Params online(5) check check_together {
        /// F: candidates of a node, at most K; overrules `candidates_per_level`.
        max_candidates: Option<u32> = None, Range::COUNT;
        /// F as a multiple of ceil(log2 K).
        candidates_per_level: f64 = 4.0, Range::POSITIVE;
        /// D; overrules `depth_share`.
        max_depth: Option<u32> = None, Range::from(0.0).to(MAX_LEVELS);
        /// D as a share of the levels of a full tree over the classes, rounded up.
        depth_share: f64 = 0.75, Range::POSITIVE;
        /// How many classes F and D are for.
        class_count: ClassCount = ClassCount::Effective;
        /// Multiplier of the recall bound; 0: descend to the full depth.
        bern_hyper: f64 = 4.0, Range::NOT_NEGATIVE;
        /// Children of a node.
        arity: u32 = 2, Range::from(2.0).to(16.0);
        /// Loss of the scorers.
        loss: ScorerLoss = ScorerLoss::Softmax;
        /// By how much the label's score must be ahead: taken off it in the softmax,
        /// the gap that the margin loss wants.
        margin: f64 = 4.0, Range::NOT_NEGATIVE;
        /// Loss of the routers. None: that of the scorers where it is one of a
        /// single regressor, else hinge.
        router_loss: Option<Loss> = None;
        /// Step direction of routers and scorers.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size of the scorers. None: by optimiser and loss.
        learning_rate: Option<f64> = None, Range::POSITIVE;
        /// Step size of the routers. None: by optimiser.
        router_rate: Option<f64> = None, Range::POSITIVE;
        /// How fast steps shrink; 0: they do not.
        decay: f64 = 1.0, Range::NOT_NEGATIVE;
        /// How much an example counts for a router.
        router_importance: RouterImportance = RouterImportance::Entropy;
        /// Whether training examples are routed at random near a router's border.
        randomized_routing: bool = false;
        /// Whether a node's histogram is of the examples that the routers sent there
        /// before they learned from them, as they will those to be predicted, and fades in a
        /// stream as labels arrive. False: afterwards, and for ever, as in the paper.
        honest: bool = true;
        /// Whether a node that has seen fewer labels than it may have candidates
        /// takes further ones from the nodes above.
        back_off: bool = true;
        /// What the scorers see of the path through the tree.
        path_features: PathFeatures = PathFeatures::None;
        /// Step of an indicator of the path as a share of a feature's, where the optimiser is
        /// not adaptive: there indicators are features like the others.
        indicator_rate: f64 = 0.1, Range::POSITIVE;
        /// Final nodes whose candidates compete in a prediction. With more than 1024,
        /// scoring all classes is cheaper.
        beam_size: u32 = 4, Range::from(1.0).to(1024.0);
        /// Weight of the path's log-probability in the score, with a beam.
        path_weight: f64 = 0.5, Range::NOT_NEGATIVE;
        /// Examples that the scorers learn from at once, as they stood before them.
        batch_size: u32 = 1, Range::from(1.0).to(4096.0);
    }
}

impl Params {
    /// Refuses what the adaptive optimisers do not go with.
    fn check_together(&self) -> Result<()> {
        let needs = |name, value: String, what| {
            let allowed = format!("{what} where optimizer is \"nag\" or \"adagrad\"");
            Err(Error::parameter(name, value, allowed))
        };
        if self.is_adaptive() && self.loss.single().is_none() {
            let loss = format!("{:?}", self.loss).to_lowercase();
            return needs("loss", loss, "the loss of a single regressor");
        }
        if self.is_adaptive() && self.batch_size > 1 {
            return needs("batch_size", self.batch_size.to_string(), "1");
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
        let default = self.candidates_per_level * bits.ceil();
        let most = self.max_candidates.map_or(default as usize, |f| f as usize);
        most.clamp(1, n_classes)
    }

    /// D for labels of `bits` of entropy.
    pub fn depth(&self, bits: f64) -> u32 {
        let levels = bits / f64::from(self.arity).log2();
        let share = (self.depth_share * levels).ceil();
        self.max_depth.unwrap_or(share.min(MAX_LEVELS) as u32)
    }

    /// Entropy, in bits, of the labels of `batch`, or of classes that all occur
    /// equally often.
    pub fn label_bits(&self, batch: &Batch<'_>, n_classes: usize) -> f64 {
        if self.class_count == ClassCount::All {
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
const MAX_LEVELS: f64 = 60.0;
