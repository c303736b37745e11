//! A tree that goes on learning, walked as its frozen form would be.
//!
//! Freezing costs as much as the tree is large. Where few rows are asked before learning goes on,
//! they walk the nodes as they lie, each router's score to the bit what it would be frozen.

use std::fmt::Debug;

use super::{FrozenRouters, Groups, NodeView, TopLevels, Walk};
use crate::linear::{Block, Regressors, Span};
use crate::simd::LANES;

/// What stands at a node.
#[derive(Debug, Clone, Copy)]
pub enum Junction<N> {
    /// A router.
    Router {
        /// The number of its regressor.
        regressor: u32,
        /// Left and right.
        children: [N; 2],
    },
    /// The end of the way, with its number.
    Terminal(u32),
}

/// A tree that learns, node by node as it would be frozen.
pub trait LearningTree {
    /// A node; ordered as [`Walk::Node`] where anything asks for the order.
    type Node: Copy + Ord + Debug;

    /// Where every way begins.
    fn root(&self) -> Self::Node;

    /// What stands at `node`.
    fn at(&self, node: Self::Node) -> Junction<Self::Node>;

    /// Fetches `node` ahead of its use, where nodes lie far apart.
    fn prefetch(&self, _node: Self::Node) {}

    /// The weights of all routers.
    fn regressors(&self) -> &Regressors;

    /// What scores are clamped to.
    fn span(&self) -> Span {
        self.regressors().span()
    }
}

/// A [`LearningTree`] to send rows through.
#[derive(Debug, Clone, Copy)]
pub struct LearningRouters<'a, T> {
    tree: &'a T,
    /// For the first nodes in breadth-first order, whose scores add up in an order of their own,
    /// the number of the left child; of terminals and of nodes that do not exist, 0.
    left: [u32; LANES],
    has_top: bool,
}

impl<'a, T: LearningTree> LearningRouters<'a, T> {
    /// The routers of `tree` as it is now.
    pub fn new(tree: &'a T) -> Self {
        let mut left = [0; LANES];
        let has_top = TopLevels::fits(tree.regressors().width());
        let mut first = [tree.root(); LANES];
        let mut n = 1;
        let mut at = 0;
        while has_top && at < n.min(LANES) {
            if let Junction::Router { children, .. } = tree.at(first[at]) {
                left[at] = n as u32;
                for child in children {
                    if let Some(place) = first.get_mut(n) {
                        *place = child;
                    }
                    n += 1;
                }
            }
            at += 1;
        }
        Self {
            tree,
            left,
            has_top,
        }
    }

    /// Padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        self.tree.regressors().width()
    }

    /// Row `i` of `block` alone.
    pub fn walk<'b>(&'b self, block: &'b Block, i: usize) -> LearningWalk<'b, T> {
        LearningWalk {
            routers: self,
            block,
            i,
            span: self.tree.span(),
        }
    }
}

/// Routers for prediction: frozen, or those of a tree that learns on.
#[derive(Debug, Clone, Copy)]
pub enum Routers<'a, T> {
    /// Frozen.
    Frozen(&'a FrozenRouters),
    /// As they are.
    Learning(LearningRouters<'a, T>),
}

impl<'a, T: LearningTree> Routers<'a, T> {
    /// The frozen ones if there are any.
    pub fn new(frozen: Option<&'a FrozenRouters>, tree: &'a T) -> Self {
        frozen.map_or_else(|| Self::Learning(LearningRouters::new(tree)), Self::Frozen)
    }

    /// Padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        match self {
            Self::Frozen(routers) => routers.width(),
            Self::Learning(routers) => routers.width(),
        }
    }

    /// Writes the number of the terminal that each row of `block` ends at.
    pub fn route(&self, block: &Block, scratch: &mut Groups, terminals: &mut [u32]) {
        match self {
            Self::Frozen(routers) => routers.route(block, scratch, terminals),
            Self::Learning(routers) => {
                for (i, terminal) in terminals.iter_mut().enumerate() {
                    *terminal = routers.walk(block, i).terminal();
                }
            }
        }
    }
}

/// One row at [`LearningRouters`].
#[derive(Debug)]
pub struct LearningWalk<'a, T> {
    routers: &'a LearningRouters<'a, T>,
    block: &'a Block,
    i: usize,
    span: Span,
}

/// A node of a [`LearningWalk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Numbered<N> {
    node: N,
    /// Breadth first, of those at the top; of others [`BELOW`].
    number: u32,
}

const BELOW: u32 = u32::MAX;

impl<T: LearningTree> Walk for LearningWalk<'_, T> {
    type Node = Numbered<T::Node>;

    fn root(&self) -> Self::Node {
        Numbered {
            node: self.routers.tree.root(),
            number: if self.routers.has_top { 0 } else { BELOW },
        }
    }

    #[inline]
    fn look(&self, at: Self::Node) -> NodeView<Self::Node> {
        let LearningRouters { tree, left, .. } = self.routers;
        match tree.at(at.node) {
            Junction::Terminal(number) => NodeView::Terminal(number),
            Junction::Router {
                regressor,
                children: [node_left, node_right],
            } => {
                tree.prefetch(node_left);
                tree.prefetch(node_right);
                let left = left.get(at.number as usize);
                let regressors = tree.regressors();
                let score = regressors.frozen_score(regressor, self.block, self.i, left.is_some());
                let numbered = |node, side| Numbered {
                    node,
                    number: left.map_or(BELOW, |left| left + side),
                };
                NodeView::Router {
                    score: self.span.clamp(score),
                    children: [numbered(node_left, 0), numbered(node_right, 1)],
                }
            }
        }
    }
}
