//! Parameters of the Recall Tree.

use std::f64::consts::LN_2;

use crate::data::Batch;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};
use crate::model::PredictOptions;
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// Loss of the scorers.
    pub enum ScorerLoss {
        /// Cross-entropy of the softmax over the candidates, which learn jointly.
        Softmax = "softmax",
        /// The score of the label must exceed that of its best rival by `margin`. These two learn.
        Margin = "margin",
        /// (y - p)^2. With this loss and those below, each candidate learns on its own.
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
    /// Returns the loss of one regressor if candidates learn one by one, as in the paper.
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
    /// Features of the path for the scorers.
    pub enum PathFeatures {
        /// No features.
        None = "none",
        /// One indicator for each node, the root excluded.
        All = "all",
        /// One indicator, for the final node.
        NodeOnly = "node_only",
    }
}

choices! {
    /// Importance of an example for a router.
    pub enum RouterImportance {
        /// The weight of the example, as in the authors' program.
        None = "none",
        /// The difference between routing left and right in the sum of the children's entropies,
        /// each times the weight of its examples.
        Entropy = "entropy",
        /// The same difference in the average entropy, as in the paper (Section 2, Figure 2b).
        AverageEntropy = "average_entropy",
    }
}

choices! {
    /// Form of the recall bound, by its term that falls like 1/m for m examples. L is the
    /// multiplier.
    pub enum RecallBound {
        /// 15 L / (sqrt(18) m), as in the authors' program.
        Vw = "vw",
        /// L / m, as in the paper (Eq. 1).
        Paper = "paper",
    }
}

params! {
    /// The parameters. The Python class documents them for users.
    pub struct Params online(5) check check_together {
        /// F, the number of candidates of a node, at most K. None: 4 ceil(H), with H the entropy of
        /// the labels in bits.
        max_candidates: Option<u32> = None, Range::COUNT;
        /// D, the number of levels below the root. None: three quarters of H, rounded up.
        max_depth: Option<u32> = None, Range::from(0.0).to(MAX_LEVELS);
        /// Multiplier of the recall bound. With 0, paths go on to the full depth.
        bern_hyper: f64 = 4.0, Range::NOT_NEGATIVE;
        /// Form of the recall bound.
        recall_bound: RecallBound = RecallBound::Vw;
        /// Loss of the scorers. With "softmax" and "margin", routers have the hinge loss and all
        /// steps are preconditioned ("pn"). With the other losses, routers have the same loss and
        /// all steps are those of Vowpal Wabbit ("nag").
        loss: ScorerLoss = ScorerLoss::Softmax;
        /// Required lead of the score of the label. The softmax subtracts it from that score before
        /// a step; the margin loss is 0 beyond it.
        margin: f64 = 4.0, Range::NOT_NEGATIVE;
        /// Step size of the scorers, and of the routers if they have the same loss. None: depends on
        /// the loss.
        learning_rate: Option<f64> = None, Range::POSITIVE;
        /// Importance of an example for a router.
        router_importance: RouterImportance = RouterImportance::Entropy;
        /// If true, the tree is that of the paper. Nodes count the examples that their routers sent
        /// there after learning from them, and counts do not fade. The stop rule compares only the
        /// bounds. A node has its own candidates only. F and D are those of K equally frequent
        /// labels, and D is all of log2 K.
        ///
        /// If false, nodes count the examples that came there before routers learned from them, as
        /// rows to be predicted will, and counts fade as labels arrive in a stream. The stop rule
        /// compares a child with its parent on the examples that reached both. A node of few labels
        /// takes further candidates from the nodes above. F and D follow the entropy of the labels
        /// if it is known beforehand.
        paper_tree: bool = false;
        /// Features of the path for the scorers.
        path_features: PathFeatures = PathFeatures::None;
        /// Number of final nodes whose candidates compete in a prediction. With more than 1024,
        /// scoring all classes would be cheaper.
        beam_size: u32 = 4, Range::from(1.0).to(1024.0);
        /// Weight of the log-probability of the path in a score, with a beam.
        path_weight: f64 = 0.5, Range::NOT_NEGATIVE;
    }
}

/// Candidates of a node for each bit of entropy of the labels, as in the paper.
const CANDIDATES_PER_BIT: usize = 4;

/// D as a share of the levels of a full tree over the labels. The last levels cost time and gain
/// nothing.
const DEPTH_SHARE: f64 = 0.75;

/// Limit of D; a tree of 60 levels could have 2^60 nodes.
const MAX_LEVELS: f64 = 60.0;

impl Params {
    /// Refuses path features if the scorers have no columns for them.
    fn check_together(&self) -> Result<()> {
        if self.path_features != PathFeatures::None && self.loss.single().is_none() {
            let features = format!("{:?}", self.path_features).to_lowercase();
            let allowed = "\"none\" where loss is \"softmax\" or \"margin\"";
            return Err(Error::parameter("path_features", features, allowed));
        }
        Ok(())
    }

    /// Returns the parameters with the beam of one prediction, if `options` sets it.
    #[must_use]
    pub fn with_beam(&self, options: &PredictOptions) -> Self {
        Self {
            beam_size: options.beam_size.unwrap_or(self.beam_size),
            path_weight: options.path_weight.unwrap_or(self.path_weight),
            ..self.clone()
        }
    }

    /// Returns F for labels with an entropy of `bits`.
    pub fn candidates(&self, n_classes: usize, bits: f64) -> usize {
        let default = CANDIDATES_PER_BIT * bits.ceil() as usize;
        let f = self.max_candidates.map_or(default, |f| f as usize);
        f.clamp(1, n_classes)
    }

    /// Returns D for labels with an entropy of `bits`.
    pub fn depth(&self, bits: f64) -> u32 {
        let share = if self.paper_tree { 1.0 } else { DEPTH_SHARE };
        self.max_depth.unwrap_or((share * bits).ceil() as u32)
    }

    /// Returns the entropy of the labels of `batch` in bits or, for the paper's tree, that of
    /// classes that are equally frequent. The entropy of a part of the rows is too low, and is
    /// corrected (Miller 1955).
    pub fn label_bits(&self, batch: &Batch<'_>, n_classes: usize, is_part: bool) -> f64 {
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
        let mut bits: f64 = shares.map(|p| -p * p.log2()).sum();
        if is_part {
            let n_seen = counts.iter().filter(|&&c| c > 0.0).count() as f64;
            bits += (n_seen - 1.0).max(0.0) / (2.0 * LN_2 * batch.rows.n_rows() as f64);
        }
        // Rounding must not add a level if all classes are equally frequent.
        bits.min(uniform_bits(n_classes))
    }

    /// Returns the loss of the routers.
    pub fn router_loss(&self) -> Loss {
        self.loss.single().unwrap_or(Loss::Hinge)
    }

    /// Returns the optimizer of the routers, and of scorers that learn one by one.
    pub fn optimizer(&self) -> Optimizer {
        match self.loss.single() {
            Some(_) => Optimizer::Nag,
            None => Optimizer::Pn,
        }
    }

    /// Returns the step size of the routers and its decay. Adaptive steps shrink without decay.
    pub fn router_rate(&self) -> (f64, f64) {
        match self.loss.single() {
            Some(_) => (self.scorer_rate(), 0.0),
            None => (1.0, 1.0),
        }
    }

    /// Returns the step size of the scorers. The softmax needs larger steps.
    pub fn scorer_rate(&self) -> f64 {
        self.learning_rate.unwrap_or(match self.loss {
            ScorerLoss::Softmax => 9.0,
            ScorerLoss::Margin => 1.0,
            _ => 0.5,
        })
    }
}

/// Returns the entropy, in bits, of `n_classes` equally frequent classes.
pub fn uniform_bits(n_classes: usize) -> f64 {
    (n_classes as f64).log2()
}
