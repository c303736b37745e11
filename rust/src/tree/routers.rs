//! Routing of rows in prediction, through frozen routers or those of a tree that is still trained.
//!
//! A node either has a router, whose score chooses a child, or is a terminal. The learner defines
//! the meaning of a terminal's number, for example a label or the index of a leaf.
//!
//! A frozen tree has all weights in one array and children side by side; rows descend together,
//! level by level. Freezing is O(tree size). If only a few rows are predicted before the next
//! update, they use the nodes of the learner, whose scores equal the frozen ones to the bit.

use std::sync::OnceLock;

use super::upper::{UpperNodes, N_UPPER};
use super::{partition, Junction};
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::linear::{read_entries, AlignedRow, Block, Regressors, Slot, Span, Weights};
use crate::simd::LANES;

/// Buffers of [`FrozenRouters::route`]: the rows ordered by node, and the group of each node of a
/// level. Those of [`Subtrees::route`](super::Subtrees::route) follow.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    rows: Vec<u32>,
    spare: Vec<u32>,
    level: Vec<Group>,
    below: Vec<Group>,
    /// Scores of each row at the first nodes, if they have been computed together.
    top: Vec<[f32; LANES]>,
    /// Products of the rows at one node, or the weights of one router.
    pub(super) products: Vec<f32>,
    /// Subtrees and the rows that arrive there, in the lower half.
    pub(super) arrivals: Vec<u64>,
    pub(super) next_arrivals: Vec<u64>,
}

/// The rows at one node, as a range of the ordered rows.
#[derive(Debug, Clone, Copy)]
struct Group {
    node: u32,
    from: usize,
    to: usize,
}

/// Buffers for reading and routing rows. Allocating them takes longer than routing a single row.
#[derive(Debug, Clone, Default)]
pub struct RoutingMemory {
    /// Prepared rows.
    pub block: Block,
    /// Rows by node during routing.
    pub groups: Groups,
}

/// The nodes of a binary tree for prediction, numbered breadth first: node 0 is the root, and the
/// children of the routers come in pairs, in the order of their parents.
#[derive(Debug, Clone, Default)]
pub struct FrozenRouters {
    width: usize,
    span: Span,
    steps: Vec<Step>,
    /// Weight rows, concatenated; each begins a cache line.
    rows: AlignedRow<f32>,
    slots: Vec<Slot<f32>>,
    /// The weight rows of the first nodes again, side by side; empty if there are few. A sparse row
    /// reads one cache line per column for all of these nodes.
    top: AlignedRow<f32>,
    /// The tables of the upper nodes again, for searches.
    upper: OnceLock<UpperNodes>,
}

/// For smaller blocks, the upper nodes are not copied.
const LEAST_BLOCK: usize = 64;

/// Nodes to score together for each label of a search. With 64 to 512, five and 20 labels take about
/// as long.
const NODES_PER_LABEL: usize = 256;

/// One node.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Left child, which the right one follows; at a terminal, its number.
    next: u32,
    weights: Place,
}

/// Position of a node's weights.
#[derive(Debug, Clone, Copy)]
enum Place {
    Terminal,
    Row(usize),
    Table { from: usize, capacity: u32 },
}

impl FrozenRouters {
    /// Rows routed together: enough to share the weights of the upper nodes, few enough to stay in
    /// the cache.
    pub const BLOCK_ROWS: usize = 2048;

    /// Copies the routers of `tree`. `number` maps a terminal of the tree to its number here.
    pub fn new<T: LearningTree>(
        tree: &T,
        control: &Control,
        mut number: impl FnMut(u32) -> u32,
    ) -> Result<Self> {
        let regressors = tree.regressors();
        let mut nodes = vec![tree.root()];
        let (mut at, mut n_slots) = (0, 0);
        while at < nodes.len() {
            if let Junction::Router { router, children } = tree.at(nodes[at]) {
                nodes.extend(children);
                n_slots += regressors.n_slots(router);
            }
            at += 1;
        }
        let mut frozen = Self {
            width: regressors.width(),
            span: tree.span(),
            steps: Vec::with_capacity(nodes.len()),
            slots: Vec::with_capacity(n_slots),
            ..Self::default()
        };
        let mut next = 1;
        for (at, node) in nodes.into_iter().enumerate() {
            if at.is_multiple_of(Control::CHUNK) {
                control.check()?;
            }
            let step = match tree.at(node) {
                Junction::Terminal(terminal) => Step {
                    next: number(terminal),
                    weights: Place::Terminal,
                },
                Junction::Router { router, .. } => {
                    let weights = frozen.copy(&regressors.plain(router));
                    next += 2;
                    Step {
                        next: next - 2,
                        weights,
                    }
                }
            };
            frozen.steps.push(step);
        }
        frozen.copy_top();
        Ok(frozen)
    }

    fn copy_top(&mut self) {
        // With few rows, the copies would take much memory for little time.
        if self.width * LANES > 4 * self.rows.len() {
            return;
        }
        self.top = AlignedRow::new(self.width * LANES);
        let (columns, _) = self.top.as_chunks_mut::<LANES>();
        for (lane, step) in self.steps.iter().enumerate().take(LANES) {
            if let Place::Row(at) = step.weights {
                let weights = columns.iter_mut().zip(&self.rows[at..]);
                weights.for_each(|(column, &weight)| column[lane] = weight);
            }
        }
    }

    fn copy(&mut self, weights: &Weights<f32>) -> Place {
        match weights {
            Weights::Row(row) => {
                let from = self.rows.len();
                self.rows.grow(row.len()).copy_from_slice(row);
                Place::Row(from)
            }
            Weights::Table(table) => {
                let from = self.slots.len();
                self.slots.extend_from_slice(table.slots());
                Place::Table {
                    from,
                    capacity: table.slots().len() as u32,
                }
            }
        }
    }

    fn upper(&self) -> &UpperNodes {
        self.upper.get_or_init(|| {
            let slots = |step: &Step| match step.weights {
                Place::Table { from, capacity } => &self.slots[from..from + capacity as usize],
                Place::Row(_) | Place::Terminal => &[],
            };
            let steps = &self.steps[..self.steps.len().min(N_UPPER)];
            let n_slots = steps.iter().map(|step| slots(step).len()).sum();
            let (mut nodes, mut found) = (Ragged::with_capacity(steps.len(), n_slots), Vec::new());
            for step in steps {
                read_entries(slots(step), &mut found);
                nodes.push(found.iter().copied());
            }
            UpperNodes::new(&nodes, self.width)
        })
    }

    /// Returns the padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        self.width
    }

    /// Routes all rows of `block` together, and writes the number of each row's terminal.
    pub fn route(&self, block: &Block, scratch: &mut Groups, terminals: &mut [u32]) {
        let Groups {
            rows,
            spare,
            level,
            below,
            top,
            products,
            ..
        } = scratch;
        let goes_left = |score| self.span.clamp(score) < 0.0;
        top.clear();
        if !self.top.is_empty() && block.is_sparse() {
            // To the bit the scores of `dot_row`.
            let columns = self.top.as_chunks().0;
            top.extend((0..block.len()).map(|row| block.dot_lanes(row, columns)));
        }
        rows.clear();
        rows.extend(0..block.len() as u32);
        level.clear();
        let (node, from, to) = (0, 0, rows.len());
        level.push(Group { node, from, to });
        while !level.is_empty() {
            below.clear();
            for &Group { node, from, to } in &*level {
                let step = self.steps[node as usize];
                let here = &mut rows[from..to];
                let middle = match step.weights {
                    Place::Terminal => {
                        for &row in &*here {
                            terminals[row as usize] = step.next;
                        }
                        continue;
                    }
                    Place::Row(at) => {
                        let weights = &self.rows[at..at + self.width];
                        if block.dot_rows(here, weights, products) {
                            let mut scores = products.iter().copied();
                            partition(here, spare, |_| scores.next().is_some_and(goes_left))
                        } else {
                            let score = |row| match top.get(row as usize) {
                                Some(scores) if (node as usize) < LANES => scores[node as usize],
                                _ => block.dot_row(row as usize, weights),
                            };
                            partition(here, spare, |row| goes_left(score(row)))
                        }
                    }
                    Place::Table { from: at, capacity } => {
                        let slots = &self.slots[at..at + capacity as usize];
                        let score = |row| block.dot_slots(row as usize, slots);
                        partition(here, spare, |row| goes_left(score(row)))
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

    /// Returns the terminal at `node`, or the router's score for row `i` of `block`: to the bit the
    /// score that [`route`](Self::route) uses, times `scale`. `scores` are those of the upper
    /// tables, or empty.
    fn look(
        &self,
        block: &Block,
        i: usize,
        scores: &[f32],
        scale: f32,
        node: u32,
    ) -> Junction<f32> {
        let step = self.steps[node as usize];
        let score = match step.weights {
            Place::Terminal => return Junction::Terminal(step.next),
            Place::Row(at) => block.dot_row(i, &self.rows[at..at + self.width]),
            Place::Table { .. } if (node as usize) < scores.len() => scores[node as usize],
            Place::Table { from, capacity } => {
                // A search opens about every other node that it reaches.
                for child in &self.steps[step.next as usize..][..2] {
                    if let Place::Table { from, capacity } = child.weights {
                        block.prefetch_slots(i, &self.slots[from..from + capacity as usize]);
                    }
                }
                block.dot_slots(i, &self.slots[from..from + capacity as usize])
            }
        };
        Junction::Router {
            router: scale * self.span.clamp(score),
            children: [step.next, step.next + 1],
        }
    }
}

/// A tree in training, as predictions see it.
pub trait LearningTree {
    /// Returns the root.
    fn root(&self) -> u32 {
        0
    }

    /// Returns the terminal at `node`, or the number of its regressor.
    fn at(&self, node: u32) -> Junction<u32>;

    /// Returns the weights of all routers.
    fn regressors(&self) -> &Regressors;

    /// Returns the span that scores are clamped to.
    fn span(&self) -> Span {
        self.regressors().span()
    }
}

/// Routers for prediction.
#[derive(Debug, Clone, Copy)]
pub enum Routers<'a, T> {
    /// The frozen form of a tree.
    Frozen(&'a FrozenRouters),
    /// The tree itself.
    Learning(&'a T),
}

impl<'a, T: LearningTree> Routers<'a, T> {
    /// Returns the frozen routers if there are any.
    pub fn new(frozen: Option<&'a FrozenRouters>, tree: &'a T) -> Self {
        frozen.map_or(Self::Learning(tree), Self::Frozen)
    }

    /// Returns the padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        match self {
            Self::Frozen(routers) => routers.width(),
            Self::Learning(tree) => tree.regressors().width(),
        }
    }

    /// Returns the root.
    pub fn root(&self) -> u32 {
        match self {
            Self::Frozen(_) => 0,
            Self::Learning(tree) => tree.root(),
        }
    }

    /// Returns a function from a node to its terminal, or to the router's score for row `i` of
    /// `block`, times `scale`.
    pub fn look<'b>(
        &'b self,
        block: &'b Block,
        i: usize,
        scale: f32,
    ) -> impl Fn(u32) -> Junction<f32> + use<'a, 'b, T> {
        self.look_with(block, i, scale, &[])
    }

    /// Returns the function of [`look`](Self::look) for a search for `k` labels, which scores the
    /// upper nodes of a larger block together.
    pub fn look_for<'b>(
        &'b self,
        k: usize,
        block: &'b Block,
        i: usize,
        scale: f32,
        scores: &'b mut Vec<f32>,
    ) -> impl Fn(u32) -> Junction<f32> + use<'a, 'b, T> {
        scores.clear();
        if let Self::Frozen(routers) = self {
            if block.len() >= LEAST_BLOCK || routers.upper.get().is_some() {
                let n = NODES_PER_LABEL.saturating_mul(k).min(N_UPPER);
                let n = n.min(routers.steps.len());
                routers.upper().score(block, i, n, scores);
            }
        }
        self.look_with(block, i, scale, scores)
    }

    fn look_with<'b>(
        &'b self,
        block: &'b Block,
        i: usize,
        scale: f32,
        scores: &'b [f32],
    ) -> impl Fn(u32) -> Junction<f32> + use<'a, 'b, T> {
        move |node| match self {
            Self::Frozen(routers) => routers.look(block, i, scores, scale, node),
            Self::Learning(tree) => match tree.at(node) {
                Junction::Terminal(number) => Junction::Terminal(number),
                Junction::Router { router, children } => {
                    let score = tree.regressors().frozen_score(router, block, i);
                    let router = scale * tree.span().clamp(score);
                    Junction::Router { router, children }
                }
            },
        }
    }

    /// Writes the number of the terminal that each row of `block` reaches.
    pub fn route(&self, block: &Block, scratch: &mut Groups, terminals: &mut [u32]) {
        if let Self::Frozen(routers) = self {
            return routers.route(block, scratch, terminals);
        }
        for (i, terminal) in terminals.iter_mut().enumerate() {
            let look = self.look(block, i, 1.0);
            let mut node = self.root();
            *terminal = loop {
                match look(node) {
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
