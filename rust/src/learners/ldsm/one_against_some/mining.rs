//! Labels that scorers wrongly take a row to have: negatives for the next round.

use super::scorer_rows::ScorerRows;
use super::svm::Scorer;
use crate::classifier::keep_best;
use crate::data::Ragged;
use crate::persist;

/// Labels of a feature that a row looks at: those of the largest weights. It bounds the work
/// for a row, whatever the number of labels.
const MOST_LABELS: usize = 512;
/// A negative of a smaller margin would have no loss.
const LEAST_MARGIN: f32 = -1.0;

/// An inverted index of scorers, cut to the labels that matter most for each feature.
#[derive(Debug, Default)]
pub struct ShortIndex {
    /// For each feature labels and their weights.
    labels: Ragged<(u32, f32)>,
    /// Weight of the constant by label.
    biases: Vec<f32>,
}

persist!(ShortIndex {
    Nest labels;
    Columns biases;
});

impl ShortIndex {
    /// Number of weights.
    pub fn n_weights(&self) -> usize {
        self.labels.entries().len()
    }

    pub fn new(scorers: &[Option<Scorer>], n_features: usize) -> Self {
        let mut lists = Ragged::with_capacity(scorers.len(), 0);
        for scorer in scorers {
            let weights = scorer.iter().flat_map(|scorer| &scorer.weights);
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
        let bias = |scorer: &Option<Scorer>| scorer.as_ref().map_or(0.0, |scorer| scorer.bias);
        Self {
            labels,
            biases: scorers.iter().map(bias).collect(),
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
