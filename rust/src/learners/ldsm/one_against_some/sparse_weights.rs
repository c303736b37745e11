//! The weights of all labels' scorers as they are stored: label after label, 4 bytes each.

use std::ops::Range;

use super::svm::Scorer;
use crate::alloc::push;
use crate::file::Flat;
use crate::persist;

/// The largest code.
const MOST: f32 = i16::MAX as f32;
/// Bits of a column that an entry holds.
const BITS: u32 = 16;

/// Sparse weights by label. An entry is the lower 16 bits of a column and the weight as a whole
/// number of the label's steps, in 16 bits. The columns of equal higher bits are a block, and a
/// label has a list of entries for each block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseWeights {
    /// Blocks of columns.
    n_blocks: usize,
    /// Where each label's list of each block begins, and where the last one ends.
    starts: Flat<u64>,
    /// Lower bits of columns, increasing in each list.
    columns: Flat<u16>,
    codes: Flat<i16>,
    /// What a code of 1 stands for, by label.
    steps: Flat<f32>,
}

persist!(SparseWeights {
    Flat starts;
    Flat columns;
    Flat codes;
    Flat steps;
});

impl SparseWeights {
    /// For weights of `width` columns; no labels yet.
    pub fn empty(width: usize) -> Self {
        Self {
            n_blocks: width.div_ceil(1 << BITS).max(1),
            starts: vec![0].into(),
            ..Self::default()
        }
    }

    /// Rounds the weights of each label to the nearest of 65,535 equally spaced ones up to its
    /// largest. Columns are below `width`.
    pub fn new(scorers: &[Option<Scorer>], width: usize) -> Self {
        let mut all = Self::empty(width);
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
        let mut weights = weights.iter().peekable();
        for block in 0..self.n_blocks as u32 {
            let is_here = |weight: &&(u32, f32)| weight.0 >> BITS == block;
            while let Some(&(column, weight)) = weights.next_if(is_here) {
                let code = (weight / step).round() as i16;
                if code != 0 {
                    // The lower bits.
                    push(self.columns.to_mut(), column as u16);
                    push(self.codes.to_mut(), code);
                }
            }
            push(self.starts.to_mut(), self.columns.len() as u64);
        }
        push(self.steps.to_mut(), step);
    }

    pub fn n_labels(&self) -> usize {
        self.steps.len()
    }

    /// Weights that are not 0.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// A label's entries of a block.
    fn list(&self, label: usize, block: usize) -> Range<usize> {
        let at = label * self.n_blocks + block;
        self.starts[at] as usize..self.starts[at + 1] as usize
    }

    /// A label's entries.
    fn range(&self, label: usize) -> Range<usize> {
        let first = label * self.n_blocks;
        self.starts[first] as usize..self.starts[first + self.n_blocks] as usize
    }

    /// The columns that a label has a weight for, increasing, and the weights.
    pub fn weights(&self, label: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let step = self.steps[label];
        (0..self.n_blocks).flat_map(move |block| {
            let (range, high) = (self.list(label, block), (block as u32) << BITS);
            let codes = self.codes[range.clone()].iter();
            let columns = self.columns[range].iter();
            let entries = columns.zip(codes);
            entries.map(move |(&low, &code)| (high | u32::from(low), f32::from(code) * step))
        })
    }

    /// The product of a label's weights with a row of these columns and values, which is also
    /// spread over all columns. Takes time proportional to the label's weights or to the row's
    /// values, whatever is less, and to the logarithm of the former.
    pub fn product(&self, label: usize, row: (&[u32], &[f32]), spread: &[f32]) -> f32 {
        let n = self.range(label).len();
        if n <= row.0.len() * (n.max(1).ilog2() as usize + 1) {
            let weights = self.weights(label);
            return weights.map(|(column, w)| w * spread[column as usize]).sum();
        }
        let of_column = |(&column, &x): (&u32, &f32)| {
            let range = self.list(label, (column >> BITS) as usize);
            let at = self.columns[range.clone()].binary_search(&(column as u16));
            at.map_or(0.0, |at| f32::from(self.codes[range.start + at]) * x)
        };
        let sum: f32 = row.0.iter().zip(row.1).map(of_column).sum();
        sum * self.steps[label]
    }

    /// Whether there are `n_labels`, and columns that increase and are below `width`. Columns in a
    /// mapped file are not looked at.
    pub fn is_sound(&self, n_labels: usize, width: usize) -> bool {
        let has_lengths = self.steps.len() == n_labels
            && self.starts.len() == n_labels * self.n_blocks + 1
            && self.starts[0] == 0
            && self.starts.is_sorted()
            && self.starts[n_labels * self.n_blocks] == self.columns.len() as u64
            && self.codes.len() == self.columns.len();
        let is_step = |&step: &f32| step > 0.0 && (step * MOST).is_finite();
        has_lengths
            && self.steps.iter().all(is_step)
            && (self.columns.is_mapped()
                || (0..n_labels).all(|label| self.has_columns(label, width)))
    }

    fn has_columns(&self, label: usize, width: usize) -> bool {
        let columns = self.weights(label).map(|(column, _)| column);
        let lists = (0..self.n_blocks).map(|block| &self.columns[self.list(label, block)]);
        columns.last().is_none_or(|last| (last as usize) < width)
            && lists
                .into_iter()
                .all(|list| list.is_sorted_by(|a, b| a < b))
    }
}
