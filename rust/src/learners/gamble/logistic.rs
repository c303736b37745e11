//! Multinomial logistic regression of standardized columns.
//!
//! The Hessian of the loss is at most half of the products of the columns (D. Böhning, "Multinomial
//! logistic regression algorithm", Annals of the Institute of Statistical Mathematics 44, 1992). So one
//! inverse matrix serves all steps, and Nesterov's momentum makes them fewer.

use super::boost::LabeledRows;
use super::Params;
use crate::control::Control;
use crate::data::RowBuffer;
use crate::error::Result;

/// The weight of |w|^2 / 2 against the loss of a row, for standardized columns.
const PENALTY: f64 = 0.1;

/// A column of a regression.
pub struct Column {
    pub mean: f64,
    /// Factor by which differences from the mean are standardized; 0 to leave the column out.
    pub factor: f64,
    /// The least and the largest value.
    pub low: f64,
    pub high: f64,
}

/// Rows of a regression.
pub struct Table {
    pub n_classes: usize,
    pub columns: Vec<Column>,
    /// The standardized values, row by row. A constant 1 comes last.
    values: Vec<f64>,
    pub labels: Vec<u32>,
    pub weights: Vec<f64>,
}

impl Table {
    /// Reads the rows at `places`.
    pub fn read(
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
        let column = |number: usize| {
            let all = values.chunks_exact(n_columns + 1).map(|row| row[number]);
            let present = || all.clone().filter(|value: &f64| !value.is_nan());
            let n = (present().count() as f64).max(1.0);
            let mean = present().sum::<f64>() / n;
            let variance = present().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
            let is_used = variance > 0.0 && !params.categorical_features.contains(&(number as u32));
            Column {
                mean,
                factor: if is_used {
                    variance.sqrt().recip()
                } else {
                    0.0
                },
                low: present().fold(mean, f64::min),
                high: present().fold(mean, f64::max),
            }
        };
        let columns: Vec<Column> = (0..n_columns).map(column).collect();
        for row in values.chunks_exact_mut(n_columns + 1) {
            for (value, column) in row.iter_mut().zip(&columns) {
                let distance = if value.is_nan() {
                    0.0
                } else {
                    *value - column.mean
                };
                *value = distance * column.factor;
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
    pub fn score(&self, at: usize, coefficients: &[f64], scores: &mut [f64]) {
        scores.fill(0.0);
        let by_column = coefficients.chunks_exact(self.n_classes);
        for (value, coefficients) in self.row(at).iter().zip(by_column) {
            let scores = scores.iter_mut().zip(coefficients);
            scores.for_each(|(score, coefficient)| *score += value * coefficient);
        }
    }

    /// Returns the coefficients for all columns and the constant after some steps.
    pub fn fit(&self, rows: &[usize], n_steps: usize, control: &Control) -> Result<Vec<f64>> {
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
            // Momentum against the slope starts from 0.
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

    fn column() -> Column {
        Column {
            mean: 0.0,
            factor: 1.0,
            low: -1.0,
            high: 1.0,
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
            columns: [column(), column()].into(),
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
        let short = loss(&table.fit(&rows, 50, &Control::new(0)).unwrap());
        assert!(short - loss(&found) < 1e-3);
    }
}
