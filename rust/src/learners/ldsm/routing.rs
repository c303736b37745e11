//! Which children an example goes to, in training and in prediction alike, and where a trained
//! node sends its examples.

use super::examples::Examples;
use super::node_training::TrainedNode;
use super::scratch::Scratch;

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
    /// Their labels, increasing, and the weight of each.
    pub labels: Vec<(u32, f64)>,
}

impl NodeExamples {
    /// The examples `ids`. `counts` has a zero for every label, and has again afterwards.
    pub fn new(examples: &Examples, ids: Vec<u32>, counts: &mut [f64]) -> Self {
        let (mut weight, mut labels) = (0.0, Vec::new());
        for &id in &ids {
            let importance = f64::from(examples.weight(id));
            weight += importance;
            for &label in examples.labels(id) {
                let count = &mut counts[label as usize];
                if *count == 0.0 {
                    labels.push((label, 0.0));
                }
                *count += importance;
            }
        }
        labels.sort_unstable_by_key(|&(label, _)| label);
        for (label, count) in &mut labels {
            *count = std::mem::take(&mut counts[*label as usize]);
        }
        Self {
            ids,
            weight,
            labels,
        }
    }
}

/// Sends the examples `ids` to the children of a trained node, as a prediction will. Calls
/// `visit` with the number of each in `ids` and its margins.
pub fn partition<const M: usize>(
    examples: &Examples,
    ids: &[u32],
    node: &TrainedNode,
    scratch: &mut Scratch,
    mut visit: impl FnMut(usize, &[f32; M]),
) -> Vec<NodeExamples> {
    let (spread, _) = scratch.spread.as_chunks_mut::<M>();
    let columns = || node.weights.ids.iter().map(|&column| column as usize);
    for (i, column) in columns().enumerate() {
        spread[column] = node.weights.values.get(i);
    }
    let bias: [f32; M] = std::array::from_fn(|j| node.biases[j]);
    let mut children = vec![Vec::new(); M];
    for (i, &id) in ids.iter().enumerate() {
        let margins = margins(examples.row(id), bias, |column| spread[column as usize]);
        visit(i, &margins);
        let directions = directions(&margins);
        for (j, child) in children.iter_mut().enumerate() {
            if directions >> j & 1 == 1 {
                child.push(id);
            }
        }
    }
    for column in columns() {
        spread[column] = [0.0; M];
    }
    let children = children.into_iter();
    children
        .map(|ids| NodeExamples::new(examples, ids, &mut scratch.counts))
        .collect()
}
