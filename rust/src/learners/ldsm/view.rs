//! A node's examples as its training reads them, over and over.
//!
//! A node sees few of the features and labels. Numbered anew, in the order in
//! which they turn up, they make its weights and statistics small arrays that
//! stay in the nearest cache, and one epoch is one sweep over two flat arrays.

use super::Examples;

/// A copy of some examples under numbers of their own.
#[derive(Debug, Default)]
pub struct View {
    /// Columns by local number.
    pub columns: Vec<u32>,
    /// Labels by local number.
    pub labels: Vec<u32>,
    starts: Vec<usize>,
    features: Vec<u32>,
    values: Vec<f32>,
    label_starts: Vec<usize>,
    own_labels: Vec<u32>,
    weights: Vec<f32>,
}

/// Which numbers columns and labels have in the view that is being made; one
/// per thread.
#[derive(Debug)]
pub struct Numbers {
    columns: Vec<u32>,
    labels: Vec<u32>,
}

/// Not numbered yet.
const NONE: u32 = u32::MAX;

impl Numbers {
    /// For examples of so many columns and labels.
    pub fn new(width: usize, n_labels: usize) -> Self {
        Self {
            columns: vec![NONE; width],
            labels: vec![NONE; n_labels],
        }
    }
}

impl View {
    /// The examples `ids`, without the columns that are not used.
    pub fn of(
        examples: &Examples,
        ids: &[u32],
        is_used: impl Fn(u32) -> bool,
        numbers: &mut Numbers,
    ) -> Self {
        let n_values = ids.iter().map(|&id| examples.row(id).0.len()).sum();
        let n_labels = ids.iter().map(|&id| examples.labels(id).len()).sum();
        let mut view = Self {
            starts: Vec::with_capacity(ids.len() + 1),
            features: Vec::with_capacity(n_values),
            values: Vec::with_capacity(n_values),
            label_starts: Vec::with_capacity(ids.len() + 1),
            own_labels: Vec::with_capacity(n_labels),
            weights: ids.iter().map(|&id| examples.weight(id)).collect(),
            ..Self::default()
        };
        view.starts.push(0);
        view.label_starts.push(0);
        for &id in ids {
            let (columns, values) = examples.row(id);
            for (&column, &value) in columns.iter().zip(values) {
                if is_used(column) {
                    let number = number_of(column, &mut numbers.columns, &mut view.columns);
                    view.features.push(number);
                    view.values.push(value);
                }
            }
            for &label in examples.labels(id) {
                let number = number_of(label, &mut numbers.labels, &mut view.labels);
                view.own_labels.push(number);
            }
            view.starts.push(view.features.len());
            view.label_starts.push(view.own_labels.len());
        }
        for &column in &view.columns {
            numbers.columns[column as usize] = NONE;
        }
        for &label in &view.labels {
            numbers.labels[label as usize] = NONE;
        }
        view
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Features and values of example `i`.
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.features[range.clone()], &self.values[range])
    }

    /// Labels of example `i`.
    #[inline]
    pub fn labels_of(&self, i: usize) -> &[u32] {
        &self.own_labels[self.label_starts[i]..self.label_starts[i + 1]]
    }

    /// Importance of example `i`.
    #[inline]
    pub fn weight(&self, i: usize) -> f32 {
        self.weights[i]
    }
}

#[inline]
fn number_of(of: u32, numbers: &mut [u32], known: &mut Vec<u32>) -> u32 {
    let number = &mut numbers[of as usize];
    if *number == NONE {
        *number = known.len() as u32;
        known.push(of);
    }
    *number
}
