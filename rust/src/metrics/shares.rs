//! How the labels of a row, of which one is right, share its probability.
//!
//! The softmax of `slope * logit` over the best labels and, as one more term, `rest`, which all
//! labels share alike: in a softmax over all labels the many far below the best would outweigh it.
//! Then the logit of the best label's probability becomes `top_slope * logit + intercept`, and the
//! others share what it leaves.
//!
//! Both steps are fitted to the log loss of "the best label is right" (top-label calibration: C.
//! Gupta, A. Ramdas, ICLR 2022) and not to that of the true label: a tree gives most labels no
//! score at all, and the few rows of such a label would decide.

use crate::alloc::push;

/// The map from logits to shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Factor of the logits.
    pub slope: f64,
    /// Logit, times the slope, of what all labels share.
    pub rest: f64,
    /// Factor of the logit of the best label's share.
    pub top_slope: f64,
    /// Added to that.
    pub intercept: f64,
}

impl Default for Shares {
    /// A softmax.
    fn default() -> Self {
        Self {
            slope: 1.0,
            rest: -1000.0,
            top_slope: 1.0,
            intercept: 0.0,
        }
    }
}

/// Best labels of a row that share its probability.
pub const N_SHARING: usize = 20;
/// Of them those whose spread the slope is first guessed from.
const N_SPREAD: usize = 5;
/// Logits of a best label's share are read as at most this.
const MOST: f64 = 20.7;
/// Weight of half the squared distance from where the search began, beside a mean over rows.
const RIDGE: f64 = 1e-4;
/// How far from there the logarithm of a slope may go, and what is added.
const REACH: [f64; 2] = [8.0, 300.0];
const MOST_STEPS: usize = 100;
/// Shorter steps end the search.
const SHORT: f64 = 1e-6;

/// A row: the logits of its best labels, falling, what its best label's probability is to be, and
/// its share of the weights.
type Row<'a> = (&'a [f32], f64, f64);

impl Shares {
    /// Fits rows of [`N_SHARING`] logits each, falling and minus infinity where there is none, by
    /// whether the best is right. None without rows that have a logit and a weight.
    pub fn fit(
        logits: &[f32],
        is_right: &[bool],
        weights: &[f64],
        n_classes: usize,
    ) -> Option<Self> {
        let each = logits.chunks_exact(N_SHARING).zip(is_right).zip(weights);
        let known = each.filter(|((logits, _), weight)| logits[0].is_finite() && **weight > 0.0);
        let mut rows: Vec<Row<'_>> = Vec::new();
        for ((logits, &is_right), &weight) in known {
            push(&mut rows, (logits, f64::from(u8::from(is_right)), weight));
        }
        if rows.is_empty() || n_classes < 2 {
            return None;
        }
        // As in Platt scaling one row more is right and one wrong, so that a few rows that are
        // all right do not make a model sure.
        let n = rows.len() as f64;
        let total: f64 = rows.iter().map(|row| row.2).sum();
        let n_right = n * rows.iter().map(|row| row.1 * row.2).sum::<f64>() / total;
        for (_, target, weight) in &mut rows {
            *target = if *target > 0.0 {
                (n_right + 1.0) / (n_right + 2.0)
            } else {
                1.0 / (n - n_right + 2.0)
            };
            *weight /= total;
        }

        let spread = spread(&rows);
        let mut best: Vec<f32> = rows.iter().map(|row| row.0[0]).collect();
        best.sort_unstable_by(f32::total_cmp);
        let median = f64::from(best[best.len() / 2]);
        let start = [-spread.ln(), median / spread - 2.0];
        let n_classes = n_classes as f64;
        let [log_slope, rest] = fit_logistic(start, &rows, |point, row| {
            top_logit(point, row.0, n_classes)
        });
        let tops: Vec<f64> = rows
            .iter()
            .map(|row| top_logit([log_slope, rest], row.0, n_classes).0)
            .map(|logit| logit.clamp(-MOST, MOST))
            .collect();
        let of_tops = rows.iter().zip(&tops);
        let mut lines: Vec<(f64, f64, f64)> = Vec::new();
        for (&(_, target, weight), &top) in of_tops {
            push(&mut lines, (top, target, weight));
        }
        let [log_top_slope, intercept] = fit_logistic([0.0, 0.0], &lines, |point, row| {
            let slanted = point[0].exp() * row.0;
            (slanted + point[1], [slanted, 1.0])
        });
        Some(Self {
            slope: log_slope.exp(),
            rest,
            top_slope: log_top_slope.exp(),
            intercept,
        })
    }

    /// Whether it can be one.
    pub fn is_sound(&self) -> bool {
        let is_slope = |slope: f64| slope.is_finite() && slope > 0.0;
        is_slope(self.slope)
            && is_slope(self.top_slope)
            && self.rest.is_finite()
            && self.intercept.is_finite()
    }
}

/// The standard deviation of the first logits of all rows, 1 where it is 0.
fn spread(rows: &[Row<'_>]) -> f64 {
    let first = rows.iter().flat_map(|row| &row.0[..N_SPREAD]);
    let first = first.filter(|logit| logit.is_finite());
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for &logit in first {
        n += 1.0;
        let away = f64::from(logit) - mean;
        mean += away / n;
        squares += away * (f64::from(logit) - mean);
    }
    let spread = f64::sqrt(squares / n);
    if spread > 0.0 {
        spread
    } else {
        1.0
    }
}

/// The logit of the best label's share, for the logarithm of the slope and the rest, and its
/// derivatives by these.
fn top_logit([log_slope, rest]: [f64; 2], logits: &[f32], n_classes: f64) -> (f64, [f64; 2]) {
    let scaled = |logit: f32| log_slope.exp() * f64::from(logit);
    let first = scaled(logits[0]);
    let peak = first.max(rest);
    let rest = (rest - peak).exp();
    let power = (first - peak).exp();
    let own = power + rest / n_classes;
    let (mut others, mut moment) = (rest * (1.0 - 1.0 / n_classes), 0.0);
    let scored = logits[1..].iter().filter(|logit| logit.is_finite());
    for scaled in scored.map(|&logit| scaled(logit)) {
        let power = (scaled - peak).exp();
        others += power;
        moment += power * scaled;
    }
    others = others.max(f64::MIN_POSITIVE);
    let by_slope = power * first / own - moment / others;
    let by_rest = rest / n_classes / own - rest * (1.0 - 1.0 / n_classes) / others;
    ((own / others).ln(), [by_slope, by_rest])
}

/// The two numbers at which the logistic function of what `logit` makes of them and a row fits the
/// rows' targets best: by Fisher scoring, with Levenberg's and Marquardt's damping.
fn fit_logistic<R>(
    start: [f64; 2],
    rows: &[(R, f64, f64)],
    logit: impl Fn([f64; 2], &(R, f64, f64)) -> (f64, [f64; 2]),
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// The best label's probability.
    fn top(shares: Shares, logits: &[f32], n_classes: f64) -> f64 {
        let (logit, _) = top_logit([shares.slope.ln(), shares.rest], logits, n_classes);
        let line = shares.top_slope * logit.clamp(-MOST, MOST) + shares.intercept;
        1.0 / (1.0 + (-line).exp())
    }

    #[test]
    fn a_known_map_is_found() {
        for (slope, rest, top_slope, intercept) in [
            (1.0, -3.0, 1.0, 0.0),
            (0.3, -1.0, 1.3, 0.5),
            (2.0, 4.0, 0.8, 0.2),
        ] {
            let map = Shares {
                slope,
                rest,
                top_slope,
                intercept,
            };
            let mut random = Pcg64Mcg::seed_from_u64(5);
            let (mut logits, mut is_right) = (Vec::new(), Vec::new());
            for _ in 0..10_000 {
                let mut row: Vec<f32> = (0..N_SHARING)
                    .map(|_| 8.0 * random.random::<f32>() / slope as f32)
                    .collect();
                row[5..].fill(f32::NEG_INFINITY);
                row.sort_unstable_by(|a, b| b.total_cmp(a));
                is_right.push(random.random::<f64>() < top(map, &row, 1000.0));
                logits.extend(row);
            }
            let weights = vec![1.0; is_right.len()];
            let found = Shares::fit(&logits, &is_right, &weights, 1000).unwrap();
            let each = logits.chunks_exact(N_SHARING);
            let off = each.map(|row| (top(found, row, 1000.0) - top(map, row, 1000.0)).abs());
            let off = off.sum::<f64>() / weights.len() as f64;
            assert!(off < 0.03, "{map:?} {found:?} {off}");
        }
    }

    #[test]
    fn a_few_rows_do_not_make_it_sure() {
        let mut row = [f32::NEG_INFINITY; N_SHARING];
        row[0] = 1.0;
        for (second, n_right) in [(0.0, 10), (1.0, 10), (f32::NEG_INFINITY, 10), (0.0, 0)] {
            row[1] = second;
            let is_right: Vec<bool> = (0..10).map(|i| i < n_right).collect();
            let found = Shares::fit(&row.repeat(10), &is_right, &[1.0; 10], 5).unwrap();
            assert!(found.is_sound(), "{found:?}");
            let wanted = (f64::from(n_right) + 1.0) / 12.0;
            assert!((top(found, &row, 5.0) - wanted).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn without_rows_there_is_none() {
        let row = [f32::NEG_INFINITY; N_SHARING];
        assert_eq!(Shares::fit(&[], &[], &[], 5), None);
        assert_eq!(Shares::fit(&row, &[false], &[1.0], 5), None);
        assert_eq!(Shares::fit(&[0.0; N_SHARING], &[true], &[0.0], 5), None);
    }
}
