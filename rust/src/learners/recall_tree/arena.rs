//! The nodes, allocated as examples reach them.

use super::bound::{entropy_after, recall_bound};
use super::label_counts::LabelCounts;
use super::label_index::LocalId;
use crate::simd::prefetch;
use crate::tree::NodeId;

/// A node, in two cache lines; the first is what deciding between children
/// reads of each. Unseen children of an internal node exist, but hold nothing.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Node {
    /// The first of its children, which lie side by side; 0, the root, before
    /// the node was passed for the first time.
    first_child: u32,
    /// The first of its routers, which lie side by side.
    pub first_router: u32,
    /// Entropy of its labels, in nats.
    pub entropy: f64,
    /// The histogram of its labels, and its candidates.
    pub counts: LabelCounts,
    /// Weight of its examples whose label was a candidate of its parent at the time.
    pub parent_recalled: f64,
    /// Lower bound on the recall of its candidates.
    pub bound: f32,
    /// Weight of the examples that its routers learned from.
    pub trained: f32,
}

impl Node {
    /// Whether examples have passed it.
    #[inline]
    pub fn has_children(&self) -> bool {
        self.first_child != 0
    }

    /// As saved: 0 where there are none.
    pub(super) fn first_child(&self) -> u32 {
        self.first_child
    }

    /// Child number `side`.
    #[inline]
    pub fn child(&self, side: u32) -> NodeId {
        NodeId(self.first_child + side)
    }
}

/// All nodes; the root is the first.
#[derive(Debug, Clone)]
pub struct Arena {
    pub(super) nodes: Vec<Node>,
    /// The node above each; none at the root.
    parents: Vec<NodeId>,
    /// Children of a node.
    arity: u32,
    /// Most candidates of a node.
    max_candidates: usize,
    /// Multiplier of the recall bound.
    bern_hyper: f64,
    /// Whether a child is compared with the recall of its parent's candidates on the
    /// examples that came to the child, not on all of the parent's.
    honest: bool,
}

impl Arena {
    /// A root that has seen no example.
    pub fn new(arity: u32, max_candidates: usize, bern_hyper: f64, honest: bool) -> Self {
        Self {
            nodes: vec![Node::default()],
            parents: vec![NodeId::NONE],
            arity,
            max_candidates,
            bern_hyper,
            honest,
        }
    }

    /// Every path begins here.
    pub const ROOT: NodeId = NodeId(0);

    /// A node.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    /// A node, to be changed.
    #[inline]
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.at()]
    }

    /// Gives `id` children that have seen nothing.
    pub fn grow(&mut self, id: NodeId, first_router: u32) {
        let first = self.nodes.len();
        let with_children = first + self.arity as usize;
        self.nodes.resize(with_children, Node::default());
        self.parents.resize(with_children, id);
        let node = self.node_mut(id);
        node.first_child = first as u32;
        node.first_router = first_router;
    }

    /// Adds `weight` of `label` to the histograms of `nodes`, each the parent of the
    /// next, and updates their candidates, entropies and recall bounds.
    pub fn update_candidates(&mut self, nodes: &[NodeId], label: LocalId, weight: f64) {
        for &id in nodes {
            self.node(id).counts.prefetch_order();
        }
        let (capacity, hyper) = (self.max_candidates, self.bern_hyper);
        let mut known_above = false;
        for &id in nodes {
            let node = self.node_mut(id);
            let counts = &mut node.counts;
            node.entropy = entropy_after(node.entropy, counts.total(), counts.get(label), weight);
            if known_above {
                node.parent_recalled += weight;
            }
            known_above = counts.add(label, weight, capacity);
            node.bound = recall_bound(counts.mass(), counts.total(), hyper);
        }
    }

    /// The bound on the recall of the candidates of `counts`.
    pub(super) fn bound_of(&self, counts: &LabelCounts) -> f32 {
        recall_bound(counts.mass(), counts.total(), self.bern_hyper)
    }

    /// The stop rule: whether the descent from `parent` towards `child` ends at
    /// `parent`, because the child's recall bound is no better. A tie stops.
    #[inline]
    pub fn stops(&self, parent: NodeId, child: NodeId) -> bool {
        if self.bern_hyper == 0.0 {
            return false;
        }
        let child = self.node(child);
        let recall_of_parent = if self.honest {
            (child.parent_recalled / child.counts.total()) as f32
        } else {
            self.node(parent).bound
        };
        // NaN: the child has seen nothing.
        recall_of_parent.is_nan() || recall_of_parent >= child.bound
    }

    /// Prefetches the children of a node.
    #[inline]
    pub fn prefetch_children(&self, id: NodeId) {
        let first = self.node(id).first_child as usize;
        // A line each is enough to decide between them.
        for child in &self.nodes[first..first + 2] {
            prefetch(child);
        }
    }

    /// Replaces `path` by the nodes from the root to `id`.
    pub fn path_to(&self, mut id: NodeId, path: &mut Vec<NodeId>) {
        path.clear();
        while id.is_some() {
            path.push(id);
            id = self.parents[id.at()];
        }
        path.reverse();
    }

    /// Children of a node that has any.
    pub fn arity(&self) -> u32 {
        self.arity
    }

    /// Most candidates of a node.
    pub fn max_candidates(&self) -> usize {
        self.max_candidates
    }
}
