//! Linear scores beside the votes of the trees.
//!
//! Classes that differ in a sum of columns take many splits, but few coefficients. So after boosting,
//! a multinomial logistic regression is fitted to the columns. Its log-odds are added to those of the
//! trees, only if this lowers the error of rows that neither has learned by more than 1.5 standard
//! errors. These rows were left out of trees, and the regression learns them in two halves, each for the
//! rows of the other.

use super::boost::LabeledRows;
use super::features::{Column, Table};
use super::logistic::{Coefficients, Regression};
use super::Params;
use crate::control::Control;
use crate::data::RowBuffer;
use crate::error::Result;
use crate::metrics::Outcome;
use crate::model::first_best;
use crate::persist;

/// Most rows that the final coefficients are fitted to.
const MAX_ROWS: usize = 1 << 14;
/// Weights of half of the square of a standardized coefficient. The one with the lowest error after the
/// first steps is taken.
const PENALTIES: [f64; 2] = [400.0, 0.1];
/// Weight of the log-odds of the regression against those of the trees.
const VOTE: f64 = 1.5;
/// Steps of a regression, and those after which it is given up if its error is more than so many times
/// that of the trees.
const N_STEPS: usize = 50;
const N_FIRST_STEPS: usize = 10;
const MAX_ERROR_RATIO: f64 = 1.5;
/// Least gain, in standard errors.
const MIN_GAIN: f64 = 1.5;
/// Largest score that a file may give; training gives far smaller ones.
const MAX_SCORE: f64 = 1e30;

/// A row's scores, by which it is classified.
pub type Scored = Outcome<Vec<f32>>;

/// Returns the outcome of `scores` for a row with this label.
pub fn scored(scores: Vec<f32>, label: u32, weight: f64) -> Scored {
    let best = first_best(scores.iter().copied().enumerate());
    Outcome {
        is_right: best.is_some_and(|(class, _)| class == label as usize),
        row: scores,
        weight,
    }
}

/// Returns the weight of the rows that are classified wrongly.
pub fn wrong<'a>(outcomes: impl IntoIterator<Item = &'a Scored>) -> f64 {
    let wrong = outcomes.into_iter().filter(|outcome| !outcome.is_right);
    wrong.map(|outcome| outcome.weight).sum()
}

/// Coefficients by feature and class; none if the trees vote alone.
#[derive(Debug, Clone, Default)]
pub struct LinearScores {
    columns: Vec<Column>,
    /// The coefficients of all classes, feature by feature. Those of a column's categories have the
    /// mean 0 over the training rows.
    coefficients: Vec<f64>,
    /// By class, the score of a row of zeros.
    at_zeros: Vec<f64>,
}

persist!(LinearScores {
    Columns columns;
    Columns coefficients;
    Columns at_zeros;
});

impl LinearScores {
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns whether the numbers fit columns and classes, and give no extreme scores.
    pub fn is_sound(&self, n_columns: usize, n_classes: usize) -> bool {
        if self.is_empty() {
            return self.coefficients.is_empty() && self.at_zeros.is_empty();
        }
        let mut n_features = 0;
        let are_placed = self.columns.iter().all(|column| {
            let is_placed = column.first as usize == n_features;
            n_features += column.n_features();
            let categories = column.categories.windows(2);
            is_placed && categories.into_iter().all(|pair| pair[0] < pair[1])
        });
        let lengths = (
            self.columns.len(),
            self.coefficients.len(),
            self.at_zeros.len(),
        );
        if !are_placed || lengths != (n_columns, n_features * n_classes, n_classes) {
            return false;
        }
        let longest = |column: &Column, class: usize| {
            let of_class = |feature: usize| self.coefficients[feature * n_classes + class].abs();
            let first = column.first as usize;
            if column.categories.is_empty() {
                let ends = [f32::MIN, f32::MAX].map(|value| distance(column, value).abs());
                return of_class(first) * ends[0].max(ends[1]);
            }
            (first..first + column.n_features())
                .map(of_class)
                .fold(0.0, f64::max)
        };
        (0..n_classes).all(|class| {
            let columns = self.columns.iter().map(|column| longest(column, class));
            columns.sum::<f64>() + self.at_zeros[class].abs() <= MAX_SCORE
        })
    }

    /// Returns the feature of a column's value and its distance from the mean; `None` for a category
    /// that no training row had.
    fn feature(&self, column: &Column, value: f32) -> Option<(&[f64], f64)> {
        let (place, distance) = if column.categories.is_empty() {
            (0, distance(column, value))
        } else {
            (column.category(value)?, 1.0)
        };
        let n_classes = self.at_zeros.len();
        let start = (column.first as usize + place) * n_classes;
        Some((&self.coefficients[start..][..n_classes], distance))
    }

    /// Adds the scores of a row.
    pub fn add(&self, row: &RowBuffer, scores: &mut [f64]) {
        add_product(scores, 1.0, &self.at_zeros);
        for (&column, &value) in row.columns.iter().zip(&row.values) {
            let column = &self.columns[column as usize];
            for (value, sign) in [(value, 1.0), (0.0, -1.0)] {
                if let Some((coefficients, distance)) = self.feature(column, value) {
                    add_product(scores, sign * distance, coefficients);
                }
            }
        }
    }

    /// Adds the contributions of the columns to the score of a class, and last the score of the row of
    /// means: the Shapley values of a sum.
    pub fn explain(&self, values: &[f32], class: u32, sums: &mut [f64]) {
        let class = class as usize;
        let contribution = |column: &Column, value: f32| {
            let feature = self.feature(column, value);
            feature.map_or(0.0, |(coefficients, distance)| {
                coefficients[class] * distance
            })
        };
        let Some(mut at_means) = self.at_zeros.get(class).copied() else {
            return;
        };
        for ((column, &value), sum) in self.columns.iter().zip(values).zip(&mut *sums) {
            *sum += contribution(column, value);
            at_means -= contribution(column, 0.0);
        }
        sums[values.len()] += at_means;
    }

    /// Returns the coefficients of all classes, column by column; NaN for columns of categories.
    pub fn by_column(&self) -> Vec<f64> {
        let n_classes = self.at_zeros.len();
        let of_column = |column: &Column| match column.categories.as_slice() {
            [] => self.coefficients[column.first as usize * n_classes..][..n_classes].to_vec(),
            _ => vec![f64::NAN; n_classes],
        };
        self.columns.iter().flat_map(of_column).collect()
    }

    /// Returns the scores to be added to those of the trees, whose log-odds are `slope` times as large;
    /// `None` if they do not lower the error. `left_out` are outcomes of the rows at `places` by trees
    /// that have not learned them. They are replaced by those of the sums.
    pub fn beside(
        params: &Params,
        learned: &LabeledRows<'_>,
        places: &[usize],
        left_out: &mut Vec<Scored>,
        slope: f64,
        control: &Control,
    ) -> Result<Option<Self>> {
        let n_classes = left_out.first().map_or(0, |outcome| outcome.row.len());
        if !params.linear {
            return Ok(None);
        }
        let Some(table) = Table::read(params, learned, places, n_classes) else {
            return Ok(None);
        };
        let half = |first: usize| (first..places.len()).step_by(2).collect::<Vec<_>>();
        let halves = [half(0), half(1)];
        let [first, second] = halves.each_ref();
        let regressions = halves.each_ref().map(|rows| Regression::new(&table, rows));
        let (alone, penalty) = best_penalty(&regressions[1], first, control)?;
        if alone > MAX_ERROR_RATIO * wrong(first.iter().map(|&at| &left_out[at])) {
            return Ok(None);
        }
        let mut sums = left_out.clone();
        for (regression, rows) in regressions.iter().zip([second, first]) {
            let coefficients = regression.fit(penalty, N_STEPS, control)?;
            for (&at, linear) in rows.iter().zip(outcomes(&table, rows, &coefficients)) {
                sums[at] = left_out[at].plus(slope, &linear, table.labels[at]);
            }
        }
        let gain = |(sum, trees): (&Scored, &Scored)| {
            sum.weight * (f64::from(sum.is_right) - f64::from(trees.is_right))
        };
        let gains = || sums.iter().zip(&*left_out).map(gain);
        let error = gains().map(|gain| gain * gain).sum::<f64>().sqrt();
        if gains().sum::<f64>() <= MIN_GAIN * error {
            return Ok(None);
        }
        let n = learned.which.len();
        let n_read = n.min(MAX_ROWS);
        let all: Vec<usize> = (0..n_read).map(|i| i * n / n_read).collect();
        let Some(whole) = Table::read(params, learned, &all, n_classes) else {
            return Ok(None);
        };
        let every: Vec<usize> = (0..n_read).collect();
        let coefficients = Regression::new(&whole, &every).fit(penalty, N_STEPS, control)?;
        *left_out = sums;
        let linear = Self::of(whole, &coefficients);
        Ok(Some(linear.times(VOTE * (n_classes as f64 - 1.0) / slope)))
    }

    /// Returns the scores by a regression's coefficients, for raw values. They sum to 0 over the classes.
    fn of(table: Table, coefficients: &Coefficients) -> Self {
        let n_classes = table.n_classes;
        let factors = table.factors.iter().copied().chain([1.0]);
        let mut raw = Vec::new();
        for (numbers, factor) in coefficients.by_feature().zip(factors) {
            let mean = numbers.iter().sum::<f64>() / n_classes as f64;
            let numbers = numbers[..n_classes].iter();
            raw.extend(numbers.map(|number| (number - mean) * factor));
        }
        let intercepts = raw.split_off(table.factors.len() * n_classes);
        let has_categories = |column: &&Column| !column.categories.is_empty();
        for column in table.columns.iter().filter(has_categories) {
            let first = column.first as usize;
            let shares = &table.means[first..first + column.n_features()];
            let raw = &mut raw[first * n_classes..][..shares.len() * n_classes];
            for class in 0..n_classes {
                let of_class = || raw.iter().skip(class).step_by(n_classes);
                let mean: f64 = of_class()
                    .zip(shares)
                    .map(|(number, share)| number * share)
                    .sum();
                let of_class = raw.iter_mut().skip(class).step_by(n_classes);
                of_class.for_each(|number| *number -= mean);
            }
        }
        let mut linear = Self {
            columns: table.columns,
            coefficients: raw,
            at_zeros: intercepts,
        };
        let mut at_zeros = linear.at_zeros.clone();
        for column in &linear.columns {
            if let Some((coefficients, distance)) = linear.feature(column, 0.0) {
                add_product(&mut at_zeros, distance, coefficients);
            }
        }
        linear.at_zeros = at_zeros;
        linear
    }

    fn times(mut self, factor: f64) -> Self {
        let numbers = self.coefficients.iter_mut().chain(&mut self.at_zeros);
        numbers.for_each(|number| *number *= factor);
        self
    }
}

impl Scored {
    /// Returns the outcome of `slope` times these scores plus those of a regression.
    fn plus(&self, slope: f64, others: &Self, label: u32) -> Self {
        let both = self.row.iter().zip(&others.row);
        let sum = |own: f32, other: f32| f64::from(own) * slope + f64::from(other) * VOTE;
        let sums = both.map(|(own, other)| sum(*own, *other) as f32);
        scored(sums.collect(), label, self.weight)
    }
}

/// Returns the lowest error of `rows` by a regression of others after its first steps, and the penalty
/// that gives it.
fn best_penalty(
    regression: &Regression<'_>,
    rows: &[usize],
    control: &Control,
) -> Result<(f64, f64)> {
    let mut best = (f64::INFINITY, 0.0);
    for penalty in PENALTIES {
        let coefficients = regression.fit(penalty, N_FIRST_STEPS, control)?;
        let error = wrong(&outcomes(regression.table, rows, &coefficients));
        if error < best.0 {
            best = (error, penalty);
        }
    }
    Ok(best)
}

/// Returns the outcomes of some rows by a regression.
fn outcomes(table: &Table, rows: &[usize], coefficients: &Coefficients) -> Vec<Scored> {
    let mut found = Vec::with_capacity(rows.len());
    coefficients.score(table, rows, |at, scores| {
        let scores = scores.as_flattened()[..table.n_classes].iter();
        let scores = scores.map(|&score| score as f32).collect();
        found.push(scored(scores, table.labels[at], table.weights[at]));
    });
    found
}

/// Adds `factor` times the coefficients to the scores.
fn add_product(scores: &mut [f64], factor: f64, coefficients: &[f64]) {
    let pairs = scores.iter_mut().zip(coefficients);
    pairs.for_each(|(score, coefficient)| *score += factor * coefficient);
}

/// Returns how far a value is from the mean. Missing values count as the mean, and values that are not
/// in the range of the training rows as its ends, because trees do not extrapolate either.
fn distance(column: &Column, value: f32) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    f64::from(value).max(column.low).min(column.high) - column.mean
}
