//! The labels that a row becomes a negative example of: those that a model which has not learned the
//! row takes it to have (hard), some drawn by frequency (random), and those that the scorers so far
//! take it to have (mined).

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::margins::RowMargins;
use super::rank::LabelScores;
use crate::data::{Examples, Ragged};
use crate::learners::mix;
use crate::model::{keep_best, TopK};

/// The rounds so far, in each of which rows become negative examples of labels.
#[derive(Debug, Default)]
pub struct Negatives {
    rounds: Vec<NegativesRound>,
}

#[derive(Debug)]
struct NegativesRound {
    /// The labels of each row, increasing.
    labels: Ragged<u32>,
    /// The rows of each label, increasing.
    rows: Ragged<u32>,
}

impl Negatives {
    /// Adds a round: labels of each row, increasing, of the `n_labels` that there are.
    pub fn push(&mut self, labels: Ragged<u32>, n_labels: usize) {
        let rows = labels.regroup(n_labels, |row, &label| (label, row));
        self.rounds.push(NegativesRound { labels, rows });
    }

    /// Whether a row is a negative example of a label.
    pub fn contains(&self, row: u32, label: u32) -> bool {
        let mut rounds = self.rounds.iter();
        rounds.any(|round| round.labels.get(row as usize).binary_search(&label).is_ok())
    }

    /// The rows of a label, in a list for each round: those of further rounds come after.
    pub fn rows(&self, label: usize) -> Vec<&[u32]> {
        let rounds = self.rounds.iter();
        rounds.map(|round| round.rows.get(label)).collect()
    }
}

/// The `n` best labels by `scores` that are not among a row's `own`.
pub fn hard_negatives(own: &[u32], scores: &LabelScores, n: usize) -> Vec<u32> {
    let mut scored = Vec::new();
    scores.for_each(|label, score| {
        if own.binary_search(&label).is_err() {
            scored.push((label, score));
        }
    });
    keep_best(&mut scored, n);
    let mut labels: Vec<u32> = scored.iter().map(|&(label, _)| label).collect();
    // There is such a list for each row.
    labels.shrink_to_fit();
    labels
}

/// The labels that each row is a negative example of at first, increasing: the `hard` ones and `n`
/// that are drawn as often as rows have them, less its own.
pub fn first_negatives(
    examples: &Examples,
    hard: &Ragged<u32>,
    n: usize,
    seed: u64,
) -> Ragged<u32> {
    // An entry of all rows' labels is a label drawn by its frequency.
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

/// A negative of a smaller margin would have no loss.
const LEAST_MARGIN: f32 = -1.0;

/// The `n` labels of the largest margins by the index that `row` does not have and `is_known` does
/// not know, increasing.
pub fn mined_negatives(
    margins: &mut RowMargins<'_>,
    examples: &Examples,
    row: u32,
    n: usize,
    is_known: impl Fn(u32) -> bool,
) -> Vec<u32> {
    margins.read(examples.row(row));
    let own = examples.labels(row);
    let mut best = TopK::new(n);
    margins.for_each_found(|label, _| {
        let margin = margins.index_margin(label);
        // Few are good enough to be looked up.
        if margin > LEAST_MARGIN
            && margin >= best.bar()
            && own.binary_search(&label).is_err()
            && !is_known(label)
        {
            best.push(label, margin);
        }
    });
    let mut labels: Vec<u32> = best.labels().collect();
    labels.sort_unstable();
    labels
}
