//! The tree of routers: which path an example takes, and the candidates at its end.
//!
//! Nothing here looks at the scorers, and nothing here learns.

use super::arena::Arena;
use super::label_index::{LabelSet, LocalId};
use super::params::{Params, RouterImportance};
use crate::error::Result;
use crate::linear::{PathExample, Rate, Regressors};
use crate::persist;
use crate::tree::NodeId;

/// Nodes and routers.
#[derive(Debug, Clone)]
pub struct RoutingTree {
    /// The nodes with their statistics.
    pub(super) arena: Arena,
    /// Those of a node lie side by side, from its `first_router` on.
    pub(super) routers: Regressors,
    pub(super) rate: Rate,
    /// D: levels below the root at most.
    pub(super) max_depth: u32,
    pub(super) importance: RouterImportance,
    pub(super) randomized: bool,
    pub(super) seed: u64,
    /// Whether nodes count the examples of the paths before the routers learned.
    pub(super) honest: bool,
    /// Whether nodes of few labels take candidates of those above.
    backs_off: bool,
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
    /// The final node.
    pub fn end(&self) -> NodeId {
        self.nodes.last().copied().unwrap_or(Arena::ROOT)
    }

    /// Makes this the path of the root alone.
    pub fn restart(&mut self) {
        self.nodes.clear();
        self.nodes.push(Arena::ROOT);
        self.blocked_child = None;
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
        let arity = params.arity;
        Self {
            arena: Arena::new(
                arity,
                params.candidates(n_classes, label_bits),
                params.bern_hyper,
                params.honest,
            ),
            routers: Regressors::new(params.optimizer, params.router_loss(), width),
            rate: Rate::new(params.router_rate(), params.decay()),
            max_depth: params.depth(label_bits),
            importance: params.router_importance,
            randomized: params.randomized_routing,
            seed: params.seed,
            honest: params.honest,
            backs_off: params.back_off,
            entropy_costs: vec![0.0; arity as usize],
            seen: LabelSet::new(n_classes),
        }
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
            let side = self.choose_child(self.children(parent), example);
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

    /// All children of a node that has any.
    pub(super) fn children(&self, id: NodeId) -> ChildRange {
        ChildRange::all(self.arena.node(id).first_router, self.arena.arity())
    }

    /// The candidates at the end of a path: the most frequent labels there and,
    /// while fewer than F, those of the nodes above.
    pub(super) fn candidates_at_end(
        &self,
        path: &[NodeId],
        seen: &mut LabelSet,
        candidates: &mut Vec<LocalId>,
    ) {
        candidates.clear();
        let Some((&end, above)) = path.split_last() else {
            return;
        };
        candidates.extend_from_slice(self.arena.node(end).counts.candidates());
        if !self.backs_off || candidates.len() == self.arena.max_candidates() {
            return;
        }
        seen.reset(candidates);
        for &node in above.iter().rev() {
            for &label in self.arena.node(node).counts.candidates() {
                if candidates.len() == self.arena.max_candidates() {
                    return;
                }
                if seen.insert(label) {
                    candidates.push(label);
                }
            }
        }
    }
}

impl Arena {
    /// The router that an example meets after `half` of the children of `id` was
    /// chosen, so that its weights can be prefetched; the statistics it will be
    /// updated by are prefetched here.
    #[inline]
    pub(super) fn next_router(&self, id: NodeId, half: ChildRange) -> Option<u32> {
        if half.to - half.from > 1 {
            return Some(half.router);
        }
        let child = self.node(id).child(half.from);
        self.node(child).has_children().then(|| {
            self.prefetch_children(child);
            self.node(child).first_router
        })
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
    /// All children of a node.
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
        if right {
            Self {
                from: middle,
                to: self.to,
                router: self.router + middle - self.from,
            }
        } else {
            Self {
                from: self.from,
                to: middle,
                router: self.router + 1,
            }
        }
    }
}

/// 0 goes right, as everywhere in the crate, and so does NaN.
#[inline]
pub(super) fn is_right(score: f32) -> bool {
    score >= 0.0 || score.is_nan()
}
