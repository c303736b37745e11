//! Which children an example goes to, in training and in prediction alike; where a trained
//! node sends its examples, and its statistics over them.

use super::examples::{Examples, NodeData};
use super::node_stats::{NodeStats, NodeStatsSums};
use super::objective::Lambdas;

/// The margins of a row: its products with the M regressors of a node, whose
/// weights for a column `weights` looks up.
#[inline]
pub fn margins<const M: usize>(
    (columns, values): (&[u32], &[f32]),
    weights: impl Fn(u32) -> [f32; M],
) -> [f32; M] {
    let mut margins = [0.0f32; M];
    for (&column, &x) in columns.iter().zip(values) {
        let weights = weights(column);
        for j in 0..M {
            margins[j] += weights[j] * x;
        }
    }
    margins
}

/// The children that an example goes to, as bits: those of a margin of at least
/// 1/2, else that of the largest.
#[inline]
pub fn directions(margins: &[f32]) -> u32 {
    let (mut chosen, mut best) = (0, 0);
    for (j, &margin) in margins.iter().enumerate() {
        chosen |= u32::from(margin >= 0.5) << j;
        if margin > margins[best] {
            best = j;
        }
    }
    if chosen == 0 {
        1 << best
    } else {
        chosen
    }
}

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
    /// The examples `ids`, in `examples` of the numbers `numbers`; `label_of` says which label
    /// a number of a label there stands for.
    pub fn new(
        examples: &Examples,
        ids: Vec<u32>,
        numbers: &[u32],
        label_of: impl Fn(usize) -> u32,
    ) -> Self {
        let (mut weight, mut counts) = (0.0, vec![0.0; examples.n_labels]);
        for &i in numbers {
            let importance = f64::from(examples.weight(i));
            weight += importance;
            for &label in examples.labels(i) {
                counts[label as usize] += importance;
            }
        }
        let counts = counts.into_iter().enumerate();
        let mut labels: Vec<(u32, f64)> = counts
            .filter(|&(_, count)| count > 0.0)
            .map(|(label, count)| (label_of(label), count))
            .collect();
        labels.sort_unstable_by_key(|&(label, _)| label);
        Self {
            ids,
            weight,
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
    let mut children = vec![Vec::new(); M];
    let examples = &data.examples;
    for i in 0..ids.len() as u32 {
        let margins = margins(examples.row(i), |feature| weights[feature as usize]);
        sums.add(examples.labels(i), examples.weight(i).into(), &margins);
        let directions = directions(&margins);
        for (j, child) in children.iter_mut().enumerate() {
            if directions >> j & 1 == 1 {
                child.push(i);
            }
        }
    }
    let children = children.into_iter().map(|numbers: Vec<u32>| {
        let ids = numbers.iter().map(|&i| ids[i as usize]).collect();
        NodeExamples::new(examples, ids, &numbers, |label| data.labels[label])
    });
    (children.collect(), sums.stats())
}
