//! The map from the scores of a row's labels to their probabilities, where one label is right.
//!
//! It is the softmax of `slope * logit` over the best labels and one more term, `rest`, which all
//! labels share equally. In a softmax over all labels the many labels far below the best one would
//! outweigh it. The logit of the best label's share then goes through a line with two bends. A second
//! softmax of the same form divides the remaining probability among the other labels.
//!
//! Both steps for the best label are fitted to the log loss of "the best label is right" (top-label
//! calibration: C. Gupta, A. Ramdas, ICLR 2022), not to that of the true label: a tree gives most
//! labels no score at all, and the few rows of such a label would decide. The second softmax is
//! fitted to the true labels of the rows whose best label is wrong.

use serde::{Deserialize, Serialize};

use super::calibration::{fit_logistic, minimize, Line, Outcome, Prior};

/// The map from logits to probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Factor of the logits.
    pub slope: f64,
    /// Logit, already scaled, of the part that all labels share.
    pub rest: f64,
    /// Map from the logit of the best label's share to its probability.
    pub top: Line,
    /// Added to `top` far from 0. Older files have none.
    #[serde(default)]
    pub bends: Bends,
    /// Division among the labels behind the best one. Older files have none; there it is that of
    /// all labels. A tree may list labels that are hardly ever right, and the right label of a
    /// difficult row is often not listed.
    #[serde(default)]
    pub later: Option<Softmax>,
}

/// A softmax over logits and a term for the labels that have none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Softmax {
    /// Factor of the logits.
    pub slope: f64,
    /// Logit, already scaled, of the part that all labels share.
    pub rest: f64,
    /// Number of the best labels that it includes, from [`N_SHARING`] to [`MOST_SHARING`].
    #[serde(default = "n_sharing")]
    pub n_labels: usize,
}

/// Returns the number of labels in older files.
fn n_sharing() -> usize {
    N_SHARING
}

/// The logit that is added for each unit beyond a distance of 1 from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bends {
    /// Above 1. Negative numbers flatten the line.
    pub above: f64,
    /// Below -1. Positive numbers flatten the line.
    pub below: f64,
}

/// Returns the logit within [`MAX_LOGIT`].
fn bounded(logit: f64) -> f64 {
    logit.clamp(-MAX_LOGIT, MAX_LOGIT)
}

/// Returns how far a logit is above 1 and below -1.
fn beyond(logit: f64) -> [f64; 2] {
    [(logit - 1.0).max(0.0), (-1.0 - logit).max(0.0)]
}

/// Numbers of [`Shares`].
pub type SharesParameters = [f64; 9];

impl From<SharesParameters> for Shares {
    /// Makes the map of these [`parameters`](Self::parameters).
    fn from(parameters: SharesParameters) -> Self {
        let [slope, rest, top_slope, intercept, above, below, later @ ..] = parameters;
        let [later_slope, later_rest, n_labels] = later;
        let later = Softmax {
            slope: later_slope,
            rest: later_rest,
            n_labels: n_labels.clamp(N_SHARING as f64, MOST_SHARING as f64) as usize,
        };
        Self {
            slope,
            rest,
            top: Line {
                slope: top_slope,
                intercept,
            },
            bends: Bends { above, below },
            later: Some(later),
        }
    }
}

impl Default for Shares {
    /// The softmax.
    fn default() -> Self {
        Self {
            slope: 1.0,
            rest: NO_REST,
            top: Line::default(),
            bends: Bends::default(),
            later: None,
        }
    }
}

/// Logit of a rest that is 0.
const NO_REST: f64 = -1000.0;
/// Number of the best labels of a row that the first softmax includes, and in older files the second
/// one.
const N_SHARING: usize = 20;
/// Largest number of labels in the second softmax. More gain little more, and have to be ranked.
pub const MOST_SHARING: usize = 64;
/// Number of the best labels whose standard deviation gives the first slope of the search.
const N_SPREAD: usize = 5;
/// Bound of the logits that the line is fitted to.
const MAX_LOGIT: f64 = 20.7;
/// Widths of Cauchy priors: of the logarithm of the slope, and of that of the line's slope and of
/// its intercept. Few rows hardly change the learner's own shares; many rows may disagree.
const SLOPE_WIDTH: f64 = 0.5;
const LINE_WIDTH: f64 = 0.35;
/// Weights of half the squares, of normal priors beside the summed loss of the rows: of the rest, of
/// a bend, and in the second softmax of the logarithm of its slope relative to the first one's and of
/// its rest.
const REST_WEIGHT: f64 = 0.1;
const BEND_WEIGHT: f64 = 6.0;
const LATER_WEIGHTS: [f64; 2] = [1.0, 0.1];
/// Gain of the summed loss that ends a search: it hardly changes a probability.
const LEAST_GAIN: f64 = 1e-3;
/// Share of the slope that a bend may take away, so that probabilities grow with the logit.
const MOST_FLATTENED: f64 = 0.9;
/// Largest part of the remaining probability that the other best labels share.
const MOST_SHARED: f64 = 0.999;

/// Meaning of a learner's scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Logits, up to a constant for the row.
    Logit,
    /// Shares of 1; their logarithms are logits.
    Share,
    /// Independent probabilities of the labels.
    Probability,
}

impl Scale {
    /// Returns the logit of a score, which is minus infinity for a label without a score.
    #[inline]
    fn logit(self, score: f32) -> f64 {
        let score = f64::from(score);
        match self {
            Self::Logit => score,
            Self::Share => score.max(0.0).ln(),
            Self::Probability => logit(score.clamp(0.0, 1.0 - f64::from(f32::EPSILON) / 2.0)),
        }
    }
}

/// Returns the logit of a probability below 1.
fn logit(probability: f64) -> f64 {
    probability.ln() - (-probability).ln_1p()
}

/// The scores of the best labels of each row, in descending order. Minus infinity fills up rows that
/// have fewer labels.
#[derive(Debug, Clone, Copy)]
pub struct RankedScores<'a> {
    /// Scores of all rows, row by row.
    pub scores: &'a [f32],
    /// Number of scores of a row.
    pub width: usize,
    /// Meaning of the scores.
    pub scale: Scale,
}

impl RankedScores<'_> {
    /// Returns the logits of all rows, and their number per row, at most [`MOST_SHARING`].
    fn logits(&self) -> (Vec<f64>, usize) {
        let width = self.width.clamp(1, MOST_SHARING);
        let rows = self.scores.chunks_exact(self.width.max(1));
        let best = rows.flat_map(|row| &row[..width]);
        (best.map(|&score| self.scale.logit(score)).collect(), width)
    }
}

impl Shares {
    /// Fits the map to rows, with as many labels in the second softmax as they have scores. `hits` says
    /// for each score if its label is right. Returns `None` if no row has both a score and a weight.
    pub fn fit(
        ranked: RankedScores<'_>,
        hits: &[bool],
        weights: &[f64],
        n_classes: usize,
    ) -> Option<Self> {
        let hits = hits.chunks_exact(ranked.width.max(1));
        let (logits, width) = ranked.logits();
        let each = logits.chunks_exact(width).zip(hits).zip(weights);
        let known = each.filter(|((logits, _), &weight)| weight > 0.0 && logits[0].is_finite());
        let mut wrong = Vec::new();
        let rows: Vec<_> = known
            .map(|((row, hits), &weight)| {
                let row = &row[..row.partition_point(|logit| logit.is_finite())];
                let is_right = hits[0];
                if !is_right {
                    let place = (1..row.len()).find(|&at| hits[at]).map(|at| at - 1);
                    wrong.push((&row[1..], place, weight));
                }
                Outcome {
                    row: &row[..row.len().min(N_SHARING)],
                    is_right,
                    weight,
                }
            })
            .collect();
        if rows.is_empty() || n_classes < 2 {
            return None;
        }
        let spread = spread(&rows);
        let median = |mut logits: Vec<f64>| {
            logits.sort_unstable_by(f64::total_cmp);
            logits.get(logits.len() / 2).copied()
        };
        let best = median(rows.iter().map(|row| row.row[0]).collect()).unwrap_or(0.0);
        let n = n_classes as f64;
        let start = [-spread.ln(), best / spread - 5.0];
        let priors = [
            cauchy(SLOPE_WIDTH, rows.len()),
            normal(start[1], REST_WEIGHT, rows.len()),
        ];
        let [log_slope, rest] = fit_logistic(
            start,
            priors,
            LEAST_GAIN / rows.len() as f64,
            &rows,
            |at, row| top_logit(at, row, n),
        );
        let slope = log_slope.exp();
        let tops = rows.iter().map(|row| Outcome {
            row: bounded(top_logit([slope, rest], row.row, n).0),
            is_right: row.is_right,
            weight: row.weight,
        });
        let (top, bends) = fit_top(&tops.collect::<Vec<_>>());
        let seconds = rows.iter().filter_map(|row| row.row.get(1).copied());
        let second = median(seconds.collect());
        let start = Softmax {
            slope,
            rest: slope * second.unwrap_or(best) - 2.0,
            n_labels: width.max(N_SHARING),
        };
        let unit = rows.iter().map(|row| row.weight).sum::<f64>() / rows.len() as f64;
        Some(Self {
            slope,
            rest,
            top,
            bends,
            later: Some(fit_later(start, &wrong, unit)),
        })
    }

    /// Returns the second softmax.
    fn second(&self) -> Softmax {
        let (slope, rest) = (self.slope, self.rest);
        self.later.unwrap_or(Softmax {
            slope,
            rest,
            n_labels: N_SHARING,
        })
    }

    /// Divides a probability of 1 among the labels of a row. `first` are the logits of the first
    /// softmax, `logits` those of the second one and of the best label.
    fn parts(&self, first: &[f64], logits: &[f64], n_classes: f64) -> Parts {
        let (share, _) = top_logit([self.slope, self.rest], first, n_classes);
        let top = self.top_probability(bounded(share)).max(1.0 / n_classes);
        let Softmax { slope, rest, .. } = self.second();
        let peak = logits
            .get(1)
            .map_or(rest, |second| (slope * second).max(rest));
        let powers = logits[1..].iter().map(|logit| (slope * logit - peak).exp());
        let listed: f64 = powers.sum();
        let unlisted = (rest - peak).exp() * (1.0 - 1.0 / n_classes);
        let part = (listed / (listed + unlisted)).min(MOST_SHARED);
        Parts {
            slope,
            peak,
            top,
            later: part * (1.0 - top),
            unit: part * (1.0 - top) / listed.max(f64::MIN_POSITIVE),
        }
    }

    /// Returns slope, rest, slope and intercept of the line, its bends above and below, and slope,
    /// rest and number of labels of the second softmax.
    pub fn parameters(&self) -> SharesParameters {
        let (Line { slope, intercept }, Bends { above, below }) = (self.top, self.bends);
        let second = self.second();
        [
            self.slope,
            self.rest,
            slope,
            intercept,
            above,
            below,
            second.slope,
            second.rest,
            second.n_labels as f64,
        ]
    }

    /// Returns the probability of the best label, whose share has this logit.
    fn top_probability(&self, logit: f64) -> f64 {
        let [above, below] = beyond(logit);
        let bent = self.bends.above * above + self.bends.below * below;
        let intercept = self.top.intercept + bent;
        Line {
            intercept,
            ..self.top
        }
        .probability(logit)
    }

    /// Replaces the `scores` of a row, in descending order, by probabilities. Labels without a score
    /// share the rest of 1 equally. Takes O(scores).
    pub fn apply(self, scale: Scale, n_classes: usize, scores: &mut [f32]) {
        let Some(&first) = scores.first() else { return };
        let (n_classes, second) = (n_classes as f64, scores.get(1).copied());
        let mut logits = [f64::NEG_INFINITY; MOST_SHARING];
        let logits = &mut logits[..self.second().n_labels];
        for (logit, &score) in logits.iter_mut().zip(&*scores) {
            *logit = scale.logit(score);
        }
        // Labels that are no better than the first one beyond the best have no term of their own.
        let cut = |logits: &mut [f64]| {
            let beyond = scores.get(logits.len());
            let bar = beyond.map_or(f64::NEG_INFINITY, |&score| scale.logit(score));
            let equal = logits.iter_mut().filter(|logit| **logit <= bar);
            equal.for_each(|logit| *logit = f64::NEG_INFINITY);
        };
        let mut first_logits = [f64::NEG_INFINITY; N_SHARING];
        first_logits.copy_from_slice(&logits[..N_SHARING]);
        cut(&mut first_logits);
        cut(logits);
        let parts = self.parts(&first_logits, logits, n_classes);
        let top = parts.top;
        let rest = (1.0 - top - parts.later).max(0.0) / (n_classes - 1.0).max(1.0);
        let later = |i: usize| {
            let own = logits
                .get(i)
                .map_or(0.0, |logit| (parts.slope * logit - parts.peak).exp());
            parts.unit * own + rest
        };
        // No label may exceed the best one; the excess goes to all labels.
        let excess: f64 = (1..scores.len()).map(|i| (later(i) - top).max(0.0)).sum();
        let part = excess / (n_classes * top - 1.0 + excess).max(1e-12);
        for (i, score) in scores.iter_mut().enumerate().skip(1) {
            let share = later(i).min(top);
            *score = (share + part * (top - share)) as f32;
        }
        scores[0] = top as f32;
        // Rounding must not make another label as probable as the predicted one.
        if second.is_some_and(|second| first > second) {
            scores[0] = scores[0].max(scores[1].next_up());
        }
    }

    /// True if the parameters are valid; a file may hold any numbers.
    pub fn is_sound(&self) -> bool {
        let Bends { above, below } = self.bends;
        let outer = [self.top.slope + above, self.top.slope - below];
        self.slope.is_finite()
            && self.slope > 0.0
            && self.rest.is_finite()
            && self.top.is_sound()
            && self.later.is_none_or(|later| {
                later.slope.is_finite()
                    && later.slope > 0.0
                    && later.rest.is_finite()
                    && (N_SHARING..=MOST_SHARING).contains(&later.n_labels)
            })
            && outer.iter().all(|slope| slope.is_finite() && *slope > 0.0)
    }
}

/// Replaces the scores of a row by their softmax, or by 0 if no label has a score.
pub fn softmax(scale: Scale, scores: &mut [f32]) {
    let logits = scores.iter().map(|&score| scale.logit(score));
    let peak = logits.fold(f64::NEG_INFINITY, f64::max);
    let power = |score: f32| (scale.logit(score) - peak).exp();
    if peak == f64::NEG_INFINITY {
        return scores.fill(0.0);
    }
    let total: f64 = scores.iter().map(|&score| power(score)).sum();
    for score in scores {
        *score = (power(*score) / total) as f32;
    }
}

/// Writes the probabilities of the labels `codes` into `all`, the probabilities of all labels. A
/// negative code is no label. With `has_one`, each row has exactly one label, and the labels of
/// probability 0 share the rest of 1 equally.
pub fn spread_over_labels(codes: &[i32], probabilities: &[f32], has_one: bool, all: &mut [f32]) {
    all.fill(0.0);
    let mut left = 1.0;
    for (&code, &probability) in codes.iter().zip(probabilities) {
        let place = usize::try_from(code).ok();
        if let Some(place) = place.and_then(|place| all.get_mut(place)) {
            *place = probability;
            left -= f64::from(probability);
        }
    }
    if has_one && left > 0.0 {
        let n_without = all
            .iter()
            .filter(|&&probability| probability == 0.0)
            .count();
        let part = (left / n_without.max(1) as f64) as f32;
        let without = all.iter_mut().filter(|probability| **probability == 0.0);
        without.for_each(|probability| *probability = part);
    }
}

/// The division of a probability of 1 among the labels of a row.
struct Parts {
    /// Factor of the logits of the later labels.
    slope: f64,
    /// Largest scaled logit of a later label, also of the rest.
    peak: f64,
    /// The probability of the best label.
    top: f64,
    /// The probability of the other best labels together.
    later: f64,
    /// Factor of a label's power, the exponential of its distance from the peak.
    unit: f64,
}

/// Returns a prior at 0 that many of the `n_rows` rows can overrule.
fn cauchy(width: f64, n_rows: usize) -> Prior {
    Prior {
        center: 0.0,
        weight: 2.0 / (width * width * n_rows as f64),
        width,
    }
}

/// Returns a normal prior whose weight is beside the summed loss of `n_rows` rows.
fn normal(center: f64, weight: f64, n_rows: usize) -> Prior {
    Prior {
        center,
        weight: weight / n_rows as f64,
        width: f64::INFINITY,
    }
}

/// Fits the map from logits of the best label's share to its probability.
fn fit_top(tops: &[Outcome<f64>]) -> (Line, Bends) {
    let n_rows = tops.len();
    let near = cauchy(LINE_WIDTH, n_rows);
    let bend = normal(0.0, BEND_WEIGHT, n_rows);
    let priors = [near, near, bend, bend];
    let least = LEAST_GAIN / n_rows as f64;
    let [log_slope, intercept, above, below] =
        fit_logistic([0.0; 4], priors, least, tops, |at, &logit| {
            let slanted = at[0] * logit;
            let [above, below] = beyond(logit);
            let bent = slanted + at[1] + at[2] * above + at[3] * below;
            (bent, [slanted, 1.0, above, below])
        });
    let slope = log_slope.exp();
    let most = MOST_FLATTENED * slope;
    let line = Line { slope, intercept };
    let bends = Bends {
        above: above.max(-most),
        below: below.min(most),
    };
    (line, bends)
}

/// Fits the softmax of the later labels to rows whose best label is wrong: the logits of its later
/// labels, the place of the right one among them, if it is listed, and its weight. `unit` is the
/// weight of a usual row.
fn fit_later(start: Softmax, wrong: &[(&[f64], Option<usize>, f64)], unit: f64) -> Softmax {
    let [log_slope, rest] = minimize([0.0, start.rest], LEAST_GAIN, |[log_slope, rest]| {
        let slope = start.slope * log_slope.exp();
        let (away, [ridge, rest_ridge]) = (rest - start.rest, LATER_WEIGHTS);
        let mut loss = 0.5 * (ridge * log_slope * log_slope + rest_ridge * away * away);
        let mut down = [-ridge * log_slope, -rest_ridge * away];
        let mut curvature = [[ridge, 0.0], [0.0, rest_ridge]];
        for (logits, place, weight) in wrong {
            let peak = logits
                .first()
                .map_or(rest, |logit| (slope * logit).max(rest));
            let (unlisted, weight) = ((rest - peak).exp(), weight / unit);
            let (mut total, mut mean, mut square) = (unlisted, 0.0, 0.0);
            for scaled in logits.iter().map(|logit| slope * logit) {
                let power = (scaled - peak).exp();
                total += power;
                mean += power * scaled;
                square += power * scaled * scaled;
            }
            let [mean, square, unlisted] = [mean, square, unlisted].map(|sum| sum / total);
            let own = place.map(|place| slope * logits[place]);
            loss += weight * (total.ln() + peak - own.unwrap_or(rest));
            down[0] += weight * (own.unwrap_or(0.0) - mean);
            down[1] += weight * (f64::from(u8::from(own.is_none())) - unlisted);
            curvature[0][0] += weight * (square - mean * mean);
            curvature[1][0] -= weight * unlisted * mean;
            curvature[1][1] += weight * unlisted * (1.0 - unlisted);
        }
        (loss, down, curvature)
    });
    Softmax {
        slope: start.slope * log_slope.exp(),
        rest,
        ..start
    }
}

/// Returns the standard deviation of the first logits of all rows, or 1 if it is 0.
fn spread(rows: &[Outcome<&[f64]>]) -> f64 {
    let first = rows.iter().flat_map(|row| row.row.iter().take(N_SPREAD));
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for &logit in first {
        n += 1.0;
        let away = logit - mean;
        mean += away / n;
        squares += away * (logit - mean);
    }
    let spread = f64::sqrt(squares / n);
    if spread > 0.0 {
        spread
    } else {
        1.0
    }
}

/// Returns the logit of the best label's share, within [`MAX_LOGIT`], and its derivatives by the
/// logarithm of the slope and by the rest.
fn top_logit([slope, rest]: [f64; 2], logits: &[f64], n_classes: f64) -> (f64, [f64; 2]) {
    let first = slope * logits[0];
    let peak = first.max(rest);
    let rest = (rest - peak).exp();
    let power = (first - peak).exp();
    let own = power + rest / n_classes;
    let (mut others, mut moment) = (rest * (1.0 - 1.0 / n_classes), 0.0);
    for scaled in logits[1..].iter().map(|logit| slope * logit) {
        let power = (scaled - peak).exp();
        others += power;
        moment += power * scaled;
    }
    others = others.max(f64::MIN_POSITIVE);
    let by_slope = power * first / own - moment / others;
    let by_rest = rest / n_classes / own - rest * (1.0 - 1.0 / n_classes) / others;
    let logit = (own / others).ln().clamp(-MAX_LOGIT, MAX_LOGIT);
    (logit, [by_slope, by_rest])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Returns the probability of the best label.
    fn top(shares: Shares, logits: &[f32], n_classes: f64) -> f64 {
        let mut probabilities = logits.to_vec();
        shares.apply(Scale::Logit, n_classes as usize, &mut probabilities);
        probabilities[0].into()
    }

    /// Fits the map to rows of [`N_SHARING`] logits, all of the same weight. `is_right` is for the best
    /// label of each row; no other label is right.
    fn fitted(logits: &[f32], is_right: &[bool], n_classes: usize) -> Option<Shares> {
        let mut hits = vec![false; is_right.len() * N_SHARING];
        for (row, &is_right) in hits.chunks_exact_mut(N_SHARING).zip(is_right) {
            row[0] = is_right;
        }
        let ranked = RankedScores {
            scores: logits,
            width: N_SHARING,
            scale: Scale::Logit,
        };
        Shares::fit(ranked, &hits, &vec![1.0; is_right.len()], n_classes)
    }

    #[test]
    fn finds_the_map_that_outcomes_are_drawn_with() {
        for (slope, rest, [top_slope, intercept, above, below]) in [
            (1.0, -3.0, [1.0, 0.0, 0.0, 0.0]),
            (0.3, -1.0, [1.3, 0.5, 0.0, 0.0]),
            (2.0, 4.0, [0.8, 0.2, 0.0, 0.0]),
            (1.0, -3.0, [0.8, 0.2, 0.8, -0.5]),
        ] {
            let n = N_SHARING as f64;
            let map = [
                slope, rest, top_slope, intercept, above, below, slope, rest, n,
            ];
            let map = Shares::from(map);
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
            let found = fitted(&logits, &is_right, 1000).unwrap();
            let each = logits.chunks_exact(N_SHARING);
            let off = each.map(|row| (top(found, row, 1000.0) - top(map, row, 1000.0)).abs());
            let off = off.sum::<f64>() / is_right.len() as f64;
            assert!(off < 0.03, "{map:?} {found:?} {off}");
        }
    }

    #[test]
    fn few_rows_give_no_extreme_probabilities() {
        let mut row = [f32::NEG_INFINITY; N_SHARING];
        row[0] = 1.0;
        for (second, n_right) in [(0.0f32, 10), (1.0, 10), (f32::NEG_INFINITY, 10), (0.0, 0)] {
            row[1] = second;
            let is_right: Vec<bool> = (0..10).map(|i| i < n_right).collect();
            let found = fitted(&row.repeat(10), &is_right, 5).unwrap();
            assert!(found.is_sound(), "{found:?}");
            // The best label has at least the probability 1 / n_classes.
            let frequency = ((f64::from(n_right) + 1.0) / 12.0).max(0.2);
            // The prior keeps some of the learner's own share.
            let own = 1.0 / (1.0 + f64::from(second - row[0]).exp());
            let found = top(found, &row, 5.0);
            assert!((own.min(frequency)..=own.max(frequency)).contains(&found));
            assert!((found - frequency).abs() < (found - own).abs().max(0.1));
        }
    }

    #[test]
    fn no_rows_give_no_map() {
        assert_eq!(fitted(&[], &[], 5), None);
        assert_eq!(fitted(&[f32::NEG_INFINITY; N_SHARING], &[false], 5), None);
        let ranked = RankedScores {
            scores: &[0.0; N_SHARING],
            width: N_SHARING,
            scale: Scale::Logit,
        };
        assert_eq!(Shares::fit(ranked, &[true; N_SHARING], &[0.0], 5), None);
    }

    #[test]
    fn probabilities_of_all_labels_add_up_to_one() {
        let map = Shares {
            slope: 2.0,
            rest: 0.5,
            top: Line {
                slope: 0.7,
                intercept: -1.0,
            },
            bends: Bends {
                above: -0.3,
                below: 0.3,
            },
            later: None,
        };
        for (n_classes, later) in [
            (2, None),
            (7, Some((0.1, -30.0, N_SHARING))),
            (500, None),
            (500, Some((9.0, 30.0, N_SHARING))),
            (500, Some((0.01, -9.0, N_SHARING))),
            (500, Some((0.1, -9.0, MOST_SHARING))),
            (30, Some((2.0, -9.0, MOST_SHARING))),
        ] {
            let later = later.map(|(slope, rest, n_labels)| Softmax {
                slope,
                rest,
                n_labels,
            });
            let map = Shares { later, ..map };
            let mut random = Pcg64Mcg::seed_from_u64(5);
            let mut scores: Vec<f32> = (0..n_classes).map(|_| random.random()).collect();
            scores.sort_unstable_by(|a, b| b.total_cmp(a));
            map.apply(Scale::Logit, n_classes, &mut scores);
            let total: f64 = scores.iter().map(|&score| f64::from(score)).sum();
            assert!((total - 1.0).abs() < 1e-5, "{total}");
            assert!(scores.is_sorted_by(|a, b| a >= b));
            assert!(scores[0] > scores[1]);
        }
    }

    /// The second labels of half of the rows whose best label is wrong are right, or none is.
    #[test]
    fn other_labels_share_as_much_as_they_are_right() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        for share in [0.0, 0.5] {
            let (mut logits, mut hits) = (Vec::new(), Vec::new());
            for _ in 0..2000 {
                logits.extend([2.0, 1.0, 0.5].map(|logit| logit + random.random::<f32>()));
                let is_right = random.random::<f64>() < 0.7;
                let is_later = !is_right && random.random::<f64>() < share;
                hits.extend([is_right, is_later, false]);
            }
            let ranked = RankedScores {
                scores: &logits,
                width: 3,
                scale: Scale::Logit,
            };
            let found = Shares::fit(ranked, &hits, &vec![1.0; 2000], 500).unwrap();
            let mut later = 0.0;
            for row in logits.chunks_exact_mut(3) {
                row.sort_unstable_by(|a, b| b.total_cmp(a));
                found.apply(Scale::Logit, 500, row);
                later += row[1] + row[2];
            }
            let wanted = 0.3 * share as f32;
            assert!((later / 2000.0 - wanted).abs() < 0.02, "{later} {found:?}");
        }
    }

    /// Half of the rows have their best label, the others the label at place 40.
    #[test]
    fn labels_behind_the_first_softmax_have_probabilities_of_their_own() {
        let row: Vec<f32> = (0..100u8).map(|i| 3.0 - 0.05 * f32::from(i)).collect();
        let mut hits = vec![[false; 100]; 200];
        for (i, hits) in hits.iter_mut().enumerate() {
            hits[40 * (i % 2)] = true;
        }
        let logits = row.repeat(hits.len());
        let ranked = RankedScores {
            scores: &logits,
            width: row.len(),
            scale: Scale::Logit,
        };
        let fitted = Shares::fit(ranked, hits.as_flattened(), &[1.0; 200], 100).unwrap();
        assert_eq!(Shares::from(fitted.parameters()), fitted);
        // Older files may have fewer labels.
        for n_labels in [N_SHARING, MOST_SHARING] {
            let later = fitted.later.map(|later| Softmax { n_labels, ..later });
            let mut shares = row.clone();
            Shares { later, ..fitted }.apply(Scale::Logit, 100, &mut shares);
            assert!(shares[..=n_labels].is_sorted_by(|a, b| a > b), "{shares:?}");
            let others = &shares[n_labels..];
            assert!(others.iter().all(|&share| share == others[0]));
        }
    }

    #[test]
    fn labels_without_a_score_share_the_rest() {
        let mut all = [9.0; 4];
        spread_over_labels(&[2, -1, 0], &[0.5, 0.7, 0.1], true, &mut all);
        assert_eq!(all, [0.1, 0.2, 0.5, 0.2]);
        spread_over_labels(&[2], &[0.5], false, &mut all);
        assert_eq!(all, [0.0, 0.0, 0.5, 0.0]);
        let mut none = [f32::NEG_INFINITY; 2];
        softmax(Scale::Logit, &mut none);
        assert_eq!(none, [0.0; 2]);
    }
}
