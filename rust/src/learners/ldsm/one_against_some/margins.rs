//! The margins of one row after the other.

use super::feature_index::{FeatureIndex, BLOCK};
use super::lengths::inverse_length;
use super::scorers::OneAgainstSome;

/// The margins of a row, and the labels that they find.
#[derive(Debug)]
pub enum RowMargins<'a> {
    /// All labels with a weight for a feature of the row, and their margins, by the index.
    Complete(IndexMargins<'a>),
    /// Those with a large weight, and their margins one by one.
    Partial(PartialMargins<'a>),
}

impl<'a> RowMargins<'a> {
    pub fn new(scorers: &'a OneAgainstSome) -> Self {
        if scorers.is_index_complete() {
            Self::Complete(IndexMargins::new(scorers))
        } else {
            Self::Partial(PartialMargins::new(scorers))
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
    products: Vec<f32>,
    /// Whether a label of a block may have a product that is not 0.
    is_met: Vec<bool>,
}

impl<'a> IndexMargins<'a> {
    pub fn new(scorers: &'a OneAgainstSome) -> Self {
        let biases = scorers.biases();
        Self {
            index: scorers.index(),
            biases,
            products: vec![0.0; biases.len()],
            is_met: vec![false; biases.len().div_ceil(BLOCK)],
        }
    }

    /// Computes the margins of a row, whose constant comes last.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        let blocks = self.products.chunks_mut(BLOCK).zip(&mut self.is_met);
        for (products, is_met) in blocks {
            if std::mem::take(is_met) {
                products.fill(0.0);
            }
        }
        let inverse_length = inverse_length(row);
        let n = row.0.len() - 1;
        for (&column, &x) in row.0[..n].iter().zip(row.1) {
            let x = x * inverse_length;
            let (products, is_met) = (&mut self.products, &mut self.is_met);
            self.index.add(column, x, products, is_met);
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
        &self.products
    }

    /// Of each [`BLOCK`] of labels, whether one may have a product that is not 0.
    pub fn is_met(&self) -> &[bool] {
        &self.is_met
    }

    /// The labels whose weights have a product with the row that is not 0, increasing, and their
    /// margins.
    pub fn touched(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let blocks = self.products.chunks(BLOCK).zip(&self.is_met).enumerate();
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
    /// Columns and values of the row, of length 1, without the constant.
    columns: Vec<u32>,
    values: Vec<f32>,
    /// The same over all columns.
    spread: Vec<f32>,
    /// The products of the largest weights by label, and the labels that have one.
    products: Vec<f32>,
    touched: Vec<u32>,
}

impl<'a> PartialMargins<'a> {
    pub fn new(scorers: &'a OneAgainstSome) -> Self {
        Self {
            scorers,
            index: scorers.index(),
            columns: Vec::new(),
            values: Vec::new(),
            spread: vec![0.0; scorers.n_features()],
            products: vec![0.0; scorers.biases().len()],
            touched: Vec::new(),
        }
    }

    /// Makes a row, whose constant comes last, the current one. Takes time proportional to the
    /// large weights for its features.
    pub fn read(&mut self, row: (&[u32], &[f32])) {
        for column in self.columns.drain(..) {
            self.spread[column as usize] = 0.0;
        }
        for label in self.touched.drain(..) {
            self.products[label as usize] = 0.0;
        }
        let inverse_length = inverse_length(row);
        let n = row.0.len() - 1;
        self.columns.extend(&row.0[..n]);
        self.values.clear();
        self.values
            .extend(row.1[..n].iter().map(|x| x * inverse_length));
        for (&column, &x) in self.columns.iter().zip(&self.values) {
            self.spread[column as usize] += x;
            for &(label, weight) in self.index.list(column as usize) {
                let product = &mut self.products[label as usize];
                if *product == 0.0 {
                    self.touched.push(label);
                }
                *product += x * weight;
            }
        }
    }

    /// A label's margin; `SparseWeights::product` says what it takes.
    pub fn margin(&self, label: u32) -> f32 {
        let (weights, label) = (self.scorers.weights(), label as usize);
        let row = (&self.columns[..], &self.values[..]);
        weights.product(label, row, &self.spread) + self.scorers.biases()[label]
    }

    /// A label's margin as far as its large weights know.
    pub fn partial_margin(&self, label: u32) -> f32 {
        self.products[label as usize] + self.scorers.biases()[label as usize]
    }

    /// The labels that have a large weight for a feature of the row, and what these come to.
    pub fn found(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let labels = self.touched.iter();
        labels.map(|&label| (label, self.products[label as usize]))
    }
}
