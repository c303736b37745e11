//! Which children an example goes to, in training and in prediction alike, and where a trained
//! node sends its examples.

use super::examples::{Examples, NodeData};
use crate::alloc::zeros;

/// The margins of a row, whose constant comes last: its products with the M regressors of a
/// node, whose weights for a column `weights` looks up. `bias` are those of the constant.
#[inline]
pub fn margins<const M: usize>(
    (columns, values): (&[u32], &[f32]),
    bias: [f32; M],
    weights: impl Fn(u32) -> [f32; M],
) -> [f32; M] {
    let mut margins = [0.0f32; M];
    let n = columns.len() - 1;
    for (&column, &x) in columns[..n].iter().zip(&values[..n]) {
        let weights = weights(column);
        for j in 0..M {
            margins[j] += weights[j] * x;
        }
    }
    std::array::from_fn(|j| margins[j] + bias[j])
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
    /// Their labels, in any order, and the weight of each.
    pub labels: Vec<(u32, f64)>,
}

impl NodeExamples {
    /// The examples `ids`.
    pub fn new(examples: &Examples, ids: Vec<u32>) -> Self {
        let mut counts = zeros(examples.n_labels);
        let mut weight = 0.0;
        for &id in &ids {
            let importance = f64::from(examples.weight(id));
            weight += importance;
            for &label in examples.labels(id) {
                counts[label as usize] += importance;
            }
        }
        let labels = (0..).zip(counts);
        Self {
            ids,
            weight,
            labels: labels.filter(|&(_, count)| count > 0.0).collect(),
        }
    }
}

/// Sends the examples `ids` of a node, of which `data` is the copy, to the children that its
/// weights, by local feature, choose, as a prediction will. Calls `visit` with the number of each
/// in `ids` and its margins.
pub fn partition<const M: usize>(
    data: &NodeData,
    ids: &[u32],
    weights: &[[f32; M]],
    bias: [f32; M],
    mut visit: impl FnMut(u32, &[f32; M]),
) -> Vec<NodeExamples> {
    let examples = &data.examples;
    let mut children: [NodeExamples; M] = std::array::from_fn(|_| NodeExamples::default());
    let mut counts = vec![[0.0f64; M]; data.labels.len()];
    for (i, &id) in (0..).zip(ids) {
        let margins = margins(examples.row(i), bias, |feature| weights[feature as usize]);
        visit(i, &margins);
        let directions = directions(&margins);
        let importance = f64::from(examples.weight(i));
        for (j, child) in children.iter_mut().enumerate() {
            if directions >> j & 1 == 1 {
                child.ids.push(id);
                child.weight += importance;
                for &label in examples.labels(i) {
                    counts[label as usize][j] += importance;
                }
            }
        }
    }
    for (j, child) in children.iter_mut().enumerate() {
        let labels = data.labels.iter().zip(&counts);
        let labels = labels.map(|(&label, counts)| (label, counts[j]));
        child.labels = labels.filter(|&(_, count)| count > 0.0).collect();
    }
    children.into()
}
