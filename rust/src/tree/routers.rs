//! Routers as prediction walks them: frozen, or those of a tree that goes on learning.
//!
//! Each node either asks its router for the side to go on, or is a terminal, where the way ends
//! with a number that means what its learner says: a label, a leaf's place in an array.
//!
//! A frozen tree has all weights in one array, children side by side, and sends rows down
//! together, level by level. Freezing is O(tree size). Where few rows are predicted before
//! learning goes on, they walk the nodes as they lie, each router's score to the bit what it would
//! be frozen.

use super::{partition, Junction};
use crate::control::Control;
use crate::error::Result;
use crate::linear::{AlignedRow, Block, Regressors, Slot, Span, Weights};
use crate::simd::prefetch;

/// How many groups ahead a node's weights are prefetched.
const PREFETCH_DISTANCE: usize = 2;

/// Groups of more rows than this give the memory time enough without.
const MAX_PREFETCHED_ROWS: usize = 8;

/// What [`FrozenRouters::route`] works in: rows ordered by the node they are at,
/// and for each node of a level which of them.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    rows: Vec<u32>,
    spare: Vec<u32>,
    level: Vec<Group>,
    below: Vec<Group>,
}

/// The rows at one node, by their places among the ordered ones.
#[derive(Debug, Clone, Copy)]
struct Group {
    node: u32,
    from: usize,
    to: usize,
}

/// What rows are read into and routed in. To make it takes longer than to route a single row.
#[derive(Debug, Clone, Default)]
pub struct RoutingMemory {
    /// The rows.
    pub block: Block,
    /// Where they are on their way.
    pub groups: Groups,
}

/// The nodes of a binary tree that no longer learns, numbered breadth first: node 0
/// is the root, and the children of the routers come in pairs, in the order of
/// their parents.
#[derive(Debug, Clone, Default)]
pub struct FrozenRouters {
    width: usize,
    span: Span,
    steps: Vec<Step>,
    /// End to end, each of which begins a cache line.
    rows: AlignedRow<f32>,
    slots: Vec<Slot<f32>>,
}

/// One node. `weights` says where they lie; a terminal has none.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Left child, the right one follows it; of a terminal, its number.
    next: u32,
    weights: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Terminal,
    Row(usize),
    Table { from: usize, capacity: u32 },
}

impl FrozenRouters {
    /// Rows to send down at once: enough that the upper nodes are shared by
    /// many, few enough to stay in the cache.
    pub const BLOCK_ROWS: usize = 2048;

    /// The routers of `tree`; `number` says which number the next terminal gets.
    pub fn new<T: LearningTree>(
        tree: &T,
        control: &Control,
        mut number: impl FnMut(u32) -> u32,
    ) -> Result<Self> {
        let mut frozen = Self {
            width: tree.regressors().width(),
            span: tree.span(),
            ..Self::default()
        };
        let mut nodes = vec![tree.root()];
        let mut at = 0;
        while at < nodes.len() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            let step = match tree.at(nodes[at]) {
                Junction::Terminal(terminal) => Step {
                    next: number(terminal),
                    weights: Place::Terminal,
                },
                Junction::Router { router, children } => {
                    let next = nodes.len() as u32;
                    nodes.extend(children);
                    let weights = frozen.copy(tree.regressors().plain(router));
                    Step { next, weights }
                }
            };
            frozen.steps.push(step);
            at += 1;
        }
        Ok(frozen)
    }

    fn copy(&mut self, weights: Weights<f32>) -> Place {
        match weights {
            Weights::Row(row) => {
                let from = self.rows.len();
                self.rows.grow(row.len()).copy_from_slice(&row);
                Place::Row(from)
            }
            Weights::Table(table) => {
                let from = self.slots.len();
                self.slots.extend(table.slots().iter().copied());
                Place::Table {
                    from,
                    capacity: table.capacity() as u32,
                }
            }
        }
    }

    /// Padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        self.width
    }

    /// Sends all rows of `block` down together and writes the number of the
    /// terminal that each ends at.
    pub fn route(&self, block: &Block, scratch: &mut Groups, terminals: &mut [u32]) {
        let Groups {
            rows,
            spare,
            level,
            below,
        } = scratch;
        let goes_left = |score| self.span.clamp(score) < 0.0;
        rows.clear();
        rows.extend(0..block.len() as u32);
        level.clear();
        let (node, from, to) = (0, 0, rows.len());
        level.push(Group { node, from, to });
        while !level.is_empty() {
            below.clear();
            for (at, &Group { node, from, to }) in level.iter().enumerate() {
                if let Some(ahead) = level.get(at + PREFETCH_DISTANCE) {
                    if ahead.to - ahead.from <= MAX_PREFETCHED_ROWS {
                        self.prefetch(ahead.node);
                    }
                }
                let step = self.steps[node as usize];
                let middle = match step.weights {
                    Place::Terminal => {
                        for &row in &rows[from..to] {
                            terminals[row as usize] = step.next;
                        }
                        continue;
                    }
                    Place::Row(at) => {
                        let weights = &self.rows[at..at + self.width];
                        let score = |row| block.dot_row(row as usize, weights);
                        partition(&mut rows[from..to], spare, |row| goes_left(score(row)))
                    }
                    Place::Table { from: at, capacity } => {
                        let slots = &self.slots[at..at + capacity as usize];
                        let score = |row| block.dot_slots(row as usize, slots);
                        partition(&mut rows[from..to], spare, |row| goes_left(score(row)))
                    }
                };
                let middle = from + middle;
                for (node, from, to) in [(step.next, from, middle), (step.next + 1, middle, to)] {
                    if from < to {
                        below.push(Group { node, from, to });
                    }
                }
            }
            std::mem::swap(level, below);
        }
    }

    fn prefetch(&self, node: u32) {
        const FLOATS_PER_LINE: usize = 16;
        if let Place::Row(at) = self.steps[node as usize].weights {
            self.rows[at..at + self.width]
                .iter()
                .step_by(FLOATS_PER_LINE)
                .for_each(prefetch);
        }
    }

    /// What row `i` of `block` finds at `node`, to the last bit the score that
    /// [`route`](Self::route) goes by.
    pub fn look(&self, block: &Block, i: usize, node: u32) -> Junction<f32> {
        let step = self.steps[node as usize];
        let score = match step.weights {
            Place::Terminal => return Junction::Terminal(step.next),
            Place::Row(at) => block.dot_row(i, &self.rows[at..at + self.width]),
            Place::Table { from, capacity } => {
                block.dot_slots(i, &self.slots[from..from + capacity as usize])
            }
        };
        Junction::Router {
            router: self.span.clamp(score),
            children: [step.next, step.next + 1],
        }
    }
}

/// A tree that learns, node by node as it would be frozen.
pub trait LearningTree {
    /// Where every way begins.
    fn root(&self) -> u32;

    /// What stands at `node`.
    fn at(&self, node: u32) -> Junction<u32>;

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
    /// As they are.
    Learning(&'a T),
}

impl<'a, T: LearningTree> Routers<'a, T> {
    /// The frozen ones if there are any.
    pub fn new(frozen: Option<&'a FrozenRouters>, tree: &'a T) -> Self {
        frozen.map_or(Self::Learning(tree), Self::Frozen)
    }

    /// Padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        match self {
            Self::Frozen(routers) => routers.width(),
            Self::Learning(tree) => tree.regressors().width(),
        }
    }

    /// Where every way begins.
    pub fn root(&self) -> u32 {
        match self {
            Self::Frozen(_) => 0,
            Self::Learning(tree) => tree.root(),
        }
    }

    /// What row `i` of `block` finds at any node.
    pub fn look<'b>(
        &'b self,
        block: &'b Block,
        i: usize,
    ) -> impl Fn(u32) -> Junction<f32> + use<'a, 'b, T> {
        move |node| match self {
            Self::Frozen(routers) => routers.look(block, i, node),
            Self::Learning(tree) => look(*tree, block, i, node),
        }
    }

    /// Writes the number of the terminal that each row of `block` ends at.
    pub fn route(&self, block: &Block, scratch: &mut Groups, terminals: &mut [u32]) {
        let tree = match self {
            Self::Frozen(routers) => return routers.route(block, scratch, terminals),
            Self::Learning(tree) => *tree,
        };
        for (i, terminal) in terminals.iter_mut().enumerate() {
            let mut node = tree.root();
            *terminal = loop {
                match look(tree, block, i, node) {
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

/// What row `i` of `block` finds at `node`.
fn look<T: LearningTree>(tree: &T, block: &Block, i: usize, node: u32) -> Junction<f32> {
    match tree.at(node) {
        Junction::Terminal(number) => Junction::Terminal(number),
        Junction::Router { router, children } => {
            let score = tree.regressors().frozen_score(router, block, i);
            Junction::Router {
                router: tree.span().clamp(score),
                children,
            }
        }
    }
}
