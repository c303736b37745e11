//! A grown tree as flat arrays.

use super::persist::inverse_mass;
use super::purity::NodeStats;
use super::split::{Share, Split};
use crate::tree::NodeId;

/// The nodes in the order in which they came into being, children side by side.
#[derive(Debug, Clone)]
pub struct Tree {
    /// M.
    pub arity: u32,
    /// The node above; none at the root.
    pub parents: Vec<NodeId>,
    /// The first child; the root, which is nobody's child, at leaves.
    pub first_child: Vec<NodeId>,
    /// Weight of the examples that came by.
    pub weight: Vec<f64>,
    /// Number of these.
    pub n_examples: Vec<u32>,
    /// Labels of each node and how much of each there was.
    pub labels: Ragged<(u32, f32)>,
    /// 1 / the sum of these.
    pub inverse_mass: Vec<f32>,
    /// Columns that the regressors of each node use, increasing.
    pub columns: Ragged<u32>,
    /// M weights for each of these.
    pub weights: Vec<f32>,
    /// What training came to.
    pub stats: Vec<NodeStats>,
    /// Running J by epoch.
    pub curves: Ragged<f32>,
}

/// A list for each node, end to end.
#[derive(Debug, Clone, PartialEq)]
pub struct Ragged<T> {
    ends: Vec<usize>,
    entries: Vec<T>,
}

impl<T> Default for Ragged<T> {
    fn default() -> Self {
        Self {
            ends: Vec::new(),
            entries: Vec::new(),
        }
    }
}

impl<T: Copy> Ragged<T> {
    /// Lists of these lengths. None where they do not add up.
    pub fn from_parts(lengths: &[u32], entries: Vec<T>) -> Option<Self> {
        let mut end = 0usize;
        let ends = lengths.iter().map(|&n| {
            end += n as usize;
            end
        });
        let ends: Vec<usize> = ends.collect();
        (end == entries.len()).then_some(Self { ends, entries })
    }

    /// Appends a list.
    pub fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.entries.extend(list);
        self.ends.push(self.entries.len());
    }

    /// Where list `i` lies among all entries.
    #[inline]
    pub fn range(&self, i: usize) -> std::ops::Range<usize> {
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        from..self.ends[i]
    }

    /// List `i`.
    #[inline]
    pub fn get(&self, i: usize) -> &[T] {
        &self.entries[self.range(i)]
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long the lists are.
    pub fn lengths(&self) -> Vec<u32> {
        (0..self.len())
            .map(|i| self.range(i).len() as u32)
            .collect()
    }

    /// All lists, end to end.
    pub fn entries(&self) -> &[T] {
        &self.entries
    }
}

impl Tree {
    /// The node everything begins at.
    pub const ROOT: NodeId = NodeId(0);

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there is no node, which no grown tree comes to.
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
    pub fn routers(&self, id: NodeId) -> (&[u32], &[f32]) {
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

/// A node that may still grow, or has turned out not to.
#[derive(Debug)]
pub struct Draft {
    parent: NodeId,
    first_child: NodeId,
    weight: f64,
    n_examples: u32,
    labels: Vec<(u32, f64)>,
    split: Option<Split>,
}

impl Draft {
    /// A leaf below `parent`, and its examples.
    pub fn of(parent: NodeId, share: Share) -> (Self, Vec<u32>) {
        let draft = Self {
            parent,
            first_child: Tree::ROOT,
            weight: share.weight,
            n_examples: share.ids.len() as u32,
            labels: share.labels,
            split: None,
        };
        (draft, share.ids)
    }

    /// Labels it holds beyond its most frequent one: what a split could part.
    pub fn impurity(&self) -> f64 {
        let counts = self.labels.iter().map(|&(_, count)| count);
        counts.clone().sum::<f64>() - counts.fold(0.0, f64::max)
    }

    /// Makes it an internal node.
    pub fn take(&mut self, split: Split, first_child: NodeId) {
        self.split = Some(split);
        self.first_child = first_child;
    }
}

impl Tree {
    /// The tree of these nodes.
    pub fn of(arity: u32, drafts: Vec<Draft>) -> Self {
        let mut tree = Self {
            arity,
            parents: drafts.iter().map(|draft| draft.parent).collect(),
            first_child: drafts.iter().map(|draft| draft.first_child).collect(),
            weight: drafts.iter().map(|draft| draft.weight).collect(),
            n_examples: drafts.iter().map(|draft| draft.n_examples).collect(),
            labels: Ragged::default(),
            inverse_mass: Vec::with_capacity(drafts.len()),
            columns: Ragged::default(),
            weights: Vec::new(),
            stats: Vec::with_capacity(drafts.len()),
            curves: Ragged::default(),
        };
        for draft in drafts {
            let labels = draft.labels.into_iter();
            tree.labels
                .push(labels.map(|(label, count)| (label, count as f32)));
            let last = tree.labels.get(tree.labels.len() - 1);
            tree.inverse_mass.push(inverse_mass(last));
            if let Some(split) = draft.split {
                tree.columns.push(split.columns);
                tree.weights.extend(split.weights);
                tree.stats.push(split.stats);
                tree.curves.push(split.curve);
            } else {
                tree.columns.push([]);
                tree.stats.push(NodeStats::NONE);
                tree.curves.push([]);
            }
        }
        tree
    }
}
