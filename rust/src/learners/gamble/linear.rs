//! Linear scores beside the votes of the trees.
//!
//! Classes that differ in a sum of columns take many splits, but few coefficients. So after boosting,
//! a multinomial logistic regression is fitted to the columns. Its log-odds are added to those of the
//! trees: both have the same vote. They are added only if this lowers the error of rows that neither
//! has learned by more than its standard error. These rows were left out of trees, and the regression
//! learns them in two halves, each for the rows of the other.

use super::boost::LabeledRows;
use super::logistic::Table;
use super::Params;
use crate::control::Control;
use crate::data::RowBuffer;
use crate::error::Result;
use crate::metrics::Outcome;
use crate::model::first_best;
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

/// Coefficients by column and class; none if the trees vote alone.
#[derive(Debug, Clone, Default)]
pub struct LinearScores {
    /// The coefficients of all classes, column by column.
    pub coefficients: Vec<f64>,
    /// By column, the mean, the least and the largest value of the training rows.
    means: Vec<f64>,
    lows: Vec<f64>,
    highs: Vec<f64>,
    /// By class, the score of the row of means.
    at_means: Vec<f64>,
}

persist!(LinearScores {
    Columns coefficients;
    Columns means;
    Columns lows;
    Columns highs;
    Columns at_means;
});

impl LinearScores {
    /// Returns whether the numbers fit columns and classes, and give no extreme scores.
    pub fn is_sound(&self, n_columns: usize, n_classes: usize) -> bool {
        let columns = [&self.means, &self.lows, &self.highs];
        let are = |n| columns.iter().all(|column| column.len() == n);
        let lengths = (self.coefficients.len(), self.at_means.len());
        if lengths == (0, 0) {
            return are(0);
        }
        let longest = |column: usize| {
            let ends = [f32::MIN, f32::MAX].map(|value| self.distance(column, value).abs());
            ends[0].max(ends[1])
        };
        let reach = |class: usize| {
            let coefficients = self.coefficients.iter().skip(class).step_by(n_classes);
            let products = coefficients.enumerate();
            let products = products.map(|(column, c)| longest(column) * c.abs());
            products.sum::<f64>() + self.at_means[class].abs()
        };
        let fits = lengths == (n_columns * n_classes, n_classes) && are(n_columns);
        fits && (0..n_classes).all(|class| reach(class) <= MAX_SCORE)
    }

    /// Returns how far a value is from the mean. Missing values count as the mean, and values that are
    /// not in the range of the training rows as its ends, because trees do not extrapolate either.
    fn distance(&self, column: usize, value: f32) -> f64 {
        if value.is_nan() {
            return 0.0;
        }
        f64::from(value)
            .max(self.lows[column])
            .min(self.highs[column])
            - self.means[column]
    }

    /// Adds the scores of a row.
    pub fn add(&self, row: &RowBuffer, scores: &mut [f64]) {
        scores
            .iter_mut()
            .zip(&self.at_means)
            .for_each(|(score, at)| *score += at);
        let mut listed = row.columns.iter().zip(&row.values).peekable();
        let by_column = self.coefficients.chunks_exact(self.at_means.len());
        for (column, coefficients) in by_column.enumerate() {
            // Zeros are not listed.
            let listed = listed.next_if(|(at, _)| **at as usize == column);
            let distance = self.distance(column, listed.map_or(0.0, |(_, value)| *value));
            let scores = scores.iter_mut().zip(coefficients);
            scores.for_each(|(score, coefficient)| *score += distance * coefficient);
        }
    }

    /// Adds the contributions of the columns to the score of a class, and last the score of the row of
    /// means: the Shapley values of a sum.
    pub fn explain(&self, values: &[f32], class: u32, sums: &mut [f64]) {
        let (n_classes, class) = (self.at_means.len(), class as usize);
        if n_classes == 0 {
            return;
        }
        for (column, &value) in values.iter().enumerate() {
            let coefficient = self.coefficients[column * n_classes + class];
            sums[column] += self.distance(column, value) * coefficient;
        }
        sums[values.len()] += self.at_means[class];
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
                let alone = ours.iter().map(|&at| outcome(&table, at, &first));
                let alone: Vec<Scored> = alone.collect();
                if wrong(&alone) > MAX_ERROR_RATIO * wrong(ours.iter().map(|&at| &left_out[at])) {
                    return Ok(None);
                }
            }
            let coefficients = table.fit(&others, N_STEPS, control)?;
            for at in ours {
                sums[at] =
                    left_out[at].plus(slope, &outcome(&table, at, &coefficients), table.labels[at]);
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
        let linear = Self::of(&whole, &whole.fit(&every, N_STEPS, control)?);
        *left_out = sums;
        Ok(Some(linear.times((n_classes as f64 - 1.0) / slope)))
    }

    /// Returns the scores by a regression's coefficients, for raw values. They sum to 0 over the classes.
    fn of(table: &Table, coefficients: &[f64]) -> Self {
        let (columns, n_classes) = (&table.columns, table.n_classes);
        let mut centered = coefficients.to_vec();
        let factors = columns.iter().map(|column| column.factor).chain([1.0]);
        for (numbers, factor) in centered.chunks_exact_mut(n_classes).zip(factors) {
            let mean = numbers.iter().sum::<f64>() / n_classes as f64;
            let numbers = numbers.iter_mut();
            numbers.for_each(|number| *number = (*number - mean) * factor);
        }
        let at_means = centered.split_off(columns.len() * n_classes);
        Self {
            coefficients: centered,
            means: columns.iter().map(|column| column.mean).collect(),
            lows: columns.iter().map(|column| column.low).collect(),
            highs: columns.iter().map(|column| column.high).collect(),
            at_means,
        }
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

/// Returns the outcome of a row by a regression.
fn outcome(table: &Table, at: usize, coefficients: &[f64]) -> Scored {
    let mut scores = vec![0.0; table.n_classes];
    table.score(at, coefficients, &mut scores);
    let scores = scores.iter().map(|&score| score as f32).collect();
    scored(scores, table.labels[at], table.weights[at])
}
