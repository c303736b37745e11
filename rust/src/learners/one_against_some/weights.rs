//! The weights of all labels' scorers, and the margins of a row by them.
//!
//! Margins come from an inverted index, in time proportional to the weights of all labels for the
//! row's features. If these are too many, the index has the largest weights only: it finds labels,
//! and the margin of a label is computed from all of its weights when it is needed.

use std::ops::Range;
use std::sync::OnceLock;

use super::dense::{DenseColumns, DenseProducts, DenseWeights, BLOCK};
use super::layout::{is_dense, Layout, WeightCounts};
use super::rows::inverse_length;
use super::svm::Scorer;
use crate::data::{Examples, PackedList, PackedLists, Precision, Ragged, RowBuffer, SpreadRow};
use crate::error::Result;
use crate::file::Flat;
use crate::model::{LinearScorers, TopK};
use crate::simd::{axpy, dispatched};

/// Weights and biases of all labels, and their index.
#[derive(Debug, Clone, Default)]
pub struct LabelWeights {
    /// The weights by label, in 16 bits.
    pub lists: PackedLists,
    /// The weights for dense columns; with them the index is complete.
    pub dense: DenseWeights,
    /// The weight of the constant by label; minus infinity for a label without examples.
    pub biases: Flat<f32>,
    /// The least weight in the index; None if it has all of them.
    pub index_threshold: Option<f32>,
    /// Number of columns without the constant.
    pub n_features: usize,
    /// Built by the first call that needs it.
    index: OnceLock<FeatureIndex>,
}

impl LabelWeights {
    /// Stores the scorer of each label, trained on `examples`; labels without examples have none.
    pub fn new(
        scorers: impl ExactSizeIterator<Item = Option<Scorer>>,
        dense_columns: &DenseColumns,
        examples: &Examples,
    ) -> Result<Self> {
        let none = Scorer::none();
        let mut dense = DenseWeights::new(dense_columns, scorers.len());
        let pack = |(label, scorer): (usize, Option<Scorer>)| {
            let scorer = scorer.as_ref().unwrap_or(&none);
            dense.set(label, &scorer.dense);
            (packed(scorer), scorer.bias)
        };
        let scorers = scorers.enumerate().map(pack);
        let (packed, biases): (Vec<PackedList>, Vec<f32>) = scorers.unzip();
        let n_features = examples.width - 1;
        let lists = PackedLists::new(&packed, 1, n_features)?;
        let index_threshold = if dense_columns.is_empty() {
            let rows_with = examples.column_counts();
            let counts = WeightCounts::new(&lists, packed.len(), &rows_with);
            counts.layout(&rows_with, examples.len()).0
        } else {
            None
        };
        Ok(Self {
            index_threshold,
            lists,
            dense,
            biases: biases.into(),
            n_features,
            index: OnceLock::new(),
        })
    }

    /// Returns how the weights are stored and indexed.
    pub fn layout(&self) -> Layout {
        (self.index_threshold, self.lists.bits)
    }

    /// Returns whether the index has all weights.
    pub fn is_index_complete(&self) -> bool {
        self.index_threshold.is_none()
    }

    /// Returns the index, which the first call builds in time proportional to its weights.
    pub fn index(&self) -> &FeatureIndex {
        self.index.get_or_init(|| FeatureIndex::new(self))
    }

    /// Returns the mean number of weights for a feature.
    pub fn mean_per_feature(&self) -> usize {
        (self.lists.n_entries() + self.dense.n_weights()) / self.n_features.max(1) + 1
    }
}

impl LinearScorers for LabelWeights {
    fn for_each_weight(&self, class: u32, visit: &mut dyn FnMut(u32, f32)) {
        let label = class as usize;
        self.lists
            .for_each(label, |column, [weight]| visit(column, weight));
        self.dense.for_each(label, visit);
        visit(self.n_features as u32, self.biases[label]);
    }

    /// Rows are scaled to length 1.
    fn scale(&self, row: &RowBuffer) -> f32 {
        inverse_length((&row.columns, &row.values))
    }
}

impl Scorer {
    /// Stands for the scorer of a label without examples.
    pub fn none() -> Self {
        Self {
            bias: f32::NEG_INFINITY,
            ..Self::default()
        }
    }
}

/// Packs a scorer's weights without those that round to 0.
fn packed(scorer: &Scorer) -> PackedList {
    let sizes = scorer.weights.iter().map(|(_, w)| w.abs());
    let least = 0.5 * sizes.fold(0.0f32, f32::max) / f32::from(i16::MAX);
    let kept = scorer.weights.iter().filter(|(_, w)| w.abs() > least);
    let (ids, values) = kept.copied().unzip();
    PackedList::new(ids, values, 1, Precision::Bits16)
}

/// Number of labels that share a mark in [`RowMargins`].
const LABELS_PER_BLOCK: usize = 64;
/// Stands for the row of features that have a list.
const LISTED: u32 = u32::MAX;

/// Weights by feature.
#[derive(Debug, Clone)]
pub struct FeatureIndex {
    n_labels: usize,
    /// Labels, increasing, and weights of each feature.
    lists: Ragged<(u32, f32)>,
    /// The place in `rows` of a feature that has a row instead of a list.
    row_of: Vec<u32>,
    /// Rows with a weight for each label, end to end.
    rows: Vec<f32>,
}

impl FeatureIndex {
    /// Builds the index. One that is not complete has lists only.
    fn new(weights: &LabelWeights) -> Self {
        let (n_labels, width) = (weights.biases.len(), weights.n_features);
        let (lists, threshold) = (&weights.lists, weights.index_threshold);
        let is_kept = |weight| threshold.is_none_or(|least| weight >= least);
        let (mut row_of, mut n_rows) = (vec![LISTED; width], 0);
        if threshold.is_none() {
            let mut n_weights = vec![0usize; width];
            for label in 0..n_labels {
                lists.for_each::<1>(label, |column, _| n_weights[column as usize] += 1);
            }
            for (row, &n) in row_of.iter_mut().zip(&n_weights) {
                if is_dense(n, n_labels) {
                    *row = n_rows;
                    n_rows += 1;
                }
            }
        }
        let mut rows = vec![0.0f32; n_rows as usize * n_labels];
        let (mut by_label, mut list) = (Ragged::with_capacity(n_labels, 0), Vec::new());
        for label in 0..n_labels {
            list.clear();
            lists.for_each(label, |column, [weight]| match row_of[column as usize] {
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
    fn add(&self, column: u32, x: f32, sums: &mut [f32], is_met: &mut [bool]) {
        let column = column as usize;
        if self.row_of[column] != LISTED {
            let from = self.row_of[column] as usize * self.n_labels;
            axpy(x, &self.rows[from..from + self.n_labels], sums);
            is_met.fill(true);
            return;
        }
        for &(label, weight) in self.list(column) {
            sums[label as usize] += x * weight;
            is_met[label as usize / LABELS_PER_BLOCK] = true;
        }
    }

    /// Returns the labels, increasing, that have a weight for feature `column`, and the weights;
    /// nothing for a feature with a row.
    pub fn list(&self, column: usize) -> &[(u32, f32)] {
        self.lists.get(column)
    }
}

/// Margins of one row after the other, all by the same weights. The arrays are as long as there are
/// labels, so it is kept between uses.
#[derive(Debug, Default)]
pub struct RowMargins {
    /// Products of the row with the weights of the index, by label.
    pub products: Vec<f32>,
    /// Marks of the blocks in which a label may have a product other than 0, if the index is
    /// complete.
    is_met: Vec<bool>,
    /// The labels that have a product, if it is not.
    touched: Vec<u32>,
    row: SpreadRow,
    /// The row's values, scaled to length 1.
    values: Vec<f32>,
    dense: DenseProducts,
}

impl RowMargins {
    /// Makes a row, whose constant comes last, the current one. Takes time proportional to the
    /// weights for its features in the index and in the dense columns.
    #[cfg(test)]
    pub fn read(&mut self, weights: &LabelWeights, row: (&[u32], &[f32])) {
        self.read_block(weights, std::iter::once(row));
        self.read_next(weights, row, 0);
    }

    /// Computes what depends on dense columns for up to [`BLOCK`] rows, which
    /// [`read_next`](Self::read_next) then makes the current one.
    pub fn read_block<'r>(
        &mut self,
        weights: &LabelWeights,
        rows: impl ExactSizeIterator<Item = (&'r [u32], &'r [f32])>,
    ) {
        if !weights.dense.is_empty() {
            let rows = rows.map(|row| (row.0, row.1, inverse_length(row)));
            self.dense.read(&weights.dense, rows);
        }
    }

    /// Makes row `i` of the rows the current one; it has been read with its block.
    pub fn read_next(&mut self, weights: &LabelWeights, row: (&[u32], &[f32]), i: usize) {
        let n_labels = weights.biases.len();
        let (index, inverse_length) = (weights.index(), inverse_length(row));
        let n = row.0.len() - 1;
        let (columns, values) = (&row.0[..n], &row.1[..n]);
        let products = &mut self.products;
        products.resize(n_labels, 0.0);
        if weights.is_index_complete() {
            let is_met = &mut self.is_met;
            is_met.resize(n_labels.div_ceil(LABELS_PER_BLOCK), false);
            if weights.dense.is_empty() {
                let blocks = products.chunks_mut(LABELS_PER_BLOCK);
                for (products, is_met) in blocks.zip(&mut *is_met) {
                    if std::mem::take(is_met) {
                        products.fill(0.0);
                    }
                }
            } else {
                self.dense.write(&weights.dense, i % BLOCK, products);
                is_met.fill(true);
            }
            // The index has no weights for dense columns.
            for (&column, &x) in columns.iter().zip(values) {
                index.add(column, x * inverse_length, products, is_met);
            }
            return;
        }
        for label in self.touched.drain(..) {
            products[label as usize] = 0.0;
        }
        self.values.clear();
        self.values
            .extend(values.iter().map(|x| x * inverse_length));
        self.row
            .replace((columns, &self.values), weights.n_features);
        for (&column, &x) in columns.iter().zip(&self.values) {
            for &(label, weight) in index.list(column as usize) {
                let product = &mut products[label as usize];
                if *product == 0.0 {
                    self.touched.push(label);
                }
                *product += x * weight;
            }
        }
    }

    /// Returns a label's margin. Without a complete index this takes time proportional to the
    /// label's weights or to the row's values, whichever is less.
    pub fn margin(&self, weights: &LabelWeights, label: u32) -> f32 {
        if weights.is_index_complete() {
            return self.index_margin(weights, label);
        }
        let (lists, i) = (&weights.lists, label as usize);
        let mut product = 0.0;
        if lists.is_scan_faster(i, self.values.len()) {
            let spread = self.row.by_column();
            lists.for_each(i, |column, [w]| product += w * spread[column as usize]);
        } else {
            let lookup = lists.lookup::<1>(i);
            let terms = self.row.columns().iter().zip(&self.values);
            product = terms.map(|(&column, x)| lookup.get(column)[0] * x).sum();
        }
        product + weights.biases[i]
    }

    /// Returns a label's margin by the weights of the index.
    pub fn index_margin(&self, weights: &LabelWeights, label: u32) -> f32 {
        self.products[label as usize] + weights.biases[label as usize]
    }

    /// Returns the numbers of the blocks that may have a product other than 0, if the index is
    /// complete.
    fn met_blocks(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.is_met.len()).filter(|&block| self.is_met[block])
    }

    /// Calls `visit` with the labels that a complete index finds for the row and that have a margin
    /// of at least `least`, and with their margins. `visit` returns the next `least`.
    pub fn for_each_above(
        &self,
        weights: &LabelWeights,
        mut least: f32,
        mut visit: impl FnMut(u32, f32) -> f32,
    ) {
        /// Labels of a block that are looked at together.
        const GROUP: usize = 8;
        for block in self.met_blocks() {
            let from = block * LABELS_PER_BLOCK;
            let to = self.products.len().min(from + LABELS_PER_BLOCK);
            let (products, biases) = (&self.products[from..to], &weights.biases[from..to]);
            let bar = least;
            let mut look = |places: Range<usize>| {
                for place in places {
                    let margin = products[place] + biases[place];
                    if products[place] != 0.0 && margin >= least {
                        least = visit((from + place) as u32, margin);
                    }
                }
            };
            if let (Ok(products), Ok(biases)) = (products.try_into(), biases.try_into()) {
                let above = are_above(bar, products, biases);
                let groups = above.as_chunks::<GROUP>().0.iter().enumerate();
                groups
                    .filter(|(_, &above)| above != [0; GROUP])
                    .for_each(|(group, _)| look(group * GROUP..(group + 1) * GROUP));
            } else {
                look(0..products.len());
            }
        }
    }

    /// Calls `visit` with the labels that the index finds for the row, and with their margins or,
    /// if the index is not complete, their products with its weights.
    pub fn for_each_found(&self, weights: &LabelWeights, mut visit: impl FnMut(u32, f32)) {
        let products = &self.products[..];
        if !weights.is_index_complete() {
            let touched = self.touched.iter();
            return touched.for_each(|&label| visit(label, products[label as usize]));
        }
        for block in self.met_blocks() {
            let from = block * LABELS_PER_BLOCK;
            let block = (from..).zip(&products[from..]).take(LABELS_PER_BLOCK);
            for (label, &product) in block {
                if product != 0.0 {
                    visit(label as u32, product + weights.biases[label]);
                }
            }
        }
    }

    /// Returns the `n` best labels of [`for_each_found`](Self::for_each_found), best first.
    pub fn best_found(&self, weights: &LabelWeights, n: usize) -> Vec<(u32, f32)> {
        let mut top = TopK::new(n);
        if weights.is_index_complete() {
            self.for_each_above(weights, top.bar(), |label, margin| {
                top.push(label, margin);
                top.bar()
            });
        } else {
            self.for_each_found(weights, |label, part| top.push(label, part));
        }
        top.entries().collect()
    }
}

dispatched! {
    /// Returns 1 for each label that has a product and a margin of at least `least`, 0 for others.
    fn are_above(
        least: f32,
        products: &[f32; LABELS_PER_BLOCK],
        biases: &[f32; LABELS_PER_BLOCK],
    ) -> [u8; LABELS_PER_BLOCK] {
        let mut above = [0; LABELS_PER_BLOCK];
        for i in 0..LABELS_PER_BLOCK {
            let is_above = (products[i] + biases[i] >= least) & (products[i] != 0.0);
            above[i] = u8::from(is_above);
        }
        above
    }
}
