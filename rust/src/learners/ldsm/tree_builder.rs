//! A tree while it grows, and its conversion to flat arrays.

use super::node_stats::NodeStats;
use super::node_training::TrainedNode;
use super::tree::{inverse_mass, Tree};
use crate::data::Ragged;
use crate::tree::NodeId;

/// A node that may still be split.
#[derive(Debug)]
pub struct NodeBuilder {
    /// The node above; none at the root.
    pub parent: NodeId,
    /// Weight of its examples.
    pub weight: f64,
    /// Number of its examples.
    pub n_examples: u32,
    /// Their labels, increasing, and the weight of each.
    pub labels: Vec<(u32, f64)>,
    /// Its regressors and its first child, once it is split.
    pub split: Option<(TrainedNode, NodeId)>,
}

impl NodeBuilder {
    /// The weight of all its labels but the most frequent one: what a split could
    /// separate.
    pub fn impurity(&self) -> f64 {
        let counts = self.labels.iter().map(|&(_, count)| count);
        counts.clone().sum::<f64>() - counts.fold(0.0, f64::max)
    }
}

/// The tree of these nodes.
pub fn build_tree(arity: u32, nodes: Vec<NodeBuilder>) -> Tree {
    let first_child = |node: &NodeBuilder| match node.split {
        Some((_, first_child)) => first_child,
        None => Tree::ROOT,
    };
    let mut tree = Tree {
        arity,
        parents: nodes.iter().map(|node| node.parent).collect(),
        first_child: nodes.iter().map(first_child).collect(),
        weight: nodes.iter().map(|node| node.weight).collect(),
        n_examples: nodes.iter().map(|node| node.n_examples).collect(),
        labels: Ragged::default(),
        inverse_mass: Vec::with_capacity(nodes.len()),
        columns: Ragged::default(),
        weights: Vec::new(),
        stats: Vec::with_capacity(nodes.len()),
        curves: Ragged::default(),
    };
    for (i, node) in nodes.into_iter().enumerate() {
        let labels = node.labels.into_iter();
        tree.labels
            .push(labels.map(|(label, count)| (label, count as f32)));
        tree.inverse_mass.push(inverse_mass(tree.labels.get(i)));
        if let Some((trained, _)) = node.split {
            tree.columns.push(trained.columns);
            tree.weights.extend(trained.weights);
            tree.stats.push(trained.stats);
            tree.curves.push(trained.curve);
        } else {
            tree.columns.push([]);
            tree.stats.push(NodeStats::NONE);
            tree.curves.push([]);
        }
    }
    tree
}
