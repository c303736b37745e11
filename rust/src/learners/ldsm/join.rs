//! How a label's score by the trees and its scorer's margin become one score.

use crate::linear::bounded_score;

/// `(t + floor) exp(-weight loss(z))` of the trees' score t and the margin z: the loss of the
/// label's presence is taken for a negative log likelihood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Join {
    /// Added to the trees' score, so that the scorers can still raise a label that the
    /// trees find unlikely.
    pub floor: f32,
    pub weight: f32,
}

impl Join {
    /// The squared hinge loss of a margin where the label is present.
    #[inline]
    pub fn loss_if_present(margin: f32) -> f32 {
        (1.0 - margin).max(0.0).powi(2)
    }

    #[inline]
    pub fn score(self, tree_score: f32, margin: f32) -> f32 {
        if margin == f32::NEG_INFINITY {
            // Trees that were added later know labels that the scorers do not.
            return tree_score + self.floor;
        }
        let loss = Self::loss_if_present(bounded_score(margin));
        let score = (tree_score + self.floor) * (-self.weight * loss).exp();
        // A score of 0 would be none.
        score.max(f32::MIN_POSITIVE)
    }

    /// The least margin with which a label that no tree names may have a score of `bar` or more.
    pub fn least_margin(self, bar: f32) -> f32 {
        /// More than what rounding adds to a score.
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

    /// What the score is at most. Takes no exp, so that the many labels that are far below the
    /// best cost little.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn upper_bound(self, tree_score: f32, margin: f32) -> f32 {
        /// More than what rounding adds to a score.
        const SLACK: f32 = 1.0 + 1e-5;
        let loss = if margin == f32::NEG_INFINITY {
            0.0
        } else {
            Self::loss_if_present(margin)
        };
        // exp(u) >= (1 + u / 64)^64.
        let mut power = 1.0 + self.weight * loss / 64.0;
        for _ in 0..6 {
            power *= power;
        }
        let bound = (tree_score + self.floor) * SLACK / power;
        // As in a score.
        if bound > f32::MIN_POSITIVE {
            bound
        } else {
            f32::MIN_POSITIVE
        }
    }
}
