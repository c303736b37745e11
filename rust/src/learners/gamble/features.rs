//! Columns of numbers and of categories as standardized features.
//!
//! A column of numbers is one feature. A column of categories has a feature for each category: 1 in its
//! rows, 0 in all others. Only values other than 0 are stored.

use super::boost::LabeledRows;
use super::Params;
use crate::data::{Ragged, RowBuffer};
use crate::record;

/// Most coefficients, and mean products of values and coefficients for a row, so that regressions take
/// a small part of the training.
const MAX_COEFFICIENTS: usize = 1 << 15;
const MAX_PRODUCTS: usize = 1 << 10;
/// Largest range of a standardized feature.
const MAX_DEVIATIONS: f64 = 8.0;

/// A column of X.
#[derive(Debug, Clone)]
pub struct Column {
    /// The first feature.
    pub first: u32,
    /// The mean, the least and the largest value of the rows, for numbers.
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// The categories, in rising order, which have a feature each. Missing values are infinity. Empty
    /// for numbers.
    pub categories: Vec<f32>,
}

record!(Column {
    first,
    mean,
    low,
    high,
    categories: are_present
});

fn are_present(values: &impl AsRef<[f32]>) -> bool {
    values.as_ref().iter().all(|value| !value.is_nan())
}

/// Returns the number that stands for a category, also for missing values.
fn category_of(value: f32) -> f32 {
    if value.is_nan() {
        f32::INFINITY
    } else {
        value
    }
}

impl Column {
    pub fn n_features(&self) -> usize {
        self.categories.len().max(1)
    }

    /// Returns the place of a category, if some row had it.
    pub fn category(&self, value: f32) -> Option<usize> {
        let value = category_of(value);
        let places = &self.categories;
        places.binary_search_by(|each| each.total_cmp(&value)).ok()
    }
}

/// Rows of a regression.
pub struct Table {
    pub n_classes: usize,
    pub columns: Vec<Column>,
    /// By feature, the mean, and the factor that standardizes; 0 if all rows have the same value.
    pub means: Vec<f64>,
    pub factors: Vec<f64>,
    /// By row, the features other than 0, times their factors.
    pub rows: Ragged<(u32, f64)>,
    pub labels: Vec<u32>,
    pub weights: Vec<f64>,
}

impl Table {
    /// Reads the rows at `places`. Returns `None` if a regression would take too long.
    pub fn read(
        params: &Params,
        learned: &LabeledRows<'_>,
        places: &[usize],
        n_classes: usize,
    ) -> Option<Self> {
        let n_columns = learned.batch.rows.n_cols();
        if n_columns * n_classes > MAX_COEFFICIENTS {
            return None;
        }
        let max_listed = MAX_PRODUCTS / n_classes * places.len();
        let (mut listed, mut row) = (Ragged::default(), RowBuffer::default());
        let mut n_listed = 0;
        for &place in places {
            let number = learned.which[place] as usize;
            learned.batch.rows.read(number, &mut row);
            n_listed += row.columns.len();
            if n_listed > max_listed {
                return None;
            }
            listed.push(row.columns.iter().copied().zip(row.values.iter().copied()));
        }
        let mut table = Self {
            n_classes,
            columns: Vec::with_capacity(n_columns),
            means: Vec::new(),
            factors: Vec::new(),
            rows: Ragged::default(),
            labels: places.iter().map(|&place| learned.label(place)).collect(),
            weights: places
                .iter()
                .map(|&place| learned.importance(place))
                .collect(),
        };
        let by_column = listed.regroup(n_columns, |_, &(column, value)| (column, value));
        for (column, values) in by_column.iter().enumerate() {
            let n_zeros = places.len() - values.len();
            if params.categorical_features.contains(&(column as u32)) {
                table.push_categories(values, n_zeros);
            } else {
                table.push_numbers(values, n_zeros);
            }
            if table.factors.len() * n_classes > MAX_COEFFICIENTS {
                return None;
            }
        }
        table.push_rows(&listed);
        Some(table)
    }

    fn push_numbers(&mut self, values: &[f32], n_zeros: usize) {
        let present = || values.iter().filter(|value| !value.is_nan());
        let present = || present().map(|&value| f64::from(value));
        let n = ((present().count() + n_zeros) as f64).max(1.0);
        let mean = present().sum::<f64>() / n;
        let squares: f64 = present().map(|value| (value - mean).powi(2)).sum();
        let variance = (squares + n_zeros as f64 * mean * mean) / n;
        let with_zero = || present().chain((n_zeros > 0).then_some(0.0));
        let low = with_zero().fold(mean, f64::min);
        let high = with_zero().fold(mean, f64::max);
        self.columns.push(Column {
            first: self.factors.len() as u32,
            mean,
            low,
            high,
            categories: Vec::new(),
        });
        self.push_feature(mean, variance, high - low);
    }

    fn push_categories(&mut self, values: &[f32], n_zeros: usize) {
        let mut sorted: Vec<f32> = values.iter().copied().map(category_of).collect();
        sorted.resize(sorted.len() + n_zeros, 0.0);
        sorted.sort_unstable_by(f32::total_cmp);
        let rows_of = sorted.chunk_by(|a, b| a == b);
        self.columns.push(Column {
            first: self.factors.len() as u32,
            mean: 0.0,
            low: 0.0,
            high: 0.0,
            categories: rows_of.clone().map(|rows| rows[0]).collect(),
        });
        for rows in rows_of {
            let share = rows.len() as f64 / sorted.len() as f64;
            self.push_feature(share, share * (1.0 - share), 1.0);
        }
    }

    fn push_feature(&mut self, mean: f64, variance: f64, range: f64) {
        // A rare feature is not standardized, because a few rows would get huge values.
        let deviation = variance.sqrt().max(range / MAX_DEVIATIONS);
        let is_constant = variance == 0.0;
        let factor = if is_constant { 0.0 } else { deviation.recip() };
        self.means.push(mean);
        self.factors.push(factor);
    }

    /// Stores the features of rows, of which `listed` has the values other than 0.
    fn push_rows(&mut self, listed: &Ragged<(u32, f32)>) {
        let (columns, factors) = (&self.columns, &self.factors);
        let is_number = |at: &u32| columns[*at as usize].categories.is_empty();
        let categorical: Vec<u32> = (0..columns.len() as u32)
            .filter(|at| !is_number(at))
            .collect();
        let mut values = vec![0.0; columns.len()];
        for row in listed.iter() {
            row.iter()
                .for_each(|&(at, value)| values[at as usize] = value);
            let numbers = row.iter().filter(|(at, _)| is_number(at));
            let numbers = numbers.map(|&(at, value)| {
                let Column { first, mean, .. } = columns[at as usize];
                let value = if value.is_nan() { mean } else { value.into() };
                (first, value * factors[first as usize])
            });
            let categories = categorical.iter().filter_map(|&at| {
                let column = &columns[at as usize];
                let feature = column.first + column.category(values[at as usize])? as u32;
                Some((feature, factors[feature as usize]))
            });
            self.rows.push(numbers.chain(categories));
            row.iter().for_each(|&(at, _)| values[at as usize] = 0.0);
        }
    }

    /// Returns the standardized value of each feature in a row of means.
    pub fn centers(&self) -> impl Iterator<Item = f64> + '_ {
        let features = self.means.iter().zip(&self.factors);
        features.map(|(mean, factor)| mean * factor)
    }
}
