//! Routers for prediction: frozen, or those of a tree that goes on learning.
//!
//! Freezing costs as much as the tree is large. Where few rows are asked before learning goes on,
//! they walk the nodes as they lie, each router's score to the bit what it would be frozen.

use super::frozen::TopLevels;
use super::{FrozenRouters, Groups, Junction};
use crate::linear::{Block, Regressors, Span};
use crate::simd::LANES;

/// A tree that learns, node by node as it would be frozen.
pub trait LearningTree {
    /// Where every way begins.
    fn root(&self) -> u32;

    /// What stands at `node`.
    fn at(&self, node: u32) -> Junction<u32>;

    /// Fetches `node` ahead of its use, where nodes lie far apart.
    fn prefetch(&self, _node: u32) {}

    /// The weights of all routers.
    fn regressors(&self) -> &Regressors;

    /// What scores are clamped to.
    fn span(&self) -> Span {
        self.regressors().span()
    }
}

/// Routers to send rows through.
#[derive(Debug, Clone, Copy)]
pub enum Routers<'a, T> {
    /// Frozen.
    Frozen(&'a FrozenRouters),
    /// As they are, with the first nodes in breadth-first order: their scores add up in an order
    /// of their own.
    Learning(&'a T, [u32; LANES]),
}

impl<'a, T: LearningTree> Routers<'a, T> {
    /// The frozen ones if there are any.
    pub fn new(frozen: Option<&'a FrozenRouters>, tree: &'a T) -> Self {
        frozen.map_or_else(|| Self::Learning(tree, first_nodes(tree)), Self::Frozen)
    }

    /// Padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        match self {
            Self::Frozen(routers) => routers.width(),
            Self::Learning(tree, _) => tree.regressors().width(),
        }
    }

    /// Where every way begins.
    pub fn root(&self) -> u32 {
        match self {
            Self::Frozen(_) => 0,
            Self::Learning(tree, _) => tree.root(),
        }
    }

    /// What row `i` of `block` finds at any node.
    pub fn look<'b>(
        &'b self,
        block: &'b Block,
        i: usize,
    ) -> impl Fn(u32) -> Junction<f32> + use<'a, 'b, T> {
        let top_scores = match self {
            Self::Frozen(routers) => routers.top_scores(block, i),
            Self::Learning(..) => None,
        };
        move |node| match self {
            Self::Frozen(routers) => routers.look(block, i, top_scores.as_ref(), node),
            Self::Learning(tree, first) => look(*tree, first.contains(&node), block, i, node),
        }
    }

    /// Writes the number of the terminal that each row of `block` ends at.
    pub fn route(&self, block: &Block, scratch: &mut Groups, terminals: &mut [u32]) {
        let (tree, first) = match self {
            Self::Frozen(routers) => return routers.route(block, scratch, terminals),
            Self::Learning(tree, first) => (*tree, first),
        };
        for (i, terminal) in terminals.iter_mut().enumerate() {
            let mut node = tree.root();
            *terminal = loop {
                match look(tree, first.contains(&node), block, i, node) {
                    Junction::Terminal(number) => break number,
                    Junction::Router {
                        router: score,
                        children: [left, right],
                    } => node = if score < 0.0 { left } else { right },
                }
            };
        }
    }
}

/// What row `i` of `block` finds at `node`, which is among the first or not.
fn look<T: LearningTree>(
    tree: &T,
    at_top: bool,
    block: &Block,
    i: usize,
    node: u32,
) -> Junction<f32> {
    match tree.at(node) {
        Junction::Terminal(number) => Junction::Terminal(number),
        Junction::Router { router, children } => {
            children.iter().for_each(|&child| tree.prefetch(child));
            let score = tree.regressors().frozen_score(router, block, i, at_top);
            Junction::Router {
                router: tree.span().clamp(score),
                children,
            }
        }
    }
}

/// The first nodes in breadth-first order; none where a frozen tree has no top levels.
fn first_nodes<T: LearningTree>(tree: &T) -> [u32; LANES] {
    let mut first = [u32::MAX; LANES];
    if !TopLevels::fits(tree.regressors().width()) {
        return first;
    }
    first[0] = tree.root();
    let mut n = 1;
    for at in 0..LANES {
        if at >= n {
            break;
        }
        if let Junction::Router { children, .. } = tree.at(first[at]) {
            for child in children {
                if let Some(place) = first.get_mut(n) {
                    *place = child;
                    n += 1;
                }
            }
        }
    }
    first
}
