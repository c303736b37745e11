//! The tree as prediction walks it: routers alone, and where the way may end.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::routing::Choice;
use super::{Arena, Tree};
use crate::control::Control;
use crate::error::Result;
use crate::linear::Block;
use crate::tree::{FrozenRouters, NodeId, NodeView};

/// Routers whose terminals are numbers of [`Ends`].
#[derive(Debug, Clone)]
pub struct FrozenTree {
    pub(super) routers: FrozenRouters,
    pub(super) ends: Ends,
    /// Routers on the longest way, about.
    depth: usize,
}

/// Nodes that a way may end at. The way to a child whose bound is no better ends
/// at the parent, so that several ways may end at one node.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    nodes: Vec<NodeId>,
    /// Where each node's candidates start, and the end of the last.
    starts: Vec<usize>,
    labels: Vec<u32>,
}

impl Ends {
    /// The candidates at an end, most frequent first.
    #[inline]
    pub fn candidates(&self, end: u32) -> &[u32] {
        let end = end as usize;
        &self.labels[self.starts[end]..self.starts[end + 1]]
    }

    /// The node.
    pub fn node(&self, end: u32) -> NodeId {
        self.nodes[end as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    fn push(&mut self, id: NodeId, candidates: &[u32]) -> u32 {
        self.nodes.push(id);
        self.labels.extend_from_slice(candidates);
        self.starts.push(self.labels.len());
        self.len() as u32 - 1
    }
}

/// What stands where in the frozen tree.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The way ends at this node.
    End(NodeId),
    /// A router of this node, with what it decides.
    Router(NodeId, Choice),
}

impl Tree {
    /// Makes the tree that prediction walks. Costs as much as the tree is large.
    pub fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        let mut frozen = FrozenTree {
            routers: FrozenRouters::new(&self.routers).unclamped(),
            ends: Ends {
                starts: vec![0],
                ..Ends::default()
            },
            depth: self.max_depth as usize * self.arena.arity().ilog2() as usize,
        };
        let mut number_of = vec![u32::MAX; self.arena.nodes.len()];
        let mut queue = VecDeque::from([self.place(Arena::ROOT)]);
        let (mut n, mut path, mut candidates) = (0, Vec::new(), Vec::new());
        let mut marks = self.marks.clone();
        while let Some(place) = queue.pop_front() {
            if n % Control::CHUNK == 0 {
                control.check()?;
            }
            n += 1;
            match place {
                Place::End(id) => {
                    let number = &mut number_of[id.at()];
                    if *number == u32::MAX {
                        self.arena.path_to(id, &mut path);
                        self.gather(&path, &mut marks, &mut candidates);
                        *number = frozen.ends.push(id, &candidates);
                    }
                    frozen.routers.push_terminal(*number);
                }
                Place::Router(id, choice) => {
                    let weights = self.routers.plain(choice.router);
                    frozen.routers.push_router(weights);
                    for half in choice.halves().into_iter().flat_map(<[Choice; 2]>::from) {
                        queue.push_back(self.below(id, half));
                    }
                }
            }
        }
        Ok(frozen)
    }

    /// What stands at a node.
    fn place(&self, id: NodeId) -> Place {
        if self.is_internal(id) {
            self.below(id, self.choice(id))
        } else {
            Place::End(id)
        }
    }

    /// What stands where `choice` is left to be decided at a node.
    fn below(&self, id: NodeId, choice: Choice) -> Place {
        let node = self.arena.node(id);
        if (choice.from..choice.to).all(|side| self.is_end(id, node.child(side))) {
            return Place::End(id);
        }
        match choice.halves() {
            Some(_) => Place::Router(id, choice),
            None => self.place(node.child(choice.from)),
        }
    }
}

impl FrozenTree {
    /// The most probable ends for row `i` of `block`, `n` at most, and the logarithm
    /// of their probability, as their routers' scores tell it; several ways to one
    /// end count as the most probable of them.
    ///
    /// The first is not always the end of the greedy way: a way of many near
    /// decisions may lose to another.
    pub fn beam(&self, block: &Block, i: usize, n: usize, beam: &mut Beam) {
        let Beam { open, ends } = beam;
        let walk = self.routers.walk(block, i);
        open.clear();
        ends.clear();
        let mut openings = PATIENCE * n * (self.depth + 1);
        open.push(Open(0.0, 0));
        while let Some(Open(log_p, node)) = open.pop() {
            if ends.first().is_some_and(|&(best, _)| log_p < best + LEAST) {
                return;
            }
            match walk.look(node) {
                NodeView::Terminal(end) => {
                    if !ends.iter().any(|&(_, known)| known == end) {
                        ends.push((log_p, end));
                    }
                    if ends.len() == n || openings == 0 {
                        return;
                    }
                }
                NodeView::Router { score, left } => {
                    let (to_left, to_right) = log_chances(score);
                    let ways = [
                        Open(log_p + to_left, left),
                        Open(log_p + to_right, left + 1),
                    ];
                    if openings == 0 {
                        // Straight down from here.
                        open.clear();
                        open.extend(ways.into_iter().max());
                    } else {
                        openings -= 1;
                        open.extend(ways);
                    }
                }
            }
        }
    }
}

/// Nodes that may be opened for each way wanted and each level: where all ways are
/// alike, the search would look at most of the tree.
const PATIENCE: usize = 2;

/// A node that a way has come to: the logarithm of its probability first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Open(f32, u32);

impl Eq for Open {}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What [`FrozenTree::beam`] works in, and finds.
#[derive(Debug, Clone, Default)]
pub struct Beam {
    open: BinaryHeap<Open>,
    /// Log-probability and end, the most probable first.
    pub ends: Vec<(f32, u32)>,
}

/// Logarithm of a tenth: ways less probable than this, compared with the most
/// probable, change next to nothing and cost as much as any.
const LEAST: f32 = -std::f32::consts::LN_10;

/// A router's score of 1 means that it is as sure as it wants to be.
const STEEPNESS: f32 = 2.0;

/// Logarithms of the chances of left and right, by the logistic of the score.
fn log_chances(score: f32) -> (f32, f32) {
    let log_sigmoid = |x: f32| -((-x.abs()).exp().ln_1p() + (-x).max(0.0));
    let x = STEEPNESS * score;
    (log_sigmoid(-x), log_sigmoid(x))
}
