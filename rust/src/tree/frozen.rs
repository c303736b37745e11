//! Routers as prediction walks them: all weights in one array, children side
//! by side, and rows sent down together, level by level.
//!
//! This is the half of a frozen tree that trees have in common: each node either
//! asks its router for the side to go on, or is a terminal, where the way ends with
//! a number that means what its learner says: a label, a leaf's place in an array.

use super::Junction;
use crate::linear::{AlignedRow, Block, Regressors, Slot, Span, Weights};
use crate::simd::{prefetch, LANES};

/// How many groups ahead a node's weights are asked for.
const AHEAD: usize = 2;

/// Groups of more rows than this are work enough without.
const FEW: usize = 8;

/// What [`FrozenRouters::route`] works in: rows ordered by the node they are at,
/// and for each node of a level which of them.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    rows: Vec<u32>,
    spare: Vec<u32>,
    level: Vec<(u32, usize, usize)>,
    below: Vec<(u32, usize, usize)>,
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
/// their parents. Nodes are pushed in that order.
#[derive(Debug, Clone, Default)]
pub struct FrozenRouters {
    width: usize,
    span: Span,
    /// The first nodes, once more.
    top: TopLevels,
    steps: Vec<Step>,
    /// Where the children of the next router will be.
    next_pair: u32,
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
    pub const BLOCK: usize = 2048;

    /// No nodes yet; their weights will be those of `regressors`.
    pub fn new(regressors: &Regressors) -> Self {
        Self {
            width: regressors.width(),
            span: regressors.span(),
            top: TopLevels::new(regressors.width()),
            next_pair: 1,
            ..Self::default()
        }
    }

    /// Goes by the scores as they are, which tell another side only while no -1
    /// was ever learned.
    #[must_use]
    pub fn unclamped(mut self) -> Self {
        self.span = Span::UNBOUNDED;
        self
    }

    /// The next node is a terminal with this number.
    pub fn push_terminal(&mut self, number: u32) {
        let weights = Place::Terminal;
        self.steps.push(Step {
            next: number,
            weights,
        });
    }

    /// The next node is a router. Returns the number of its left child, which
    /// must be pushed, and the right one after it, when it is its turn.
    pub fn push_router(&mut self, weights: Weights<f32>) -> u32 {
        self.top.set(self.steps.len(), &weights);
        let weights = match weights {
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
        };
        let left = self.next_pair;
        self.steps.push(Step {
            next: left,
            weights,
        });
        self.next_pair += 2;
        left
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
        self.start(block, rows, spare, level);
        while !level.is_empty() {
            below.clear();
            for (at, &(node, from, to)) in level.iter().enumerate() {
                if let Some(&(ahead, from, to)) = level.get(at + AHEAD) {
                    if to - from <= FEW {
                        self.prefetch(ahead);
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
                        self.divide(&mut rows[from..to], spare, |i| block.dot_row(i, weights))
                    }
                    Place::Table { from: at, capacity } => {
                        let slots = &self.slots[at..at + capacity as usize];
                        self.divide(&mut rows[from..to], spare, |i| block.dot_slots(i, slots))
                    }
                };
                let middle = from + middle;
                for (node, from, to) in [(step.next, from, middle), (step.next + 1, middle, to)] {
                    if from < to {
                        below.push((node, from, to));
                    }
                }
            }
            std::mem::swap(level, below);
        }
    }

    /// Takes all rows through the top levels and groups them by the node below it,
    /// where each of them goes on.
    fn start(
        &self,
        block: &Block,
        rows: &mut Vec<u32>,
        spare: &mut Vec<u32>,
        level: &mut Vec<(u32, usize, usize)>,
    ) {
        /// Children of the last of the top nodes come last.
        const BELOW: usize = 2 * LANES + 1;
        let mut ends = [0; BELOW];
        spare.clear();
        for i in 0..block.len() {
            let mut at = 0;
            if let Some(scores) = self.top.scores(block, i) {
                while at < LANES && !matches!(self.steps[at].weights, Place::Terminal) {
                    // As everywhere, what is no number goes right.
                    let goes_left = self.span.clamp(scores[at]) < 0.0;
                    at = self.steps[at].next as usize + usize::from(!goes_left);
                }
            }
            spare.push(at as u32);
            ends[at] += 1;
        }
        level.clear();
        let mut from = 0;
        for (node, end) in ends.iter_mut().enumerate() {
            let n = std::mem::replace(end, from);
            if n > 0 {
                level.push((node as u32, from, from + n));
            }
            from += n;
        }
        rows.resize(block.len(), 0);
        for (row, &node) in spare.iter().enumerate() {
            let place = &mut ends[node as usize];
            rows[*place] = row as u32;
            *place += 1;
        }
    }

    /// Brings the rows that go left to the front and returns how many they are.
    ///
    /// Each row is written to both sides and one of them moves on: no branch
    /// hangs on a score, so that the next row's product is under way before
    /// this one's is known.
    fn divide(
        &self,
        rows: &mut [u32],
        spare: &mut Vec<u32>,
        score: impl Fn(usize) -> f32,
    ) -> usize {
        spare.resize(rows.len(), 0);
        let (mut left, mut right) = (0, 0);
        for at in 0..rows.len() {
            let row = rows[at];
            let goes_left = self.span.clamp(score(row as usize)) < 0.0;
            rows[left] = row;
            spare[right] = row;
            left += usize::from(goes_left);
            right += usize::from(!goes_left);
        }
        rows[left..].copy_from_slice(&spare[..right]);
        left
    }

    fn prefetch(&self, node: u32) {
        /// Floats in a cache line.
        const LINE: usize = 16;
        if let Place::Row(at) = self.steps[node as usize].weights {
            self.rows[at..at + self.width]
                .iter()
                .step_by(LINE)
                .for_each(prefetch);
        }
    }

    /// The scores of the first nodes for row `i` of `block`, if their weights are kept side by
    /// side: what [`look`](Self::look) wants to know of a row beforehand.
    pub fn top_scores(&self, block: &Block, i: usize) -> Option<[f32; LANES]> {
        self.top.scores(block, i)
    }

    /// What row `i` of `block` finds at `node`, to the last bit the score that
    /// [`route`](Self::route) goes by.
    pub fn look(
        &self,
        block: &Block,
        i: usize,
        top_scores: Option<&[f32; LANES]>,
        node: u32,
    ) -> Junction<f32> {
        let step = self.steps[node as usize];
        let at_once = top_scores.and_then(|scores| scores.get(node as usize));
        let score = match step.weights {
            Place::Terminal => return Junction::Terminal(step.next),
            // The top levels add up in another order than the two below.
            _ if at_once.is_some() => at_once.copied().unwrap_or_default(),
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

/// Bytes that the weights may take; beyond it they are left out.
const MOST_BYTES: usize = 128 << 20;

/// The top of a tree, scored at once: the weights of the first [`LANES`] nodes, breadth first.
///
/// Every example passes the first few levels. Their weights lie side by side, one lane per node: a
/// column's weights for all of them are one register, and one pass over an example gives the
/// scores of four levels.
#[derive(Debug, Clone, Default)]
pub(super) struct TopLevels {
    /// [`LANES`] for each column.
    lanes: AlignedRow<f32>,
}

impl TopLevels {
    /// Whether there are top levels for weights of `width` columns.
    pub fn fits(width: usize) -> bool {
        width * size_of::<[f32; LANES]>() <= MOST_BYTES
    }

    /// Zero weights of `width` columns, or none where that is too much.
    fn new(width: usize) -> Self {
        Self {
            lanes: AlignedRow::new(if Self::fits(width) { width * LANES } else { 0 }),
        }
    }

    /// Takes in the weights of node `at`, if it is among the first.
    fn set(&mut self, at: usize, weights: &Weights<f32>) {
        if at >= LANES || self.lanes.is_empty() {
            return;
        }
        let (lanes, _) = self.lanes.as_chunks_mut::<LANES>();
        match weights {
            Weights::Row(row) => {
                for (lanes, &w) in lanes.iter_mut().zip(row.iter()) {
                    lanes[at] = w;
                }
            }
            Weights::Table(table) => {
                for (column, &w) in table.iter() {
                    lanes[column as usize][at] = w;
                }
            }
        }
    }

    /// Scores of the first nodes for row `i`, unless they were left out.
    #[inline]
    fn scores(&self, block: &Block, i: usize) -> Option<[f32; LANES]> {
        (!self.lanes.is_empty()).then(|| block.dot_lanes(i, self.lanes.as_chunks().0))
    }
}
