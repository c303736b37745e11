//! How a label's score by another model and its scorer's margin become one score, and that a
//! probability.

use serde::{Deserialize, Serialize};

use crate::linear::bounded_score;
use crate::metrics::{Line, Outcome, RankedScores, Scale, Shares, N_SHARING};

/// `(t + floor) exp(-weight loss(z))` of the other model's score t and the margin z: the loss of
/// the label's presence is taken for a negative log likelihood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Added to the score, so that the scorers can still raise a label that the other model finds
    /// unlikely.
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
    pub fn score(self, score_before: f32, margin: f32) -> f32 {
        if margin == f32::NEG_INFINITY {
            // The other model may know labels that the scorers do not.
            return score_before + self.floor;
        }
        let loss = Self::loss_if_present(bounded_score(margin));
        let score = (score_before + self.floor) * (-self.weight * loss).exp();
        // A score of 0 would be none.
        score.max(f32::MIN_POSITIVE)
    }

    /// The least margin with which a label that the other model does not name may have a score of `bar` or more.
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
    #[inline]
    pub fn upper_bound(self, score_before: f32, margin: f32) -> f32 {
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
        let bound = (score_before + self.floor) * SLACK / power;
        // As in a score.
        if bound > f32::MIN_POSITIVE {
            bound
        } else {
            f32::MIN_POSITIVE
        }
    }
}

/// A label of a row that may be among its best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The score by a model that has not learned the row.
    pub score_before: f32,
    /// The margin without the row's own part in it.
    pub margin: f32,
    /// Whether the row has the label.
    pub is_own: bool,
}

/// A row that the join is fitted on.
#[derive(Debug, Clone, Default)]
pub struct FitRow {
    pub candidates: Vec<Candidate>,
    /// Importance of the row.
    pub weight: f32,
}

/// A join and what it is worth: P@1 + P@3 + P@5 of all rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedJoin {
    pub join: Join,
    pub gain: f64,
}

/// What the weight may become.
const WEIGHTS: [f32; 9] = [0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
/// What the floor may become; with a smaller one the other model can rule a label out.
const FLOORS: [f32; 5] = [0.001, 0.003, 0.01, 0.03, 0.1];
/// Without rows to fit on.
const NO_ROWS: Join = Join {
    floor: 0.01,
    weight: 0.5,
};
/// Places of a ranking that count: the first is in all of P@1, P@3 and P@5.
const GAINS: [f64; 5] = [23.0 / 15.0, 8.0 / 15.0, 8.0 / 15.0, 0.2, 0.2];

/// The join of the largest P@1 + P@3 + P@5. Takes rows x candidates for each point of the grid.
pub fn fit(rows: &[FitRow]) -> FittedJoin {
    let mut best = FittedJoin {
        join: NO_ROWS,
        gain: 0.0,
    };
    for weight in WEIGHTS {
        for floor in FLOORS {
            let join = Join { floor, weight };
            let gain = rows.iter().map(|row| gain(row, join)).sum();
            if gain > best.gain {
                best = FittedJoin { join, gain };
            }
        }
    }
    best
}

/// What the five best candidates of a row are worth.
fn gain(row: &FitRow, join: Join) -> f64 {
    let top = top_candidates::<{ GAINS.len() }>(row, join).zip(GAINS);
    let gains = top.filter(|((_, is_own), _)| *is_own);
    let gained: f64 = gains.map(|(_, gain)| gain).sum();
    gained * f64::from(row.weight)
}

/// The `N` candidates of highest score, falling, and whether the row has them; of equal ones
/// those which came first.
pub fn top_candidates<const N: usize>(
    row: &FitRow,
    join: Join,
) -> impl Iterator<Item = (f32, bool)> {
    let mut top = [(f32::NEG_INFINITY, false); N];
    for candidate in &row.candidates {
        // Most candidates are far from the best, and need no exp.
        if join.upper_bound(candidate.score_before, candidate.margin) <= top[N - 1].0 {
            continue;
        }
        let mut new = (
            join.score(candidate.score_before, candidate.margin),
            candidate.is_own,
        );
        for place in &mut top {
            if new.0 > place.0 {
                std::mem::swap(place, &mut new);
            }
        }
    }
    top.into_iter()
        .take_while(|&(score, _)| score > f32::NEG_INFINITY)
}

/// The probability that a label of score s is there: 1 / (1 + exp(-offset) s^-slope).
///
/// A logistic function of the logarithm of the score, fitted to the labels of highest score of
/// held-out rows: these are the ones that are read and that a threshold decides on, and all others
/// together would outweigh them. Labels that are no candidate do not matter: what is fitted is how
/// often a label of such a score is there.
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
const N_CALIBRATED: usize = 10;
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
            let best = top_candidates::<N_CALIBRATED>(row, join);
            points.extend(best.map(|(score, is_own)| Outcome {
                row: score.ln().into(),
                is_right: is_own,
                weight: row.weight.into(),
            }));
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
            scores.extend(of_row);
            is_right.push(is_first_own);
            weights.push(f64::from(row.weight));
        }
        let ranked = RankedScores {
            scores: &scores,
            width: N_SHARING,
            scale: Scale::Probability,
        };
        Shares::fit(ranked, &is_right, &weights, n_labels)
    }
}
