//! The balanced tree: where each label's leaf is, and the path up from it.
//!
//! Labels stand in a row; a node over n > 1 of them has the first ceil(n/2) on its
//! left. So every leaf is ceil(log2 K) or one less deep, and neighbours in the row
//! are neighbours in the tree. Nodes are numbered breadth first, and routers among
//! themselves likewise: the children of router r are nodes 2r + 1 and 2r + 2.

use std::ops::Range;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::LabelOrder;
use crate::alloc::{collect, with_capacity, zeros};
use crate::data::Batch;
use crate::tree::Topology;

/// Where labels and routers are in the tree.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The labels from left to right.
    pub order: Vec<u32>,
    /// The node of each label.
    pub leaf_of: Vec<u32>,
    /// The node of each router.
    pub node_of: Vec<u32>,
    /// What stands at each node.
    pub at_node: Vec<AtNode>,
}

/// A router or a leaf.
#[derive(Debug, Clone, Copy)]
pub enum AtNode {
    /// The router of this number.
    Router(u32),
    /// The leaf of this label.
    Label(u32),
}

impl Layout {
    /// The tree over labels in this order, a permutation of 0..K.
    pub fn new(order: Vec<u32>) -> Self {
        let mut leaf_of = zeros(order.len());
        let mut node_of = with_capacity(order.len().saturating_sub(1));
        let mut at_node = with_capacity(2 * order.len());
        for (node, labels) in (0..).zip(balanced(order.len()).nodes) {
            if labels.len() == 1 {
                let label = order[labels.start];
                leaf_of[label as usize] = node;
                at_node.push(AtNode::Label(label));
            } else {
                at_node.push(AtNode::Router(node_of.len() as u32));
                node_of.push(node);
            }
        }
        Self {
            order,
            leaf_of,
            node_of,
            at_node,
        }
    }
}

/// The balanced tree over `n` labels: of each node, where its labels stand in the row.
pub fn balanced(n: usize) -> Topology<Range<usize>> {
    Topology::new(0..n, 2, |&Range { start, end }| {
        let middle = end - (end - start) / 2;
        let halves = (end - start > 1).then_some([start..middle, middle..end]);
        halves.into_iter().flatten()
    })
}

/// The nodes of the children of a router.
#[inline]
pub fn children_of(router: u32) -> [u32; 2] {
    [2 * router + 1, 2 * router + 2]
}

/// The router above a node, and what it learns that is to send to the node: -1 where that is its
/// left child, 1 where it is the right one. None at the root.
#[inline]
pub fn router_above(node: u32) -> Option<(u32, f32)> {
    let child = node.checked_sub(1)?;
    Some((child / 2, if child % 2 == 0 { -1.0 } else { 1.0 }))
}

/// Whether a router of this score sends to where it learns `target`.
#[inline]
pub fn sends_to(target: f32, score: f32) -> bool {
    (score < 0.0) == (target < 0.0)
}

impl LabelOrder {
    /// The `n` labels from left to right; frequencies are those in `batch`, by importance.
    pub(super) fn arrange(self, batch: &Batch<'_>, n: usize, seed: u64) -> Vec<u32> {
        let mut order: Vec<u32> = collect(0..n as u32);
        match self {
            Self::Given => {}
            Self::Random => {
                // Not the stream that shuffles the examples.
                let seed = seed ^ 0x9E37_79B9_7F4A_7C15;
                order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
            }
            Self::Frequency => {
                let mut weights = vec![0.0; n];
                for (i, &label) in batch.labels().iter().enumerate() {
                    weights[label as usize] += f64::from(batch.weight(i));
                }
                let weight = |label: u32| weights[label as usize];
                // Stable: of equals the lower label stays first.
                order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
            }
        }
        order
    }
}
