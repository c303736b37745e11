//! The nodes, which come into being as examples ask for them.

use super::bound::{entropy_after, recall_bound};
use super::counts::Counts;
use crate::tree::NodeId;

/// A node. Unseen children of an internal node exist, but hold nothing.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Node {
    /// The first of its children, which lie side by side; none before the
    /// node was passed for the first time.
    pub first_child: NodeId,
    /// The first of its routers, which lie side by side.
    pub first_router: u32,
    /// The node above; none at the root.
    pub parent: NodeId,
    /// Steps from the root.
    pub depth: u32,
    /// Lower bound on the recall of its candidates.
    pub bound: f32,
    /// Entropy of its labels, in nats.
    pub entropy: f64,
    /// How often its routers learned, by importance.
    pub trained: f64,
    /// Arrivals whose label was a candidate of the node above at the time.
    pub stay: f64,
    /// The labels that came by.
    pub counts: Counts,
}

impl Node {
    pub(super) fn new(parent: NodeId, depth: u32) -> Self {
        Self {
            first_child: NodeId::NONE,
            first_router: u32::MAX,
            parent,
            depth,
            bound: 0.0,
            entropy: 0.0,
            trained: 0.0,
            stay: 0.0,
            counts: Counts::default(),
        }
    }

    /// Whether examples have passed it.
    #[inline]
    pub fn has_children(&self) -> bool {
        self.first_child.is_some()
    }

    /// Child number `side`.
    #[inline]
    pub fn child(&self, side: u32) -> NodeId {
        NodeId(self.first_child.0 + side)
    }
}

/// All nodes; the root is the first.
#[derive(Debug, Clone)]
pub struct Arena {
    pub(super) nodes: Vec<Node>,
    /// Children of a node.
    arity: u32,
    /// Most candidates of a node.
    max_candidates: usize,
    /// Multiplier of the recall bound.
    bern_hyper: f64,
    /// Whether the parent's candidates are judged by the examples that go to the
    /// child, too.
    like_with_like: bool,
}

impl Arena {
    /// A root that has seen nothing.
    pub fn new(arity: u32, max_candidates: usize, bern_hyper: f64, like_with_like: bool) -> Self {
        Self {
            nodes: vec![Node::new(NodeId::NONE, 0)],
            arity,
            max_candidates,
            bern_hyper,
            like_with_like,
        }
    }

    /// The node everything begins at.
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
        let first = self.nodes.len() as u32;
        let depth = self.node(id).depth + 1;
        for _ in 0..self.arity {
            self.nodes.push(Node::new(id, depth));
        }
        let node = self.node_mut(id);
        node.first_child = NodeId(first);
        node.first_router = first_router;
    }

    /// Takes `weight` of `label` into the histograms of `nodes`, each the parent
    /// of the next.
    pub fn insert(&mut self, nodes: impl Iterator<Item = NodeId>, label: u32, weight: f64) {
        let (capacity, hyper) = (self.max_candidates, self.bern_hyper);
        let mut known_above = false;
        for id in nodes {
            let node = self.node_mut(id);
            let counts = &mut node.counts;
            node.entropy = entropy_after(node.entropy, counts.total(), counts.get(label), weight);
            if known_above {
                node.stay += weight;
            }
            known_above = counts.add(label, weight, capacity);
            node.bound = recall_bound(counts.mass(), counts.total(), hyper);
        }
    }

    /// The bound on the recall of the candidates of `counts`.
    pub(super) fn bound_of(&self, counts: &Counts) -> f32 {
        recall_bound(counts.mass(), counts.total(), self.bern_hyper)
    }

    /// Whether an example that wants to go from `parent` to `child` stays: the
    /// bound tells of no gain there. A tie is no gain.
    #[inline]
    pub fn stops(&self, parent: NodeId, child: NodeId) -> bool {
        if self.bern_hyper == 0.0 {
            return false;
        }
        let child = self.node(child);
        let here = if self.like_with_like {
            (child.stay / child.counts.total()) as f32
        } else {
            self.node(parent).bound
        };
        // Nothing seen, nothing gained.
        !(here < child.bound)
    }

    /// Replaces `path` by the nodes from the root to `id`.
    pub fn path_to(&self, mut id: NodeId, path: &mut Vec<NodeId>) {
        path.clear();
        while id.is_some() {
            path.push(id);
            id = self.node(id).parent;
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
