//! Of which labels a row is a negative example.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::examples::Examples;
use super::super::label_scores::LabelScores;
use super::super::params::Params;
use crate::classifier::keep_best;
use crate::data::Ragged;
use crate::random::mix;

/// The negatives of all rounds so far.
#[derive(Debug, Default)]
pub struct Negatives {
    rounds: Vec<Arc<NegativesRound>>,
}

/// Which rows became negative examples of which labels in a round.
#[derive(Debug)]
pub struct NegativesRound {
    /// The labels of each row, increasing.
    labels: Ragged<u32>,
    /// The rows of each label, increasing.
    rows: Ragged<u32>,
}

impl NegativesRound {
    /// Of the labels of each row, increasing, of the `n_labels` that there are.
    pub fn new(labels: Ragged<u32>, n_labels: usize) -> Self {
        let rows = labels.regroup(n_labels, |row, &label| (label, row));
        Self { labels, rows }
    }

    /// The labels of each row.
    pub fn labels(&self) -> &Ragged<u32> {
        &self.labels
    }

    /// Number of labels that there are.
    pub fn n_labels(&self) -> usize {
        self.rows.len()
    }
}

impl Negatives {
    pub fn new(rounds: Vec<Arc<NegativesRound>>) -> Self {
        Self { rounds }
    }

    /// Adds a round: labels of each row, increasing, of the `n_labels` that there are.
    pub fn push(&mut self, labels_of_rows: Vec<Vec<u32>>, n_labels: usize) {
        let n = labels_of_rows.iter().map(Vec::len).sum();
        let mut labels = Ragged::with_capacity(labels_of_rows.len(), n);
        labels_of_rows
            .into_iter()
            .for_each(|list| labels.push(list));
        self.rounds
            .push(NegativesRound::new(labels, n_labels).into());
    }

    /// Whether a row is a negative example of a label.
    pub fn contains(&self, row: u32, label: u32) -> bool {
        let mut lists = self
            .rounds
            .iter()
            .map(|round| round.labels.get(row as usize));
        lists.any(|labels| labels.binary_search(&label).is_ok())
    }

    /// The rows of a label, in a list for each round: those of further rounds come after.
    pub fn rows_of(&self, label: usize) -> Vec<&[u32]> {
        let rounds = self.rounds.iter();
        rounds.map(|round| round.rows.get(label)).collect()
    }
}

/// The labels that row `row` does not have but stands for as a negative example, increasing:
/// the best by `scores`, and labels drawn as often as rows have them. O(scored labels + drawn
/// labels x log).
pub fn negatives(examples: &Examples, row: u32, scores: &LabelScores, params: &Params) -> Vec<u32> {
    let own = examples.labels(row);
    let is_other = |label: u32| own.binary_search(&label).is_err();
    let mut scored = Vec::new();
    scores.for_each(|label, score| {
        if is_other(label) {
            scored.push((label, score));
        }
    });
    keep_best(&mut scored, params.n_hard_negatives as usize);
    let mut chosen: Vec<u32> = scored.iter().map(|&(label, _)| label).collect();
    // An entry of all rows' labels is a label drawn by its frequency.
    let all = examples.labels.entries();
    let mut random = Pcg64Mcg::seed_from_u64(mix(params.seed ^ !u64::from(row)));
    let drawn = (0..params.n_random_negatives).map(|_| all[random.random_range(0..all.len())]);
    chosen.extend(drawn.filter(|&label| is_other(label)));
    chosen.sort_unstable();
    chosen.dedup();
    // There is such a list for each row.
    chosen.shrink_to_fit();
    chosen
}
