//! A grown tree as flat arrays.

use super::node_stats::NodeStats;
use crate::data::Ragged;
use crate::error::Result;
use crate::file::{Bundle, Flat, Persist};
use crate::persist;
use crate::tree::NodeId;

/// The nodes in the order in which they came into being, children side by side.
#[derive(Debug, Clone, Default)]
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
    pub weights: Flat<f32>,
    /// The objective after training.
    pub stats: Vec<NodeStats>,
    /// Running J by epoch.
    pub curves: Ragged<f32>,
}

impl Tree {
    pub const ROOT: NodeId = NodeId(0);

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// The first child of `id`, if it has been split.
    #[inline]
    pub fn children(&self, id: NodeId) -> Option<NodeId> {
        let first = self.first_child[id.at()];
        (first != Self::ROOT).then_some(first)
    }

    #[inline]
    pub fn regressors(&self, id: NodeId) -> (&[u32], &[f32]) {
        let range = self.columns.range(id.at());
        let m = self.arity as usize;
        let weights = &self.weights[range.start * m..range.end * m];
        (self.columns.get(id.at()), weights)
    }

    /// From a file, for rows of `width` columns.
    pub fn take(bundle: &mut Bundle, arity: u32, width: usize, n_classes: usize) -> Result<Self> {
        let mut tree = Self {
            arity,
            ..Self::default()
        };
        tree.fill(bundle)?;
        let n = tree.first_child.len();
        let lists = [tree.labels.len(), tree.columns.len(), tree.curves.len()];
        let values = [tree.weight.len(), tree.n_examples.len(), tree.stats.len()];
        if lists != [n; 3] || values != [n; 3] {
            return Err(bundle.damaged("the nodes differ in number"));
        }
        let labels = |i| tree.labels.get(i).iter().map(|&(label, _)| label);
        let columns = |i| tree.columns.get(i).iter().copied();
        let mut counts = tree.labels.entries().iter().map(|&(_, count)| count);
        let has_sound_regressors = || {
            (0..n).all(|i| is_increasing(columns(i), width))
                && tree.weights.iter().all(|w| w.is_finite())
        };
        let is_sound = (0..n).all(|i| is_increasing(labels(i), n_classes))
            && counts.all(|count| count.is_finite() && count > 0.0)
            && tree.weight.iter().all(|w| w.is_finite() && *w > 0.0)
            && (tree.weights.is_mapped() || has_sound_regressors())
            && tree.weights.len() == tree.columns.entries().len() * arity as usize;
        if !is_sound {
            return Err(bundle.damaged("labels, columns or weights of a node are out of range"));
        }
        tree.inverse_mass = (0..n).map(|i| inverse_mass(tree.labels.get(i))).collect();
        tree.parents = parents_of(&tree.first_child, arity)
            .ok_or_else(|| bundle.damaged("the nodes are no tree"))?;
        Ok(tree)
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

// What is missing here follows from these.
persist!(Tree {
    Columns first_child;
    Columns weight;
    Columns n_examples;
    Nest labels;
    Nest columns;
    Flat weights;
    Columns stats;
    Nest curves;
});

/// The node above each, if these are the first children of a tree whose nodes were
/// made family by family.
fn parents_of(first_child: &[NodeId], arity: u32) -> Option<Vec<NodeId>> {
    let n = first_child.len();
    let mut parents = vec![NodeId::NONE; n];
    for (id, &first) in first_child.iter().enumerate() {
        if first == Tree::ROOT {
            continue;
        }
        let children = parents.get_mut(first.at()..)?.get_mut(..arity as usize)?;
        if first.at() <= id || children.iter().any(|parent| parent.is_some()) {
            return None;
        }
        children.fill(NodeId(id as u32));
    }
    let is_whole = n > 0 && parents[1..].iter().all(|parent| parent.is_some());
    is_whole.then_some(parents)
}

/// Whether numbers from a file increase and are below `end`.
pub fn is_increasing(mut numbers: impl Iterator<Item = u32> + Clone, end: usize) -> bool {
    numbers.clone().is_sorted_by(|a, b| a < b) && numbers.all(|number| (number as usize) < end)
}

/// 1 / the sum of a histogram.
pub fn inverse_mass(labels: &[(u32, f32)]) -> f32 {
    let mass: f64 = labels.iter().map(|&(_, count)| f64::from(count)).sum();
    mass.recip() as f32
}
