//! Re-ranking for tail labels (Section 5 of the paper): a label whose training examples lie near
//! the row gains, however rare it is.

use crate::data::{Examples, Ragged, SpreadRow};
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::persist;

/// The mean example of each label.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Centroids {
    /// Non-zero values by column, without the constant.
    means: Ragged<(u32, f32)>,
    /// Squared lengths.
    squares: Vec<f32>,
}

/// Decrease of a score with the squared distance, gamma of the paper, which gives no value.
const GAMMA: f32 = 1e-4;

impl Centroids {
    /// Averages the examples of each label.
    pub fn new(examples: &Examples) -> Self {
        let carriers = examples
            .labels
            .regroup(examples.n_labels, |i, &label| (label, i));
        let constant = examples.width as u32 - 1;
        let mut sums = vec![0.0f64; examples.width];
        let mut touched = Vec::new();
        let mut means = Ragged::default();
        for label in 0..carriers.len() {
            let mut weight = 0.0;
            for &i in carriers.get(label) {
                let importance = f64::from(examples.weight(i));
                weight += importance;
                let (columns, values) = examples.row(i);
                for (&column, &x) in columns.iter().zip(values) {
                    if column != constant {
                        touched.push(column);
                        sums[column as usize] += importance * f64::from(x);
                    }
                }
            }
            touched.sort_unstable();
            touched.dedup();
            let mean = touched.drain(..).map(|column| {
                let sum = std::mem::take(&mut sums[column as usize]);
                (column, (sum / weight) as f32)
            });
            means.push(mean);
        }
        Self::from_means(means)
    }

    /// Reads centroids from a file.
    pub fn take(bundle: &mut Bundle, n_classes: usize, width: usize) -> Result<Self> {
        let mut means = Self::default();
        means.fill(bundle)?;
        let means = means.means;
        let is_increasing = |label| {
            let mean: &[(u32, f32)] = means.get(label);
            let is_inside = mean
                .last()
                .is_none_or(|&(column, _)| (column as usize) < width);
            is_inside && mean.is_sorted_by(|a, b| a.0 < b.0)
        };
        let is_sound = means.len() == n_classes
            && (0..n_classes).all(is_increasing)
            && means.entries().iter().all(|(_, mean)| mean.is_finite());
        bundle.require(is_sound, "the mean of a label is out of range")?;
        Ok(Self::from_means(means))
    }

    fn from_means(means: Ragged<(u32, f32)>) -> Self {
        let square = |i| means.get(i).iter().map(|&(_, x): &(u32, f32)| x * x).sum();
        let squares = (0..means.len()).map(square).collect();
        Self { means, squares }
    }

    /// Returns `beta score + (1 - beta) / (1 + exp(gamma |x - mu|^2 / 2))` for a label of row x.
    pub fn rerank(&self, row: &RerankedRow, beta: f32, label: u32, score: f32) -> f32 {
        let (mean, by_column) = (self.means.get(label as usize), row.values.by_column());
        let terms = mean
            .iter()
            .map(|&(column, x)| x * by_column[column as usize]);
        let product: f32 = terms.sum();
        let distance = (row.square - 2.0 * product + self.squares[label as usize]).max(0.0);
        let reranked = beta * score + (1.0 - beta) / (1.0 + (GAMMA * distance / 2.0).exp());
        // A score of 0 would mean that there is none.
        reranked.max(f32::MIN_POSITIVE)
    }
}

persist!(Centroids {
    Nest means;
});

/// A row whose labels are re-ranked.
#[derive(Debug, Default)]
pub struct RerankedRow {
    /// Its values without the constant.
    values: SpreadRow,
    /// Its squared length.
    square: f32,
}

impl RerankedRow {
    /// Reads a row of columns below `width`.
    pub fn read(&mut self, (columns, values): (&[u32], &[f32]), width: usize) {
        // The constant comes last.
        let columns = &columns[..columns.len() - 1];
        self.values.replace((columns, values), width);
        // Values of columns that were hashed to the same column are added before they are squared.
        let by_column = self.values.by_column();
        let products = columns.iter().zip(values);
        self.square = products.map(|(&c, x)| x * by_column[c as usize]).sum();
    }
}
