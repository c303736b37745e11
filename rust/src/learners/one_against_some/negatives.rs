//! The labels that a row becomes a negative example of: those that a model which has not learned the
//! row takes it to have (hard), some drawn by frequency (random), and those that the scorers so far
//! take it to have (mined).

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::rank::LabelScores;
use super::rows::ScorerRows;
use super::svm::Scorer;
use crate::data::{Examples, Ragged};
use crate::learners::mix;
use crate::model::keep_best;

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

/// Labels of a feature that a row looks at: those of the largest weights. It bounds the work
/// for a row, whatever the number of labels.
const MOST_LABELS: usize = 512;
/// A negative of a smaller margin would have no loss.
const LEAST_MARGIN: f32 = -1.0;

/// An inverted index of scorers, cut to the labels that matter most for each feature.
#[derive(Debug)]
pub struct ShortIndex {
    /// For each feature labels and their weights.
    labels: Ragged<(u32, f32)>,
    /// Weight of the constant by label.
    biases: Vec<f32>,
}

impl ShortIndex {
    /// The index of these scorers; none of labels that have none.
    pub fn new<'a>(
        scorers: impl Iterator<Item = Option<&'a Scorer>> + Clone,
        n_features: usize,
    ) -> Self {
        let mut lists = Ragged::default();
        for scorer in scorers.clone() {
            let weights = scorer.into_iter().flat_map(|scorer| &scorer.weights);
            lists.push(weights.copied());
        }
        let all = lists.regroup(n_features, |label, &(column, weight)| {
            (column, (label, weight))
        });
        drop(lists);
        let mut labels = Ragged::with_capacity(n_features, 0);
        let mut kept = Vec::new();
        for column in 0..n_features {
            kept.clear();
            kept.extend_from_slice(all.get(column));
            keep_best(&mut kept, MOST_LABELS);
            labels.push(kept.iter().copied());
        }
        let biases = scorers.map(|scorer| scorer.map_or(0.0, |scorer| scorer.bias));
        Self {
            labels,
            biases: biases.collect(),
        }
    }
}

/// Finds the negatives of one row after the other.
#[derive(Debug)]
pub struct Miner<'a> {
    index: &'a ShortIndex,
    rows: &'a ScorerRows<'a>,
    /// Margins by label, without their constants; NaN where the index has none.
    margins: Vec<f32>,
    /// Labels that have one: the first of these.
    touched: Vec<u32>,
    n_touched: usize,
}

impl<'a> Miner<'a> {
    pub fn new(index: &'a ShortIndex, rows: &'a ScorerRows<'a>) -> Self {
        Self {
            index,
            rows,
            margins: vec![f32::NAN; index.biases.len()],
            touched: Vec::new(),
            n_touched: 0,
        }
    }

    /// The `n` labels of the largest margins that `row` does not have and `is_known` does not
    /// know, increasing. O(values of the row).
    pub fn mine(&mut self, row: u32, n: usize, is_known: impl Fn(u32) -> bool) -> Vec<u32> {
        let (columns, values) = self.rows.features(row);
        for (&column, &x) in columns.iter().zip(values) {
            let list = self.index.labels.get(column as usize);
            let n_before = self.n_touched;
            if self.touched.len() < n_before + list.len() {
                self.touched.resize(n_before + list.len(), 0);
            }
            // Whether a label is new cannot be foretold: all are written, and new ones stay.
            for &(label, weight) in list {
                let margin = &mut self.margins[label as usize];
                self.touched[self.n_touched] = label;
                self.n_touched += usize::from(margin.is_nan());
                *margin = weight * x + if margin.is_nan() { 0.0 } else { *margin };
            }
        }
        let own = self.rows.examples.labels(row);
        let mut found = Vec::new();
        let most_found = n.saturating_mul(4);
        let mut least = LEAST_MARGIN.next_up();
        for &label in &self.touched[..self.n_touched] {
            let product = std::mem::replace(&mut self.margins[label as usize], f32::NAN);
            let margin = product + self.index.biases[label as usize];
            // Few are good enough to be looked up.
            if margin >= least && own.binary_search(&label).is_err() && !is_known(label) {
                found.push((label, margin));
                if found.len() >= most_found {
                    keep_best(&mut found, n);
                    let margins = found.iter().map(|&(_, margin)| margin);
                    least = margins.fold(f32::INFINITY, f32::min).max(least);
                }
            }
        }
        self.n_touched = 0;
        keep_best(&mut found, n);
        let mut labels: Vec<u32> = found.iter().map(|&(label, _)| label).collect();
        labels.sort_unstable();
        labels
    }
}
