//! Read-only trees for prediction: nodes of eight bytes, and several traversals side by side.
//!
//! The path of a row through a tree is a chain of waits for memory. So eight paths run side by
//! side: eight rows through one tree or, if rows are few, one row through eight trees.

use std::array::from_fn;
use std::ops::Range;

use super::tree::Tree;
use crate::data::{RowBuffer, Rows};
use crate::error::{Error, Result};
use crate::memory::{self, can_alloc};

/// Traversals that run side by side.
pub const LANES: usize = 8;

/// Smallest number of rows that go through a tree side by side.
const MIN_ROWS_SIDE_BY_SIDE: usize = 4;

/// Largest number of values of a block of rows, unless it has the smallest number of rows.
const MAX_BLOCK_VALUES: usize = 1 << 16;

/// Largest number of rows of a block.
const MAX_BLOCK_ROWS: usize = 512;

/// Returns the number of rows to route together if each has `n_values` values.
pub fn block_rows(n_values: usize) -> usize {
    (MAX_BLOCK_VALUES / n_values).clamp(1, MAX_BLOCK_ROWS)
}

/// Returns an error if there is no memory for the smallest block of rows and the scores of a row.
pub fn check_memory(n_columns: usize, n_classes: usize) -> Result<()> {
    /// Largest number of bytes for which the available memory is not queried.
    const UNCHECKED_BYTES: usize = 1 << 28;
    let score_bytes = n_classes.saturating_mul(size_of::<f64>());
    if can_alloc(n_columns.checked_mul(LANES * size_of::<f32>()))
        && (score_bytes <= UNCHECKED_BYTES || memory::fits(score_bytes))
    {
        return Ok(());
    }
    Err(Error::Memory(format!(
        "rows of {n_columns} columns and scores of {n_classes} classes do not fit into memory"
    )))
}

/// A node as traversals read it.
#[derive(Debug, Clone, Copy)]
struct FrozenNode<I> {
    /// Largest value that goes left; infinity at a leaf.
    threshold: f32,
    /// Column of X that decides; 0 at a leaf, which reads any value and stays.
    feature: I,
    /// Distance of the left child, which the right child follows; 0 at a leaf.
    to_left: I,
}

impl FrozenNode<u32> {
    /// Returns the node in eight bytes, or `None` if a number does not fit.
    fn narrow(&self) -> Option<FrozenNode<u16>> {
        Some(FrozenNode {
            threshold: self.threshold,
            feature: self.feature.try_into().ok()?,
            to_left: self.to_left.try_into().ok()?,
        })
    }
}

/// Categories that go left at a node.
#[derive(Debug, Clone)]
enum Set {
    /// Whole numbers from 0 to 63, a bit for each.
    Mask(u64),
    /// Any values, in rising order.
    Values(Box<[f32]>),
}

impl Set {
    fn new(values: &[f32]) -> Self {
        let mask = values
            .iter()
            .try_fold(0, |mask, &value| Some(mask | Self::bit(value)?));
        mask.map_or_else(|| Self::Values(values.into()), Self::Mask)
    }

    /// Returns the bit of a whole number from 0 to 63.
    fn bit(value: f32) -> Option<u64> {
        let number = value as u8;
        (number < 64 && f32::from(number).to_bits() == value.to_bits()).then(|| 1 << number)
    }

    fn contains(&self, value: f32) -> bool {
        match self {
            Self::Mask(mask) => Self::bit(value).is_some_and(|bit| mask & bit != 0),
            Self::Values(values) => values.binary_search_by(|v| v.total_cmp(&value)).is_ok(),
        }
    }
}

/// Trees for prediction: where rows go, and the votes of the leaves.
#[derive(Debug, Clone, Default)]
pub struct FrozenTrees {
    /// Nodes of all trees, if all of them fit into eight bytes. Node i of a tree is i places after
    /// its root.
    nodes: Vec<FrozenNode<u16>>,
    /// The same nodes if one of them does not fit.
    wide_nodes: Vec<FrozenNode<u32>>,
    /// Root of each tree.
    pub roots: Vec<u32>,
    /// True for each node where missing values go right; false at leaves.
    missing_right: Vec<bool>,
    /// Categories that go left, by node; empty if no feature is categorical.
    sets: Vec<Option<Set>>,
    /// Start of each node's votes, and its vote for all other classes.
    leaves: Vec<(u32, f32)>,
    /// Classes present in each leaf, with its votes for them.
    votes: Vec<(u32, f32)>,
}

impl FrozenTrees {
    /// Freezes `trees`, which must be sound.
    pub fn new(trees: &[Tree]) -> Self {
        let mut frozen = Self::default();
        let mut nodes = Vec::new();
        let has_sets = trees.iter().any(|tree| !tree.sets.is_empty());
        for tree in trees {
            frozen.roots.push(nodes.len() as u32);
            for (at, node) in (0..).zip(&tree.nodes) {
                let is_leaf = node.is_leaf();
                let (start, mut others) = (frozen.votes.len() as u32, 0.0);
                if is_leaf {
                    let leaf = node.feature as usize;
                    frozen.votes.extend(tree.leaves.listed(leaf));
                    others = tree.leaves.others[leaf];
                }
                frozen.leaves.push((start, others));
                nodes.push(FrozenNode {
                    threshold: if is_leaf {
                        f32::INFINITY
                    } else {
                        node.threshold
                    },
                    feature: if is_leaf { 0 } else { node.feature },
                    to_left: if is_leaf { 0 } else { node.left - at },
                });
                frozen.missing_right.push(!is_leaf && !node.missing_left);
                if has_sets {
                    let set = |set: u32| Set::new(&tree.sets[set as usize].values);
                    frozen.sets.push(node.set.map(set));
                }
            }
        }
        frozen.leaves.push((frozen.votes.len() as u32, 0.0));
        match nodes.iter().map(FrozenNode::narrow).collect() {
            Some(narrow) => frozen.nodes = narrow,
            None => frozen.wide_nodes = nodes,
        }
        frozen
    }

    /// Adds the votes of the leaf `leaf` to `scores`, except for the vote that all classes have in
    /// common, which is added to `common`.
    pub fn add_votes(&self, leaf: u32, scores: &mut [f64], common: &mut f64) {
        let (start, others) = self.leaves[leaf as usize];
        let (end, _) = self.leaves[leaf as usize + 1];
        let others = f64::from(others);
        for &(class, vote) in &self.votes[start as usize..end as usize] {
            scores[class as usize] += f64::from(vote) - others;
        }
        *common += others;
    }

    /// Returns the leaves below the `roots`, for the values of a group of rows by column. The rows
    /// are one for all roots or one for each.
    fn find_leaves<const N_ROWS: usize>(
        &self,
        roots: [u32; LANES],
        values: &[[f32; N_ROWS]],
        has_missing: bool,
    ) -> [u32; LANES] {
        let is_plain = !has_missing && self.sets.is_empty();
        match (is_plain, self.wide_nodes.is_empty()) {
            (true, true) => self.traverse::<_, N_ROWS, true>(&self.nodes, roots, values),
            (true, false) => self.traverse::<_, N_ROWS, true>(&self.wide_nodes, roots, values),
            (false, true) => self.traverse::<_, N_ROWS, false>(&self.nodes, roots, values),
            (false, false) => self.traverse::<_, N_ROWS, false>(&self.wide_nodes, roots, values),
        }
    }

    /// `PLAIN` requires that no value is missing and no feature categorical.
    fn traverse<I: Copy + Into<u32>, const N_ROWS: usize, const PLAIN: bool>(
        &self,
        nodes: &[FrozenNode<I>],
        roots: [u32; LANES],
        values: &[[f32; N_ROWS]],
    ) -> [u32; LANES] {
        let mut at = roots;
        loop {
            let mut goes_on = 0;
            // In this form each lane finishes its step before the next one begins. Otherwise the
            // compiler keeps eight half-finished steps, for which there are too few registers.
            for lane in 0..LANES {
                let node = nodes[at[lane] as usize];
                let value = values[node.feature.into() as usize][lane % N_ROWS];
                let mut right = value > node.threshold;
                if !PLAIN {
                    let here = at[lane] as usize;
                    right |= value.is_nan() & self.missing_right[here];
                    if let Some(Some(set)) = self.sets.get(here) {
                        right = if value.is_nan() {
                            right
                        } else {
                            !set.contains(value)
                        };
                    }
                }
                at[lane] += node.to_left.into() + u32::from(right);
                goes_on |= node.to_left.into();
            }
            if goes_on == 0 {
                return at;
            }
        }
    }
}

/// The leaf of a tree that a row reaches.
#[derive(Debug, Clone, Copy)]
pub struct LeafHit {
    /// Position of the row among those routed.
    pub row: usize,
    pub tree: usize,
    /// The leaf, as a node among those of all trees.
    pub leaf: u32,
}

/// Workspace for routing blocks of rows.
#[derive(Default)]
pub struct Router {
    buffer: RowBuffer,
    /// Values of the block: of each group of rows column by column.
    pub values: Vec<f32>,
    /// Positions of the values that may not be zero.
    written: Vec<usize>,
    has_missing: bool,
    /// The leaf of each row in one tree.
    leaves: Vec<u32>,
}

impl Router {
    /// Calls `visit` with each leaf that a row of `which` reaches in one of the trees `wanted`.
    /// Each row visits the trees in their order.
    pub fn route(
        &mut self,
        trees: &FrozenTrees,
        wanted: Range<usize>,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize>,
        mut visit: impl FnMut(LeafHit),
    ) {
        let (n_rows, width) = (which.len(), rows.n_cols());
        if n_rows < MIN_ROWS_SIDE_BY_SIDE {
            self.read(rows, which, 1);
            for (row, values) in (0..n_rows).zip(self.values.chunks_exact(width)) {
                let values = values.as_chunks().0;
                for first in wanted.clone().step_by(LANES) {
                    let roots = from_fn(|lane| trees.roots[(first + lane).min(wanted.end - 1)]);
                    let leaves = trees.find_leaves::<1>(roots, values, self.has_missing);
                    for (tree, leaf) in (first..wanted.end).zip(leaves) {
                        visit(LeafHit { row, tree, leaf });
                    }
                }
            }
            return;
        }
        self.read(rows, which, LANES);
        // A tree stays in the cache while all rows go through it.
        for tree in wanted {
            self.leaves.clear();
            let groups = self.values.as_chunks().0.chunks_exact(width);
            for values in groups.take(n_rows.div_ceil(LANES)) {
                let roots = [trees.roots[tree]; LANES];
                let leaves = trees.find_leaves::<LANES>(roots, values, self.has_missing);
                self.leaves.extend(leaves);
            }
            for (row, &leaf) in (0..n_rows).zip(&self.leaves) {
                visit(LeafHit { row, tree, leaf });
            }
        }
    }

    /// Replaces the block by the rows `which`, in groups of `n_together`. Its cost follows the
    /// entries of sparse rows, not all their columns.
    pub fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize>,
        n_together: usize,
    ) {
        for at in self.written.drain(..) {
            self.values[at] = 0.0;
        }
        self.has_missing = false;
        let size = which.len().next_multiple_of(n_together) * rows.n_cols();
        if size > self.values.len() {
            // Zeroed memory takes no pages until it is written, so unused columns cost nothing.
            self.values = vec![0.0; size];
        }
        for (row, number) in which.enumerate() {
            rows.read(number, &mut self.buffer);
            let lane = row % n_together;
            let first = (row - lane) * rows.n_cols() + lane;
            self.written.reserve(self.buffer.columns.len());
            for (&column, &value) in self.buffer.columns.iter().zip(&self.buffer.values) {
                let at = first + column as usize * n_together;
                self.has_missing |= value.is_nan();
                self.values[at] = value;
                self.written.push(at);
            }
        }
    }
}
