//! Re-ranking for tail labels (Section 5 of the paper): a label whose training
//! examples lie near the row gains, however rare it is.

use crate::data::{Examples, Ragged, SpreadRow};
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::persist;

/// The mean example of each label.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Centroids {
    /// Values that are not zero, by column; the constant left out.
    means: Ragged<(u32, f32)>,
    /// Squared lengths.
    squares: Vec<f32>,
}

impl Centroids {
    /// The means of all examples of each label.
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
        if !is_sound {
            return Err(bundle.damaged("the mean of a label is out of range"));
        }
        Ok(Self::from_means(means))
    }

    fn from_means(means: Ragged<(u32, f32)>) -> Self {
        let square = |i| means.get(i).iter().map(|&(_, x): &(u32, f32)| x * x).sum();
        let squares = (0..means.len()).map(square).collect();
        Self { means, squares }
    }

    /// |x - mu|^2 of a row of squared length `square`, spread over all columns.
    fn distance(&self, label: u32, row: &[f32], square: f32) -> f32 {
        let mean = self.means.get(label as usize).iter();
        let product: f32 = mean.map(|&(column, x)| x * row[column as usize]).sum();
        (square - 2.0 * product + self.squares[label as usize]).max(0.0)
    }
}

persist!(Centroids {
    Nest means;
});

/// How fast a score falls with the squared distance: gamma of the paper, which names no value.
const GAMMA: f32 = 1e-4;

/// Re-ranks the labels of one row after the other.
pub struct Reranker<'a> {
    centroids: &'a Centroids,
    beta: f32,
    width: usize,
    /// The current row and its squared length.
    row: &'a mut SpreadRow,
    square: f32,
}

impl<'a> Reranker<'a> {
    /// For rows of columns below `width`, in memory that is kept between uses.
    pub fn new(centroids: &'a Centroids, beta: f64, width: usize, row: &'a mut SpreadRow) -> Self {
        Self {
            centroids,
            beta: beta as f32,
            width,
            row,
            square: 0.0,
        }
    }

    /// Makes a row the current one.
    pub fn read(&mut self, (columns, values): (&[u32], &[f32])) {
        // All but the constant, which comes last.
        let columns = &columns[..columns.len() - 1];
        self.row.replace((columns, values), self.width);
        // Values whose columns were hashed to one are added before they are squared.
        let by_column = self.row.by_column();
        let products = columns.iter().zip(values);
        self.square = products.map(|(&c, x)| x * by_column[c as usize]).sum();
    }

    /// `beta score + (1 - beta) / (1 + exp(gamma |x - mu|^2 / 2))`.
    pub fn rerank(&self, label: u32, score: f32) -> f32 {
        let (row, beta) = (self.row.by_column(), self.beta);
        let distance = self.centroids.distance(label, row, self.square);
        let reranked = beta * score + (1.0 - beta) / (1.0 + (GAMMA * distance / 2.0).exp());
        // A score of 0 would be none.
        reranked.max(f32::MIN_POSITIVE)
    }
}
