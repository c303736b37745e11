//! The fit of join and calibration, on the candidates of rows that neither the other model nor the
//! scorers have learned.

use std::ops::RangeInclusive;

use super::dense::BLOCK;
use super::rank::{loss_if_present, Calibration, Join, OneAgainstSome};
use super::weights::{LabelWeights, RowMargins};
use crate::data::{Examples, Ragged};
use crate::metrics::{Line, Outcome, RankedScores, Scale, Shares, MOST_SHARING};
use crate::model::TopK;
use crate::persist;

/// Candidates taken by the other model's scores, and as many by margins.
pub const N_FIT_CANDIDATES: usize = 100;
/// Numbers of rows that the join is fitted on, if there are so many.
const FIT_ROWS: RangeInclusive<usize> = 200..=4096;
/// One row in this many is used for the fit, so that other rows remain to learn from. With few rows
/// the fit needs a larger share, and with many it needs a smaller one.
const FIT_STEPS: RangeInclusive<usize> = 5..=10;

/// The rows of the fit: every row below `n` whose number is a multiple of `step`.
#[derive(Debug, Clone, Copy)]
pub struct FitSample {
    step: usize,
    n: usize,
}

impl FitSample {
    /// Samples from `n_rows` rows.
    pub fn new(n_rows: usize) -> Self {
        let step = (n_rows / FIT_ROWS.start()).clamp(*FIT_STEPS.start(), *FIT_STEPS.end());
        Self {
            step: step.max(n_rows.div_ceil(*FIT_ROWS.end())),
            n: n_rows,
        }
    }

    /// The first `n` rows.
    pub fn first(n: usize) -> Self {
        Self { step: 1, n }
    }

    /// Returns the share of all rows.
    pub fn share(self) -> f64 {
        1.0 / self.step as f64
    }

    pub fn contains(self, row: u32) -> bool {
        (row as usize) < self.n && (row as usize).is_multiple_of(self.step)
    }

    fn rows(self) -> impl ExactSizeIterator<Item = u32> + Clone {
        (0..self.n as u32).step_by(self.step)
    }

    /// Returns the margins of the labels `scored` by the other model, increasing, and of the best by
    /// margins. For each label `held_out` has the rows that its scorer was trained without for the
    /// fit, and their margins.
    pub fn margins<'h>(
        self,
        weights: &LabelWeights,
        examples: &Examples,
        scored: &Ragged<(u32, f32)>,
        held_out: impl Iterator<Item = &'h [(u32, f32)]>,
    ) -> FitMargins {
        let mut held_out_margins = vec![Vec::new(); self.rows().len()];
        for (label, margins) in (0..).zip(held_out) {
            for &(row, margin) in margins {
                held_out_margins[row as usize / self.step].push((label, margin));
            }
        }
        let (mut margins, mut all) = (RowMargins::default(), FitMargins::default());
        for (i, (row, held_out)) in self.rows().zip(&held_out_margins).enumerate() {
            if i.is_multiple_of(BLOCK) {
                let block = self.rows().skip(i).take(BLOCK);
                margins.read_block(weights, block.map(|row| examples.row(row)));
            }
            margins.read_next(weights, examples.row(row), i);
            let found = margins.best_found(weights, N_FIT_CANDIDATES);
            let listed = labels_of(scored.get(i), &found).map(|label| {
                let known = look_up(held_out, label);
                let margin = known.unwrap_or_else(|| margins.margin(weights, label));
                (label, margin)
            });
            // Labels without examples have none.
            let has_margin = |&(_, margin): &(u32, f32)| margin > f32::NEG_INFINITY;
            all.margins.push(listed.filter(has_margin));
            all.found.push(found);
        }
        all
    }

    /// Returns the rows with their candidates: the labels `scored` by the other model, increasing,
    /// and the best by margins, of which each of `parts` has those of some labels.
    pub fn candidates(
        self,
        examples: &Examples,
        scored: &Ragged<(u32, f32)>,
        parts: &[FitMargins],
    ) -> Vec<FitRow> {
        let mut found = TopK::new(N_FIT_CANDIDATES);
        let mut fit_rows = Vec::new();
        for (i, row) in self.rows().enumerate() {
            // A row without scores says nothing: every part of the other model has learned it.
            let scored = scored.get(i);
            if scored.is_empty() {
                continue;
            }
            found.clear();
            for &(label, rank) in parts.iter().flat_map(|part| part.found.get(i)) {
                found.push(label, rank);
            }
            let margins = parts.iter().flat_map(|part| part.margins.get(i));
            let mut margins: Vec<(u32, f32)> = margins.copied().collect();
            margins.sort_unstable_by_key(|&(label, _)| label);
            let own = examples.labels(row);
            let candidate = |label| Candidate {
                score_before: look_up(scored, label).unwrap_or(0.0),
                margin: look_up(&margins, label).unwrap_or(f32::NEG_INFINITY),
                is_own: own.binary_search(&label).is_ok(),
            };
            let found: Vec<(u32, f32)> = found.entries().collect();
            fit_rows.push(FitRow {
                candidates: labels_of(scored, &found).map(candidate).collect(),
                weight: examples.weight(row),
            });
        }
        fit_rows
    }
}

/// Returns the labels of two lists, increasing.
fn labels_of(first: &[(u32, f32)], second: &[(u32, f32)]) -> impl Iterator<Item = u32> + use<> {
    let mut labels: Vec<u32> = first
        .iter()
        .chain(second)
        .map(|&(label, _)| label)
        .collect();
    labels.sort_unstable();
    labels.dedup();
    labels.into_iter()
}

/// Returns the number of a label in a list of increasing labels.
fn look_up(list: &[(u32, f32)], label: u32) -> Option<f32> {
    let at = list.binary_search_by_key(&label, |&(label, _)| label);
    at.ok().map(|at| list[at].1)
}

/// Margins of labels for each row of the fit, by scorers that have not learned it.
#[derive(Debug, Default)]
pub struct FitMargins {
    /// The best labels by the index, and what it ranks them by.
    pub found: Ragged<(u32, f32)>,
    /// These labels and those that the other model scores, increasing, and their margins.
    pub margins: Ragged<(u32, f32)>,
}

persist!(FitMargins {
    Nest found;
    Nest margins;
});

/// A label of a row that may be among its best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The score by a model that has not learned the row.
    pub score_before: f32,
    /// The margin by a scorer that has not learned the row.
    pub margin: f32,
    /// Set if the row has the label.
    pub is_own: bool,
}

/// A row of the fit.
#[derive(Debug, Clone, Default)]
pub struct FitRow {
    pub candidates: Vec<Candidate>,
    pub weight: f32,
}

/// Returns the candidates with the highest final scores, best first and equal scores in the order
/// of the row. `top` says how many, and is cleared first.
fn best<'r>(
    row: &'r FitRow,
    join: Join,
    top: &'r mut TopK,
) -> impl Iterator<Item = &'r Candidate> + 'r {
    top.clear();
    for (i, candidate) in (0..).zip(&row.candidates) {
        let (score, margin) = (candidate.score_before, candidate.margin);
        // Most candidates are far below the best, and their scores need not be computed.
        if join.upper_bound(score, margin) > top.bar() {
            top.push(i, join.score(score, margin));
        }
    }
    top.labels().map(|i| &row.candidates[i as usize])
}

/// The weights and floors that are tried. With a smaller floor the other model could rule a label
/// out.
const WEIGHTS: [f32; 9] = [0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
const FLOORS: [f32; 5] = [0.001, 0.003, 0.01, 0.03, 0.1];
/// The join if there are no rows to fit it on.
const DEFAULT_JOIN: Join = Join {
    floor: 0.01,
    weight: 0.5,
};
/// The contribution of each place to P@1 + P@3 + P@5; the first place is part of all three.
const GAINS: [f64; 5] = [23.0 / 15.0, 8.0 / 15.0, 8.0 / 15.0, 0.2, 0.2];

/// Joins that trust the scorers more are preferred if they reach this share of the best gain.
/// Scorers gain more with new rows than here: with label sets, the scorer of a row's own label has
/// met negatives that were mined when it knew the row.
const NEARLY: f64 = 0.995;

impl OneAgainstSome {
    /// Returns scorers of these weights, with join and calibration by the rows of the fit.
    pub fn fit(weights: LabelWeights, rows: &[FitRow], idf_power: f64, cost: f64) -> Self {
        let (join, _) = fit_join(rows);
        Self {
            join,
            calibration: fit_calibration(rows, join, weights.biases.len()),
            weights,
            idf_power,
            cost,
        }
    }
}

/// Returns the row with only the candidates that some join can rank among the best for [`GAINS`]: few
/// earlier ones have at least their score and margin. This saves most of the time for many joins.
pub fn contenders(row: &FitRow) -> FitRow {
    let (mut candidates, mut kept) = (Vec::new(), Vec::<(f32, f32)>::new());
    for candidate in &row.candidates {
        let (score, loss) = (candidate.score_before, loss_if_present(candidate.margin));
        let ahead = kept.iter().filter(|&&(s, l)| s >= score && l <= loss);
        if ahead.take(GAINS.len()).count() < GAINS.len() {
            kept.push((score, loss));
            candidates.push(*candidate);
        }
    }
    FitRow {
        candidates,
        weight: row.weight,
    }
}

/// Returns the contribution of each row to P@1 + P@3 + P@5 with `join`. Takes O(rows x candidates).
fn row_gains(rows: &[FitRow], join: Join) -> Vec<f64> {
    let mut top = TopK::new(GAINS.len());
    let row_gain = |row: &FitRow| {
        let places = best(row, join, &mut top).zip(GAINS);
        let gains = places.filter(|(candidate, _)| candidate.is_own);
        gains.map(|(_, gain)| gain).sum::<f64>() * f64::from(row.weight)
    };
    rows.iter().map(row_gain).collect()
}

/// Returns the gains of rows with the best weight of the scorers. This compares scorers: the floor
/// hardly changes which are better.
pub fn best_gains(rows: &[FitRow]) -> Vec<f64> {
    let floor = DEFAULT_JOIN.floor;
    let rows: Vec<FitRow> = rows.iter().map(contenders).collect();
    let gains = WEIGHTS.map(|weight| row_gains(&rows, Join { floor, weight }));
    let best = gains.into_iter().max_by(|a, b| {
        let sum = |gains: &[f64]| gains.iter().sum::<f64>();
        sum(a).total_cmp(&sum(b))
    });
    best.unwrap_or_default()
}

/// Returns the join of the largest P@1 + P@3 + P@5, summed over all rows, and this sum. Of equally
/// good joins it is the middle one, as those at the ends are next to worse ones; see also
/// [`NEARLY`]. Takes O(rows x candidates) for each of the 45 joins.
pub fn fit_join(rows: &[FitRow]) -> (Join, f64) {
    let rows: Vec<FitRow> = rows.iter().map(contenders).collect();
    let mut joins = Vec::new();
    for weight in WEIGHTS {
        for floor in FLOORS {
            let join = Join { floor, weight };
            joins.push((join, row_gains(&rows, join).iter().sum::<f64>()));
        }
    }
    let most = joins.iter().map(|&(_, gain)| gain).fold(0.0, f64::max);
    if most == 0.0 {
        return (DEFAULT_JOIN, most);
    }
    let equal: Vec<Join> = joins
        .iter()
        .filter(|join| join.1 == most)
        .map(|join| join.0)
        .collect();
    let middle = equal[equal.len() / 2];
    joins.retain(|&(join, gain)| {
        join.weight > middle.weight && gain < most && gain >= NEARLY * most
    });
    let chosen = joins.last().map_or(middle, |&(join, _)| join);
    (chosen, most)
}

/// Number of best candidates of a row that the calibration is fitted to. These are the labels that
/// users read and that a threshold decides on; all others together would outweigh them.
const N_CALIBRATED: usize = 10;
/// Least slope, so that probabilities grow with the score.
const MIN_SLOPE: f64 = 0.01;
/// Least decreases of the log loss by the map to shares: summed over the rows, and per row. If it
/// reaches neither, the probabilities are only divided by their sum. The map is fitted to the rows that
/// chose the join, so few of them make it too confident.
const LEAST_GAIN: f64 = 3.0;
const LEAST_ROW_GAIN: f64 = 0.03;

/// Fits the calibration of scores by `join`.
pub fn fit_calibration(rows: &[FitRow], join: Join, n_labels: usize) -> Calibration {
    let score = |candidate: &Candidate| join.score(candidate.score_before, candidate.margin);
    let (mut top, mut points) = (TopK::new(N_CALIBRATED), Vec::new());
    for row in rows {
        points.extend(best(row, join, &mut top).map(|candidate| Outcome {
            row: score(candidate).ln().into(),
            is_right: candidate.is_own,
            weight: row.weight.into(),
        }));
    }
    let Line { slope, intercept } = Line::fit(&points);
    let mut fitted = Calibration {
        offset: intercept as f32,
        slope: slope.max(MIN_SLOPE) as f32,
        shares: Shares::default(),
    };
    if !fitted.is_sound() {
        return Calibration::default();
    }
    let (mut scores, mut hits, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut top = TopK::new(MOST_SHARING);
    for row in rows {
        let n_before = scores.len();
        for candidate in best(row, join, &mut top) {
            scores.push(fitted.probability(score(candidate)));
            hits.push(candidate.is_own);
        }
        scores.resize(n_before + MOST_SHARING, 0.0);
        hits.resize(n_before + MOST_SHARING, false);
        weights.push(f64::from(row.weight));
    }
    let ranked = RankedScores {
        scores: &scores,
        width: MOST_SHARING,
        scale: Scale::Probability,
    };
    let Some(shares) = Shares::fit(ranked, &hits, &weights, n_labels) else {
        return fitted;
    };
    let rows = scores.chunks_exact_mut(MOST_SHARING);
    let rows = rows.zip(hits.chunks_exact(MOST_SHARING)).zip(&weights);
    let (mut gain, mut weight) = (0.0, 0.0);
    for ((scores, hits), &row_weight) in rows {
        weight += row_weight;
        // Only the map gives a probability to labels without a score.
        let Some(own) = hits.iter().position(|&is_own| is_own) else {
            gain = f64::INFINITY;
            break;
        };
        let part = scores[own] / scores.iter().sum::<f32>();
        shares.apply(Scale::Probability, n_labels, scores);
        gain += row_weight * f64::from(scores[own] / part).ln();
    }
    let row_gain = gain / weight;
    if row_gain >= LEAST_ROW_GAIN || row_gain * weights.len() as f64 >= LEAST_GAIN {
        fitted.shares = shares;
    }
    fitted
}
