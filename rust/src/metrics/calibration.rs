//! The fit behind every calibration, logistic regression on two numbers, and the slope of a softmax.

use serde::{Deserialize, Serialize};

/// A row of any kind, or what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<R> {
    /// The row.
    pub row: R,
    /// Whether what was predicted of it is right.
    pub is_right: bool,
    /// Its weight.
    pub weight: f64,
}

/// What is fitted.
pub struct Target<R> {
    /// The row.
    pub row: R,
    /// What its probability is to be.
    pub probability: f64,
    /// Its share of the weights.
    pub weight: f64,
}

/// Weight of half the squared distance from where the search began, beside a mean over rows.
const RIDGE: f64 = 1e-4;
/// How far from there the logarithm of a slope may go, and what is added.
const MAX_DISTANCE: [f64; 2] = [8.0, 300.0];
const MAX_STEPS: usize = 100;
/// Shorter steps end the search.
const MIN_STEP: f64 = 1e-6;

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
    /// the outcomes at numbers x. Takes O(points) per step of the fit.
    pub fn fit(points: &[Outcome<f64>]) -> Self {
        let total: f64 = points.iter().map(|point| point.weight).sum();
        if points.is_empty() || total <= 0.0 {
            return Self::default();
        }
        let mean = points.iter().map(|p| p.row * p.weight).sum::<f64>() / total;
        let squares = points.iter().map(|p| p.weight * (p.row - mean).powi(2));
        let spread = (squares.sum::<f64>() / total).sqrt();
        let spread = if spread > 0.0 { spread } else { 1.0 };
        let targets = targets(points.to_vec());
        let [log_slope, shift] = fit_logistic([0.0, 0.0], &targets, |point, row| {
            let slanted = point[0].exp() * (row - mean) / spread;
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

/// The targets of `rows`.
///
/// As in Platt scaling one row more is right and one wrong, so that a few rows that are all right
/// do not make a model sure. Weights become shares of their sum.
pub fn targets<R>(rows: Vec<Outcome<R>>) -> Vec<Target<R>> {
    let n = rows.len() as f64;
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    let right = rows.iter().filter(|row| row.is_right);
    let n_right = n * right.map(|row| row.weight).sum::<f64>() / total;
    let of_right = (n_right + 1.0) / (n_right + 2.0);
    let of_wrong = 1.0 / (n - n_right + 2.0);
    let target = |outcome: Outcome<R>| Target {
        row: outcome.row,
        probability: if outcome.is_right { of_right } else { of_wrong },
        weight: outcome.weight / total,
    };
    rows.into_iter().map(target).collect()
}

/// The two numbers at which the logistic function of what `logit` makes of them and a row fits the
/// rows' targets best: by Fisher scoring, with Levenberg's and Marquardt's damping. `logit` also
/// returns the derivatives by the two numbers.
pub fn fit_logistic<R>(
    start: [f64; 2],
    rows: &[Target<R>],
    logit: impl Fn([f64; 2], &R) -> (f64, [f64; 2]),
) -> [f64; 2] {
    // The loss, minus its gradient, and the curvature.
    let measure = |point: [f64; 2]| {
        let away = [point[0] - start[0], point[1] - start[1]];
        let mut loss = 0.5 * RIDGE * (away[0] * away[0] + away[1] * away[1]);
        let mut down = away.map(|away| -RIDGE * away);
        let mut curvature = [RIDGE, 0.0, RIDGE];
        for row in rows {
            let (logit, by) = logit(point, &row.row);
            let (target, weight) = (row.probability, row.weight);
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
    for _ in 0..MAX_STEPS {
        let (loss, down, [first, mixed, second]) = here;
        let (first, second) = (first * (1.0 + damping), second * (1.0 + damping));
        let determinant = first * second - mixed * mixed;
        let steps = [
            (second * down[0] - mixed * down[1]) / determinant,
            (first * down[1] - mixed * down[0]) / determinant,
        ];
        let next = [0, 1].map(|i| {
            let (low, high) = (start[i] - MAX_DISTANCE[i], start[i] + MAX_DISTANCE[i]);
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
        if longest < MIN_STEP {
            break;
        }
    }
    point
}

/// The slope at which the softmax of a row's scores is as sure as it is right; None without rows.
/// `rows` have two finite scores at least, of which the best may be right.
///
/// Temperature scaling (C. Guo, G. Pleiss, Y. Sun, K. Weinberger, *On Calibration of Modern Neural
/// Networks*, ICML 2017, Section 4.2; the slope is 1 over the temperature), fitted to the log loss
/// of "the best class is right" and not to that of the true class.
pub fn softmax_slope<R: AsRef<[f32]>>(rows: Vec<Outcome<R>>) -> Option<f64> {
    let rows = targets(rows);
    if rows.is_empty() {
        return None;
    }
    let [log_slope, _] = fit_logistic([0.0, 0.0], &rows, |[log_slope, _], scores| {
        let scores = scores.as_ref();
        let slope = log_slope.exp();
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        let best = best.unwrap_or(0);
        // How far the others are below the best: their powers may all vanish.
        let others = || {
            let others = scores[..best].iter().chain(&scores[best + 1..]);
            others.map(|&score| slope * (f64::from(score) - f64::from(scores[best])))
        };
        let peak = others().fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut moment) = (0.0, 0.0);
        for below in others() {
            let power = (below - peak).exp();
            sum += power;
            moment += power * below;
        }
        (-peak - sum.ln(), [-moment / sum, 0.0])
    });
    Some(log_slope.exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn outcome(row: &[f32], is_right: bool) -> Outcome<&[f32]> {
        Outcome {
            row,
            is_right,
            weight: 1.0,
        }
    }

    /// The slope of rows whose labels are drawn from the softmax of their scores times `slope`, and
    /// whose scores are then multiplied by `scale`.
    fn found(slope: f64, scale: f32, n_rows: usize) -> f64 {
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let mut rows = Vec::new();
        for _ in 0..n_rows {
            let scores: Vec<f32> = (0..5).map(|_| 4.0 * random.random::<f32>()).collect();
            let powers = scores.iter().map(|&s| (slope * f64::from(s)).exp());
            let powers: Vec<f64> = powers.collect();
            let mut left = random.random::<f64>() * powers.iter().sum::<f64>();
            let label = powers.iter().position(|power| {
                left -= power;
                left < 0.0
            });
            let best = (0..5).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            let scores: Vec<f32> = scores.iter().map(|score| score * scale).collect();
            rows.push((scores, label == best));
        }
        let outcomes = rows.iter().map(|row| outcome(&row.0, row.1));
        softmax_slope(outcomes.collect()).unwrap()
    }

    #[test]
    fn the_slope_of_the_data_is_found() {
        for (slope, scale) in [
            (0.3, 1.0),
            (1.0, 1.0),
            (2.5, 1.0),
            (1.0, 0.01),
            (1.0, 300.0),
        ] {
            let found = found(slope, scale, 20_000) * f64::from(scale);
            assert!(
                (found / slope - 1.0).abs() < 0.06,
                "{slope}, {scale}: {found}"
            );
        }
    }

    #[test]
    fn a_few_right_rows_do_not_make_it_sure() {
        let rows = [outcome(&[1.0, 0.0], true); 10];
        let slope = softmax_slope(rows.to_vec()).unwrap();
        // One of twelve is wrong.
        assert!((1.0 / (1.0 + (-slope).exp()) - 11.0 / 12.0).abs() < 0.01);
        assert_eq!(softmax_slope::<Vec<f32>>(Vec::new()), None);
    }
}
