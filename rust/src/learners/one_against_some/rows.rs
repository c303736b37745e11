//! The rows that scorers are trained on: scaled to length 1, with features scaled by their rarity.

use std::collections::HashMap;

use super::dense::{DenseColumns, RoundedRows};
use crate::data::{Examples, LocalIds, Ragged, RaggedRows};
use crate::learners::mix;
use crate::simd::prefetch_list;

/// Rows and the constant 1. Rows are scaled to length 1, then features are multiplied by their
/// scales. The regularization is weaker for features of larger scale.
#[derive(Debug)]
pub struct ScorerRows<'a> {
    pub examples: &'a Examples,
    dense_columns: &'a DenseColumns,
    /// The values of each row in the dense columns.
    pub dense: RoundedRows,
    /// The other columns of each row, without the constant, if there are dense columns.
    columns: Ragged<u32>,
    /// The values in these columns.
    values: Ragged<f32>,
    /// The scale of each column; 1 for dense ones.
    scales: Vec<f32>,
    /// Each row's product with itself, without the constant.
    squares: Vec<f32>,
}

/// The rows of one problem after the other. They are copied, and their columns get numbers of their
/// own, so that the rows and weights of a problem lie side by side in the cache.
#[derive(Debug)]
pub struct ProblemRows<'a> {
    rows: &'a ScorerRows<'a>,
    copies: RaggedRows,
    columns: LocalIds,
    /// Number of values of a problem above which its rows are not copied.
    pub max_copied: usize,
    is_copied: bool,
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
    /// Scales features that are not dense by (inverse document frequency)^`idf_power` and a common
    /// factor that makes the mean squared length of the rows 1.
    pub fn new(examples: &'a Examples, dense_columns: &'a DenseColumns, idf_power: f64) -> Self {
        let counts = examples.column_counts();
        Self::with_counts(
            examples,
            dense_columns,
            idf_power,
            (&counts, examples.len()),
        )
    }

    /// The same if so many of so many rows have each column.
    pub fn with_counts(
        examples: &'a Examples,
        dense_columns: &'a DenseColumns,
        idf_power: f64,
        counts: (&[u32], usize),
    ) -> Self {
        let mut rows = Self {
            examples,
            dense_columns,
            dense: RoundedRows::new(dense_columns),
            columns: Ragged::default(),
            values: Ragged::default(),
            scales: scales(counts, dense_columns, idf_power),
            squares: Vec::new(),
        };
        let dense = rows.read();
        if idf_power > 0.0 {
            let total: f64 = rows.squares.iter().map(|&square| f64::from(square)).sum();
            let n_filled = rows.squares.iter().filter(|&&square| square > 0.0).count();
            if total > dense {
                let factor = ((n_filled as f64 - dense) / (total - dense)).sqrt() as f32;
                let columns = (0..).zip(&mut rows.scales);
                columns
                    .filter(|&(column, _)| dense_columns.place(column).is_none())
                    .for_each(|(_, scale)| *scale *= factor);
                rows.read();
            }
        }
        rows
    }

    /// Computes the values and squares of all rows with the current scales. Returns the sum of
    /// squares in the dense columns.
    fn read(&mut self) -> f64 {
        let (examples, dense_columns) = (self.examples, self.dense_columns);
        self.dense.clear();
        self.columns.clear();
        let mut total = 0.0;
        let (mut dense, mut others) = (Vec::new(), Vec::new());
        let n_values = examples.rows.n_values() - examples.len();
        let n_others = n_values.saturating_sub(examples.len() * dense_columns.len());
        self.values = Ragged::with_capacity(examples.len(), n_others);
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
            if dense_columns.is_empty() {
                self.values
                    .push(scaled[..columns.len() - 1].iter().copied());
                continue;
            }
            dense.clear();
            dense.resize(dense_columns.len(), 0.0);
            others.clear();
            for (&column, &x) in columns[..columns.len() - 1].iter().zip(&scaled) {
                match dense_columns.place(column) {
                    Some(place) => dense[place] += x,
                    None => others.push((column, x)),
                }
            }
            total += dense
                .iter()
                .map(|&x: &f32| f64::from(x).powi(2))
                .sum::<f64>();
            self.dense.push(&dense);
            self.columns.push(others.iter().map(|&(column, _)| column));
            self.values.push(others.iter().map(|&(_, x)| x));
        }
        total
    }

    /// Returns the number of columns without the constant.
    pub fn n_features(&self) -> usize {
        self.examples.width - 1
    }

    /// Returns columns and values of a row without dense columns and the constant. `MAY_BE_DENSE` is
    /// false only if there are no dense columns.
    pub fn features<const MAY_BE_DENSE: bool>(&self, row: u32) -> (&[u32], &[f32]) {
        if !MAY_BE_DENSE || self.dense_columns.is_empty() {
            let values = self.values.get(row as usize);
            let (columns, _) = self.examples.row(row);
            return (&columns[..values.len()], values);
        }
        if self.dense_columns.len() == self.n_features() {
            return (&[], &[]);
        }
        (
            self.columns.get(row as usize),
            self.values.get(row as usize),
        )
    }

    /// Prefetches the columns and values of a row.
    pub fn prefetch(&self, row: u32) {
        let (columns, values) = self.features::<true>(row);
        prefetch_list(columns);
        prefetch_list(values);
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

impl<'a> ProblemRows<'a> {
    /// More values do not fit the cache, and each thread would need memory for them.
    const MAX_COPIED: usize = 1 << 22;

    pub fn new(rows: &'a ScorerRows<'a>) -> Self {
        Self {
            rows,
            copies: RaggedRows::default(),
            columns: LocalIds::new(rows.n_features()),
            max_copied: Self::MAX_COPIED,
            is_copied: true,
        }
    }

    /// Removes all rows, and expects `n` new ones.
    pub fn start(&mut self, n: usize) {
        let examples = self.rows.examples;
        let mean = examples.rows.n_values() / examples.len().max(1);
        self.copies.clear();
        self.columns.clear();
        self.is_copied = n.saturating_mul(mean) <= self.max_copied;
    }

    /// Adds a row.
    pub fn push(&mut self, row: u32) {
        if self.is_copied {
            let (columns, values) = self.rows.features::<true>(row);
            let numbers = columns.iter().map(|&column| self.columns.insert(column));
            self.copies.push(numbers, values);
        }
    }

    /// Returns the numbers of the columns and the values of `row`, which was added at `place`.
    pub fn get(&self, row: u32, place: u32) -> (&[u32], &[f32]) {
        if self.is_copied {
            self.copies.row(place as usize)
        } else {
            self.rows.features::<true>(row)
        }
    }

    /// Returns the bound of the numbers of columns.
    pub fn n_columns(&self) -> usize {
        if self.is_copied {
            self.columns.len()
        } else {
            self.rows.n_features()
        }
    }

    /// Returns the number of a column, if a row has it.
    pub fn number(&self, column: u32) -> Option<u32> {
        if self.is_copied {
            self.columns.get(column)
        } else {
            Some(column)
        }
    }

    /// Returns the column of a number.
    pub fn column(&self, number: usize) -> u32 {
        if self.is_copied {
            self.columns.keys()[number]
        } else {
            number as u32
        }
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

/// Returns (ln((N + 1) / (n + 1/2)))^`power` for each column, with N rows of which n have it, and 1
/// for dense columns.
fn scales((counts, n_rows): (&[u32], usize), dense_columns: &DenseColumns, power: f64) -> Vec<f32> {
    if power == 0.0 {
        return vec![1.0; counts.len()];
    }
    let n_rows = n_rows as f64 + 1.0;
    // After hashing, a column can occur more often than there are rows.
    let idf = |n: u32| (n_rows / (f64::from(n) + 0.5)).ln().max(1e-3);
    let scale = |(column, &n)| match dense_columns.place(column) {
        Some(_) => 1.0,
        None => idf(n).powf(power) as f32,
    };
    (0..).zip(counts).map(scale).collect()
}
