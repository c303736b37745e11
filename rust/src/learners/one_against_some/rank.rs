//! The best labels of a row, by scores of another model joined with the margins of scorers.
//!
//! The candidates of a row are the labels with a score by the other model or with a weight for a
//! feature of the row. If the index has the largest weights only, they are the best by the scores
//! and by the scores joined with these weights. The model decides which of the two applies, not the
//! rows that are predicted together: a prediction depends on its row alone.

use serde::{Deserialize, Serialize};

use super::dense::{DenseWeights, BLOCK};
use super::weights::{LabelWeights, RowMargins};
use crate::data::{PackedLists, RaggedRows};
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::linear::bounded_score;
use crate::metrics::Shares;
use crate::model::{keep_best, TopK};
use crate::persist;

/// The final score `(t + floor) exp(-weight loss(z))` of a label with the other model's score t and
/// the margin z: the loss of the label's presence stands for a negative log likelihood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Added to the score, so that scorers can still raise a label that the other model finds
    /// unlikely.
    pub floor: f32,
    pub weight: f32,
}

/// Returns the squared hinge loss of a margin if the label is present; 0 without a scorer.
pub fn loss_if_present(margin: f32) -> f32 {
    if margin == f32::NEG_INFINITY {
        return 0.0;
    }
    (1.0 - margin).max(0.0).powi(2)
}

impl Join {
    pub fn score(self, score_before: f32, margin: f32) -> f32 {
        if margin == f32::NEG_INFINITY {
            // The other model may know labels that have no scorer.
            return score_before + self.floor;
        }
        let loss = loss_if_present(bounded_score(margin));
        let score = (score_before + self.floor) * (-self.weight * loss).exp();
        // A score of 0 would mean that there is none.
        score.max(f32::MIN_POSITIVE)
    }

    /// Returns the least margin with which a label without a score by the other model may reach a
    /// score of `bar`.
    pub fn least_margin(self, bar: f32) -> f32 {
        /// More than rounding adds to a score.
        const SLACK: f64 = 1.0 + 1e-4;
        if bar <= f32::MIN_POSITIVE {
            return f32::NEG_INFINITY;
        }
        let loss = (f64::from(self.floor) * SLACK / f64::from(bar)).ln() / f64::from(self.weight);
        if loss >= 0.0 {
            (1.0 - loss.sqrt()) as f32
        } else {
            f32::INFINITY
        }
    }

    /// Returns an upper bound of the score without computing an exponential, so that the many
    /// labels far below the best are cheap.
    pub fn upper_bound(self, score_before: f32, margin: f32) -> f32 {
        /// More than rounding adds to a score.
        const SLACK: f32 = 1.0 + 1e-5;
        let loss = loss_if_present(margin);
        // exp(u) >= (1 + u / 64)^64.
        let mut power = 1.0 + self.weight * loss / 64.0;
        for _ in 0..6 {
            power *= power;
        }
        let bound = (score_before + self.floor) * SLACK / power;
        // Written so that NaN gives the least score, too.
        if bound > f32::MIN_POSITIVE {
            bound
        } else {
            f32::MIN_POSITIVE
        }
    }
}

/// The probability 1 / (1 + exp(-offset) s^-slope) of a label with the final score s: a logistic
/// function of the logarithm of the score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub offset: f32,
    pub slope: f32,
    /// The map from these probabilities to shares of one, for rows that have one label each. By
    /// default the probabilities are divided by their sum.
    pub shares: Shares,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            offset: 0.0,
            slope: 1.0,
            shares: Shares::default(),
        }
    }
}

impl Calibration {
    pub fn probability(self, score: f32) -> f32 {
        let logit = self.offset + self.slope * score.ln();
        // A probability of 0 would mean that there is no score.
        (1.0 / (1.0 + (-logit).exp())).max(f32::MIN_POSITIVE)
    }

    /// Returns a final score below which the probability is not above `probability`.
    pub fn least_score(self, probability: f32) -> f32 {
        /// More than rounding changes a score.
        const SLACK: f64 = 1e-3;
        let p = f64::from(probability.clamp(0.0, 1.0));
        let logit = (p / (1.0 - p)).ln() - f64::from(self.offset);
        ((logit / f64::from(self.slope)).exp() * (1.0 - SLACK)) as f32
    }

    /// Returns whether the numbers are valid.
    pub fn is_sound(self) -> bool {
        let is_slope = self.slope.is_finite() && self.slope > 0.0;
        self.offset.is_finite() && is_slope && self.shares.is_sound()
    }
}

/// The trained scorers: weights, the join with the other model's scores, and the calibration.
#[derive(Debug, Clone, Default)]
pub struct OneAgainstSome {
    pub weights: LabelWeights,
    pub join: Join,
    pub calibration: Calibration,
    /// The power of inverse document frequencies that scaled the features in training; the weights
    /// include the scales.
    pub idf_power: f64,
    /// C of the problems that the scorers solve.
    pub cost: f64,
}

persist!(OneAgainstSome {
    Scores biases = weights.biases;
    Meta index_threshold = weights.index_threshold;
    Meta join;
    Meta calibration;
    Meta idf_power;
    Meta cost;
});

impl OneAgainstSome {
    const KIND: &'static str = "one_against_some";
    /// With dense weights the kind is another one, so that older programs refuse the file.
    const DENSE_KIND: &'static str = "one_against_some_dense";

    pub fn to_bundle(&self) -> Bundle {
        let has_dense = !self.weights.dense.is_empty();
        let kind = if has_dense {
            Self::DENSE_KIND
        } else {
            Self::KIND
        };
        let mut bundle = Bundle::new(kind);
        self.put(&mut bundle);
        bundle.nest("weights", self.weights.lists.to_bundle());
        if has_dense {
            bundle.nest("dense", self.weights.dense.to_bundle());
        }
        bundle
    }

    /// Reads scorers from a file, for rows of `width` columns, the constant among them.
    pub fn take(bundle: &mut Bundle, n_classes: usize, width: usize) -> Result<Self> {
        let mut scorers = Self::default();
        if bundle.kind() == Self::DENSE_KIND {
            let mut dense = bundle.unnest("dense")?;
            scorers.weights.dense = DenseWeights::take(&mut dense, n_classes, width - 1)?;
        } else {
            bundle.expect_kind(Self::KIND)?;
        }
        scorers.weights.n_features = width - 1;
        scorers.weights.lists = PackedLists::take(bundle, "weights", n_classes, 1, width - 1)?;
        scorers.fill(bundle)?;
        let LabelWeights {
            biases,
            index_threshold,
            dense,
            ..
        } = &scorers.weights;
        let Join { floor, weight } = scorers.join;
        let factors = [floor.into(), weight.into(), scorers.idf_power, scorers.cost];
        let is_sound = biases.len() == n_classes
            && biases.iter().all(|&bias| bias < f32::INFINITY)
            && index_threshold.is_none_or(f32::is_finite)
            && (index_threshold.is_none() || dense.is_empty())
            && factors.iter().all(|&x| x.is_finite() && x >= 0.0)
            && scorers.calibration.is_sound();
        let what = "scorers differ in number from the labels or are out of range";
        bundle.require(is_sound, what)?;
        Ok(scorers)
    }
}

/// The labels of one row that have a score above 0, and their scores.
#[derive(Debug)]
pub struct LabelScores {
    scores: Vec<f32>,
    /// The labels with a score.
    touched: Vec<u32>,
}

impl LabelScores {
    /// Creates an empty list of scores of `n_labels` labels.
    pub fn new(n_labels: usize) -> Self {
        Self {
            scores: vec![0.0; n_labels],
            touched: Vec::new(),
        }
    }

    /// Removes all scores, for the next row.
    pub fn clear(&mut self) {
        for label in self.touched.drain(..) {
            self.scores[label as usize] = 0.0;
        }
    }

    /// Adds histogram `i` of `histograms`, times `scale`.
    pub fn add(&mut self, histograms: &PackedLists, i: usize, scale: f32) {
        histograms.for_each(i, |label, [count]| {
            let score = &mut self.scores[label as usize];
            if *score == 0.0 {
                self.touched.push(label);
            }
            // Above 0, however small: a score of 0 means that the label has none yet.
            *score += (count * scale).max(f32::MIN_POSITIVE);
        });
    }

    /// Sets the score, above 0, of a label that has none.
    pub fn set(&mut self, label: u32, score: f32) {
        self.touched.push(label);
        self.scores[label as usize] = score;
    }

    /// Returns the scores by label, 0 for labels without one.
    pub fn by_label(&self) -> &[f32] {
        &self.scores
    }

    /// Calls `visit` with each label that has a score, and the score, in an order that stays the
    /// same until [`Self::clear`].
    pub fn for_each(&self, mut visit: impl FnMut(u32, f32)) {
        for &label in &self.touched {
            visit(label, self.scores[label as usize]);
        }
    }
}

/// Number of candidates taken by the other model's scores, and of those taken by the bounds from
/// the largest weights. The former are needed because the largest weights say little about a label
/// that follows from many small ones.
pub const N_CANDIDATES: usize = 64;

/// Final scores of one row after the other, all by the same scorers; kept between uses.
#[derive(Debug, Default)]
pub struct Ranker {
    margins: RowMargins,
    /// Candidates and their scores by the other model, highest first, if the index is not complete.
    candidates: Vec<(u32, f32)>,
    /// The candidates with the highest bounds by the largest weights, and these, in any order.
    by_bound: Vec<(u32, f32)>,
}

impl Ranker {
    /// Makes row `i` of `rows` with the other model's `scores` the current one. Rows are read in
    /// their order, because some work is done for several of them together.
    pub fn read(
        &mut self,
        scorers: &OneAgainstSome,
        rows: &RaggedRows,
        i: usize,
        scores: &LabelScores,
    ) {
        if i.is_multiple_of(BLOCK) {
            let block = i..rows.len().min(i + BLOCK);
            let block = block.map(|i| rows.row(i));
            self.margins.read_block(&scorers.weights, block);
        }
        self.margins.read_next(&scorers.weights, rows.row(i), i);
        if !scorers.weights.is_index_complete() {
            self.find_candidates(scorers, scores);
        }
    }

    /// Returns the final score of a label of the current row, from its score by the other model.
    pub fn score(&self, scorers: &OneAgainstSome, label: u32, score: f32) -> f32 {
        let margin = self.margins.margin(&scorers.weights, label);
        scorers.join.score(score, margin)
    }

    /// Calls `visit` with each candidate of the current row and its score by the other model,
    /// except for some whose final score is below `bar`.
    pub fn for_each_label(
        &self,
        scorers: &OneAgainstSome,
        scores: &LabelScores,
        bar: f32,
        mut visit: impl FnMut(u32, f32),
    ) {
        let (join, weights) = (scorers.join, &scorers.weights);
        if !weights.is_index_complete() {
            let candidates = self.candidates.iter();
            return candidates.for_each(|&(label, score)| visit(label, score));
        }
        scores.for_each(&mut visit);
        let least = join.least_margin(bar);
        self.margins.for_each_above(weights, least, |label, _| {
            if scores.by_label()[label as usize] == 0.0 {
                visit(label, 0.0);
            }
            least
        });
    }

    /// Adds the best labels of the current row to `top`.
    pub fn best(&self, scorers: &OneAgainstSome, scores: &LabelScores, top: &mut TopK) {
        let (join, weights, margins) = (scorers.join, &scorers.weights, &self.margins);
        if !weights.is_index_complete() {
            for &(label, score) in &self.candidates {
                // Scorers raise a score by the floor at most.
                if score + join.floor < top.bar() {
                    break;
                }
                top.push(label, self.score(scorers, label, score));
            }
            return;
        }
        // Labels with a score by the other model come first: few others reach the bar that they set.
        scores.for_each(|label, score| {
            let margin = margins.index_margin(weights, label);
            if join.upper_bound(score, margin) >= top.bar() {
                top.push(label, join.score(score, margin));
            }
        });
        let mut least = join.least_margin(top.bar());
        margins.for_each_above(weights, least, |label, margin| {
            if scores.by_label()[label as usize] == 0.0 {
                top.push(label, join.score(0.0, margin));
                least = join.least_margin(top.bar());
            }
            least
        });
    }

    /// Returns the candidates with the highest bounds, and these, if the index is not complete.
    pub fn by_bound(&self) -> &[(u32, f32)] {
        &self.by_bound
    }

    /// Finds the candidates of the current row if the index is not complete.
    fn find_candidates(&mut self, scorers: &OneAgainstSome, scores: &LabelScores) {
        let (weights, by_label) = (&scorers.weights, scores.by_label());
        let (candidates, by_bound) = (&mut self.candidates, &mut self.by_bound);
        candidates.clear();
        scores.for_each(|label, score| candidates.push((label, score)));
        let bound = |label, score| {
            let margin = self.margins.index_margin(weights, label);
            (label, scorers.join.upper_bound(score, margin))
        };
        by_bound.clear();
        by_bound.extend(candidates.iter().map(|&(label, score)| bound(label, score)));
        self.margins.for_each_found(weights, |label, _| {
            if by_label[label as usize] == 0.0 {
                by_bound.push(bound(label, 0.0));
            }
        });
        keep_best(candidates, N_CANDIDATES);
        keep_best(by_bound, N_CANDIDATES);
        let labels = by_bound.iter().map(|&(label, _)| label);
        candidates.extend(labels.map(|label| (label, by_label[label as usize])));
        candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        candidates.dedup();
    }
}
