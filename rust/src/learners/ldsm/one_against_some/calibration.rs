//! Probabilities from joined scores.
//!
//! A logistic function of the logarithm of the score (Platt, "Probabilistic Outputs for Support
//! Vector Machines", 1999), fitted to the labels of highest score of held-out rows: these are the
//! ones that are read and that a threshold decides on, and all others together would outweigh
//! them. Labels that are no candidate do not matter: what is fitted is how often a label of such a
//! score is there.

use super::super::join::Join;
use super::join_fit::{top_candidates, FitRow};
use crate::alloc::{extend, push};
use crate::metrics::{Shares, N_SHARING};

/// The probability that a label of score s is there: 1 / (1 + exp(-offset) s^-slope).
#[derive(Debug, Clone, Copy, PartialEq)]
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
/// A tenth of a label's deviation from [`Calibration::default`]: with nothing but right labels
/// there would be no end to the slope.
const RIDGE: f64 = 0.1;
const MOST_STEPS: usize = 100;

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

    /// Fits it to the best labels of `rows`, by Newton steps on the likelihood, which is concave.
    pub fn fit(rows: &[FitRow], join: Join, n_labels: usize) -> Self {
        let mut points = Vec::new();
        for row in rows {
            for (score, is_own) in top_candidates::<TOP>(row, join) {
                push(
                    &mut points,
                    (f64::from(score).ln(), is_own, f64::from(row.1)),
                );
            }
        }
        let (mut offset, mut slope) = (0.0, 1.0);
        for _ in 0..MOST_STEPS {
            // Gradient, and minus the second derivatives.
            let mut by_offset = -RIDGE * offset;
            let mut by_slope = -RIDGE * (slope - 1.0);
            let (mut offset_2, mut mixed, mut slope_2) = (RIDGE, 0.0, RIDGE);
            for &(log, is_own, weight) in &points {
                let probability = 1.0 / (1.0 + f64::exp(-offset - slope * log));
                let rest = weight * (f64::from(u8::from(is_own)) - probability);
                let curvature = weight * probability * (1.0 - probability);
                by_offset += rest;
                by_slope += rest * log;
                offset_2 += curvature;
                mixed += curvature * log;
                slope_2 += curvature * log * log;
            }
            let determinant = offset_2 * slope_2 - mixed * mixed;
            let steps = (
                (slope_2 * by_offset - mixed * by_slope) / determinant,
                (offset_2 * by_slope - mixed * by_offset) / determinant,
            );
            let longest = steps.0.abs().max(steps.1.abs());
            // Far away the parabola tells little.
            let share = 1.0 / longest.max(1.0);
            offset += share * steps.0;
            slope += share * steps.1;
            if longest < 1e-7 {
                break;
            }
        }
        let found = Self {
            offset: offset as f32,
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
        let (mut logits, mut is_right, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let mut of_row = [f32::NEG_INFINITY; N_SHARING];
            let mut is_first_own = false;
            let best = top_candidates::<N_SHARING>(row, join).enumerate();
            for (place, (score, is_own)) in best {
                let probability = self.probability(score).min(1.0 - f32::EPSILON / 2.0);
                of_row[place] = probability.ln() - (-probability).ln_1p();
                is_first_own |= place == 0 && is_own;
            }
            extend(&mut logits, of_row);
            push(&mut is_right, is_first_own);
            push(&mut weights, f64::from(row.1));
        }
        Shares::fit(&logits, &is_right, &weights, n_labels)
    }
}
