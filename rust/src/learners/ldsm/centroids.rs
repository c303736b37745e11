//! Re-ranking for tail labels (Section 4 of the paper): a label whose examples lie
//! near by gains, however rare it is.

use super::tree::Ragged;
use super::Examples;

/// The mean example of each label.
#[derive(Debug, Clone, PartialEq)]
pub struct Centroids {
    /// Values that are not zero, by column; the constant left out.
    pub(super) means: Ragged<(u32, f32)>,
    /// Squared lengths.
    squares: Vec<f32>,
}

impl Centroids {
    /// The means of all examples of each label.
    pub fn of(examples: &Examples) -> Self {
        let n = examples.len() as u32;
        let mut carriers = vec![Vec::new(); examples.n_labels];
        for i in 0..n {
            for &label in examples.labels(i) {
                carriers[label as usize].push(i);
            }
        }
        let constant = examples.width as u32 - 1;
        let mut sums = vec![0.0f64; examples.width];
        let mut touched = Vec::new();
        let mut means = Ragged::default();
        for of_label in &carriers {
            let mut weight = 0.0;
            for &i in of_label {
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

    /// Of these means.
    pub fn from_means(means: Ragged<(u32, f32)>) -> Self {
        let square = |i| means.get(i).iter().map(|&(_, x): &(u32, f32)| x * x).sum();
        let squares = (0..means.len()).map(square).collect();
        Self { means, squares }
    }

    /// |x - mu|^2 of a row of squared length `square`, spread over all columns.
    pub fn distance(&self, label: u32, row: &[f32], square: f32) -> f32 {
        let mean = self.means.get(label as usize).iter();
        let product: f32 = mean.map(|&(column, x)| x * row[column as usize]).sum();
        (square - 2.0 * product + self.squares[label as usize]).max(0.0)
    }
}

/// `beta score + (1 - beta) / (1 + exp(gamma |x - mu|^2 / 2))`.
pub fn reranked(score: f32, distance: f32, beta: f32, gamma: f32) -> f32 {
    let reranked = beta * score + (1.0 - beta) / (1.0 + (gamma * distance / 2.0).exp());
    // Low as it may be, it is a score.
    reranked.max(f32::MIN_POSITIVE)
}
