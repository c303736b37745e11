//! The margins of one row after the other.

use super::rows::inverse_length;
use super::weights::{FeatureIndex, OneAgainstSome, LABELS_PER_BLOCK};
use crate::data::SpreadRow;

/// What margins are computed in: as long as there are labels, so it is kept between uses.
#[derive(Debug, Default)]
pub struct MarginMemory {
    /// Products of the row with the weights of the index, by label.
    products: Vec<f32>,
    /// Where the index has all weights: whether a label of a block may have a product that is not 0.
    is_met: Vec<bool>,
    /// Where it has the largest: the labels that have a product.
    touched: Vec<u32>,
    row: SpreadRow,
    /// The row's values, of length 1.
    values: Vec<f32>,
}

/// The margins of a row, and the labels that they find.
///
/// Where the index has all weights it knows all margins. Else it knows what the largest weights say,
/// which finds labels, and margins are computed one by one.
#[derive(Debug)]
pub struct RowMargins<'a> {
    scorers: &'a OneAgainstSome,
    index: &'a FeatureIndex,
    memory: &'a mut MarginMemory,
}

impl<'a> RowMargins<'a> {
    /// With memory that has been used with these scorers alone.
    pub fn new(scorers: &'a OneAgainstSome, memory: &'a mut MarginMemory) -> Self {
        let n_labels = scorers.biases().len();
        memory.products.resize(n_labels, 0.0);
        if scorers.is_index_complete() {
            memory
                .is_met
                .resize(n_labels.div_ceil(LABELS_PER_BLOCK), false);
        }
        Self {
            scorers,
            index: scorers.index(),
            memory,
        }
    }

    /// Whether the index knows all margins.
    pub fn is_complete(&self) -> bool {
        self.scorers.is_index_complete()
    }

    /// Makes a row, whose constant comes last, the current one. Takes time proportional to the weights
    /// of the index for its features.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        let MarginMemory {
            products,
            is_met,
            touched,
            row: spread,
            values,
        } = &mut *self.memory;
        let inverse_length = inverse_length(row);
        let n = row.0.len() - 1;
        let (columns, row_values) = (&row.0[..n], &row.1[..n]);
        if self.scorers.is_index_complete() {
            for (products, is_met) in products.chunks_mut(LABELS_PER_BLOCK).zip(&mut *is_met) {
                if std::mem::take(is_met) {
                    products.fill(0.0);
                }
            }
            for (&column, &x) in columns.iter().zip(row_values) {
                self.index.add(column, x * inverse_length, products, is_met);
            }
            return;
        }
        for label in touched.drain(..) {
            products[label as usize] = 0.0;
        }
        values.clear();
        values.extend(row_values.iter().map(|x| x * inverse_length));
        spread.replace((columns, values), self.scorers.n_features());
        for (&column, &x) in columns.iter().zip(&*values) {
            for &(label, weight) in self.index.list(column as usize) {
                let product = &mut products[label as usize];
                if *product == 0.0 {
                    touched.push(label);
                }
                *product += x * weight;
            }
        }
    }

    /// A label's margin. If it has to be computed it takes time proportional to the label's weights or
    /// to the row's values, whatever is less.
    #[inline]
    pub fn margin(&self, label: u32) -> f32 {
        if self.scorers.is_index_complete() {
            return self.index_margin(label);
        }
        let (weights, i) = (self.scorers.weights(), label as usize);
        let MarginMemory { row, values, .. } = &*self.memory;
        let mut product = 0.0;
        if weights.is_scan_faster(i, values.len()) {
            let spread = row.by_column();
            weights.for_each(i, |column, [w]| product += w * spread[column as usize]);
        } else {
            let weights = weights.lookup::<1>(i);
            let terms = row.columns().iter().zip(values);
            product = terms.map(|(&column, x)| weights.get(column)[0] * x).sum();
        }
        product + self.scorers.biases()[i]
    }

    /// A label's margin as far as the index knows it.
    #[inline]
    pub fn index_margin(&self, label: u32) -> f32 {
        self.memory.products[label as usize] + self.scorers.biases()[label as usize]
    }

    /// The constants by label.
    pub fn biases(&self) -> &'a [f32] {
        self.scorers.biases()
    }

    /// Products of the row with the weights of the index, by label.
    pub fn products(&self) -> &[f32] {
        &self.memory.products
    }

    /// Numbers of the blocks of [`LABELS_PER_BLOCK`] labels of which one may have a product that is not 0,
    /// where the index is complete.
    pub fn met_blocks(&self) -> impl Iterator<Item = usize> + '_ {
        let is_met = &self.memory.is_met;
        (0..is_met.len()).filter(|&block| is_met[block])
    }

    /// Calls `visit` with the labels that the index finds for the row and what it says of them:
    /// their margins, or the part of the largest weights.
    pub fn for_each_found(&self, mut visit: impl FnMut(u32, f32)) {
        let (products, biases) = (self.products(), self.biases());
        if !self.is_complete() {
            let touched = self.memory.touched.iter();
            return touched.for_each(|&label| visit(label, products[label as usize]));
        }
        for block in self.met_blocks() {
            for label in
                block * LABELS_PER_BLOCK..products.len().min((block + 1) * LABELS_PER_BLOCK)
            {
                if products[label] != 0.0 {
                    visit(label as u32, products[label] + biases[label]);
                }
            }
        }
    }

    /// The labels that the index finds, as [`for_each_found`](Self::for_each_found) has them.
    pub fn found(&self) -> Vec<(u32, f32)> {
        let mut found = Vec::new();
        self.for_each_found(|label, part| found.push((label, part)));
        found
    }
}
