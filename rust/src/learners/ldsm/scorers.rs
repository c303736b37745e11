//! The scorers beside the trees.
//!
//! The trees find candidate labels, and how frequent they are among the training
//! examples of the same leaves; they do not look at a label by itself. A linear
//! scorer per label does, and the two err differently. This goes beyond the paper.
//! One-against-all costs O(K) per value, in training and in prediction;
//! [`one_against_some`](super::one_against_some) does not.

use std::ops::Range;

use super::examples::Examples;
use super::join::Join;
use super::one_against_some::{Calibration, IndexMargins, OneAgainstSome};
use super::params::{Params, ScorerLoss, Scorers, SCORER_WEIGHT};
use crate::classifier::{
    Classifier, FitOptions, Learner, OnlineModel, PredictOptions, Predictor, Task,
};
use crate::control::Control;
use crate::data::{Batch, Rows, Scaling, Targets};
use crate::error::Result;
use crate::file::Bundle;
use crate::learners::oaa::{self, Oaa, OaaLoss};

/// Rows that are scored at a time.
const ROWS: usize = 64;
/// [`Join::floor`] of one-against-all.
pub const FLOOR: f32 = 0.01;

/// A linear scorer for each label.
#[derive(Debug, Clone)]
pub enum LabelScorers {
    OneAgainstAll(OnlineModel<Oaa>),
    OneAgainstSome(OneAgainstSome),
}

impl LabelScorers {
    /// About how many products they take.
    pub fn effort(&self, rows: &Rows<'_>, task: Task<'_>) -> usize {
        match self {
            Self::OneAgainstAll(scorers) => scorers.effort(rows, task),
            Self::OneAgainstSome(scorers) => rows.n_values().saturating_mul(scorers.weights_each()),
        }
    }

    /// How their margins are joined to the trees' scores.
    pub fn join(&self, params: &Params) -> Join {
        match self {
            Self::OneAgainstAll(_) => Join {
                loss: params.scorer_loss,
                floor: FLOOR,
                weight: params.scorer_weight.unwrap_or(SCORER_WEIGHT) as f32,
            },
            Self::OneAgainstSome(scorers) => scorers.join(params),
        }
    }

    /// How joined scores become probabilities, if they do.
    pub fn calibration(&self) -> Option<Calibration> {
        match self {
            Self::OneAgainstAll(_) => None,
            Self::OneAgainstSome(scorers) => Some(scorers.calibration()),
        }
    }

    pub fn to_bundle(&self) -> Bundle {
        match self {
            Self::OneAgainstAll(scorers) => scorers.to_bundle(),
            Self::OneAgainstSome(scorers) => scorers.to_bundle(),
        }
    }

    /// From a file, for a model of so many classes and features, and prepared rows of `width`
    /// columns.
    pub fn take(
        mut bundle: Bundle,
        n_classes: usize,
        n_features: usize,
        width: usize,
    ) -> Result<Self> {
        if bundle.kind() == OneAgainstSome::KIND {
            let scorers = OneAgainstSome::take(&mut bundle, n_classes, width)?;
            return Ok(Self::OneAgainstSome(scorers));
        }
        let damaged = bundle.damaged("the scorers are of another shape");
        bundle.expect_kind(OnlineModel::<Oaa>::KIND)?;
        let scorers = OnlineModel::<Oaa>::from_bundle(bundle)?;
        if scorers.n_classes() != n_classes || scorers.n_features() != n_features {
            return Err(damaged);
        }
        Ok(Self::OneAgainstAll(scorers))
    }
}

/// Trains one-against-all scorers, if the parameters want them.
pub fn train_one_against_all(
    params: &Params,
    batch: &Batch<'_>,
    examples: &Examples,
    n_threads: usize,
    control: &Control,
) -> Result<Option<LabelScorers>> {
    /// Most weights, two floats each, with `Scorers::Auto`: 2 GiB.
    const MOST_WEIGHTS: usize = 1 << 28;
    let columns = examples.width.min(examples.rows.n_values());
    let is_small = columns.saturating_mul(examples.n_labels) <= MOST_WEIGHTS;
    let wanted = match params.scorers {
        Scorers::Auto => is_small && params.scorer_weight != Some(0.0),
        Scorers::OneAgainstAll => true,
        Scorers::None | Scorers::OneAgainstSome => false,
    };
    if !wanted {
        return Ok(None);
    }
    let options = oaa::Params {
        scaling: match params.scaling {
            Scaling::Standard => Scaling::Standard,
            _ => Scaling::Auto,
        },
        loss: match params.scorer_loss {
            ScorerLoss::SquaredHinge => OaaLoss::SquaredHinge,
            ScorerLoss::Logistic => OaaLoss::Logistic,
        },
        n_bits: params.n_bits,
        seed: params.seed,
        ..oaa::Params::default()
    };
    let is_sets = matches!(batch.targets, Targets::Sets(_));
    let mut scorers = OnlineModel::<Oaa>::create(options, examples.n_labels, is_sets)?;
    scorers.fit(batch, FitOptions::threads(n_threads), control)?;
    Ok(Some(LabelScorers::OneAgainstAll(scorers)))
}

/// The margins of the current row.
#[derive(Debug)]
pub enum ScorerMargins<'a> {
    OneAgainstAll(AllMargins<'a>),
    OneAgainstSome(IndexMargins<'a>),
}

impl<'a> ScorerMargins<'a> {
    pub fn new(scorers: &'a LabelScorers) -> Self {
        match scorers {
            LabelScorers::OneAgainstAll(scorers) => Self::OneAgainstAll(AllMargins {
                scorers,
                margins: Vec::new(),
                rows: 0..0,
                row: 0,
            }),
            LabelScorers::OneAgainstSome(scorers) => {
                Self::OneAgainstSome(IndexMargins::new(scorers))
            }
        }
    }

    #[inline]
    pub fn margin(&self, label: u32) -> f32 {
        match self {
            Self::OneAgainstAll(margins) => margins.margin(label),
            Self::OneAgainstSome(margins) => margins.margin(label),
        }
    }
}

/// The margins of all labels' one-against-all scorers for a few rows.
#[derive(Debug)]
pub struct AllMargins<'a> {
    scorers: &'a OnlineModel<Oaa>,
    margins: Vec<f32>,
    rows: Range<usize>,
    /// The current one of these.
    row: usize,
}

impl AllMargins<'_> {
    /// Makes the first of `rows` the current one. Computes its margins and those of some rows
    /// that follow, unless they are known.
    pub fn read(&mut self, x: &Rows<'_>, rows: Range<usize>, control: &Control) -> Result<()> {
        self.row = rows.start;
        if self.rows.contains(&rows.start) {
            return Ok(());
        }
        self.rows = rows.start..rows.end.min(rows.start + ROWS);
        let n_labels = self.scorers.n_classes();
        self.margins.resize(self.rows.len() * n_labels, 0.0);
        let mut predictor = self.scorers.predictor(x, &PredictOptions::NONE, control)?;
        predictor.read(x, self.rows.clone(), control)?;
        predictor.all_scores(&mut self.margins, control)?;
        Ok(())
    }

    #[inline]
    fn margin(&self, label: u32) -> f32 {
        let n_labels = self.scorers.n_classes();
        self.margins[(self.row - self.rows.start) * n_labels + label as usize]
    }
}
