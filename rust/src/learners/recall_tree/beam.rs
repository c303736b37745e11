//! Best-first search for the most probable paths of a row.

use std::collections::BinaryHeap;

use crate::tree::{Branch, NodeView, Walk};

/// Expanded nodes per path and level, at most: where all paths are equally
/// probable, the search would look at most of the tree.
const EXPANSIONS: usize = 2;

/// Paths less than a tenth as probable as the best are left out: they change next to
/// nothing and cost as much as any.
const LEAST_LOG_PROBABILITY: f32 = -std::f32::consts::LN_10;

/// A score of 1, the target that a router learned, is a log-odds of this.
const STEEPNESS: f32 = 2.0;

/// A search for the most probable paths, made again and again.
#[derive(Debug, Clone)]
pub struct Beam<N>(BinaryHeap<Branch<N>>);

impl<N: Ord> Default for Beam<N> {
    fn default() -> Self {
        Self(BinaryHeap::new())
    }
}

impl<N: Copy + Ord> Beam<N> {
    /// Writes the `n` most probable terminals of a row to `paths`, with the logarithms of
    /// their probabilities by the routers' scores, the most probable first; the probability of
    /// several paths to one terminal is that of the most probable. `depth`: routers on the
    /// longest path, about.
    ///
    /// The first is not always where the greedy path ends: a path of many near
    /// decisions may be less probable than another.
    pub fn search(
        &mut self,
        walk: &impl Walk<Node = N>,
        (n, depth): (usize, usize),
        paths: &mut Vec<(f32, u32)>,
    ) {
        let Self(open) = self;
        open.clear();
        paths.clear();
        let mut expansions = EXPANSIONS * n * (depth + 1);
        open.push(Branch::root(walk.root()));
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
                NodeView::Router { score, children } => {
                    let children = branch.children(STEEPNESS * score, children);
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
