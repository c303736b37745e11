//! Best-first search for the most probable paths of a row.

use std::collections::BinaryHeap;

use super::frozen::FrozenTree;
use crate::linear::Block;
use crate::tree::{Branch, NodeView};

/// Expanded nodes per path and level, at most: where all paths are equally
/// probable, the search would look at most of the tree.
const EXPANSIONS: usize = 2;

/// Paths less than a tenth as probable as the best are left out: they change next to
/// nothing and cost as much as any.
const LEAST_LOG_PROBABILITY: f32 = -std::f32::consts::LN_10;

/// A score of 1, the target that a router learned, is a log-odds of this.
const STEEPNESS: f32 = 2.0;

/// The scratch space and the result of [`FrozenTree::beam`].
#[derive(Debug, Clone, Default)]
pub struct Beam {
    open: BinaryHeap<Branch>,
    /// Log-probability and terminal, the most probable first.
    pub paths: Vec<(f32, u32)>,
}

impl FrozenTree {
    /// The `n` most probable terminals for row `i` of `block`, with the logarithms of
    /// their probabilities by the routers' scores; the probability of several paths
    /// to one terminal is that of the most probable.
    ///
    /// The first is not always where the greedy path ends: a path of many near
    /// decisions may be less probable than another.
    pub fn beam(&self, block: &Block, i: usize, n: usize, beam: &mut Beam) {
        let Beam { open, paths } = beam;
        let walk = self.routers.walk(block, i);
        open.clear();
        paths.clear();
        let mut expansions = EXPANSIONS * n * (self.depth + 1);
        open.push(Branch::ROOT);
        while let Some(branch) = open.pop() {
            // Not -0.
            let log_p = 0.0 - branch.cost;
            let best = paths.first().map_or(f32::NEG_INFINITY, |&(best, _)| best);
            if log_p < best + LEAST_LOG_PROBABILITY {
                return;
            }
            match walk.look(branch.node) {
                NodeView::Terminal(terminal) => {
                    if !paths.iter().any(|&(_, known)| known == terminal) {
                        paths.push((log_p, terminal));
                    }
                    if paths.len() == n || expansions == 0 {
                        return;
                    }
                }
                NodeView::Router { score, left } => {
                    let children = branch.children(STEEPNESS * score, left);
                    if expansions == 0 {
                        // Greedily down from here.
                        open.clear();
                        open.extend(children.into_iter().max());
                    } else {
                        expansions -= 1;
                        open.extend(children);
                    }
                }
            }
        }
    }
}
