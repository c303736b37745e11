//! The inverted index: for each feature the labels that have a weight for it.

use crate::alloc::{filled, zeros};
use crate::data::{PackedLists, Ragged};
use crate::simd::axpy;

/// Labels that are marked together as met.
pub const BLOCK: usize = 64;
/// A feature for which one label in so many has a weight has a weight for each label: adding
/// zeros takes less time than skipping them. Its memory is at most four times that of a list.
const DENSE: usize = 8;
/// Stands for features that have a list.
const LISTED: u32 = u32::MAX;

/// Whether a feature with `n` weights has a row in place of a list.
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
    /// Labels, increasing, and weights of each feature.
    lists: Ragged<(u32, f32)>,
    /// Which of `rows` a feature has in place of a list.
    row_of: Vec<u32>,
    /// A weight for each label, end to end.
    rows: Vec<f32>,
}

impl FeatureIndex {
    /// The index of the `weights` of `n_labels` labels for `width` features, or of those of at least
    /// `threshold`, which are all in lists. Takes time and memory proportional to both.
    pub fn new(
        weights: &PackedLists,
        n_labels: usize,
        width: usize,
        threshold: Option<f32>,
    ) -> Self {
        let is_kept = |weight| threshold.is_none_or(|least| weight >= least);
        let (mut row_of, mut n_rows) = (filled(LISTED, width), 0);
        if threshold.is_none() {
            let mut n_weights: Vec<usize> = zeros(width);
            for label in 0..n_labels {
                weights.for_each::<1>(label, |column, _| n_weights[column as usize] += 1);
            }
            for (row, &n) in row_of.iter_mut().zip(&n_weights) {
                if is_dense(n, n_labels) {
                    *row = n_rows;
                    n_rows += 1;
                }
            }
        }
        let mut rows: Vec<f32> = zeros(n_rows as usize * n_labels);
        let (mut by_label, mut list) = (Ragged::with_capacity(n_labels, 0), Vec::new());
        for label in 0..n_labels {
            list.clear();
            weights.for_each(label, |column, [weight]| match row_of[column as usize] {
                LISTED if is_kept(weight) => list.push((column, weight)),
                LISTED => {}
                row => rows[row as usize * n_labels + label] = weight,
            });
            by_label.push(list.iter().copied());
        }
        Self {
            n_labels,
            lists: by_label.regroup(width, |label, &(column, w)| (column, (label, w))),
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
        self.lists.get(column)
    }
}
