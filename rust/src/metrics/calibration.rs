//! The fit behind every calibration: logistic regression with a few parameters. Also the slope of a
//! softmax.

use serde::{Deserialize, Serialize};

/// A row that calibrates, and the outcome of its prediction.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<R> {
    /// Scores or features of the row.
    pub row: R,
    /// True if the prediction is right.
    pub is_right: bool,
    /// Weight of the row.
    pub weight: f64,
}

/// A penalty that pulls a parameter towards its usual value: half the squared distance times a
/// weight, and beyond a width hardly more, as of Cauchy's distribution.
#[derive(Debug, Clone, Copy)]
pub struct Prior {
    /// The usual value.
    pub center: f64,
    /// Weight of half the squared distance, beside a mean loss.
    pub weight: f64,
    /// Distance at which the penalty's slope is greatest.
    pub width: f64,
}

impl Prior {
    /// A slight normal prior at 0, where the search starts.
    const SLIGHT: Self = Self {
        center: 0.0,
        weight: 1e-4,
        width: f64::INFINITY,
    };

    /// Returns the penalty, the negative of its slope, and the curvature of a parabola that touches
    /// it from above and has its minimum at the center.
    fn at(self, value: f64) -> (f64, f64, f64) {
        let away = value - self.center;
        let square = (away / self.width).powi(2);
        let curvature = self.weight / (1.0 + square);
        // ln(1 + square) / square is 1 at 0.
        let damped = if square > 0.0 {
            square.ln_1p() / square
        } else {
            1.0
        };
        let penalty = 0.5 * self.weight * away * away * damped;
        (penalty, -curvature * away, curvature)
    }
}

/// Greatest distances from the start, of the logarithm of a slope and of any other parameter.
const MAX_DISTANCES: (f64, f64) = (8.0, 300.0);
const MAX_STEPS: usize = 100;
/// A shorter step ends the search.
const MIN_STEP: f64 = 1e-6;
/// Damping after a step that raised the loss, at least. With less of it, the minimum is near.
const FAR: f64 = 0.1;

/// The logistic function of a line: `slope * x + intercept` is the logit of the probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Positive, so that the probability increases with x.
    pub slope: f64,
    /// The logit at x = 0.
    pub intercept: f64,
}

impl Default for Line {
    /// The logistic function of x itself.
    fn default() -> Self {
        Self {
            slope: 1.0,
            intercept: 0.0,
        }
    }
}

impl Line {
    /// Fits the line to outcomes at numbers x: Platt scaling (J. Platt, *Probabilistic Outputs for
    /// Support Vector Machines*, 1999). Takes O(points) per step of the search.
    pub fn fit(points: &[Outcome<f64>]) -> Self {
        let total: f64 = points.iter().map(|point| point.weight).sum();
        if points.is_empty() || total <= 0.0 {
            return Self::default();
        }
        let mean = points.iter().map(|p| p.row * p.weight).sum::<f64>() / total;
        let squares = points.iter().map(|p| p.weight * (p.row - mean).powi(2));
        let deviation = (squares.sum::<f64>() / total).sqrt();
        let deviation = if deviation > 0.0 { deviation } else { 1.0 };
        // The search is over the slope and intercept of `(x - mean) / deviation`.
        let [log_slope, shift] = fit_logistic(
            [0.0; 2],
            [Prior::SLIGHT; 2],
            0.0,
            points,
            |[slope, shift], row| {
                let slanted = slope * (row - mean) / deviation;
                (slanted + shift, [slanted, 1.0])
            },
        );
        let slope = log_slope.exp() / deviation;
        Self {
            slope,
            intercept: shift - slope * mean,
        }
    }

    /// Returns the probability at `x`.
    #[inline]
    pub fn probability(self, x: f64) -> f64 {
        1.0 / (1.0 + (-self.slope * x - self.intercept).exp())
    }

    /// True if the parameters are valid; a file may hold any numbers.
    pub fn is_sound(self) -> bool {
        self.slope.is_finite() && self.slope > 0.0 && self.intercept.is_finite()
    }
}

/// Returns the parameters at which the logistic function of `logit` fits the outcomes best, by
/// Fisher scoring with Levenberg's and Marquardt's damping. The first parameter is the logarithm of a
/// slope. `logit` takes the slope, the other parameters and a row, and returns the logit and its
/// derivatives by the parameters. The loss is a mean over rows. See [`minimize`] for `least_gain`.
///
/// As in Platt scaling the targets are those with one more right row and one more wrong row, so that
/// a few rows that are all right do not give extreme probabilities.
pub fn fit_logistic<R, const N: usize>(
    start: [f64; N],
    priors: [Prior; N],
    least_gain: f64,
    rows: &[Outcome<R>],
    logit: impl Fn([f64; N], &R) -> (f64, [f64; N]),
) -> [f64; N] {
    let n = rows.len() as f64;
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    let right = rows.iter().filter(|row| row.is_right);
    let n_right = n * right.map(|row| row.weight).sum::<f64>() / total;
    let right_target = (n_right + 1.0) / (n_right + 2.0);
    let wrong_target = 1.0 / (n - n_right + 2.0);
    // The loss, the negative of its gradient, and its curvature below the diagonal.
    let measure = |point: [f64; N]| {
        let (mut loss, mut down, mut curvature) = (0.0, [0.0; N], [[0.0; N]; N]);
        for i in 0..N {
            let penalty;
            (penalty, down[i], curvature[i][i]) = priors[i].at(point[i]);
            loss += penalty;
        }
        let mut at = point;
        at[0] = at[0].exp();
        for row in rows {
            let (logit, by) = logit(at, &row.row);
            let target = if row.is_right {
                right_target
            } else {
                wrong_target
            };
            let weight = row.weight / total;
            let power = (-logit.abs()).exp();
            let likelier = 1.0 / (1.0 + power);
            let probability = if logit < 0.0 {
                power * likelier
            } else {
                likelier
            };
            loss += weight * (logit.max(0.0) + (1.0 + power).ln() - target * logit);
            let pull = weight * (target - probability);
            let bend = weight * probability * (1.0 - probability);
            for i in 0..N {
                down[i] += pull * by[i];
                for j in 0..=i {
                    curvature[i][j] += bend * by[i] * by[j];
                }
            }
        }
        (loss, down, curvature)
    };
    minimize(start, least_gain, measure)
}

/// Searches the point of the least loss by Newton's method with Levenberg's and Marquardt's damping.
/// `measure` returns the loss at a point, the negative of its gradient, and its curvature, of which
/// only the part on and below the diagonal is read. The first parameter is the logarithm of a slope.
/// A step that lowers the loss by less than `least_gain`, or promises to, is the last one.
pub(super) fn minimize<const N: usize>(
    start: [f64; N],
    least_gain: f64,
    measure: impl Fn([f64; N]) -> (f64, [f64; N], [[f64; N]; N]),
) -> [f64; N] {
    let (mut point, mut damping) = (start, 1e-3);
    let mut here = measure(point);
    for _ in 0..MAX_STEPS {
        let (loss, down, mut curvature) = here;
        for (i, row) in curvature.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        let steps = solve(curvature, down);
        let next: [f64; N] = std::array::from_fn(|i| {
            let most = [MAX_DISTANCES.0, MAX_DISTANCES.1][i.min(1)];
            (point[i] + steps[i]).clamp(start[i] - most, start[i] + most)
        });
        // Near the minimum each step is much shorter than the last, so the loss need not be known.
        let promised: f64 = down.iter().zip(steps).map(|(d, step)| 0.5 * d * step).sum();
        if damping < FAR && promised < least_gain {
            return next;
        }
        let moves = next
            .iter()
            .zip(point)
            .map(|(next, here)| (next - here).abs());
        let longest = moves.fold(0.0, f64::max);
        let there = measure(next);
        let gain = loss - there.0;
        if gain >= 0.0 {
            (point, here) = (next, there);
            damping *= 0.2;
        } else {
            damping = 8.0 * damping.max(FAR / 8.0);
        }
        if longest < MIN_STEP || (0.0..least_gain).contains(&gain) {
            break;
        }
    }
    point
}

/// Solves a system of equations with a positive definite matrix, given by its part below and on the
/// diagonal, by Cholesky's decomposition.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for i in 0..N {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum();
            let left = matrix[i][j] - known;
            matrix[i][j] = if i == j {
                left.max(f64::MIN_POSITIVE).sqrt()
            } else {
                left / matrix[j][j]
            };
        }
        let known: f64 = (0..i).map(|k| matrix[i][k] * right[k]).sum();
        right[i] = (right[i] - known) / matrix[i][i];
    }
    for i in (0..N).rev() {
        let known: f64 = (i + 1..N).map(|k| matrix[k][i] * right[k]).sum();
        right[i] = (right[i] - known) / matrix[i][i];
    }
    right
}

/// The scores of a row. The search for a slope finds the two highest once, not in each step.
struct RankedScores<'a> {
    /// The scores before and after the highest.
    others: [&'a [f32]; 2],
    highest: f64,
    /// The highest of the others.
    next: f64,
}

impl<'a> RankedScores<'a> {
    fn new(scores: &'a [f32]) -> Self {
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        let (before, after) = scores.split_at(best.unwrap_or(0));
        let mut ranked = Self {
            others: [before, &after[1..]],
            highest: after[0].into(),
            next: 0.0,
        };
        ranked.next = ranked.others().fold(f32::NEG_INFINITY, f32::max).into();
        ranked
    }

    fn others(&self) -> impl Iterator<Item = f32> + 'a {
        let [before, after] = self.others;
        before.iter().chain(after).copied()
    }
}

/// Returns the slope at which the softmax of a row's scores is as confident as it is accurate; `None`
/// without rows. Each row must have at least two scores, all finite.
///
/// Temperature scaling (C. Guo, G. Pleiss, Y. Sun, K. Weinberger, *On Calibration of Modern Neural
/// Networks*, ICML 2017, Section 4.2). The slope is 1 over the temperature. It is fitted to the log
/// loss of "the best class is right" instead of that of the true class.
pub fn softmax_slope<R: AsRef<[f32]>>(rows: &[Outcome<R>]) -> Option<f64> {
    if rows.is_empty() {
        return None;
    }
    let ranked = rows.iter().map(|outcome| Outcome {
        row: RankedScores::new(outcome.row.as_ref()),
        is_right: outcome.is_right,
        weight: outcome.weight,
    });
    let ranked: Vec<_> = ranked.collect();
    let [log_slope] = fit_logistic([0.0], [Prior::SLIGHT], 0.0, &ranked, |[slope], scores| {
        // Differences to the best score, shifted by their largest: all exponentials of the
        // differences themselves may be 0.
        let peak = slope * (scores.next - scores.highest);
        let add = |(sum, moment), score| {
            let below = slope * (f64::from(score) - scores.highest);
            let power = (below - peak).exp();
            (sum + power, moment + power * below)
        };
        let (sum, moment) = scores.others().fold((0.0, 0.0), add);
        (-peak - sum.ln(), [-moment / sum])
    });
    Some(log_slope.exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Fits the slope of rows whose labels are drawn from the softmax of `slope` times their scores,
    /// and whose scores are then multiplied by `scale`.
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
            rows.push(Outcome {
                row: scores,
                is_right: label == best,
                weight: 1.0,
            });
        }
        softmax_slope(&rows).unwrap()
    }

    #[test]
    fn finds_the_slope_that_labels_are_drawn_with() {
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
    fn no_rows_give_no_slope() {
        assert_eq!(softmax_slope::<Vec<f32>>(&[]), None);
    }
}
