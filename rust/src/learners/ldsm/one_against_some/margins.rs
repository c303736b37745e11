//! The margins of one row after the other.

use super::super::spread_row::SpreadRow;
use super::feature_index::{FeatureIndex, BLOCK};
use super::lengths::inverse_length;
use super::scorers::OneAgainstSome;

/// What margins are computed in: as long as there are labels, so it is kept between uses.
#[derive(Debug, Default)]
pub struct MarginMemory {
    /// Products by label.
    products: Vec<f32>,
    /// Whether a label of a block may have a product that is not 0.
    is_met: Vec<bool>,
    /// The labels that have a product, where these are noted.
    touched: Vec<u32>,
    row: SpreadRow,
    /// The row's values, of length 1.
    values: Vec<f32>,
}

/// The margins of a row, and the labels that they find.
#[derive(Debug)]
pub enum RowMargins<'a> {
    /// All labels with a weight for a feature of the row, and their margins, by the index.
    Complete(IndexMargins<'a>),
    /// Those with a large weight, and their margins one by one.
    Partial(PartialMargins<'a>),
}

impl<'a> RowMargins<'a> {
    /// With memory that has been used with these scorers alone.
    pub fn new(scorers: &'a OneAgainstSome, memory: &'a mut MarginMemory) -> Self {
        if scorers.is_index_complete() {
            Self::Complete(IndexMargins::new(scorers, memory))
        } else {
            Self::Partial(PartialMargins::new(scorers, memory))
        }
    }

    /// Makes a row, whose constant comes last, the current one.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        match self {
            Self::Complete(margins) => margins.read(row),
            Self::Partial(margins) => margins.read(row),
        }
    }

    #[inline]
    pub fn margin(&self, label: u32) -> f32 {
        match self {
            Self::Complete(margins) => margins.margin(label),
            Self::Partial(margins) => margins.margin(label),
        }
    }

    /// The labels that scorers find for the row, and what is known of their margins so far: all,
    /// or the part of the largest weights.
    pub fn found(&self) -> Vec<(u32, f32)> {
        match self {
            Self::Complete(margins) => margins.touched().collect(),
            Self::Partial(margins) => margins.found().collect(),
        }
    }
}

/// The margins of all labels that have a weight for a feature of the row.
#[derive(Debug)]
pub struct IndexMargins<'a> {
    index: &'a FeatureIndex,
    biases: &'a [f32],
    /// The margins by label, without their constants.
    products: &'a mut [f32],
    /// Whether a label of a block may have a product that is not 0.
    is_met: &'a mut [bool],
}

impl<'a> IndexMargins<'a> {
    pub fn new(scorers: &'a OneAgainstSome, memory: &'a mut MarginMemory) -> Self {
        let biases = scorers.biases();
        memory.products.resize(biases.len(), 0.0);
        memory.is_met.resize(biases.len().div_ceil(BLOCK), false);
        Self {
            index: scorers.index(),
            biases,
            products: &mut memory.products,
            is_met: &mut memory.is_met,
        }
    }

    /// Computes the margins of a row, whose constant comes last.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        let blocks = self.products.chunks_mut(BLOCK).zip(&mut *self.is_met);
        for (products, is_met) in blocks {
            if std::mem::take(is_met) {
                products.fill(0.0);
            }
        }
        let inverse_length = inverse_length(row);
        let n = row.0.len() - 1;
        for (&column, &x) in row.0[..n].iter().zip(row.1) {
            let x = x * inverse_length;
            self.index.add(column, x, self.products, self.is_met);
        }
    }

    #[inline]
    pub fn margin(&self, label: u32) -> f32 {
        self.products[label as usize] + self.biases[label as usize]
    }

    /// The constants by label.
    pub fn biases(&self) -> &'a [f32] {
        self.biases
    }

    /// The margins by label, without their constants.
    pub fn products(&self) -> &[f32] {
        self.products
    }

    /// Of each [`BLOCK`] of labels, whether one may have a product that is not 0.
    pub fn is_met(&self) -> &[bool] {
        self.is_met
    }

    /// The labels whose weights have a product with the row that is not 0, increasing, and their
    /// margins.
    pub fn touched(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let blocks = self.products.chunks(BLOCK).zip(&*self.is_met).enumerate();
        let met = blocks.filter(|(_, (_, is_met))| **is_met);
        met.flat_map(|(block, (products, _))| {
            let labels = (block * BLOCK) as u32..;
            let found = labels.zip(products).filter(|(_, product)| **product != 0.0);
            found.map(|(label, product)| (label, product + self.biases[label as usize]))
        })
    }
}

/// The margins of single labels, and what the largest weights say of all.
#[derive(Debug)]
pub struct PartialMargins<'a> {
    scorers: &'a OneAgainstSome,
    index: &'a FeatureIndex,
    /// The row, of length 1, without the constant; products are of the largest weights.
    memory: &'a mut MarginMemory,
}

impl<'a> PartialMargins<'a> {
    pub fn new(scorers: &'a OneAgainstSome, memory: &'a mut MarginMemory) -> Self {
        memory.products.resize(scorers.biases().len(), 0.0);
        Self {
            scorers,
            index: scorers.index(),
            memory,
        }
    }

    /// Makes a row, whose constant comes last, the current one. Takes time proportional to the
    /// large weights for its features.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        let memory = &mut *self.memory;
        for label in memory.touched.drain(..) {
            memory.products[label as usize] = 0.0;
        }
        let inverse_length = inverse_length(row);
        let n = row.0.len() - 1;
        let (columns, values) = (&row.0[..n], &row.1[..n]);
        memory.values.clear();
        memory
            .values
            .extend(values.iter().map(|x| x * inverse_length));
        let values = &memory.values;
        memory
            .row
            .replace((columns, values), self.scorers.n_features());
        for (&column, &x) in columns.iter().zip(values) {
            for &(label, weight) in self.index.list(column as usize) {
                let product = &mut memory.products[label as usize];
                if *product == 0.0 {
                    memory.touched.push(label);
                }
                *product += x * weight;
            }
        }
    }

    /// A label's margin; `SparseWeights::product` says what it takes.
    pub fn margin(&self, label: u32) -> f32 {
        let (weights, label) = (self.scorers.weights(), label as usize);
        let MarginMemory { row, values, .. } = &*self.memory;
        let product = weights.product(label, (row.columns(), values), row.by_column());
        product + self.scorers.biases()[label]
    }

    /// A label's margin as far as its large weights know.
    pub fn partial_margin(&self, label: u32) -> f32 {
        self.memory.products[label as usize] + self.scorers.biases()[label as usize]
    }

    /// The labels that have a large weight for a feature of the row, and what these come to.
    pub fn found(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let labels = self.memory.touched.iter();
        labels.map(|&label| (label, self.memory.products[label as usize]))
    }
}
