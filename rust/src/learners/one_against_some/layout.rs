//! Choice of how weights are stored and indexed, by counts of them.

use crate::data::{bits_of_ids, PackedLists};
use crate::persist;

/// The index has all weights if the margins of a training row cost at most this many additions of
/// single weights: about as many take as long as scoring candidates one by one.
const MAX_ADDITIONS: f64 = 32_768.0;
/// Weights that a training row meets in an index of the largest weights, so that time and memory do
/// not grow with the number of labels. They find the labels of a row as well as all weights do,
/// because few weights speak for a label.
const INDEX_WEIGHTS_PER_ROW: f64 = 2048.0;

/// A feature with weights for more than one label in this many has a dense row: adding zeros takes
/// less time than skipping them. A row takes at most four times the memory of a list.
const MAX_LABELS_PER_DENSE_WEIGHT: usize = 8;

/// Returns whether a feature with `n` weights has a row instead of a list.
pub fn is_dense(n: usize, n_labels: usize) -> bool {
    n * MAX_LABELS_PER_DENSE_WEIGHT > n_labels
}

/// Returns the cost of a feature with `n` weights, in additions to single labels; adding a row is
/// faster per label.
fn additions(n: usize, n_labels: usize) -> f64 {
    const SIDE_BY_SIDE: f64 = 8.0;
    if is_dense(n, n_labels) {
        n_labels as f64 / SIDE_BY_SIDE
    } else {
        n as f64
    }
}

/// Counts of weights, which decide how they are stored and indexed for rows in which columns occur as
/// often as in given ones. Counts of parts of the labels are added.
#[derive(Debug, Clone, Default)]
pub struct WeightCounts {
    n_labels: usize,
    n_weights: usize,
    /// Number of weights for each column.
    by_column: Vec<u32>,
    /// Number of times that rows meet a positive weight, by the upper half of its bits.
    n_met: Vec<u64>,
}

persist!(WeightCounts {
    Meta n_labels;
    Meta n_weights;
    Columns by_column;
    Columns n_met;
});

/// [`LabelWeights::index_threshold`], and the bits of ids of the lists.
pub type Layout = (Option<f32>, u32);

impl WeightCounts {
    /// The bits of a positive float grow with it; their upper half is exact enough for a threshold.
    const SHIFT: u32 = 16;

    /// Counts weights of `n_labels` labels, for rows of which so many have each column.
    pub fn new(weights: &PackedLists, n_labels: usize, rows_with: &[u32]) -> Self {
        let mut counts = Self {
            n_labels,
            n_weights: weights.n_entries(),
            by_column: vec![0; rows_with.len()],
            n_met: vec![0; 1 << (31 - Self::SHIFT)],
        };
        for label in 0..n_labels {
            weights.for_each(label, |column, [weight]| {
                counts.by_column[column as usize] += 1;
                if weight > 0.0 {
                    let n = u64::from(rows_with[column as usize]);
                    counts.n_met[(weight.to_bits() >> Self::SHIFT) as usize] += n;
                }
            });
        }
        counts
    }

    /// Adds the counts of other labels.
    pub fn add(&mut self, other: &Self) {
        self.n_labels += other.n_labels;
        self.n_weights += other.n_weights;
        self.by_column.resize(other.by_column.len(), 0);
        self.n_met.resize(other.n_met.len(), 0);
        let columns = self.by_column.iter_mut().zip(&other.by_column);
        columns.for_each(|(sum, n)| *sum += n);
        let met = self.n_met.iter_mut().zip(&other.n_met);
        met.for_each(|(sum, n)| *sum += n);
    }

    /// Returns the layout for `n_rows` rows of which so many have each column.
    pub fn layout(&self, rows_with: &[u32], n_rows: usize) -> Layout {
        let bits = bits_of_ids(self.n_labels, self.n_weights, rows_with.len() - 1);
        let (n_labels, n_rows) = (self.n_labels, n_rows as f64);
        let cost = |(&rows, &n): (&u32, &u32)| f64::from(rows) * additions(n as usize, n_labels);
        let total: f64 = rows_with.iter().zip(&self.by_column).map(cost).sum();
        // A prediction also looks at all labels.
        if total <= (MAX_ADDITIONS - additions(n_labels, n_labels)) * n_rows {
            return (None, bits);
        }
        let (mut upper, mut n) = (self.n_met.len(), 0);
        while upper > 1 && (n + self.n_met[upper - 1]) as f64 <= INDEX_WEIGHTS_PER_ROW * n_rows {
            upper -= 1;
            n += self.n_met[upper];
        }
        (Some(f32::from_bits((upper as u32) << Self::SHIFT)), bits)
    }
}
