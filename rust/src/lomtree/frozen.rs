//! The tree as prediction walks it: no label tables, no optimiser state, all
//! of it in a few contiguous arrays, children side by side.

use super::{Arena, Tree};
use crate::control::Control;
use crate::error::Result;
use crate::linear::Span;
use crate::simd::{prefetch, LANES};
use crate::tree::{Block, Crown, Slot, Weights};

/// At most so many labels are kept per leaf: a leaf that the budget kept from
/// splitting may have seen any number of them, and an answer must not cost
/// O(K).
const MOST_LABELS: usize = 64;

/// How many groups ahead a node's weights are asked for.
const AHEAD: usize = 2;

/// Groups of more rows than this are work enough without.
const FEW: usize = 8;

/// What [`FrozenTree::route`] works in: rows ordered by the node they are at,
/// and for each node of a level which of them.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    rows: Vec<u32>,
    spare: Vec<u32>,
    level: Vec<(u32, usize, usize)>,
    below: Vec<(u32, usize, usize)>,
}

/// A tree that no longer learns.
#[derive(Debug, Clone, Default)]
pub struct FrozenTree {
    width: usize,
    span: Span,
    /// The first nodes, once more.
    crown: Crown,
    steps: Vec<Step>,
    rows: Vec<f32>,
    slots: Vec<Slot<f32>>,
    /// Where each leaf's labels start, and the end of the last.
    starts: Vec<usize>,
    labels: Vec<u32>,
    shares: Vec<f32>,
}

/// One node. `weights` says where they lie; a leaf has none.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Left child, the right one follows it; of a leaf, its number.
    next: u32,
    weights: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Leaf,
    Row(usize),
    Table { from: usize, capacity: u32 },
}

impl Tree {
    /// Makes the tree that prediction walks. Costs as much as the tree is large.
    pub fn freeze(&self, control: &Control) -> Result<FrozenTree> {
        let arena = &self.arena;
        let order = arena.breadth_first();
        let mut frozen = FrozenTree {
            width: self.regressors.width(),
            span: self.regressors.span(),
            crown: Crown::new(self.regressors.width()),
            starts: vec![0],
            ..FrozenTree::default()
        };
        // Breadth first, children come in pairs, in the order of their parents.
        let mut next_pair = 1;
        let mut shares = vec![Vec::new(); order.len()];
        let mut parent_of = vec![0; order.len()];
        for (at, &(id, _)) in order.iter().enumerate() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            let node = arena.node(id);
            let parent: &[(u32, f32)] = if at == 0 { &[] } else { &shares[parent_of[at]] };
            let own = smoothed(arena, id.at(), parent, self.params.leaf_smoothing);
            if node.is_leaf() {
                frozen.push_leaf(own);
            } else {
                let weights = self.regressors.plain(node.regressor);
                frozen.crown.set(at, &weights);
                frozen.push_router(next_pair, weights);
                shares[at] = own;
                parent_of[next_pair as usize] = at;
                parent_of[next_pair as usize + 1] = at;
                next_pair += 2;
            }
        }
        Ok(frozen)
    }
}

/// Share of each label at a node: its own arrivals and, counting for `weight`
/// examples, its parent's shares. Best first; of equals the first to get
/// there, which the others are put behind by one unit in the last place, then
/// the lower label.
fn smoothed(arena: &Arena, at: usize, parent: &[(u32, f32)], weight: f64) -> Vec<(u32, f32)> {
    let node = &arena.nodes[at];
    let arrivals = node.arrivals();
    if arrivals == 0.0 && (weight == 0.0 || parent.is_empty()) {
        return vec![(node.top, 1.0)];
    }
    let all = arrivals + if parent.is_empty() { 0.0 } else { weight };
    let mut counts: Vec<(u32, f64)> = node
        .labels
        .iter()
        .map(|(label, stat)| (label, stat.arrivals()))
        .collect();
    counts.sort_unstable_by_key(|&(label, _)| label);
    if weight > 0.0 {
        let known = counts.len();
        for &(label, share) in parent {
            let extra = weight * f64::from(share);
            match counts[..known].binary_search_by_key(&label, |&(label, _)| label) {
                Ok(found) => counts[found].1 += extra,
                Err(_) => counts.push((label, extra)),
            }
        }
    }
    let mut shares: Vec<(u32, f32)> = counts
        .into_iter()
        .map(|(label, count)| (label, (count / all) as f32))
        .collect();
    let first = shares.iter().find(|&&(label, _)| label == node.top);
    if let Some(&(top, highest)) = first {
        for (label, share) in &mut shares {
            if *label != top && share.to_bits() == highest.to_bits() {
                *share = share.next_down().max(0.0);
            }
        }
    }
    shares.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    shares.truncate(MOST_LABELS);
    shares
}

impl FrozenTree {
    /// Rows to send down at once: enough that the upper nodes are shared by
    /// many, few enough to stay in the cache.
    pub const BLOCK: usize = 2048;

    fn push_leaf(&mut self, shares: Vec<(u32, f32)>) {
        self.steps.push(Step {
            next: self.starts.len() as u32 - 1,
            weights: Place::Leaf,
        });
        for (label, share) in shares {
            self.labels.push(label);
            self.shares.push(share);
        }
        self.starts.push(self.labels.len());
    }

    fn push_router(&mut self, left: u32, weights: Weights<f32>) {
        let weights = match weights {
            Weights::Row(row) => {
                let from = self.rows.len();
                self.rows.extend(row);
                Place::Row(from)
            }
            Weights::Table(table) => {
                let from = self.slots.len();
                self.slots.extend(table.slots());
                Place::Table {
                    from,
                    capacity: table.capacity() as u32,
                }
            }
        };
        self.steps.push(Step {
            next: left,
            weights,
        });
    }

    /// Padded number of columns, for [`Block::fill`].
    pub fn width(&self) -> usize {
        self.width
    }

    /// Sends all rows of `block` down together and writes the number of the
    /// leaf that each ends in.
    pub fn route(&self, block: &Block, scratch: &mut Groups, leaves: &mut [u32]) {
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
                    Place::Leaf => {
                        for &row in &rows[from..to] {
                            leaves[row as usize] = step.next;
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

    /// Takes all rows through the crown and groups them by the node below it,
    /// where each of them goes on.
    fn start(
        &self,
        block: &Block,
        rows: &mut Vec<u32>,
        spare: &mut Vec<u32>,
        level: &mut Vec<(u32, usize, usize)>,
    ) {
        /// Children of the crown's last node come last.
        const BELOW: usize = 2 * LANES + 1;
        let mut ends = [0; BELOW];
        spare.clear();
        for i in 0..block.len() {
            let mut at = 0;
            if let Some(scores) = self.crown.scores(block, i) {
                while at < LANES && !matches!(self.steps[at].weights, Place::Leaf) {
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

    /// Labels and shares at a leaf, best first.
    #[inline]
    pub fn shares(&self, leaf: u32) -> (&[u32], &[f32]) {
        let span = self.starts[leaf as usize]..self.starts[leaf as usize + 1];
        (&self.labels[span.clone()], &self.shares[span])
    }

    /// The best label at a leaf.
    #[inline]
    pub fn answer(&self, leaf: u32) -> u32 {
        self.labels[self.starts[leaf as usize]]
    }
}
