//! Logistic regression on two numbers: the fit behind every calibration.

use serde::{Deserialize, Serialize};

/// What is fitted: a row of any kind, what its probability is to be, and its share of the weights.
pub type Target<R> = (R, f64, f64);

/// Weight of half the squared distance from where the search began, beside a mean over rows.
const RIDGE: f64 = 1e-4;
/// How far from there the logarithm of a slope may go, and what is added.
const REACH: [f64; 2] = [8.0, 300.0];
const MOST_STEPS: usize = 100;
/// Shorter steps end the search.
const SHORT: f64 = 1e-6;

/// The logistic function of a line: `slope * x + intercept` is the logit of a probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Above 0: a larger x has the larger probability.
    pub slope: f64,
    /// The logit where x is 0.
    pub intercept: f64,
}

impl Default for Line {
    /// The logistic function itself.
    fn default() -> Self {
        Self {
            slope: 1.0,
            intercept: 0.0,
        }
    }
}

impl Line {
    /// Platt scaling (J. Platt, *Probabilistic Outputs for Support Vector Machines*, 1999) of
    /// `points`: x, whether the event happened, and a weight. Takes O(points) per step of the fit.
    pub fn fit(points: &[(f64, bool, f64)]) -> Self {
        let total: f64 = points.iter().map(|point| point.2).sum();
        if points.is_empty() || total <= 0.0 {
            return Self::default();
        }
        let mean = points.iter().map(|p| p.0 * p.2).sum::<f64>() / total;
        let squares = points.iter().map(|p| p.2 * (p.0 - mean).powi(2));
        let spread = (squares.sum::<f64>() / total).sqrt();
        let spread = if spread > 0.0 { spread } else { 1.0 };
        let targets = targets(points.iter().copied());
        let [log_slope, shift] = fit_logistic([0.0, 0.0], &targets, |point, row| {
            let slanted = point[0].exp() * (row.0 - mean) / spread;
            (slanted + point[1], [slanted, 1.0])
        });
        let slope = log_slope.exp() / spread;
        Self {
            slope,
            intercept: shift - slope * mean,
        }
    }

    /// The probability of the event at `x`.
    #[inline]
    pub fn probability(self, x: f64) -> f64 {
        1.0 / (1.0 + (-self.slope * x - self.intercept).exp())
    }

    /// Whether the numbers can be a line's, as those of a file may not.
    pub fn is_sound(self) -> bool {
        self.slope.is_finite() && self.slope > 0.0 && self.intercept.is_finite()
    }
}

/// The targets of `rows`, each with whether the event happened and a weight.
///
/// As in Platt scaling one row more is right and one wrong, so that a few rows that are all right
/// do not make a model sure. Weights become shares of their sum.
pub fn targets<R>(rows: impl Iterator<Item = (R, bool, f64)> + Clone) -> Vec<Target<R>> {
    let n = rows.clone().count() as f64;
    let total: f64 = rows.clone().map(|row| row.2).sum();
    let right = rows.clone().filter(|row| row.1);
    let n_right = n * right.map(|row| row.2).sum::<f64>() / total;
    let of_right = (n_right + 1.0) / (n_right + 2.0);
    let of_wrong = 1.0 / (n - n_right + 2.0);
    let mut targets = Vec::new();
    for (row, is_right, weight) in rows {
        let target = if is_right { of_right } else { of_wrong };
        targets.push((row, target, weight / total));
    }
    targets
}

/// The two numbers at which the logistic function of what `logit` makes of them and a row fits the
/// rows' targets best: by Fisher scoring, with Levenberg's and Marquardt's damping. `logit` also
/// returns the derivatives by the two numbers.
pub fn fit_logistic<R>(
    start: [f64; 2],
    rows: &[Target<R>],
    logit: impl Fn([f64; 2], &Target<R>) -> (f64, [f64; 2]),
) -> [f64; 2] {
    // The loss, minus its gradient, and the curvature.
    let measure = |point: [f64; 2]| {
        let away = [point[0] - start[0], point[1] - start[1]];
        let mut loss = 0.5 * RIDGE * (away[0] * away[0] + away[1] * away[1]);
        let mut down = away.map(|away| -RIDGE * away);
        let mut curvature = [RIDGE, 0.0, RIDGE];
        for row in rows {
            let (logit, by) = logit(point, row);
            let (target, weight) = (row.1, row.2);
            let probability = 1.0 / (1.0 + (-logit).exp());
            loss += weight * (logit.max(0.0) + (-logit.abs()).exp().ln_1p() - target * logit);
            let pull = weight * (target - probability);
            let bend = weight * probability * (1.0 - probability);
            down = [down[0] + pull * by[0], down[1] + pull * by[1]];
            for (curvature, by) in
                curvature
                    .iter_mut()
                    .zip([by[0] * by[0], by[0] * by[1], by[1] * by[1]])
            {
                *curvature += bend * by;
            }
        }
        (loss, down, curvature)
    };
    let (mut point, mut damping) = (start, 1e-3);
    let mut here = measure(point);
    for _ in 0..MOST_STEPS {
        let (loss, down, [first, mixed, second]) = here;
        let (first, second) = (first * (1.0 + damping), second * (1.0 + damping));
        let determinant = first * second - mixed * mixed;
        let steps = [
            (second * down[0] - mixed * down[1]) / determinant,
            (first * down[1] - mixed * down[0]) / determinant,
        ];
        let next = [0, 1].map(|i| {
            let (low, high) = (start[i] - REACH[i], start[i] + REACH[i]);
            (point[i] + steps[i]).clamp(low, high)
        });
        let longest = (next[0] - point[0]).abs().max((next[1] - point[1]).abs());
        let there = measure(next);
        if there.0 <= loss {
            (point, here) = (next, there);
            damping *= 0.2;
        } else {
            damping = 8.0 * damping.max(1e-6);
        }
        if longest < SHORT {
            break;
        }
    }
    point
}
