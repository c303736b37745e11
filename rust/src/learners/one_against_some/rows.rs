//! The rows that scorers are trained on: scaled to length 1, with features scaled by their rarity.

use std::collections::HashMap;

use crate::data::{Examples, Ragged};
use crate::learners::mix;

/// Rows and the constant 1. Rows are scaled to length 1, then features are multiplied by their
/// scales. The regularization is weaker for features of larger scale.
#[derive(Debug)]
pub struct ScorerRows<'a> {
    pub examples: &'a Examples,
    /// The values of each row, without the constant.
    values: Ragged<f32>,
    /// The scale of each column.
    scales: Vec<f32>,
    /// Each row's product with itself, without the constant.
    squares: Vec<f32>,
}

/// Sets of rows with the same columns and values; labels and weights may differ.
#[derive(Debug, Default)]
pub struct DistinctRows {
    /// The first row that equals each row, or [`Self::ALONE`] if no other row does. The list is
    /// empty if all rows are distinct.
    first: Vec<u32>,
}

impl DistinctRows {
    const ALONE: u32 = u32::MAX;

    /// Compares all rows in O(values). A row that `is_out` counts as different from all others
    /// that are not.
    pub fn new(examples: &Examples, is_out: impl Fn(u32) -> bool) -> Self {
        let mut by_hash: HashMap<u64, u32> = HashMap::new();
        let mut first = Vec::new();
        for row in 0..examples.len() as u32 {
            let (columns, values) = examples.row(row);
            let pairs = columns.iter().zip(values);
            let hash = pairs.fold(u64::from(is_out(row)), |hash, (&column, x)| {
                mix(hash ^ (u64::from(column) << 32 | u64::from(x.to_bits())))
            });
            let other = *by_hash.entry(hash).or_insert(row);
            let is_same = examples.row(other) == (columns, values) && is_out(other) == is_out(row);
            if other != row && is_same {
                first.resize(examples.len(), Self::ALONE);
                first[other as usize] = other;
                first[row as usize] = other;
            }
        }
        Self { first }
    }

    /// Returns the first of the rows that equal `row`, or None if no other row does.
    pub fn first(&self, row: u32) -> Option<u32> {
        let first = self.first.get(row as usize).copied();
        first.filter(|&first| first != Self::ALONE)
    }
}

impl<'a> ScorerRows<'a> {
    /// Scales features by (inverse document frequency)^`idf_power` and a common factor that makes
    /// the mean squared length of the rows 1.
    pub fn new(examples: &'a Examples, idf_power: f64) -> Self {
        let mut rows = Self {
            examples,
            values: Ragged::default(),
            scales: scales(examples, idf_power),
            squares: Vec::new(),
        };
        rows.read();
        if idf_power > 0.0 {
            let total: f64 = rows.squares.iter().map(|&square| f64::from(square)).sum();
            let n_filled = rows.squares.iter().filter(|&&square| square > 0.0).count();
            if n_filled > 0 {
                let factor = (n_filled as f64 / total).sqrt() as f32;
                rows.scales.iter_mut().for_each(|scale| *scale *= factor);
                rows.read();
            }
        }
        rows
    }

    /// Computes the values and squares of all rows with the current scales.
    fn read(&mut self) {
        let examples = self.examples;
        let n_values = examples.rows.n_values() - examples.len();
        self.values = Ragged::with_capacity(examples.len(), n_values);
        self.squares.clear();
        let mut scaled = Vec::new();
        for row in 0..examples.len() as u32 {
            let (columns, values) = examples.row(row);
            let inverse = inverse_length((columns, values));
            scaled.clear();
            let pairs = columns.iter().zip(values);
            scaled.extend(pairs.map(|(&column, x)| x * inverse * self.scales[column as usize]));
            let inverse = inverse_length((columns, &scaled));
            let square = if inverse > 0.0 { inverse.powi(-2) } else { 0.0 };
            self.squares.push(square);
            self.values
                .push(scaled[..columns.len() - 1].iter().copied());
        }
    }

    /// Returns the number of columns without the constant.
    pub fn n_features(&self) -> usize {
        self.examples.width - 1
    }

    /// Returns columns and values of a row without the constant.
    pub fn features(&self, row: u32) -> (&[u32], &[f32]) {
        let values = self.values.get(row as usize);
        let (columns, _) = self.examples.row(row);
        (&columns[..values.len()], values)
    }

    /// Returns the squared length of a row with the constant.
    pub fn square(&self, row: u32) -> f64 {
        1.0 + f64::from(self.squares[row as usize])
    }

    /// Returns the factor that turns a weight for `column` into a weight for rows of length 1.
    pub fn scale(&self, column: u32) -> f32 {
        self.scales[column as usize]
    }
}

/// Returns 1 / the length of a row without its constant, which comes last; 0 for rows that are 0.
pub fn inverse_length((columns, values): (&[u32], &[f32])) -> f32 {
    let n = columns.len() - 1;
    let (columns, values) = (&columns[..n], &values[..n]);
    let square: f64 = if columns.is_sorted_by(|a, b| a < b) {
        values.iter().map(|&x| f64::from(x).powi(2)).sum()
    } else {
        // Values of columns that were hashed to the same column are added before they are squared.
        let pairs = columns.iter().copied().zip(values.iter().copied());
        let mut pairs: Vec<(u32, f32)> = pairs.collect();
        pairs.sort_by_key(|&(column, _)| column);
        let sums = pairs.chunk_by(|a, b| a.0 == b.0).map(|same| {
            let values = same.iter().map(|&(_, x)| f64::from(x));
            values.sum::<f64>()
        });
        sums.map(|sum| sum.powi(2)).sum()
    };
    let inverse = square.sqrt().recip() as f32;
    if inverse.is_finite() {
        inverse
    } else {
        0.0
    }
}

/// Returns (ln((N + 1) / (n + 1/2)))^`power` for each column, with N rows of which n have it.
fn scales(examples: &Examples, power: f64) -> Vec<f32> {
    if power == 0.0 {
        return vec![1.0; examples.width];
    }
    let n_rows = examples.len() as f64 + 1.0;
    // After hashing, a column can occur more often than there are rows.
    let idf = |n: u32| (n_rows / (f64::from(n) + 0.5)).ln().max(1e-3);
    let counts = examples.column_counts().into_iter();
    let scales = counts.map(|n| idf(n).powf(power) as f32);
    scales.collect()
}
