//! Where a trained node sends its examples, and its statistics over them.

use super::examples::{Examples, NodeData};
use super::node_stats::{NodeStats, NodeStatsSums};
use super::objective::Lambdas;
use super::routing::{directions, margins};

/// The examples of a node and their label histogram.
#[derive(Debug, Default)]
pub struct NodeExamples {
    /// The examples, in their order.
    pub ids: Vec<u32>,
    pub weight: f64,
    /// Their labels, increasing, and the weight of each.
    pub labels: Vec<(u32, f64)>,
}

impl NodeExamples {
    pub fn new(examples: &Examples, ids: Vec<u32>) -> Self {
        let mut histogram = Histogram::new(examples.n_labels);
        for &id in &ids {
            histogram.add(examples.labels(id), examples.weight(id));
        }
        histogram.finish(ids, |label| label as u32)
    }
}

/// The label histogram of a node, as it is counted.
#[derive(Debug, Clone)]
struct Histogram {
    weight: f64,
    counts: Vec<f64>,
}

impl Histogram {
    fn new(n_labels: usize) -> Self {
        Self {
            weight: 0.0,
            counts: vec![0.0; n_labels],
        }
    }

    fn add(&mut self, labels: &[u32], weight: f32) {
        let weight = f64::from(weight);
        self.weight += weight;
        for &label in labels {
            self.counts[label as usize] += weight;
        }
    }

    /// `label_of` says which label each count is of.
    fn finish(&self, ids: Vec<u32>, label_of: impl Fn(usize) -> u32) -> NodeExamples {
        let counts = self.counts.iter().enumerate();
        let mut labels: Vec<(u32, f64)> = counts
            .filter(|&(_, &count)| count > 0.0)
            .map(|(label, &count)| (label_of(label), count))
            .collect();
        labels.sort_unstable_by_key(|&(label, _)| label);
        NodeExamples {
            ids,
            weight: self.weight,
            labels,
        }
    }
}

/// Sends the examples `ids`, whose copies `data` holds, to the children as a
/// prediction will, and measures the node.
pub fn partition<const M: usize, const P: usize>(
    data: &NodeData,
    ids: &[u32],
    weights: &[[f32; M]],
    lambdas: Lambdas,
) -> (Vec<NodeExamples>, NodeStats) {
    let mut sums = NodeStatsSums::<M, P>::new(lambdas, data.labels.len());
    let mut children = vec![(Vec::new(), Histogram::new(data.labels.len())); M];
    let examples = &data.examples;
    for (i, &id) in (0..).zip(ids) {
        let margins = margins(examples.row(i), |feature| weights[feature as usize]);
        let (labels, weight) = (examples.labels(i), examples.weight(i));
        sums.add(labels, f64::from(weight), &margins);
        let directions = directions(&margins);
        for (j, (child, histogram)) in children.iter_mut().enumerate() {
            if directions >> j & 1 == 1 {
                child.push(id);
                histogram.add(labels, weight);
            }
        }
    }
    let children = children
        .into_iter()
        .map(|(ids, histogram)| histogram.finish(ids, |label| data.labels[label]));
    (children.collect(), sums.stats())
}
