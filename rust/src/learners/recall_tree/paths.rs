//! The tree as a row's way through its routers: what is frozen, and what is walked where nothing is.

use super::arena::{Arena, ChildRange};
use super::routing_tree::RoutingTree;
use crate::linear::{Regressors, Span};
use crate::tree::{Junction, LearningTree, NodeId};

/// A node, with those of its children that are still to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The decisions that lead there, left 0 and right 1, after a 1: so places of lower levels
    /// are greater, and on a level those further right.
    decisions: u128,
    node: NodeId,
    /// None: all.
    children: Option<ChildRange>,
}

impl RoutingTree {
    /// Routers on the longest path, about.
    pub(super) fn depth(&self) -> usize {
        (self.max_depth * self.arena.params.arity.ilog2()) as usize
    }

    /// Whether the decisions of all paths can be kept, as they are for any sensible depth.
    pub(super) fn can_be_walked(&self) -> bool {
        let routers_of_node = self.arena.params.arity.next_power_of_two().ilog2();
        self.max_depth * routers_of_node < u128::BITS
    }
}

/// Terminals are nodes: the path to a child whose bound is no better ends at the parent.
impl LearningTree for RoutingTree {
    type Node = Place;

    fn root(&self) -> Place {
        Place {
            decisions: 1,
            node: Arena::ROOT,
            children: None,
        }
    }

    fn at(&self, place: Place) -> Junction<Place> {
        let Place {
            decisions,
            mut node,
            children: mut known,
        } = place;
        loop {
            let children = match known {
                Some(children) => children,
                None if self.is_internal(node) => self.arena.children(node),
                None => return Junction::Terminal(node.0),
            };
            let above = self.arena.node(node);
            let is_final = |side| self.is_final(node, above.child(side));
            if (children.from..children.to).all(is_final) {
                return Junction::Terminal(node.0);
            }
            if let Some((left, right)) = children.halves() {
                let below = |half, decision| Place {
                    decisions: decisions << 1 | decision,
                    node,
                    children: Some(half),
                };
                return Junction::Router {
                    regressor: children.router,
                    children: [below(left, 0), below(right, 1)],
                };
            }
            node = above.child(children.from);
            known = None;
        }
    }

    fn regressors(&self) -> &Regressors {
        &self.routers
    }

    /// By the scores as they are, which tell another side only while no -1 was ever learned.
    fn span(&self) -> Span {
        Span::UNBOUNDED
    }
}
