//! The tree of routers: which path an example takes, and the candidates at its end.
//!
//! Nothing here looks at the scorers, and nothing here learns.

use super::arena::{Arena, ChildRange};
use super::label_index::LabelSet;
use super::params::Params;
use crate::error::Result;
use crate::linear::{PathExample, Rate, Regressors};
use crate::persist;
use crate::tree::NodeId;

/// Nodes and routers.
#[derive(Debug, Clone)]
pub struct RoutingTree {
    /// The nodes with their statistics.
    pub(super) arena: Arena,
    /// Those of a node lie side by side; see [`Arena::children`].
    pub(super) routers: Regressors,
    pub(super) rate: Rate,
    /// D: levels below the root at most.
    pub(super) max_depth: u32,
    /// What sending the present example to each child of the present node costs.
    pub(super) entropy_costs: Vec<f64>,
    /// Which labels are candidates already.
    pub(super) seen: LabelSet,
}

persist!(RoutingTree {
    Nest routers;
    Columns nodes = arena.nodes;
} check restore);

/// A path from the root.
#[derive(Debug, Clone, Default)]
pub struct Path {
    /// The nodes, the root first, the final node last.
    pub nodes: Vec<NodeId>,
    /// The child of the final node that the stop rule kept the example from.
    pub blocked_child: Option<NodeId>,
}

impl Path {
    pub fn end(&self) -> NodeId {
        self.nodes.last().copied().unwrap_or(Arena::ROOT)
    }

    /// Makes this the path of the root alone.
    pub fn restart(&mut self) {
        self.nodes.clear();
        self.nodes.push(Arena::ROOT);
        self.blocked_child = None;
    }

    /// The nodes that count an example of this path. The child that the stop rule kept
    /// it from does, too: this is how children earn the statistics that open them.
    pub fn counting_nodes(&self) -> impl Iterator<Item = NodeId> + Clone + '_ {
        self.nodes.iter().copied().chain(self.blocked_child)
    }

    /// Replaces this path by `other`, without allocating.
    pub fn copy_from(&mut self, other: &Self) {
        self.nodes.clone_from(&other.nodes);
        self.blocked_child = other.blocked_child;
    }
}

impl RoutingTree {
    /// A tree that has seen no example.
    pub fn new(params: &Params, n_classes: usize, label_bits: f64, width: usize) -> Self {
        Self {
            arena: Arena::new(params, params.candidates(n_classes, label_bits)),
            routers: Regressors::new(params.optimizer, params.router_loss(), width),
            rate: Rate::new(params.router_rate(), params.decay()),
            max_depth: params.depth(label_bits),
            entropy_costs: vec![0.0; params.arity as usize],
            seen: LabelSet::new(n_classes),
        }
    }

    /// For `n_classes` labels, of `label_bits` of entropy, from now on.
    pub fn grow(&mut self, n_classes: usize, label_bits: f64) {
        let params = &self.arena.params;
        self.max_depth = params.depth(label_bits);
        let max_candidates = params.candidates(n_classes, label_bits);
        self.arena.allow_candidates(max_candidates);
        self.seen.grow(n_classes);
    }

    /// Restores what is not stored.
    fn restore(&mut self) -> Result<()> {
        self.arena.restore(self.routers.len())
    }

    /// The loop of Figure 1: extends `path`, which ends at `parent` and goes on to
    /// `child`, by the routers as they are.
    pub(super) fn route(
        &self,
        mut parent: NodeId,
        mut child: NodeId,
        example: &PathExample,
        path: &mut Path,
    ) {
        path.blocked_child = None;
        loop {
            if self.is_final(parent, child) {
                path.blocked_child = Some(child);
                return;
            }
            parent = child;
            path.nodes.push(parent);
            if !self.is_internal(parent) {
                return;
            }
            let side = self.choose_child(self.arena.children(parent), example);
            child = self.arena.node(parent).child(side);
        }
    }

    /// The child among `children` that the routers send an example to: f_n(x).
    pub(super) fn choose_child(&self, mut children: ChildRange, example: &PathExample) -> u32 {
        while children.to - children.from > 1 {
            let score = self.routers.score(children.router, example);
            children = children.half(is_right(score));
        }
        children.from
    }

    /// Whether a path from `parent` towards `child` ends at `parent`. An unseen
    /// child has no candidates, whatever the bound's multiplier.
    pub(super) fn is_final(&self, parent: NodeId, child: NodeId) -> bool {
        self.arena.stops(parent, child) || self.arena.node(child).counts.candidates().is_empty()
    }

    /// Whether examples have gone on from a node.
    pub(super) fn is_internal(&self, id: NodeId) -> bool {
        self.arena.node(id).has_children()
    }
}

/// 0 goes right, as everywhere in the crate, and so does NaN.
#[inline]
pub(super) fn is_right(score: f32) -> bool {
    score >= 0.0 || score.is_nan()
}
