//! One-against-all scorers beside the trees.
//!
//! The trees find candidate labels, and how frequent they are among the training
//! examples of the same leaves; they do not look at a label by itself. A linear
//! scorer per label does, and the two err differently. This goes beyond the paper.
//! It costs O(K) per value, in training and in prediction.

use std::ops::Range;

use super::examples::Examples;
use super::params::{Params, ScorerLoss, Scorers};
use crate::classifier::{Classifier, FitOptions, Learner, OnlineModel, PredictOptions, Predictor};
use crate::control::Control;
use crate::data::{Batch, Rows, Scaling, Targets};
use crate::error::Result;
use crate::file::Bundle;
use crate::learners::oaa::{self, Oaa, OaaLoss};

/// Rows that are scored at a time.
const ROWS: usize = 64;
/// Added to the trees' score, so that the scorers can still raise a label that the
/// trees find unlikely.
pub const FLOOR: f32 = 0.01;

/// A linear scorer for each label.
pub type LabelScorers = OnlineModel<Oaa>;

/// Trains scorers, if the parameters want any.
pub fn train(
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
        Scorers::Auto => is_small && params.scorer_weight > 0.0,
        Scorers::None => false,
        Scorers::OneAgainstAll => true,
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
    let mut scorers = LabelScorers::create(options, examples.n_labels, is_sets)?;
    scorers.fit(batch, FitOptions::threads(n_threads), control)?;
    Ok(Some(scorers))
}

/// From a file, for a model of so many classes and features.
pub fn take(bundle: Bundle, n_classes: usize, n_features: usize) -> Result<LabelScorers> {
    let damaged = bundle.damaged("the scorers are of another shape");
    bundle.expect_kind(LabelScorers::KIND)?;
    let scorers = LabelScorers::from_bundle(bundle)?;
    if scorers.n_classes() != n_classes || scorers.n_features() != n_features {
        return Err(damaged);
    }
    Ok(scorers)
}

/// The margins of all labels' scorers for a few rows.
#[derive(Debug, Default)]
pub struct ScorerMargins {
    margins: Vec<f32>,
    rows: Range<usize>,
    n_labels: usize,
}

impl ScorerMargins {
    /// Computes the margins of the first of `rows` and some that follow, unless they
    /// are known.
    pub fn cover(
        &mut self,
        scorers: &LabelScorers,
        x: &Rows<'_>,
        rows: Range<usize>,
        control: &Control,
    ) -> Result<()> {
        if self.rows.contains(&rows.start) {
            return Ok(());
        }
        self.rows = rows.start..rows.end.min(rows.start + ROWS);
        self.n_labels = scorers.n_classes();
        self.margins.resize(self.rows.len() * self.n_labels, 0.0);
        let mut predictor = scorers.predictor(x, &PredictOptions::NONE, control)?;
        predictor.read(x, self.rows.clone(), control)?;
        predictor.all_scores(&mut self.margins, control)?;
        Ok(())
    }

    /// Joins a label's margin to its score by the trees: the loss of the label's
    /// presence is taken for a negative log likelihood.
    #[inline]
    pub fn join(&self, params: &Params, row: usize, label: u32, tree_score: f32) -> f32 {
        let margin = self.margin(row, label);
        if margin == f32::NEG_INFINITY {
            // Trees that were added later know labels that the scorers do not.
            return tree_score + FLOOR;
        }
        let loss = params.scorer_loss.loss_if_present(margin);
        let score = (tree_score + FLOOR) * (-(params.scorer_weight as f32) * loss).exp();
        // A score of 0 would be none.
        score.max(f32::MIN_POSITIVE)
    }

    #[inline]
    pub fn margin(&self, row: usize, label: u32) -> f32 {
        self.margins[(row - self.rows.start) * self.n_labels + label as usize]
    }
}
