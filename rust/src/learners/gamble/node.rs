//! The rows of one node, and what the search for its split needs of them.

use super::sorted_scan::Item;

/// No number.
const ABSENT: u32 = u32::MAX;

/// The rows of a node: their weights, their classes, and the sums over them. Classes
/// are numbered from 0 among those present, so that nothing done at a node depends on
/// how many there are elsewhere.
#[derive(Debug, Default, Clone)]
pub struct Node {
    /// Row numbers, rising.
    pub rows: Vec<u32>,
    /// Class of each row, as numbered here.
    pub classes: Vec<u32>,
    /// Weight of each row.
    pub weights: Vec<f64>,
    /// Class and weight of each row, for strategies that move them.
    pub items: Vec<Item>,
    /// The classes present, in the order of their first rows.
    present: Vec<u32>,
    /// Weight of each class present: W_k.
    pub totals: Vec<f64>,
    /// Weight of all rows: W.
    pub weight: f64,
    /// Sum of the squared weights of the classes.
    pub square: f64,
    /// Rows of a leaf, at least.
    pub min_rows: usize,
    /// Number of each class there is; [`ABSENT`] between reads.
    numbers: Vec<u32>,
}

impl Node {
    pub fn new(n_classes: usize, min_rows: usize) -> Self {
        Self {
            min_rows,
            numbers: vec![ABSENT; n_classes],
            ..Self::default()
        }
    }

    /// Makes `rows` those of the node; `labels` and `weights` are those of all rows there are.
    pub fn read(&mut self, rows: &[u32], labels: &[u32], weights: &[f64]) {
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.weights.clear();
        self.weights
            .extend(rows.iter().map(|&row| weights[row as usize]));
        self.classes.clear();
        self.items.clear();
        self.present.clear();
        self.totals.clear();
        for (&row, &weight) in rows.iter().zip(&self.weights) {
            let class = labels[row as usize];
            let number = &mut self.numbers[class as usize];
            if *number == ABSENT {
                *number = self.present.len() as u32;
                self.present.push(class);
                self.totals.push(0.0);
            }
            self.classes.push(*number);
            self.items.push(Item::new(*number, weight));
            self.totals[*number as usize] += weight;
        }
        for &class in &self.present {
            self.numbers[class as usize] = ABSENT;
        }
        self.weight = self.totals.iter().sum();
        self.square = self.totals.iter().map(|total| total * total).sum();
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The classes present, rising, with their weights.
    pub fn by_class(&self) -> Vec<(u32, f64)> {
        let weights = self.totals.iter().copied();
        let mut by_class: Vec<_> = self.present.iter().copied().zip(weights).collect();
        by_class.sort_unstable_by_key(|&(class, _)| class);
        by_class
    }

    /// Entropy of the classes' weights, in nats.
    pub fn entropy(&self) -> f64 {
        let shares = self.totals.iter().map(|total| total / self.weight);
        // Not -0.
        0.0 - shares.map(|share| share * share.ln()).sum::<f64>()
    }

    /// What a split has to be better than: the score of none, (sum_k W_k^2) / W.
    pub fn score(&self) -> f64 {
        self.square / self.weight
    }

    /// A bound on the gain of all splits, less than what rounding changes. The score of a split is
    /// convex in the weights of the left side, so it is highest where no class is on both sides. A
    /// side's part of it, sum_k W_k^2 / W, is a mean of the weights of its classes, so both parts
    /// together are at most the weights of the two heaviest classes.
    pub fn most_gain(&self) -> f64 {
        let (mut first, mut second) = (0.0f64, 0.0f64);
        for &total in &self.totals {
            second = second.max(total.min(first));
            first = first.max(total);
        }
        first + second - self.score() + self.tolerance()
    }

    /// Scores that differ by no more are equal: they are sums in another order.
    pub fn tolerance(&self) -> f64 {
        1e-10 * self.weight
    }
}
