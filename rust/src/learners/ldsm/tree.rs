//! A grown tree as flat arrays.

use super::node_stats::NodeStats;
use crate::data::Ragged;
use crate::tree::NodeId;

/// The nodes in the order in which they came into being, children side by side.
#[derive(Debug, Clone)]
pub struct Tree {
    /// M.
    pub arity: u32,
    /// The node above; none at the root.
    pub parents: Vec<NodeId>,
    /// The first child; at leaves the root, which is nobody's child.
    pub first_child: Vec<NodeId>,
    /// Weight of the examples that reached the node.
    pub weight: Vec<f64>,
    /// Number of these.
    pub n_examples: Vec<u32>,
    /// Label histogram of each node: labels, increasing, and their weights.
    pub labels: Ragged<(u32, f32)>,
    /// 1 / the sum of these weights.
    pub inverse_mass: Vec<f32>,
    /// Columns that the regressors of each node use, increasing.
    pub columns: Ragged<u32>,
    /// M weights for each of these.
    pub weights: Vec<f32>,
    /// The objective after training.
    pub stats: Vec<NodeStats>,
    /// Running J by epoch.
    pub curves: Ragged<f32>,
}

impl Tree {
    /// The root.
    pub const ROOT: NodeId = NodeId(0);

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there is no node, which is true of no grown tree.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first child of `id`, if it has been split.
    #[inline]
    pub fn children(&self, id: NodeId) -> Option<NodeId> {
        let first = self.first_child[id.at()];
        (first != Self::ROOT).then_some(first)
    }

    /// Columns and weights of the regressors of `id`.
    #[inline]
    pub fn regressors(&self, id: NodeId) -> (&[u32], &[f32]) {
        let range = self.columns.range(id.at());
        let m = self.arity as usize;
        let weights = &self.weights[range.start * m..range.end * m];
        (self.columns.get(id.at()), weights)
    }

    /// Depth of each node; that of the root is 0.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.len()];
        for id in 1..self.len() {
            depths[id] = depths[self.parents[id].at()] + 1;
        }
        depths
    }
}

/// 1 / the sum of a histogram.
pub fn inverse_mass(labels: &[(u32, f32)]) -> f32 {
    let mass: f64 = labels.iter().map(|&(_, count)| f64::from(count)).sum();
    mass.recip() as f32
}
