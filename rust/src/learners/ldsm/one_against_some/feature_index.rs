//! The inverted index: for each feature the labels that have a weight for it.

use super::sparse_weights::SparseWeights;
use crate::alloc::{filled, zeros};
use crate::simd::axpy;

/// Labels that are marked together as met.
pub const BLOCK: usize = 64;
/// A feature for which one label in so many has a weight has a weight for each label: adding
/// zeros takes less time than skipping them. Its memory is at most four times that of a list.
const DENSE: usize = 8;
/// Stands for features that have a list.
const LISTED: u32 = u32::MAX;

/// Of `n_labels` labels, whether a feature with `n` weights has a weight for each label.
fn is_dense(n: usize, n_labels: usize) -> bool {
    n * DENSE > n_labels
}

/// What a feature with `n` weights costs a row, in additions to the sums of single labels; sums of
/// labels side by side take a part of the time.
pub fn additions(n: usize, n_labels: usize) -> f64 {
    const SIDE_BY_SIDE: f64 = 8.0;
    if is_dense(n, n_labels) {
        n_labels as f64 / SIDE_BY_SIDE
    } else {
        n as f64
    }
}

/// Weights by feature.
#[derive(Debug, Clone)]
pub struct FeatureIndex {
    n_labels: usize,
    /// Where each feature's list begins, and where the last one ends.
    starts: Vec<usize>,
    /// Labels, increasing, and weights.
    lists: Vec<(u32, f32)>,
    /// Which of `rows` a feature has in place of a list.
    row_of: Vec<u32>,
    /// A weight for each label, end to end.
    rows: Vec<f32>,
}

impl FeatureIndex {
    /// Of the weights for `width` features, or of those of at least `threshold`, which are all in
    /// lists. Takes time and memory proportional to both.
    pub fn new(weights: &SparseWeights, width: usize, threshold: Option<f32>) -> Self {
        let n_labels = weights.n_labels();
        let is_kept = |&(_, weight): &(u32, f32)| threshold.is_none_or(|least| weight >= least);
        let kept = |label| weights.weights(label).filter(is_kept);
        // First how long each list is, shifted by two; then where the next entry goes.
        let mut starts: Vec<usize> = zeros(width + 2);
        for label in 0..n_labels {
            for (column, _) in kept(label) {
                starts[column as usize + 2] += 1;
            }
        }
        let (mut row_of, mut n_rows) = (filled(LISTED, width), 0);
        for (row, n) in row_of.iter_mut().zip(&mut starts[2..]) {
            if threshold.is_none() && is_dense(*n, n_labels) {
                *row = n_rows;
                n_rows += 1;
                *n = 0;
            }
        }
        for i in 2..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut lists = filled((0, 0.0), starts[width + 1]);
        let mut rows: Vec<f32> = zeros(n_rows as usize * n_labels);
        for label in 0..n_labels {
            for (column, weight) in kept(label) {
                let column = column as usize;
                if row_of[column] == LISTED {
                    let at = &mut starts[column + 1];
                    lists[*at] = (label as u32, weight);
                    *at += 1;
                } else {
                    rows[row_of[column] as usize * n_labels + label] = weight;
                }
            }
        }
        starts.truncate(width + 1);
        Self {
            n_labels,
            starts,
            lists,
            row_of,
            rows,
        }
    }

    /// Adds the weights for feature `column`, times `x`, to the labels' `sums`, and marks their
    /// blocks in `is_met`.
    #[inline]
    pub fn add(&self, column: u32, x: f32, sums: &mut [f32], is_met: &mut [bool]) {
        let column = column as usize;
        if self.row_of[column] != LISTED {
            let from = self.row_of[column] as usize * self.n_labels;
            axpy(x, &self.rows[from..from + self.n_labels], sums);
            is_met.fill(true);
            return;
        }
        for &(label, weight) in self.list(column) {
            sums[label as usize] += x * weight;
            is_met[label as usize / BLOCK] = true;
        }
    }

    /// The labels that have a weight for feature `column`, increasing, and the weights; nothing
    /// if it has a weight for each label.
    #[inline]
    pub fn list(&self, column: usize) -> &[(u32, f32)] {
        &self.lists[self.starts[column]..self.starts[column + 1]]
    }
}
