//! The labels that a row becomes a negative example of. Hard negatives are the likeliest labels by a
//! model that has not learned the row, random ones are drawn by frequency, and mined ones are the
//! likeliest by the scorers so far.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::fit::{FitSample, N_FIT_CANDIDATES};
use super::rank::LabelScores;
use super::weights::{LabelWeights, RowMargins};
use crate::data::{Examples, Ragged};
use crate::learners::mix;
use crate::model::{keep_best, TopK};

/// The best labels of rows by a model that has not learned them.
#[derive(Debug, Default)]
pub struct Candidates {
    /// The best labels that a row does not have, for each row.
    pub hard: Ragged<u32>,
    /// The best labels, increasing, and their scores, for each row of [`FitSample`].
    pub scored: Ragged<(u32, f32)>,
}

/// The parts of [`Candidates`] of one row; the second is there for rows of the fit only.
pub type RowCandidates = (Vec<u32>, Option<Vec<(u32, f32)>>);

/// Returns the candidates of `row` by `scores`; there are none if every part of the model has
/// learned the row.
pub fn row_candidates(
    examples: &Examples,
    row: u32,
    scores: &LabelScores,
    n_negatives: usize,
    fit_sample: FitSample,
) -> RowCandidates {
    let hard = hard_negatives(examples.labels(row), scores, n_negatives);
    let is_scored = fit_sample.contains(row);
    let scored = is_scored.then(|| {
        let mut scored = best_labels(scores, N_FIT_CANDIDATES, |_| true);
        scored.shrink_to_fit();
        scored.sort_unstable_by_key(|&(label, _)| label);
        scored
    });
    (hard, scored)
}

impl FromIterator<RowCandidates> for Candidates {
    /// Joins the candidates of all rows, in their order.
    fn from_iter<I: IntoIterator<Item = RowCandidates>>(rows: I) -> Self {
        let mut all = Self::default();
        for (hard, scored) in rows {
            all.hard.push(hard);
            scored
                .into_iter()
                .for_each(|labels| all.scored.push(labels));
        }
        all
    }
}

/// Returns the `n` best of the labels that `is_allowed`, and their scores, in any order.
fn best_labels(
    scores: &LabelScores,
    n: usize,
    is_allowed: impl Fn(u32) -> bool,
) -> Vec<(u32, f32)> {
    let mut scored = Vec::new();
    scores.for_each(|label, score| {
        if is_allowed(label) {
            scored.push((label, score));
        }
    });
    keep_best(&mut scored, n);
    scored
}

/// Returns the `n` best labels by `scores` that are not among a row's `own`.
pub fn hard_negatives(own: &[u32], scores: &LabelScores, n: usize) -> Vec<u32> {
    let scored = best_labels(scores, n, |label| own.binary_search(&label).is_err());
    // Collected from a slice, it takes no more memory than needed: there is a list for each row.
    scored.iter().map(|&(label, _)| label).collect()
}

/// The negatives of all rounds so far.
#[derive(Debug, Default)]
pub struct Negatives {
    /// The labels of each row, increasing, in each round.
    labels: Vec<Ragged<u32>>,
    /// The rows of each label in each round.
    rows: Vec<Ragged<u32>>,
}

impl Negatives {
    /// Adds a round: the labels of each row, increasing and below `n_labels`.
    pub fn push(&mut self, labels: Ragged<u32>, n_labels: usize) {
        let rows = labels.regroup(n_labels, |row, &label| (label, row));
        self.labels.push(labels);
        self.rows.push(rows);
    }

    /// Keeps only these rows of each label, increasing, of `n_rows` in total.
    pub fn retain(&mut self, kept: &Ragged<u32>, n_rows: usize) {
        for (labels, rows) in self.labels.iter_mut().zip(&mut self.rows) {
            let mut rest = Ragged::default();
            for label in 0..rows.len() {
                let is_kept = |row: &&u32| kept.get(label).binary_search(row).is_ok();
                rest.push(rows.get(label).iter().filter(is_kept).copied());
            }
            *labels = rest.regroup(n_rows, |label, &row| (row, label));
            *rows = rest;
        }
    }

    /// Returns the labels of all rows in the first round, then in the second, and so on.
    pub fn into_lists(self) -> Ragged<u32> {
        let mut all = Ragged::default();
        let lists = self.labels.iter().flat_map(Ragged::iter);
        lists.for_each(|list| all.push(list.iter().copied()));
        all
    }

    /// Restores the negatives of `n_rows` rows from [`into_lists`](Self::into_lists).
    pub fn from_lists(all: &Ragged<u32>, n_rows: usize, n_labels: usize) -> Self {
        let mut negatives = Self::default();
        for first in (0..all.len()).step_by(n_rows.max(1)) {
            let mut lists = Ragged::default();
            let round = all.iter().skip(first).take(n_rows);
            round.for_each(|list| lists.push(list.iter().copied()));
            negatives.push(lists, n_labels);
        }
        negatives
    }

    /// Returns the labels of a row in the first round.
    pub fn first(&self, row: usize) -> &[u32] {
        self.labels[0].get(row)
    }

    /// Returns whether a row is a negative example of a label.
    pub fn contains(&self, row: u32, label: u32) -> bool {
        let mut rounds = self.labels.iter();
        rounds.any(|labels| labels.get(row as usize).binary_search(&label).is_ok())
    }

    /// Returns the rows of a label in a list for each round, in their order.
    pub fn rows(&self, label: usize) -> Vec<&[u32]> {
        self.rows.iter().map(|rows| rows.get(label)).collect()
    }
}

/// Returns the negatives of the first round, increasing for each row: the `hard` ones and `n` that
/// are drawn by their frequency, without the row's own labels.
pub fn first_negatives(
    examples: &Examples,
    hard: &Ragged<u32>,
    n: usize,
    seed: u64,
) -> Ragged<u32> {
    // A random entry of all rows' labels is a label drawn by its frequency.
    let all = examples.labels.entries();
    let mut negatives = Ragged::with_capacity(examples.len(), 0);
    let mut labels = Vec::new();
    for row in 0..examples.len() as u32 {
        let own = examples.labels(row);
        let mut random = Pcg64Mcg::seed_from_u64(mix(seed ^ !u64::from(row)));
        let drawn = (0..n).map(|_| all[random.random_range(0..all.len())]);
        labels.clear();
        labels.extend_from_slice(hard.get(row as usize));
        labels.extend(drawn.filter(|label| own.binary_search(label).is_err()));
        labels.sort_unstable();
        labels.dedup();
        negatives.push(labels.iter().copied());
    }
    negatives
}

/// A negative example of a smaller margin has no loss.
const MIN_MARGIN: f32 = -1.0;

impl RowMargins {
    /// Returns the `n` labels, increasing, with the largest margins by the index that `row` does
    /// not have and `is_known` does not know. The row's block has been read.
    pub fn mine(
        &mut self,
        weights: &LabelWeights,
        examples: &Examples,
        row: u32,
        n: usize,
        is_known: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        self.read_next(weights, examples.row(row), row as usize);
        let own = examples.labels(row);
        let mut best = TopK::new(n);
        let mut visit = |label: u32, margin: f32| {
            // Lookups come last: few labels have such a margin.
            if margin > MIN_MARGIN
                && margin >= best.bar()
                && own.binary_search(&label).is_err()
                && !is_known(label)
            {
                best.push(label, margin);
            }
            best.bar().max(MIN_MARGIN)
        };
        if weights.is_index_complete() {
            self.for_each_above(weights, MIN_MARGIN, visit);
        } else {
            self.for_each_found(weights, |label, _| {
                visit(label, self.index_margin(weights, label));
            });
        }
        let mut labels: Vec<u32> = best.labels().collect();
        labels.sort_unstable();
        labels
    }
}
