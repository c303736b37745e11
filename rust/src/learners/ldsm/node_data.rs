//! The examples of a node: the copy that its training reads, and those that it sends to each child.

use super::tree::{directions, margins};
use crate::data::Examples;

/// A copy of a node's examples, which its training reads over and over.
///
/// A node sees few of the features and labels. Renumbered in the order in which
/// they first occur, they make its weights and statistics small arrays that stay
/// in the nearest cache, and one epoch reads two flat arrays from end to end.
#[derive(Debug, Default)]
pub struct NodeData {
    /// Column of each local feature.
    pub columns: Vec<u32>,
    /// Label of each local label number.
    pub labels: Vec<u32>,
    pub examples: Examples,
    /// The local number of each column or label; [`NONE`] between uses.
    local_ids: Vec<u32>,
}

/// Has no local number yet.
const NONE: u32 = u32::MAX;

impl NodeData {
    /// Copies the examples `ids` in place of those that are here, into the memory that these had:
    /// new memory for each of thousands of nodes costs a tenth of the training.
    pub fn read(&mut self, examples: &Examples, ids: &[u32]) {
        let n_ids = examples.width.max(examples.n_labels);
        if self.local_ids.len() < n_ids {
            self.local_ids = vec![NONE; n_ids];
        }
        let Self {
            columns,
            labels,
            examples: own,
            local_ids,
        } = self;
        columns.clear();
        labels.clear();
        own.rows.clear();
        own.labels.clear();
        let (all_rows, all_labels) = (&examples.rows, &examples.labels);
        let n_values = ids.iter().map(|&id| all_rows.row(id as usize).0.len());
        own.rows.reserve(ids.len(), n_values.sum());
        let n_labels = ids.iter().map(|&id| all_labels.range(id as usize).len());
        own.labels.reserve(ids.len(), n_labels.sum());
        for &id in ids {
            let (row, values) = examples.row(id);
            let features = row.iter().map(|&id| local_id(id, local_ids, columns));
            own.rows.push(features, values);
        }
        forget(columns, local_ids);
        for &id in ids {
            let row = examples.labels(id).iter();
            own.labels
                .push(row.map(|&id| local_id(id, local_ids, labels)));
        }
        forget(labels, local_ids);
        own.weights.clear();
        own.weights
            .extend(ids.iter().map(|&id| examples.weight(id)));
        own.width = columns.len();
        own.n_labels = labels.len();
    }

    /// The local feature that is the constant, which is the last of `width` columns.
    pub fn constant(&self, width: usize) -> Option<usize> {
        let constant = width as u32 - 1;
        self.columns.iter().position(|&column| column == constant)
    }
}

/// The local number of `id`; the next one, if it has none.
#[inline]
fn local_id(id: u32, local_ids: &mut [u32], known: &mut Vec<u32>) -> u32 {
    let local = &mut local_ids[id as usize];
    if *local == NONE {
        *local = known.len() as u32;
        known.push(id);
    }
    *local
}

/// Takes the local numbers of what is `known` away.
fn forget(known: &[u32], local_ids: &mut [u32]) {
    for &id in known {
        local_ids[id as usize] = NONE;
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
        let mut counts = vec![0.0; examples.n_labels];
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
