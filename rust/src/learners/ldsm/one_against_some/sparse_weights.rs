//! The weights of all labels' scorers as they are stored: label after label, 4 bytes each.

use super::svm::Scorer;
use crate::persist;

/// The largest code.
const MOST: f32 = i16::MAX as f32;

/// Sparse weights by label. An entry is the gap to its column, from the column of the label's
/// entry before it, and the weight as a whole number of the label's steps: 16 bits each. A gap of
/// more than 16 bits takes several entries, all but the last of weight 0, so that entries are
/// decoded without a branch.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseWeights {
    /// Where each label's entries begin, and where the last one's end.
    starts: Vec<u64>,
    gaps: Vec<u16>,
    codes: Vec<i16>,
    /// What a code of 1 stands for, by label.
    steps: Vec<f32>,
}

persist!(SparseWeights {
    Columns starts;
    Columns gaps;
    Columns codes;
    Columns steps;
});

impl Default for SparseWeights {
    fn default() -> Self {
        Self {
            starts: vec![0],
            gaps: Vec::new(),
            codes: Vec::new(),
            steps: Vec::new(),
        }
    }
}

impl SparseWeights {
    /// Rounds the weights of each label to the nearest of 65,535 equally spaced ones up to its
    /// largest.
    pub fn new(scorers: &[Option<Scorer>]) -> Self {
        let mut all = Self::default();
        for scorer in scorers {
            let weights = scorer.as_ref().map_or(&[][..], |scorer| &scorer.weights);
            all.push(weights);
        }
        all
    }

    /// Appends a label with these weights, columns increasing.
    fn push(&mut self, weights: &[(u32, f32)]) {
        let largest = weights
            .iter()
            .fold(0.0f32, |most, (_, w)| most.max(w.abs()));
        // Of weights that are all tiny the step could be 0.
        let step = (largest / MOST).max(f32::MIN_POSITIVE);
        let mut before = 0;
        for &(column, weight) in weights {
            let code = (weight / step).round() as i16;
            if code != 0 {
                let mut gap = column - before;
                while gap > u32::from(u16::MAX) {
                    self.gaps.push(u16::MAX);
                    self.codes.push(0);
                    gap -= u32::from(u16::MAX);
                }
                self.gaps.push(gap as u16);
                self.codes.push(code);
                before = column;
            }
        }
        self.starts.push(self.gaps.len() as u64);
        self.steps.push(step);
    }

    pub fn n_labels(&self) -> usize {
        self.steps.len()
    }

    /// Entries of all labels.
    pub fn n_entries(&self) -> usize {
        self.gaps.len()
    }

    /// Weights that are not 0.
    pub fn n_weights(&self) -> usize {
        self.codes.iter().filter(|&&code| code != 0).count()
    }

    /// Columns of a label's entries, in their order, and codes.
    fn entries(&self, label: usize) -> impl Iterator<Item = (u32, i16)> + '_ {
        let range = self.starts[label] as usize..self.starts[label + 1] as usize;
        let codes = &self.codes[range.clone()];
        let mut column = 0u32;
        self.gaps[range]
            .iter()
            .zip(codes)
            .map(move |(&gap, &code)| {
                column = column.wrapping_add(gap.into());
                (column, code)
            })
    }

    /// The columns that a label has a weight for, increasing, and the weights.
    pub fn weights(&self, label: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let step = self.steps[label];
        let entries = self.entries(label).filter(|&(_, code)| code != 0);
        entries.map(move |(column, code)| (column, f32::from(code) * step))
    }

    /// The product of a label's weights with a row that is spread over all columns.
    pub fn product(&self, label: usize, spread: &[f32]) -> f32 {
        let entries = self.entries(label);
        let sum: f32 = entries
            .map(|(column, code)| f32::from(code) * spread[column as usize])
            .sum();
        sum * self.steps[label]
    }

    /// Whether there are `n_labels`, and columns that increase and are below `width`.
    pub fn is_sound(&self, n_labels: usize, width: usize) -> bool {
        let has_lengths = self.steps.len() == n_labels
            && self.starts.len() == n_labels + 1
            && self.starts[0] == 0
            && self.starts.is_sorted()
            && self.starts[n_labels] == self.gaps.len() as u64
            && self.codes.len() == self.gaps.len();
        let is_step = |&step: &f32| step > 0.0 && (step * MOST).is_finite();
        has_lengths
            && self.steps.iter().all(is_step)
            && (0..n_labels).all(|label| self.has_columns(label, width))
    }

    fn has_columns(&self, label: usize, width: usize) -> bool {
        let range = self.starts[label] as usize..self.starts[label + 1] as usize;
        let gaps = &self.gaps[range];
        let last: u64 = gaps.iter().map(|&gap| u64::from(gap)).sum();
        // The first gap is a column, and may be 0.
        gaps.is_empty() || (last < width as u64 && gaps[1..].iter().all(|&gap| gap > 0))
    }
}
