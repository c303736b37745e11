//! How the labels of a row, of which one is right, share its probability.
//!
//! The softmax of `slope * logit` over the best labels and, as one more term, `rest`, which all
//! labels share alike: in a softmax over all labels the many far below the best would outweigh it.
//! Then the logit of the best label's probability goes through a line, and the others share what
//! it leaves.
//!
//! Both steps are fitted to the log loss of "the best label is right" (top-label calibration: C.
//! Gupta, A. Ramdas, ICLR 2022) and not to that of the true label: a tree gives most labels no
//! score at all, and the few rows of such a label would decide.

use serde::{Deserialize, Serialize};

use super::calibration::{fit_logistic, targets, Line, Outcome, Target};

/// The map from logits to shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Factor of the logits.
    pub slope: f64,
    /// Logit, times the slope, of what all labels share.
    pub rest: f64,
    /// From the logit of the best label's share to its probability.
    pub top: Line,
}

impl Default for Shares {
    /// A softmax.
    fn default() -> Self {
        Self {
            slope: 1.0,
            rest: -1000.0,
            top: Line::default(),
        }
    }
}

/// Best labels of a row that share its probability.
pub const N_SHARING: usize = 20;
/// Of them those whose spread the slope is first guessed from.
const N_SPREAD: usize = 5;
/// Logits of a best label's share are read as at most this.
const MAX_LOGIT: f64 = 20.7;

/// What the scores of a learner are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Numbers whose differences are logits.
    Logit,
    /// Shares of one: their logarithms are logits.
    Share,
    /// Probabilities, each of its own label.
    Probability,
}

impl Scale {
    /// The logit of a score; minus infinity where there is none.
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

/// The logit of a probability below 1.
fn logit(probability: f64) -> f64 {
    probability.ln() - (-probability).ln_1p()
}

/// The scores of some best labels of each row, falling and minus infinity where there is none.
#[derive(Debug, Clone, Copy)]
pub struct RankedScores<'a> {
    /// Those of one row after the other.
    pub scores: &'a [f32],
    /// Scores of a row.
    pub width: usize,
    /// What they are.
    pub scale: Scale,
}

impl RankedScores<'_> {
    /// The logits of each row, [`N_SHARING`] at most.
    fn logits(&self) -> impl Iterator<Item = Vec<f64>> + Clone + '_ {
        let rows = self.scores.chunks_exact(self.width.max(1));
        rows.map(|row| {
            let best = row.iter().take(N_SHARING);
            best.map(|&score| self.scale.logit(score)).collect()
        })
    }
}

impl Shares {
    /// Fits the map by whether the best label of each row is right. None without rows that have a
    /// score and a weight.
    pub fn fit(
        ranked: RankedScores<'_>,
        is_right: &[bool],
        weights: &[f64],
        n_classes: usize,
    ) -> Option<Self> {
        let each = ranked.logits().zip(is_right).zip(weights);
        let known = each.filter(|((logits, _), &weight)| {
            weight > 0.0 && logits.first().is_some_and(|logit| logit.is_finite())
        });
        let known = known.map(|((row, &is_right), &weight)| Outcome {
            row,
            is_right,
            weight,
        });
        let rows = targets(known.collect());
        if rows.is_empty() || n_classes < 2 {
            return None;
        }
        let spread = spread(&rows);
        let mut best: Vec<f64> = rows.iter().map(|row| row.row[0]).collect();
        best.sort_unstable_by(f64::total_cmp);
        let start = [-spread.ln(), best[best.len() / 2] / spread - 2.0];
        let n_classes = n_classes as f64;
        let [log_slope, rest] =
            fit_logistic(start, &rows, |point, row| top_logit(point, row, n_classes));
        let mut tops: Vec<Target<f64>> = Vec::new();
        for row in rows {
            let (top, _) = top_logit([log_slope, rest], &row.row, n_classes);
            tops.push(Target {
                row: top.clamp(-MAX_LOGIT, MAX_LOGIT),
                probability: row.probability,
                weight: row.weight,
            });
        }
        let [log_top_slope, intercept] = fit_logistic([0.0, 0.0], &tops, |point, row| {
            let slanted = point[0].exp() * row;
            (slanted + point[1], [slanted, 1.0])
        });
        Some(Self {
            slope: log_slope.exp(),
            rest,
            top: Line {
                slope: log_top_slope.exp(),
                intercept,
            },
        })
    }

    /// Makes the falling `scores` of a row probabilities; of its other labels each has an even
    /// part of what these leave of 1. Takes O(labels).
    pub fn apply(self, scale: Scale, n_classes: usize, scores: &mut [f32]) {
        let Some(&first) = scores.first() else { return };
        let (n_classes, second) = (n_classes as f64, scores.get(1).copied());
        let scaled = |score: f32| self.slope * scale.logit(score);
        // Labels as good as the one behind the best share what all share.
        let bar = scores
            .get(N_SHARING)
            .map_or(f64::NEG_INFINITY, |&s| scaled(s));
        let peak = scaled(first).max(self.rest);
        let power = |score: f32| {
            let scaled = scaled(score);
            if scaled > bar {
                (scaled - peak).exp()
            } else {
                0.0
            }
        };
        let best = &scores[..scores.len().min(N_SHARING)];
        let rest = (self.rest - peak).exp();
        let total = rest + best.iter().map(|&score| power(score)).sum::<f64>();
        let share = |score: f32| (power(score) + rest / n_classes) / total;
        let of_first = share(first);
        let line = logit(of_first.clamp(1e-9, 1.0 - 1e-9));
        let top = self.top.probability(line).max(1.0 / n_classes);
        let factor = (1.0 - top) / (1.0 - of_first).max(1e-12);
        // No label has more than the best: what is above it is shared by all labels.
        let others = scores[1..].iter().map(|&score| share(score) * factor);
        let excess: f64 = others.map(|share| (share - top).max(0.0)).sum();
        let part = excess / (n_classes * top - 1.0 + excess).max(1e-12);
        for score in &mut scores[1..] {
            let share = (share(*score) * factor).min(top);
            *score = (share + part * (top - share)) as f32;
        }
        scores[0] = top as f32;
        // The predicted label has the largest probability, whatever rounding makes of it.
        if second.is_some_and(|second| first > second) {
            scores[0] = scores[0].max(scores[1].next_up());
        }
    }

    /// Whether the numbers can be a map's, as those of a file may not.
    pub fn is_sound(&self) -> bool {
        self.slope.is_finite() && self.slope > 0.0 && self.rest.is_finite() && self.top.is_sound()
    }
}

/// The softmax of a row's scores; 0 where a row has none.
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

/// Writes the probabilities of the labels `codes`, minus 1 where there is none, into those of `all`
/// labels. With `has_one` each row has one label: what is left of 1 goes to the labels of
/// probability 0, all alike.
pub fn spread_over_labels(codes: &[i32], chances: &[f32], has_one: bool, all: &mut [f32]) {
    all.fill(0.0);
    let mut left = 1.0;
    for (&code, &chance) in codes.iter().zip(chances) {
        if let Some(of_label) = usize::try_from(code)
            .ok()
            .and_then(|code| all.get_mut(code))
        {
            *of_label = chance;
            left -= f64::from(chance);
        }
    }
    if has_one && left > 0.0 {
        let n_without = all.iter().filter(|&&chance| chance == 0.0).count();
        let part = (left / n_without.max(1) as f64) as f32;
        let without = all.iter_mut().filter(|chance| **chance == 0.0);
        without.for_each(|chance| *chance = part);
    }
}

/// The standard deviation of the first logits of all rows, 1 where it is 0.
fn spread(rows: &[Target<Vec<f64>>]) -> f64 {
    let first = rows.iter().flat_map(|row| row.row.iter().take(N_SPREAD));
    let first = first.filter(|logit| logit.is_finite());
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

/// The logit of the best label's share, for the logarithm of the slope and the rest, and its
/// derivatives by these.
fn top_logit([log_slope, rest]: [f64; 2], logits: &[f64], n_classes: f64) -> (f64, [f64; 2]) {
    let slope = log_slope.exp();
    let first = slope * logits[0];
    let peak = first.max(rest);
    let rest = (rest - peak).exp();
    let power = (first - peak).exp();
    let own = power + rest / n_classes;
    let (mut others, mut moment) = (rest * (1.0 - 1.0 / n_classes), 0.0);
    let scored = logits[1..].iter().filter(|logit| logit.is_finite());
    for scaled in scored.map(|logit| slope * logit) {
        let power = (scaled - peak).exp();
        others += power;
        moment += power * scaled;
    }
    others = others.max(f64::MIN_POSITIVE);
    let by_slope = power * first / own - moment / others;
    let by_rest = rest / n_classes / own - rest * (1.0 - 1.0 / n_classes) / others;
    ((own / others).ln(), [by_slope, by_rest])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// The best label's probability.
    fn top(shares: Shares, logits: &[f32], n_classes: f64) -> f64 {
        let mut chances = logits.to_vec();
        shares.apply(Scale::Logit, n_classes as usize, &mut chances);
        chances[0].into()
    }

    /// The map of rows of [`N_SHARING`] logits, all of one weight.
    fn fitted(logits: &[f32], is_right: &[bool], n_classes: usize) -> Option<Shares> {
        let ranked = RankedScores {
            scores: logits,
            width: N_SHARING,
            scale: Scale::Logit,
        };
        Shares::fit(ranked, is_right, &vec![1.0; is_right.len()], n_classes)
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
                top: Line {
                    slope: top_slope,
                    intercept,
                },
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
            let found = fitted(&logits, &is_right, 1000).unwrap();
            let each = logits.chunks_exact(N_SHARING);
            let off = each.map(|row| (top(found, row, 1000.0) - top(map, row, 1000.0)).abs());
            let off = off.sum::<f64>() / is_right.len() as f64;
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
            let found = fitted(&row.repeat(10), &is_right, 5).unwrap();
            assert!(found.is_sound(), "{found:?}");
            // No best label has less than an even part.
            let wanted = ((f64::from(n_right) + 1.0) / 12.0).max(0.2);
            assert!((top(found, &row, 5.0) - wanted).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn without_rows_there_is_none() {
        assert_eq!(fitted(&[], &[], 5), None);
        assert_eq!(fitted(&[f32::NEG_INFINITY; N_SHARING], &[false], 5), None);
        let ranked = RankedScores {
            scores: &[0.0; N_SHARING],
            width: N_SHARING,
            scale: Scale::Logit,
        };
        assert_eq!(Shares::fit(ranked, &[true], &[0.0], 5), None);
    }

    #[test]
    fn probabilities_are_those_of_all_labels() {
        let map = Shares {
            slope: 2.0,
            rest: 0.5,
            top: Line {
                slope: 0.7,
                intercept: -1.0,
            },
        };
        for n_classes in [2, 7, 500] {
            let mut random = Pcg64Mcg::seed_from_u64(5);
            let mut scores: Vec<f32> = (0..n_classes).map(|_| random.random()).collect();
            scores.sort_unstable_by(|a, b| b.total_cmp(a));
            map.apply(Scale::Logit, n_classes, &mut scores);
            let total: f64 = scores.iter().map(|&chance| f64::from(chance)).sum();
            assert!((total - 1.0).abs() < 1e-5, "{total}");
            assert!(scores.is_sorted_by(|a, b| a >= b));
            assert!(scores[0] > scores[1]);
        }
    }

    #[test]
    fn labels_without_a_score_share_what_is_left() {
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
