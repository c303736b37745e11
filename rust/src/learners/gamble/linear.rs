//! Linear scores beside the votes of the trees.
//!
//! Classes that differ in a sum of columns take many splits, but few coefficients. So after boosting,
//! a multinomial logistic regression is fitted to the columns. Its log-odds are added to those of the
//! trees: both have the same vote. They are added only if this lowers the error of rows that neither
//! has learned by more than its standard error. These rows were left out of trees, and the regression
//! learns them in two halves, each for the rows of the other.
//!
//! The Hessian of the loss is at most half of the products of the columns (D. Böhning, "Multinomial
//! logistic regression algorithm", Annals of the Institute of Statistical Mathematics 44, 1992). So one
//! inverse matrix serves all steps, and Nesterov's momentum makes them fewer.

use super::boost::LabeledRows;
use super::predict::best_class;
use super::Params;
use crate::control::Control;
use crate::data::RowBuffer;
use crate::error::Result;
use crate::metrics::Outcome;
use crate::persist;

/// Most columns and coefficients that are tried, so that they take a small part of the training.
const MAX_COLUMNS: usize = 64;
const MAX_COEFFICIENTS: usize = 1024;
/// Most rows that the final coefficients are fitted to.
const MAX_ROWS: usize = 1 << 14;
/// Steps of a regression, and those after which it is given up if its error is more than so many times
/// that of the trees.
const N_STEPS: usize = 50;
const N_FIRST_STEPS: usize = 10;
const MAX_ERROR_RATIO: f64 = 1.5;
/// The weight of |w|^2 / 2 against the loss of a row, for standardized columns.
const PENALTY: f64 = 0.1;

/// A row's scores, by which it is classified.
pub type Scored = Outcome<Vec<f32>>;

/// Returns the outcome of `scores` for a row with this label.
pub fn scored(scores: Vec<f32>, label: u32, weight: f64) -> Scored {
    Outcome {
        is_right: best_class(scores.iter().copied()) == label as usize,
        row: scores,
        weight,
    }
}

/// Returns the weight of the rows that are classified wrongly.
pub fn wrong<'a>(outcomes: impl IntoIterator<Item = &'a Scored>) -> f64 {
    let wrong = outcomes.into_iter().filter(|outcome| !outcome.is_right);
    wrong.map(|outcome| outcome.weight).sum()
}

/// Coefficients by column and class; none if the trees vote alone.
#[derive(Debug, Clone, Default)]
pub struct LinearScores {
    /// The coefficients of all classes, column by column.
    pub coefficients: Vec<f64>,
    /// By column, the mean of the training rows, which replaces missing values.
    means: Vec<f64>,
    /// By class, the score of the row of means.
    at_means: Vec<f64>,
}

persist!(LinearScores {
    Columns coefficients;
    Columns means;
    Columns at_means;
});

impl LinearScores {
    /// Returns whether the numbers fit columns and classes.
    pub fn is_sound(&self, n_columns: usize, n_classes: usize) -> bool {
        let lengths = [&self.coefficients, &self.means, &self.at_means].map(Vec::len);
        [[0; 3], [n_columns * n_classes, n_columns, n_classes]].contains(&lengths)
    }

    /// Adds the scores of a row.
    pub fn add(&self, row: &RowBuffer, scores: &mut [f64]) {
        let n_classes = self.at_means.len();
        let add = |scores: &mut [f64], column: usize, factor: f64| {
            let coefficients = &self.coefficients[column * n_classes..][..n_classes];
            let scores = scores.iter_mut().zip(coefficients);
            scores.for_each(|(score, coefficient)| *score += factor * coefficient);
        };
        let scores = &mut scores[..n_classes];
        scores
            .iter_mut()
            .zip(&self.at_means)
            .for_each(|(score, at)| *score += at);
        // Zeros are not listed.
        for (column, mean) in self.means.iter().enumerate() {
            add(scores, column, -mean);
        }
        for (&column, &value) in row.columns.iter().zip(&row.values) {
            let column = column as usize;
            let value = if value.is_nan() {
                self.means[column]
            } else {
                value.into()
            };
            add(scores, column, value);
        }
    }

    /// Adds the contributions of the columns to the score of a class, and last the score of the row of
    /// means: the Shapley values of a sum.
    pub fn explain(&self, values: &[f32], class: u32, sums: &mut [f64]) {
        let (n_classes, class) = (self.at_means.len(), class as usize);
        for (column, mean) in self.means.iter().enumerate() {
            let value = f64::from(values[column]);
            if !value.is_nan() {
                sums[column] += (value - mean) * self.coefficients[column * n_classes + class];
            }
        }
        if n_classes > 0 {
            sums[self.means.len()] += self.at_means[class];
        }
    }

    /// Returns the scores to be added to those of the trees, whose log-odds are `slope` times as large;
    /// `None` if they do not lower the error. `own` and `left_out` are outcomes of the rows at
    /// `places`, by all trees and by those that have not learned the row. They are replaced by those
    /// of the sums.
    pub fn beside(
        params: &Params,
        learned: &LabeledRows<'_>,
        places: &[usize],
        (own, left_out): (&mut Vec<Scored>, &mut Vec<Scored>),
        slope: f64,
        control: &Control,
    ) -> Result<Option<Self>> {
        let n_classes = left_out.first().map_or(0, |outcome| outcome.row.len());
        let n_columns = learned.batch.rows.n_cols();
        let is_small = n_columns <= MAX_COLUMNS && n_columns * n_classes <= MAX_COEFFICIENTS;
        if !params.linear || !is_small {
            return Ok(None);
        }
        let table = Table::read(params, learned, places, n_classes);
        let mut sums = left_out.clone();
        for half in 0..2 {
            let (ours, others): (Vec<usize>, _) = (0..places.len()).partition(|at| at % 2 == half);
            if half == 0 {
                let first = table.fit(&others, N_FIRST_STEPS, control)?;
                let alone = ours.iter().map(|&at| table.scored(at, &first));
                let alone: Vec<Scored> = alone.collect();
                if wrong(&alone) > MAX_ERROR_RATIO * wrong(ours.iter().map(|&at| &left_out[at])) {
                    return Ok(None);
                }
            }
            let coefficients = table.fit(&others, N_STEPS, control)?;
            for at in ours {
                sums[at] =
                    left_out[at].plus(slope, &table.scored(at, &coefficients), table.labels[at]);
            }
        }
        let gain = |(sum, trees): (&Scored, &Scored)| {
            sum.weight * (f64::from(sum.is_right) - f64::from(trees.is_right))
        };
        let gains = || sums.iter().zip(&*left_out).map(gain);
        let error = gains().map(|gain| gain * gain).sum::<f64>().sqrt();
        if gains().sum::<f64>() <= error {
            return Ok(None);
        }
        let n = learned.which.len();
        let n_read = n.min(MAX_ROWS);
        let all: Vec<usize> = (0..n_read).map(|i| i * n / n_read).collect();
        let whole = Table::read(params, learned, &all, n_classes);
        let every: Vec<usize> = (0..n_read).collect();
        let linear = whole.linear(&whole.fit(&every, N_STEPS, control)?);
        let mut row = RowBuffer::default();
        for (outcome, &place) in own.iter_mut().zip(places) {
            let mut scores = vec![0.0; n_classes];
            learned
                .batch
                .rows
                .read(learned.which[place] as usize, &mut row);
            linear.add(&row, &mut scores);
            let scores = scores.iter().map(|&score| score as f32).collect();
            let label = learned.label(place);
            *outcome = outcome.plus(slope, &scored(scores, label, 0.0), label);
        }
        *left_out = sums;
        Ok(Some(linear.times((n_classes as f64 - 1.0) / slope)))
    }

    fn times(mut self, factor: f64) -> Self {
        let numbers = self.coefficients.iter_mut().chain(&mut self.at_means);
        numbers.for_each(|number| *number *= factor);
        self
    }
}

impl Scored {
    /// Returns the outcome of `slope` times these scores plus `others`.
    fn plus(&self, slope: f64, others: &Self, label: u32) -> Self {
        let both = self.row.iter().zip(&others.row);
        let sums = both.map(|(own, other)| (f64::from(*own) * slope) as f32 + other);
        scored(sums.collect(), label, self.weight)
    }
}

/// Rows of a regression.
struct Table {
    n_classes: usize,
    /// The columns' means, and the factors by which they are standardized; 0 for columns left out.
    columns: Vec<(f64, f64)>,
    /// The standardized values, row by row. A constant 1 comes last.
    values: Vec<f64>,
    labels: Vec<u32>,
    weights: Vec<f64>,
}

impl Table {
    fn read(
        params: &Params,
        learned: &LabeledRows<'_>,
        places: &[usize],
        n_classes: usize,
    ) -> Self {
        let n_columns = learned.batch.rows.n_cols();
        let (mut values, mut row) = (Vec::new(), RowBuffer::default());
        for &place in places {
            learned
                .batch
                .rows
                .read(learned.which[place] as usize, &mut row);
            let start = values.len();
            values.resize(start + n_columns + 1, 0.0);
            values[start + n_columns] = 1.0;
            for (&column, &value) in row.columns.iter().zip(&row.values) {
                values[start + column as usize] = value.into();
            }
        }
        let standardized = |column: usize| {
            let all = values.chunks_exact(n_columns + 1).map(|row| row[column]);
            let present = || all.clone().filter(|value: &f64| !value.is_nan());
            let n = (present().count() as f64).max(1.0);
            let mean = present().sum::<f64>() / n;
            let variance = present().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
            let is_used = variance > 0.0 && !params.categorical_features.contains(&(column as u32));
            (
                mean,
                if is_used {
                    variance.sqrt().recip()
                } else {
                    0.0
                },
            )
        };
        let columns: Vec<(f64, f64)> = (0..n_columns).map(standardized).collect();
        for row in values.chunks_exact_mut(n_columns + 1) {
            for (value, (mean, factor)) in row.iter_mut().zip(&columns) {
                *value = if value.is_nan() {
                    0.0
                } else {
                    (*value - mean) * factor
                };
            }
        }
        Self {
            n_classes,
            columns,
            values,
            labels: places.iter().map(|&place| learned.label(place)).collect(),
            weights: places
                .iter()
                .map(|&place| learned.importance(place))
                .collect(),
        }
    }

    fn row(&self, at: usize) -> &[f64] {
        let width = self.columns.len() + 1;
        &self.values[at * width..][..width]
    }

    /// Writes the scores of a row.
    fn score(&self, at: usize, coefficients: &[f64], scores: &mut [f64]) {
        scores.fill(0.0);
        let by_column = coefficients.chunks_exact(self.n_classes);
        for (value, coefficients) in self.row(at).iter().zip(by_column) {
            let scores = scores.iter_mut().zip(coefficients);
            scores.for_each(|(score, coefficient)| *score += value * coefficient);
        }
    }

    fn scored(&self, at: usize, coefficients: &[f64]) -> Scored {
        let mut scores = vec![0.0; self.n_classes];
        self.score(at, coefficients, &mut scores);
        let scores = scores.iter().map(|&score| score as f32).collect();
        scored(scores, self.labels[at], self.weights[at])
    }

    /// Returns the coefficients for all columns and the constant after some steps.
    fn fit(&self, rows: &[usize], n_steps: usize, control: &Control) -> Result<Vec<f64>> {
        let (width, n_classes) = (self.columns.len() + 1, self.n_classes);
        let penalty = |column: usize| if column + 1 < width { PENALTY } else { 1e-9 };
        let mut bound = vec![0.0; width * width];
        for &at in rows {
            let row = self.row(at);
            for (sums, value) in bound.chunks_exact_mut(width).zip(row) {
                let factor = 0.5 * self.weights[at] * value;
                let sums = sums.iter_mut().zip(row);
                sums.for_each(|(sum, value)| *sum += factor * value);
            }
        }
        (0..width).for_each(|at| bound[at * width + at] += penalty(at));
        invert(&mut bound, width);
        let mut before = vec![0.0; width * n_classes];
        let (mut at, mut momentum) = (before.clone(), 1.0_f64);
        let mut shares = vec![0.0; n_classes];
        for _ in 0..n_steps {
            control.check()?;
            let mut slopes: Vec<f64> = at.clone();
            for (column, slopes) in slopes.chunks_exact_mut(n_classes).enumerate() {
                slopes
                    .iter_mut()
                    .for_each(|slope| *slope *= penalty(column));
            }
            for &row in rows {
                self.score(row, &at, &mut shares);
                let highest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                shares
                    .iter_mut()
                    .for_each(|share| *share = (*share - highest).exp());
                let factor = self.weights[row] / shares.iter().sum::<f64>();
                shares.iter_mut().for_each(|share| *share *= factor);
                shares[self.labels[row] as usize] -= self.weights[row];
                for (value, slopes) in self.row(row).iter().zip(slopes.chunks_exact_mut(n_classes))
                {
                    let slopes = slopes.iter_mut().zip(&shares);
                    slopes.for_each(|(slope, share)| *slope += value * share);
                }
            }
            let mut next = at.clone();
            for (next, inverse) in next
                .chunks_exact_mut(n_classes)
                .zip(bound.chunks_exact(width))
            {
                for (factor, slopes) in inverse.iter().zip(slopes.chunks_exact(n_classes)) {
                    let next = next.iter_mut().zip(slopes);
                    next.for_each(|(next, slope)| *next -= factor * slope);
                }
            }
            // Momentum against the slope starts anew.
            let moved = next.iter().zip(&before).zip(&slopes);
            let is_uphill = moved
                .map(|((next, before), slope)| (next - before) * slope)
                .sum::<f64>()
                > 0.0;
            let grown = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
            let carry = if is_uphill {
                0.0
            } else {
                (momentum - 1.0) / grown
            };
            momentum = if is_uphill { 1.0 } else { grown };
            let both = at.iter_mut().zip(&next).zip(&before);
            both.for_each(|((at, next), before)| *at = next + carry * (next - before));
            before = next;
        }
        Ok(before)
    }

    /// Returns the scores for raw values, which sum to 0 over the classes.
    fn linear(&self, coefficients: &[f64]) -> LinearScores {
        let mut centered = coefficients.to_vec();
        let factors = self.columns.iter().map(|&(_, factor)| factor).chain([1.0]);
        for (numbers, factor) in centered.chunks_exact_mut(self.n_classes).zip(factors) {
            let mean = numbers.iter().sum::<f64>() / self.n_classes as f64;
            numbers
                .iter_mut()
                .for_each(|number| *number = (*number - mean) * factor);
        }
        let at_means = centered.split_off(self.columns.len() * self.n_classes);
        LinearScores {
            coefficients: centered,
            means: self.columns.iter().map(|&(mean, _)| mean).collect(),
            at_means,
        }
    }
}

/// Inverts a positive definite matrix of `n` rows.
fn invert(matrix: &mut [f64], n: usize) {
    let mut pivots = vec![0.0; n];
    for at in 0..n {
        let factor = matrix[at * n + at].recip();
        matrix[at * n + at] = 1.0;
        matrix[at * n..][..n]
            .iter_mut()
            .for_each(|value| *value *= factor);
        pivots.copy_from_slice(&matrix[at * n..][..n]);
        for (number, row) in matrix.chunks_exact_mut(n).enumerate() {
            if number != at {
                let factor = std::mem::take(&mut row[at]);
                let row = row.iter_mut().zip(&pivots);
                row.for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_inverted() {
        let matrix = [4.0, 1.0, 0.5, 1.0, 3.0, -1.0, 0.5, -1.0, 2.0];
        let mut inverse = matrix;
        invert(&mut inverse, 3);
        for (row, column) in (0..9).map(|at| (at / 3, at % 3)) {
            let product: f64 = (0..3)
                .map(|k| matrix[row * 3 + k] * inverse[k * 3 + column])
                .sum();
            assert!((product - f64::from(row == column)).abs() < 1e-12);
        }
    }

    /// Every label is likeliest on its side, but not certain, and rows differ in weight.
    fn table() -> Table {
        let number = |at: usize| (at * 7919 % 101) as f64 / 50.0 - 1.0;
        let values = (0..300).map(|at| if at % 3 == 2 { 1.0 } else { number(at) });
        let label = |at: usize| match at % 4 {
            0 => (at * 13 % 3) as u32,
            _ => u32::from(number(3 * at) > 0.0) + u32::from(number(3 * at + 1) > 0.3),
        };
        Table {
            n_classes: 3,
            columns: vec![(0.0, 1.0); 2],
            values: values.collect(),
            labels: (0..100).map(label).collect(),
            weights: (0..100).map(|at| 0.5 + f64::from(at % 3)).collect(),
        }
    }

    /// At the lowest loss, all its partial derivatives are 0.
    #[test]
    fn fits_end_at_the_lowest_loss() {
        let (table, rows) = (table(), (0..100).collect::<Vec<_>>());
        let found = table.fit(&rows, 200, &Control::new(0)).unwrap();
        let loss = |coefficients: &[f64]| -> f64 {
            let row_loss = |&at: &usize| {
                let mut scores = vec![0.0; 3];
                table.score(at, coefficients, &mut scores);
                let sum: f64 = scores.iter().map(|score| score.exp()).sum();
                table.weights[at] * (sum.ln() - scores[table.labels[at] as usize])
            };
            let penalty: f64 = coefficients[..6].iter().map(|c| c * c).sum();
            rows.iter().map(row_loss).sum::<f64>() + PENALTY * penalty / 2.0
        };
        for at in 0..9 {
            let moved = [-1e-5, 1e-5].map(|step| {
                let mut moved = found.clone();
                moved[at] += step;
                loss(&moved)
            });
            let slope = (moved[1] - moved[0]) / 2e-5;
            assert!(slope.abs() < 1e-3, "{slope}");
        }
        // Few steps are nearly as good.
        let short = loss(&table.fit(&rows, N_STEPS, &Control::new(0)).unwrap());
        assert!(short - loss(&found) < 1e-3);
    }
}
