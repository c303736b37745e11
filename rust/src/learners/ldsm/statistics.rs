//! What training knew of a tree's nodes: nothing that a prediction needs.

use super::node_stats::NodeStats;
use crate::data::Ragged;
use crate::persist;

/// One entry per node, leaves among them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TreeStatistics {
    /// Weight of the examples that reached it.
    pub weights: Vec<f64>,
    /// Number of these.
    pub n_examples: Vec<u32>,
    /// Their labels, increasing, and the weight of each.
    pub labels: Ragged<(u32, f32)>,
    /// The objective after training.
    pub objectives: Vec<NodeStats>,
    /// Running J by epoch.
    pub curves: Ragged<f32>,
}

impl TreeStatistics {
    /// Itself if it is of `n` nodes.
    pub fn checked(self, n: usize) -> Option<Self> {
        let lists = [self.labels.len(), self.curves.len()];
        let values = [
            self.weights.len(),
            self.n_examples.len(),
            self.objectives.len(),
        ];
        (lists == [n; 2] && values == [n; 3]).then_some(self)
    }
}

persist!(TreeStatistics {
    Columns weights;
    Columns n_examples;
    Nest labels;
    Columns objectives;
    Nest curves;
});

/// Entropy of a histogram, in nats.
pub fn entropy(labels: &[(u32, f32)]) -> f64 {
    let counts = labels.iter().map(|&(_, count)| f64::from(count));
    let mass: f64 = counts.clone().sum();
    counts
        .map(|count| -(count / mass) * (count / mass).ln())
        .sum()
}
