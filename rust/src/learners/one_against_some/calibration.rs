//! Probabilities from joined scores.
//!
//! A logistic function of the logarithm of the score, fitted to the labels of highest score of
//! held-out rows: these are the ones that are read and that a threshold decides on, and all others
//! together would outweigh them. Labels that are no candidate do not matter: what is fitted is how
//! often a label of such a score is there.

use serde::{Deserialize, Serialize};

use super::join::{top_candidates, FitRow, Join};
use crate::alloc::{extend, push};
use crate::metrics::{Line, RankedScores, Scale, Shares, N_SHARING};

/// The probability that a label of score s is there: 1 / (1 + exp(-offset) s^-slope).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub offset: f32,
    pub slope: f32,
    /// Where each row has one label: how labels share its probability, by these probabilities.
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

/// Labels of a row that count.
const TOP: usize = 10;
/// Probabilities grow with the score, however little.
const LEAST_SLOPE: f64 = 0.01;

impl Calibration {
    #[inline]
    pub fn probability(self, score: f32) -> f32 {
        let logit = self.offset + self.slope * score.ln();
        // A probability of 0 would be no score.
        (1.0 / (1.0 + (-logit).exp())).max(f32::MIN_POSITIVE)
    }

    /// Whether it can be one.
    pub fn is_sound(self) -> bool {
        let is_slope = self.slope.is_finite() && self.slope > 0.0;
        self.offset.is_finite() && is_slope && self.shares.is_sound()
    }

    /// Fits it to the best labels of `rows`.
    pub fn fit(rows: &[FitRow], join: Join, n_labels: usize) -> Self {
        let mut points = Vec::new();
        for row in rows {
            let best = top_candidates::<TOP>(row, join);
            let point =
                |(score, is_own): (f32, bool)| (score.ln().into(), is_own, row.weight.into());
            best.for_each(|candidate| push(&mut points, point(candidate)));
        }
        let Line { slope, intercept } = Line::fit(&points);
        let found = Self {
            offset: intercept as f32,
            slope: slope.max(LEAST_SLOPE) as f32,
            shares: Shares::default(),
        };
        if !found.is_sound() {
            return Self::default();
        }
        let shares = found.fit_shares(rows, join, n_labels);
        Self {
            shares: shares.unwrap_or_default(),
            ..found
        }
    }

    /// [`shares`](Self::shares) for these probabilities.
    fn fit_shares(self, rows: &[FitRow], join: Join, n_labels: usize) -> Option<Shares> {
        let (mut scores, mut is_right, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let mut of_row = [0.0; N_SHARING];
            let mut is_first_own = false;
            let best = top_candidates::<N_SHARING>(row, join).enumerate();
            for (place, (score, is_own)) in best {
                of_row[place] = self.probability(score);
                is_first_own |= place == 0 && is_own;
            }
            extend(&mut scores, of_row);
            push(&mut is_right, is_first_own);
            push(&mut weights, f64::from(row.weight));
        }
        let ranked = RankedScores {
            scores: &scores,
            width: N_SHARING,
            scale: Scale::Probability,
        };
        Shares::fit(ranked, &is_right, &weights, n_labels)
    }
}
