//! A node's examples as its training reads them, over and over.
//!
//! A node sees few of the features and labels. Renumbered in the order in which
//! they first occur, they make its weights and statistics small arrays that stay
//! in the nearest cache, and one epoch reads two flat arrays from end to end.

use super::examples::Examples;
use crate::data::{Ragged, RaggedRows};

/// A copy of some examples under local numbers of features and labels.
#[derive(Debug)]
pub struct NodeData {
    /// Column of each local feature.
    pub columns: Vec<u32>,
    /// Label of each local label number.
    pub labels: Vec<u32>,
    pub examples: Examples,
}

/// The local numbers of columns and labels while a [`NodeData`] is made. Kept
/// between nodes, since it has an entry for every column and label there is.
#[derive(Debug)]
pub struct LocalIds {
    columns: Vec<u32>,
    labels: Vec<u32>,
}

/// Has no local number yet.
const NONE: u32 = u32::MAX;

impl LocalIds {
    pub fn new(width: usize, n_labels: usize) -> Self {
        Self {
            columns: vec![NONE; width],
            labels: vec![NONE; n_labels],
        }
    }
}

impl NodeData {
    /// Copies the examples `ids`.
    pub fn new(examples: &Examples, ids: &[u32], local_ids: &mut LocalIds) -> Self {
        let n_values = ids.iter().map(|&id| examples.row(id).0.len()).sum();
        let n_labels = ids.iter().map(|&id| examples.labels(id).len()).sum();
        let (mut columns, mut labels) = (Vec::new(), Vec::new());
        let mut rows = RaggedRows::with_capacity(ids.len(), n_values);
        let mut labels_of = Ragged::with_capacity(ids.len(), n_labels);
        for &id in ids {
            let (own, values) = examples.row(id);
            let features = own
                .iter()
                .map(|&column| local_id(column, &mut local_ids.columns, &mut columns));
            rows.push(features, values);
            let own = examples.labels(id).iter();
            labels_of.push(own.map(|&label| local_id(label, &mut local_ids.labels, &mut labels)));
        }
        for &column in &columns {
            local_ids.columns[column as usize] = NONE;
        }
        for &label in &labels {
            local_ids.labels[label as usize] = NONE;
        }
        let examples = Examples {
            rows,
            labels: labels_of,
            weights: ids.iter().map(|&id| examples.weight(id)).collect(),
            width: columns.len(),
            n_labels: labels.len(),
        };
        Self {
            columns,
            labels,
            examples,
        }
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
