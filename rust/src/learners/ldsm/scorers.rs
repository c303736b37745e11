//! One-against-all scorers beside the trees.
//!
//! The trees find which labels come into question, and how likely they are where
//! similar examples went; they do not look at a label by itself. A linear scorer
//! per label does, and the two err differently. This goes beyond the paper.

use super::{Examples, Params, ScorerLoss, Scorers};
use crate::classifier::{Classifier, FitOptions, Learner, OnlineModel, PredictOptions, Predictor};
use crate::control::Control;
use crate::data::{Batch, Targets};
use crate::data::{Rows, Scaling};
use crate::error::Result;
use crate::learners::oaa::{self, Oaa, OaaLoss};

/// Rows that are scored at a time.
pub const ROWS: usize = 64;
/// Added to the trees' score, so that a label which they find unlikely, but
/// possible, stays within the scorers' reach.
pub const FLOOR: f32 = 0.01;

/// Learns a scorer for every label, if the options want any.
pub fn learn(
    params: &Params,
    batch: &Batch<'_>,
    examples: &Examples,
    n_threads: usize,
    control: &Control,
) -> Result<Option<OnlineModel<Oaa>>> {
    /// Weights at most, two floats each, where it is ours to decide: 2 GiB.
    const MOST_WEIGHTS: usize = 1 << 28;
    let columns = examples.width.min(examples.n_values());
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
    let mut scorers = OnlineModel::<Oaa>::create(options, examples.n_labels, is_sets)?;
    scorers.fit(batch, FitOptions::threads(n_threads), control)?;
    Ok(Some(scorers))
}

/// What the scorers of all labels say of a few rows.
#[derive(Debug, Default)]
pub struct Verdicts {
    scores: Vec<f32>,
    /// The first of these rows.
    from: usize,
    n_labels: usize,
}

impl Verdicts {
    /// Scores `n` rows from `from` on.
    pub fn score(
        &mut self,
        scorers: &OnlineModel<Oaa>,
        rows: &Rows<'_>,
        from: usize,
        n: usize,
        control: &Control,
    ) -> Result<()> {
        (self.from, self.n_labels) = (from, scorers.n_classes());
        self.scores.resize(n * self.n_labels, 0.0);
        let mut predictor = scorers.predictor(rows, &PredictOptions::NONE, control)?;
        predictor.read(rows, from..from + n, control)?;
        predictor.all_scores(&mut self.scores, control)?;
        Ok(())
    }

    /// How likely a label of `row` is there.
    #[inline]
    pub fn chance(&self, params: &Params, row: usize, label: u32) -> f32 {
        params.scorer_loss.chance(self.margin(row, label))
    }

    /// Adds the verdict on a label of `row` to what the trees say: the loss of the
    /// label's being there, as if it were a log-likelihood.
    #[inline]
    pub fn weigh(&self, params: &Params, row: usize, label: u32, tree_score: f32) -> f32 {
        let margin = self.margin(row, label);
        if margin == f32::NEG_INFINITY {
            // Trees that were added know of labels that the scorers never met.
            return tree_score + FLOOR;
        }
        let loss = params.scorer_loss.of_present(margin);
        let score = (tree_score + FLOOR) * (-(params.scorer_weight as f32) * loss).exp();
        // Low as it may be, it is a score.
        score.max(f32::MIN_POSITIVE)
    }

    #[inline]
    fn margin(&self, row: usize, label: u32) -> f32 {
        self.scores[(row - self.from) * self.n_labels + label as usize]
    }
}
