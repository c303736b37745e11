//! The nodes, allocated as examples reach them.

use super::bound::{entropy_after, recall_bound};
use super::label_counts::LabelCounts;
use super::label_index::{LocalId, SeenLabels};
use super::params::Params;
use crate::alloc::{reserve, resize};
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
    /// Lower bound on the recall of its candidates.
    pub bound: f32,
    /// Entropy of its labels, in nats.
    pub entropy: f64,
    /// The histogram of its labels, and its candidates.
    pub counts: LabelCounts,
    /// Weight of its examples whose label was a candidate of its parent at the time.
    pub parent_recalled: f64,
    /// Weight of the examples that its routers learned from.
    pub trained: f64,
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
    entropy: is_entropy,
    counts,
    parent_recalled: is_count,
    trained: is_count,
} .. { bound: 0.0 });

/// Whether an entropy is one of any number of labels, but for rounding.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as all rules")]
fn is_entropy(entropy: &f64) -> bool {
    entropy.abs() <= 1e3
}

/// All nodes; the root is the first.
#[derive(Debug, Clone)]
pub struct Arena {
    pub(super) nodes: Vec<Node>,
    /// The node above each; none at the root.
    parents: Vec<NodeId>,
    pub(super) params: Params,
    /// F: most candidates of a node.
    pub(super) max_candidates: usize,
}

impl Arena {
    /// A root that has seen no example.
    pub fn new(params: &Params, max_candidates: usize) -> Self {
        Self {
            nodes: vec![Node::default()],
            parents: vec![NodeId::NONE],
            params: params.clone(),
            max_candidates,
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

    /// Gives `id` children that have seen nothing. The caller allocates its routers.
    pub fn grow(&mut self, id: NodeId) {
        let first = self.nodes.len();
        let with_children = first + self.params.arity as usize;
        // Both or neither.
        reserve(&mut self.parents, self.params.arity as usize);
        resize(&mut self.nodes, with_children, Node::default());
        self.parents.resize(with_children, id);
        self.node_mut(id).first_child = first as u32;
    }

    /// All children of a node that has any. They and its routers, one less, were allocated
    /// together, so that the place of the children tells that of the routers.
    #[inline]
    pub(super) fn children(&self, id: NodeId) -> ChildRange {
        let arity = self.params.arity;
        ChildRange {
            from: 0,
            to: arity,
            router: (self.node(id).first_child - 1) / arity * (arity - 1),
        }
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
        let (capacity, hyper) = (self.max_candidates, self.params.bern_hyper);
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

    /// To be called where a stream's label number `n_labels` turns up. Counts of fewer labels
    /// say little of where examples are to go now, but outweigh those to come: they are halved
    /// whenever the number of labels, more than F, has grown by a fourth.
    pub fn age(&mut self, n_labels: usize) {
        // floor(3 log2 n)
        let halvings = |n: usize| (n as u128).pow(3).ilog2();
        let is_old = n_labels > self.max_candidates && halvings(n_labels) > halvings(n_labels - 1);
        if !is_old || !self.params.honest {
            return;
        }
        for node in &mut self.nodes {
            node.counts.halve();
            node.parent_recalled /= 2.0;
            node.bound = recall_bound(node.counts.mass, node.counts.total, self.params.bern_hyper);
        }
    }

    /// Lets every node have so many candidates, which are then its most frequent labels.
    pub fn allow_candidates(&mut self, max_candidates: usize) {
        if max_candidates <= self.max_candidates {
            return;
        }
        self.max_candidates = max_candidates;
        for node in &mut self.nodes {
            node.counts.fill_up(max_candidates);
            node.bound = recall_bound(node.counts.mass, node.counts.total, self.params.bern_hyper);
        }
    }

    /// The stop rule: whether the descent from `parent` towards `child` ends at
    /// `parent`, because the child's recall bound is no better. A tie stops.
    #[inline]
    pub fn stops(&self, parent: NodeId, child: NodeId) -> bool {
        if self.params.bern_hyper == 0.0 {
            return false;
        }
        let child = self.node(child);
        let recall_of_parent = if self.params.honest {
            // On the examples that came to the child, not on all of the parent's.
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
        let child = self.node(id).child(half.from);
        let node = self.node(child);
        node.has_children().then(|| {
            let first = node.first_child as usize;
            // A line each is enough to decide between them.
            self.nodes[first..first + 2].iter().for_each(prefetch);
            self.children(child).router
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
        seen: &mut impl SeenLabels,
        candidates: &mut Vec<LocalId>,
    ) {
        candidates.clear();
        let Some((&end, above)) = path.split_last() else {
            return;
        };
        candidates.extend_from_slice(self.node(end).counts.candidates());
        if !self.params.back_off || candidates.len() == self.max_candidates {
            return;
        }
        seen.reset(candidates);
        let missing = self.max_candidates - candidates.len();
        let above = above.iter().rev();
        let further = above.flat_map(|&node| self.node(node).counts.candidates());
        let new = further.filter(|&&label| seen.insert(label)).take(missing);
        new.for_each(|&label| candidates.push(label));
    }

    /// Restores what is not stored of the nodes, which share `n_routers` routers. An
    /// error where they are no tree.
    pub(super) fn restore(&mut self, n_routers: usize) -> Result<()> {
        let (n, arity) = (self.nodes.len(), self.params.arity as usize);
        // Children were allocated in the order in which their parents were first passed.
        let mut internal: Vec<usize> = (0..n).filter(|&at| self.nodes[at].has_children()).collect();
        internal.sort_unstable_by_key(|&at| self.nodes[at].first_child);
        self.parents = vec![NodeId::NONE];
        let is_tree = internal.iter().all(|&at| {
            let next = self.parents.len();
            self.parents.resize(next + arity, NodeId(at as u32));
            self.nodes[at].first_child as usize == next && at < next
        });
        let n_needed = internal.len() * (arity - 1);
        if !is_tree || (self.parents.len(), n_routers) != (n, n_needed) {
            return Err(Error::data("the nodes are no tree"));
        }
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let is_sound =
                node.counts.candidates().len() <= self.max_candidates && node.counts.restore();
            if !is_sound {
                return Err(Error::data(format!("the labels of node {at}")));
            }
            node.bound = recall_bound(node.counts.mass, node.counts.total, self.params.bern_hyper);
        }
        Ok(())
    }
}

/// Children `from..to` of a node, of which `router` decides on a half.
///
/// With more than two children, a node's routers are a balanced tree of their own,
/// numbered in preorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChildRange {
    pub from: u32,
    pub to: u32,
    pub router: u32,
}

impl ChildRange {
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
