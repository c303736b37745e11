//! Multinomial logistic regression of standardized features.
//!
//! Features are stored with their zeros left out, and sums are corrected for the means. The Hessian of
//! the loss is at most half of the products of the features (D. Böhning, "Multinomial logistic regression
//! algorithm", Annals of the Institute of Statistical Mathematics 44, 1992). So one inverse matrix
//! serves all steps, or its largest eigenvalue where features are many. Nesterov's momentum makes the
//! steps fewer.

use super::features::Table;
use crate::control::Control;
use crate::error::Result;

/// Most features whose matrix is inverted.
const MAX_MATRIX_FEATURES: usize = 64;
/// Steps of the search for the largest eigenvalue, and the margin for its error.
const N_POWER_STEPS: usize = 6;
const EIGENVALUE_MARGIN: f64 = 1.25;
/// Weight of half of the square of an intercept, for a matrix that can be inverted.
const INTERCEPT_PENALTY: f64 = 1e-9;
/// A smaller step, as a share of the coefficients, is the last one.
const MIN_STEP: f64 = 1e-2;

/// Numbers of four classes. Those of all classes are padded with zeros, because loops over few numbers
/// are slow.
pub type Block = [f64; 4];

/// Adds `factor` times the numbers of `others`.
fn add(numbers: &mut Block, factor: f64, others: &Block) {
    let pairs = numbers.iter_mut().zip(others);
    pairs.for_each(|(number, other)| *number += factor * other);
}

/// Numbers by feature and class, with those of the constant 1 last.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficients {
    /// Number of blocks of a feature.
    n_blocks: usize,
    blocks: Vec<Block>,
}

impl Coefficients {
    fn zeros(n_features: usize, n_classes: usize) -> Self {
        let n_blocks = n_classes.div_ceil(4);
        Self {
            n_blocks,
            blocks: vec![Block::default(); (n_features + 1) * n_blocks],
        }
    }

    /// Returns the numbers of the features and of the constant, with those of the padding.
    pub fn by_feature(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        let features = self.blocks.chunks_exact(self.n_blocks);
        features.map(<[Block]>::as_flattened)
    }

    /// Calls `visit` with the scores of each of the rows.
    pub fn score(&self, table: &Table, rows: &[usize], mut visit: impl FnMut(usize, &mut [Block])) {
        let (n_blocks, n_features) = (self.n_blocks, table.factors.len());
        let mut at_zeros = self.blocks[n_features * n_blocks..].to_vec();
        for (center, numbers) in table.centers().zip(self.blocks.chunks_exact(n_blocks)) {
            let pairs = at_zeros.iter_mut().zip(numbers);
            pairs.for_each(|(score, numbers)| add(score, -center, numbers));
        }
        let mut scores = at_zeros.clone();
        for &at in rows {
            for (block, score) in scores.iter_mut().enumerate() {
                let mut sum = at_zeros[block];
                for &(feature, value) in table.rows.get(at) {
                    add(
                        &mut sum,
                        value,
                        &self.blocks[feature as usize * n_blocks + block],
                    );
                }
                *score = sum;
            }
            visit(at, &mut scores);
        }
    }

    /// Returns the sum of the features of the rows, and of the constant, times what `pull` makes of the
    /// scores of each row.
    fn pulls(
        &self,
        table: &Table,
        rows: &[usize],
        mut pull: impl FnMut(usize, &mut [f64]),
    ) -> Self {
        let (n_blocks, n_features) = (self.n_blocks, table.factors.len());
        let mut sums = vec![Block::default(); self.blocks.len()];
        let (of_features, totals) = sums.split_at_mut(n_features * n_blocks);
        self.score(table, rows, |at, scores| {
            pull(at, scores.as_flattened_mut());
            for (block, pulled) in scores.iter().enumerate() {
                add(&mut totals[block], 1.0, pulled);
                for &(feature, value) in table.rows.get(at) {
                    add(
                        &mut of_features[feature as usize * n_blocks + block],
                        value,
                        pulled,
                    );
                }
            }
        });
        for (center, sums) in table.centers().zip(of_features.chunks_exact_mut(n_blocks)) {
            let pairs = sums.iter_mut().zip(&*totals);
            pairs.for_each(|(sum, total)| add(sum, -center, total));
        }
        Self {
            n_blocks,
            blocks: sums,
        }
    }

    /// Replaces each number by `update` of it and its partner in `others`.
    fn update(&mut self, others: &Self, update: impl Fn(f64, f64) -> f64) {
        let pairs = self.blocks.as_flattened_mut().iter_mut();
        let pairs = pairs.zip(others.blocks.as_flattened());
        pairs.for_each(|(number, other)| *number = update(*number, *other));
    }

    /// Returns the sum of products with `others`.
    fn dot(&self, others: &Self) -> f64 {
        let pairs = self.blocks.as_flattened().iter();
        let pairs = pairs.zip(others.blocks.as_flattened());
        pairs.map(|(number, other)| number * other).sum()
    }
}

/// Bound of the Hessian of the loss.
enum Curvature {
    /// The matrix, for few features.
    Matrix(Vec<f64>),
    /// Its largest eigenvalue.
    Largest(f64),
}

impl Curvature {
    /// Subtracts the product with `slopes`.
    fn subtract_product(&self, slopes: &Coefficients, from: &mut Coefficients) {
        let n_blocks = slopes.n_blocks;
        match self {
            Self::Matrix(matrix) => {
                let factors = matrix.chunks_exact(slopes.blocks.len() / n_blocks);
                for (numbers, factors) in from.blocks.chunks_exact_mut(n_blocks).zip(factors) {
                    let slopes = slopes.blocks.chunks_exact(n_blocks);
                    for (factor, slopes) in factors.iter().zip(slopes) {
                        let pairs = numbers.iter_mut().zip(slopes);
                        pairs.for_each(|(number, slope)| add(number, -factor, slope));
                    }
                }
            }
            Self::Largest(factor) => from.update(slopes, |number, slope| number - factor * slope),
        }
    }
}

/// A regression of some rows of a table.
pub struct Regression<'a> {
    pub table: &'a Table,
    rows: &'a [usize],
    curvature: Curvature,
}

impl<'a> Regression<'a> {
    pub fn new(table: &'a Table, rows: &'a [usize]) -> Self {
        let n_features = table.factors.len();
        let times = |vector: &Coefficients| {
            vector.pulls(table, rows, |at, scores| {
                scores[0] *= 0.5 * table.weights[at];
            })
        };
        let mut vector = Coefficients::zeros(n_features, 1);
        let curvature = if n_features <= MAX_MATRIX_FEATURES {
            let row = |at: usize| {
                let mut unit = vector.clone();
                unit.blocks[at][0] = 1.0;
                let row = times(&unit).blocks;
                row.into_iter().map(|block| block[0])
            };
            Curvature::Matrix((0..=n_features).flat_map(row).collect())
        } else {
            // The start has a part in all directions, so it turns to the longest.
            let start = vector.blocks.iter_mut().enumerate();
            start.for_each(|(at, block)| block[0] = (at as f64 + 1.0).sin());
            let mut largest = 0.0;
            for _ in 0..N_POWER_STEPS {
                let factor = vector.dot(&vector).sqrt().recip();
                vector.update(&times(&vector), |_, product| product * factor);
                largest = vector.dot(&vector).sqrt();
            }
            Curvature::Largest(EIGENVALUE_MARGIN * largest)
        };
        Self {
            table,
            rows,
            curvature,
        }
    }

    /// Returns the coefficients after at most so many steps. `penalty` is the weight of half of the
    /// square of a coefficient.
    pub fn fit(&self, penalty: f64, n_steps: usize, control: &Control) -> Result<Coefficients> {
        let (table, inverse) = (self.table, self.inverse(penalty));
        let mut before = Coefficients::zeros(table.factors.len(), table.n_classes);
        let (mut at, mut momentum) = (before.clone(), 1.0_f64);
        for _ in 0..n_steps {
            control.check()?;
            let mut slopes = at.pulls(table, self.rows, |row, scores| {
                let scores = &mut scores[..table.n_classes];
                subtract_label(scores, table.labels[row], table.weights[row]);
            });
            let (n_blocks, n_features) = (at.n_blocks, table.factors.len());
            let penalized = slopes.blocks.iter_mut().zip(&at.blocks);
            let penalized = penalized.take(n_features * n_blocks);
            penalized.for_each(|(slope, at)| add(slope, penalty, at));
            let mut next = at.clone();
            inverse.subtract_product(&slopes, &mut next);
            let mut moves = next.clone();
            moves.update(&before, |next, before| next - before);
            // Momentum against the slope starts from 0.
            let is_uphill = moves.dot(&slopes) > 0.0;
            let grown = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
            let carry = if is_uphill {
                0.0
            } else {
                (momentum - 1.0) / grown
            };
            momentum = if is_uphill { 1.0 } else { grown };
            let is_last = moves.dot(&moves) <= MIN_STEP * MIN_STEP * next.dot(&next);
            at = next.clone();
            at.update(&moves, |next, step| next + carry * step);
            before = next;
            if is_last {
                break;
            }
        }
        Ok(before)
    }

    /// Returns the inverse of the curvature with the penalty.
    fn inverse(&self, penalty: f64) -> Curvature {
        match &self.curvature {
            Curvature::Matrix(matrix) => {
                let n_features = self.table.factors.len();
                let mut matrix = matrix.clone();
                for at in 0..=n_features {
                    let is_intercept = at == n_features;
                    let penalty = if is_intercept {
                        INTERCEPT_PENALTY
                    } else {
                        penalty
                    };
                    matrix[at * (n_features + 1) + at] += penalty;
                }
                invert(&mut matrix, n_features + 1);
                Curvature::Matrix(matrix)
            }
            Curvature::Largest(largest) => Curvature::Largest((largest + penalty).recip()),
        }
    }
}

/// Replaces the scores of a row by the derivatives of its loss.
fn subtract_label(scores: &mut [f64], label: u32, weight: f64) {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares = scores.iter_mut();
    shares.for_each(|score| *score = (*score - highest).exp());
    let factor = weight / scores.iter().sum::<f64>();
    scores.iter_mut().for_each(|share| *share *= factor);
    scores[label as usize] -= weight;
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
    use crate::data::Ragged;

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

    /// Every label is likeliest on its side, but not certain, and rows differ in weight. The last of
    /// `n_features` are rare.
    fn table(n_features: usize) -> Table {
        let number = |at: usize| (at * 7919 % 101) as f64 / 50.0 - 1.0;
        let label = |at: usize| match at % 4 {
            0 => (at * 13 % 3) as u32,
            _ => u32::from(number(2 * at) > 0.0) + u32::from(number(2 * at + 1) > 0.3),
        };
        let mut rows = Ragged::default();
        for at in 0..100 {
            let rare = (2..n_features as u32).filter(|feature| at % 7 == *feature as usize % 7);
            rows.push(
                (0..2)
                    .map(|i| (i, number(2 * at + i as usize)))
                    .chain(rare.map(|i| (i, 2.0))),
            );
        }
        Table {
            n_classes: 3,
            columns: Vec::new(),
            factors: vec![1.0; n_features],
            means: (0..n_features).map(|at| at as f64 / 100.0).collect(),
            rows,
            labels: (0..100).map(label).collect(),
            weights: (0..100).map(|at| 0.5 + f64::from(at % 3)).collect(),
        }
    }

    /// At the lowest loss, all its partial derivatives are 0.
    #[test]
    fn fits_end_at_the_lowest_loss() {
        let rows = (0..100).collect::<Vec<_>>();
        for (n_features, penalty) in [(2, 0.1), (2, 10.0), (70, 10.0)] {
            let table = table(n_features);
            let regression = Regression::new(&table, &rows);
            let loss = |coefficients: &Coefficients| -> f64 {
                let of_features = coefficients.blocks[..n_features].as_flattened();
                let squares: f64 = of_features.iter().map(|c| c * c).sum();
                let mut loss = penalty * squares / 2.0;
                coefficients.score(&table, &rows, |at, scores| {
                    let scores = &scores.as_flattened()[..3];
                    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
                    loss += table.weights[at] * (sum.ln() - scores[table.labels[at] as usize]);
                });
                loss
            };
            let fit = |n_steps| regression.fit(penalty, n_steps, &Control::new(0)).unwrap();
            let (found, short) = (fit(1000), fit(15));
            let fall = loss(&fit(0)) - loss(&found);
            assert!(fall > 5.0, "{fall}");
            for (at, class) in (0..=n_features).flat_map(|at| (0..3).map(move |class| (at, class)))
            {
                let moved = [-1e-3, 1e-3].map(|step| {
                    let mut moved = found.clone();
                    moved.blocks[at][class] += step;
                    loss(&moved)
                });
                let slope = (moved[1] - moved[0]) / 2e-3;
                assert!(slope.abs() < 0.01 * fall, "{n_features} {penalty} {slope}");
            }
            // Few steps are nearly as good.
            let lag = loss(&short) - loss(&found);
            assert!(lag < 0.03 * fall, "{n_features} {penalty} {lag} {fall}");
            // Padding has no part.
            assert!(found.blocks.iter().all(|block| block[3] == 0.0));
        }
    }
}
