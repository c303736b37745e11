//! The fits behind every calibration: logistic regression on two numbers, and the slope of a softmax.
//!
//! Temperature scaling (C. Guo, G. Pleiss, Y. Sun, K. Weinberger, *On Calibration of Modern Neural
//! Networks*, ICML 2017, Section 4.2; the slope is 1 over the temperature) is fitted to the log loss of
//! "the best class is right" (top-label calibration: C. Gupta, A. Ramdas, ICLR 2022) and not to that of
//! the true class: a tree gives most classes no score at all, and rows of such a class would decide.
//!
//! Its loss is summed for a fixed grid of slopes, so that rows can be added one after the other. A
//! grid of four slopes an octave costs four exponentials a class: those of twice the slope are squares.

use serde::{Deserialize, Serialize};

/// What is fitted: a row of any kind, what its probability is to be, and its share of the weights.
pub type Target<R> = (R, f64, f64);

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

/// Slopes of an octave.
const SLOPES_PER_OCTAVE: usize = 4;
/// Octaves, from 2^-7 to 2^8.
const OCTAVES: usize = 15;
/// Logarithm to base 2 of the lowest slope.
const LOG2_LOWEST_SLOPE: f64 = -7.0;
const N_SLOPES: usize = SLOPES_PER_OCTAVE * OCTAVES;

/// Sums of the log loss over rows, for a grid of slopes.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLabelLoss {
    /// With what happened.
    actual: [f64; N_SLOPES],
    /// Once as if the best class were right, once as if it were wrong.
    either: [f64; N_SLOPES],
    /// Weight of the rows.
    weight: f64,
}

impl Default for TopLabelLoss {
    fn default() -> Self {
        Self {
            actual: [0.0; N_SLOPES],
            either: [0.0; N_SLOPES],
            weight: 0.0,
        }
    }
}

impl TopLabelLoss {
    /// Adds a row: the scores of its classes, those of minus infinity have none, and whether the best
    /// is right. A row of fewer than two scores says nothing.
    pub fn add(&mut self, scores: &[f32], is_right: bool, weight: f64) {
        let (mut best, mut at) = (f32::NEG_INFINITY, None);
        for (class, &score) in scores.iter().enumerate() {
            if score > best {
                (best, at) = (score, Some(class));
            }
        }
        let Some(at) = at else { return };
        // Sums of exp(slope * (score - best)) over all classes but the best.
        let mut others = [0.0f64; N_SLOPES];
        let rest = scores.iter().enumerate();
        for (_, &score) in rest.filter(|&(class, &score)| class != at && score > f32::NEG_INFINITY)
        {
            let below = f64::from(score) - f64::from(best);
            for phase in 0..SLOPES_PER_OCTAVE {
                let slope = (LOG2_LOWEST_SLOPE + phase as f64 / SLOPES_PER_OCTAVE as f64).exp2();
                let mut power = (slope * below).exp();
                for octave in 0..OCTAVES {
                    others[octave * SLOPES_PER_OCTAVE + phase] += power;
                    power *= power;
                }
            }
        }
        if others[0] == 0.0 {
            return;
        }
        for (g, &others) in others.iter().enumerate() {
            let all = others.ln_1p();
            // -ln(1 - p); where the others underflow, p is 1 to the last bit.
            let wrong = all - others.max(f64::MIN_POSITIVE).ln();
            self.actual[g] += weight * if is_right { all } else { wrong };
            self.either[g] += weight * (all + wrong);
        }
        self.weight += weight;
    }

    /// The slope of lowest loss; None before there are rows.
    ///
    /// As in Platt scaling a row is added that is right and one that is wrong, of average scores, so that
    /// a few rows that are all right do not make it sure.
    pub fn slope(&self) -> Option<f64> {
        if self.weight == 0.0 {
            return None;
        }
        let loss = |g: usize| self.actual[g] + self.either[g] / self.weight;
        let lowest = (0..N_SLOPES).min_by(|&a, &b| loss(a).total_cmp(&loss(b)))?;
        let mut place = lowest as f64;
        if lowest > 0 && lowest + 1 < N_SLOPES {
            // The lowest point of the parabola through it and its neighbours.
            let (left, mid, right) = (loss(lowest - 1), loss(lowest), loss(lowest + 1));
            let bend = left - 2.0 * mid + right;
            if bend > 0.0 {
                place += 0.5 * (left - right) / bend;
            }
        }
        Some((LOG2_LOWEST_SLOPE + place / SLOPES_PER_OCTAVE as f64).exp2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Rows whose labels are drawn from the softmax of their scores times `slope`.
    fn drawn(slope: f64, n_rows: usize) -> TopLabelLoss {
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let mut loss = TopLabelLoss::default();
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
            loss.add(&scores, label == best, 1.0);
        }
        loss
    }

    #[test]
    fn the_slope_of_the_data_is_found() {
        for slope in [0.3, 1.0, 2.5] {
            let found = drawn(slope, 20_000).slope().unwrap();
            assert!((found / slope - 1.0).abs() < 0.06, "{slope}: {found}");
        }
    }

    #[test]
    fn a_few_right_rows_do_not_make_it_sure() {
        let mut loss = TopLabelLoss::default();
        (0..10).for_each(|_| loss.add(&[1.0, 0.0], true, 1.0));
        let slope = loss.slope().unwrap();
        // One of twelve is wrong.
        assert!((1.0 / (1.0 + (-slope).exp()) - 11.0 / 12.0).abs() < 0.01);
    }

    #[test]
    fn rows_of_one_score_say_nothing() {
        let mut loss = TopLabelLoss::default();
        loss.add(&[], true, 1.0);
        loss.add(&[3.0, f32::NEG_INFINITY], false, 1.0);
        assert_eq!(loss.slope(), None);
    }
}
