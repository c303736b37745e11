//! The balanced tree: where each label's leaf is, and the way up from it.
//!
//! Labels stand in a row; a node over n > 1 of them has the first ceil(n/2) on its
//! left. So every leaf is ceil(log2 K) or one less deep, and neighbours in the row
//! are neighbours in the tree.

use std::collections::VecDeque;
use std::ops::Range;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::LabelOrder;
use crate::data::Batch;

/// A side of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where scores below 0 go.
    Left,
    /// Where other scores go.
    Right,
}

impl Side {
    /// What a router learns that is to send there.
    #[inline]
    pub fn target(self) -> f32 {
        match self {
            Self::Left => -1.0,
            Self::Right => 1.0,
        }
    }

    /// Whether a router with this score sends there.
    #[inline]
    pub fn is_chosen_by(self, score: f32) -> bool {
        (score < 0.0) == (self == Self::Left)
    }
}

/// The step up from a node: the router above and the side of it that the node
/// is on, in one word; nothing at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Up(u32);

impl Up {
    const ROOT: Self = Self(u32::MAX);

    fn new(router: u32, side: Side) -> Self {
        Self(router << 1 | u32::from(side == Side::Right))
    }

    /// The router above and the side.
    #[inline]
    pub fn step(self) -> Option<(u32, Side)> {
        let side = if self.0 & 1 == 1 {
            Side::Right
        } else {
            Side::Left
        };
        (self != Self::ROOT).then_some((self.0 >> 1, side))
    }
}

/// A node over the labels at some places of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The places.
    pub places: Range<usize>,
    /// The step up.
    pub up: Up,
    /// Steps from the root.
    pub depth: u32,
}

/// Routers are numbered breadth first among routers; the root is 0.
#[derive(Debug, Clone)]
pub struct Layout {
    order: Vec<u32>,
    from_label: Vec<Up>,
    from_router: Vec<Up>,
}

impl Layout {
    /// The tree over labels in this order, a permutation of 0..K.
    pub fn new(order: Vec<u32>) -> Self {
        let mut from_label = vec![Up::ROOT; order.len()];
        let mut from_router = Vec::with_capacity(order.len().saturating_sub(1));
        for node in breadth_first(order.len()) {
            if node.places.len() == 1 {
                from_label[order[node.places.start] as usize] = node.up;
            } else {
                from_router.push(node.up);
            }
        }
        Self {
            order,
            from_label,
            from_router,
        }
    }

    /// The labels from left to right.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Number of routers, one less than labels.
    pub fn n_routers(&self) -> usize {
        self.from_router.len()
    }

    /// The step up from a label's leaf.
    #[inline]
    pub fn from_label(&self, label: u32) -> Up {
        self.from_label[label as usize]
    }

    /// The step up from a router.
    #[inline]
    pub fn from_router(&self, router: u32) -> Up {
        self.from_router[router as usize]
    }

    /// All nodes, level by level, from left to right.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        breadth_first(self.order.len())
    }
}

/// The places of the two children; none of a leaf.
pub(super) fn halves(places: &Range<usize>) -> Option<[Range<usize>; 2]> {
    let Range { start, end } = *places;
    let middle = end - (end - start) / 2;
    (end - start > 1).then_some([start..middle, middle..end])
}

/// Nodes of the balanced tree over `n` places.
fn breadth_first(n: usize) -> impl Iterator<Item = Node> {
    let mut waiting = VecDeque::from([Node {
        places: 0..n,
        up: Up::ROOT,
        depth: 0,
    }]);
    let mut routers = 0..;
    std::iter::from_fn(move || {
        let node = waiting.pop_front()?;
        if let Some([left, right]) = halves(&node.places) {
            let router = routers.next()?;
            for (places, side) in [(left, Side::Left), (right, Side::Right)] {
                waiting.push_back(Node {
                    places,
                    up: Up::new(router, side),
                    depth: node.depth + 1,
                });
            }
        }
        Some(node)
    })
}

impl LabelOrder {
    /// The `n` labels from left to right; frequencies are those in `batch`, by importance.
    pub(super) fn arrange(self, batch: &Batch<'_>, n: usize, seed: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        match self {
            Self::Given => {}
            Self::Random => {
                // Not the stream that shuffles the examples.
                let seed = seed ^ 0x9E37_79B9_7F4A_7C15;
                order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
            }
            Self::Frequency => {
                let mut weights = vec![0.0; n];
                for (i, &label) in batch.labels().iter().enumerate() {
                    weights[label as usize] += f64::from(batch.weight(i));
                }
                let weight = |label: u32| weights[label as usize];
                // Stable: of equals the lower label stays first.
                order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
            }
        }
        order
    }
}
