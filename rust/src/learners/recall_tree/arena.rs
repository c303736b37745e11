//! The nodes, allocated as examples reach them.

use super::bound::{entropy_after, recall_bound};
use super::label_counts::LabelCounts;
use super::label_index::{LabelSet, LocalId};
use super::params::Params;
use crate::error::{Error, Result};
use crate::file::is_count;
use crate::record;
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

    /// Child number `side`.
    #[inline]
    pub fn child(&self, side: u32) -> NodeId {
        NodeId(self.first_child + side)
    }
}

record!(Node {
    first_child,
    first_router,
    entropy,
    counts,
    parent_recalled: is_count,
    trained,
} .. { bound: 0.0 });

/// All nodes; the root is the first.
#[derive(Debug, Clone)]
pub struct Arena {
    pub(super) nodes: Vec<Node>,
    /// The node above each; none at the root.
    parents: Vec<NodeId>,
    /// Children of a node that has any.
    pub(super) arity: u32,
    /// F: most candidates of a node.
    pub(super) max_candidates: usize,
    /// Multiplier of the recall bound.
    bern_hyper: f64,
    /// Whether a child is compared with the recall of its parent's candidates on the
    /// examples that came to the child, not on all of the parent's.
    honest: bool,
    /// Whether nodes of few labels take candidates of those above.
    backs_off: bool,
}

impl Arena {
    /// A root that has seen no example.
    pub fn new(params: &Params, max_candidates: usize) -> Self {
        Self {
            nodes: vec![Node::default()],
            parents: vec![NodeId::NONE],
            arity: params.arity,
            max_candidates,
            bern_hyper: params.bern_hyper,
            honest: params.honest,
            backs_off: params.back_off,
        }
    }

    /// Every path begins here.
    pub const ROOT: NodeId = NodeId(0);

    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

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
    pub fn update_candidates(
        &mut self,
        nodes: impl Iterator<Item = NodeId> + Clone,
        label: LocalId,
        weight: f64,
    ) {
        for id in nodes.clone() {
            self.node(id).counts.prefetch_order();
        }
        let (capacity, hyper) = (self.max_candidates, self.bern_hyper);
        let mut known_above = false;
        for id in nodes {
            let node = self.node_mut(id);
            let counts = &mut node.counts;
            node.entropy = entropy_after(node.entropy, counts.total, counts.get(label), weight);
            if known_above {
                node.parent_recalled += weight;
            }
            known_above = counts.add(label, weight, capacity);
            node.bound = recall_bound(counts.mass, counts.total, hyper);
        }
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
            (child.parent_recalled / child.counts.total) as f32
        } else {
            self.node(parent).bound
        };
        // NaN: the child has seen nothing.
        recall_of_parent.is_nan() || recall_of_parent >= child.bound
    }

    /// The router that an example meets after `half` of the children of `id` was
    /// chosen, so that its weights can be prefetched; the statistics it will be
    /// updated by are prefetched here.
    #[inline]
    pub(super) fn next_router(&self, id: NodeId, half: ChildRange) -> Option<u32> {
        if half.to - half.from > 1 {
            return Some(half.router);
        }
        let child = self.node(self.node(id).child(half.from));
        child.has_children().then(|| {
            let first = child.first_child as usize;
            // A line each is enough to decide between them.
            self.nodes[first..first + 2].iter().for_each(prefetch);
            child.first_router
        })
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

    /// The candidates at the end of a path: the most frequent labels there and, while
    /// fewer than F, those of the nodes above. `seen` is scratch space.
    pub fn candidates_at_end(
        &self,
        path: &[NodeId],
        seen: &mut LabelSet,
        candidates: &mut Vec<LocalId>,
    ) {
        candidates.clear();
        let Some((&end, above)) = path.split_last() else {
            return;
        };
        candidates.extend_from_slice(self.node(end).counts.candidates());
        if !self.backs_off || candidates.len() == self.max_candidates {
            return;
        }
        seen.reset(candidates);
        for &node in above.iter().rev() {
            for &label in self.node(node).counts.candidates() {
                if candidates.len() == self.max_candidates {
                    return;
                }
                if seen.insert(label) {
                    candidates.push(label);
                }
            }
        }
    }

    /// Restores what is not stored of the nodes, which share `n_routers` routers. An
    /// error where they are no tree.
    pub(super) fn restore(&mut self, n_routers: usize) -> Result<()> {
        let (n, arity) = (self.nodes.len(), self.arity as usize);
        // Children were allocated in the order in which their parents were first passed.
        let mut internal: Vec<usize> = (0..n).filter(|&at| self.nodes[at].has_children()).collect();
        internal.sort_unstable_by_key(|&at| self.nodes[at].first_child);
        self.parents = vec![NodeId::NONE];
        let is_tree = internal.into_iter().all(|at| {
            let (node, next) = (&self.nodes[at], self.parents.len());
            let has_own_place = node.first_child as usize == next && at < next && next + arity <= n;
            self.parents.resize(n.min(next + arity), NodeId(at as u32));
            has_own_place && node.first_router as usize + arity - 1 <= n_routers
        });
        if !is_tree || self.parents.len() != n {
            return Err(Error::data("the nodes are no tree"));
        }
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let is_sound = node.entropy.is_finite()
                && is_count(&node.trained)
                && node.counts.candidates().len() <= self.max_candidates
                && node.counts.restore();
            if !is_sound {
                return Err(Error::data(format!("the labels of node {at}")));
            }
            node.bound = recall_bound(node.counts.mass, node.counts.total, self.bern_hyper);
        }
        Ok(())
    }
}

/// Children `from..to` of a node, of which `router` decides on a half.
///
/// With more than two children, a node's routers are a balanced tree of their own,
/// numbered in preorder.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChildRange {
    pub from: u32,
    pub to: u32,
    pub router: u32,
}

impl ChildRange {
    pub fn all(first_router: u32, arity: u32) -> Self {
        Self {
            from: 0,
            to: arity,
            router: first_router,
        }
    }

    /// Both halves; none where there is but one child.
    pub fn halves(&self) -> Option<(Self, Self)> {
        (self.to - self.from > 1).then(|| (self.half(false), self.half(true)))
    }

    /// The half on one side of `router`.
    pub fn half(&self, right: bool) -> Self {
        let middle = self.from.midpoint(self.to);
        let (from, to, router) = if right {
            (middle, self.to, self.router + middle - self.from)
        } else {
            (self.from, middle, self.router + 1)
        };
        Self { from, to, router }
    }
}
