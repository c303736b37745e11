//! Read-only trees for prediction: nodes of twelve bytes, and several traversals side by side.
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
struct FrozenNode {
    /// Largest value that goes left; infinity at a leaf.
    threshold: f32,
    /// Column of X that decides; 0 at a leaf, which reads any value and stays.
    feature: u32,
    /// Distance of the left child, which the right child follows; 0 at a leaf.
    to_left: u32,
}

/// Trees for prediction: where rows go, and the votes of the leaves.
#[derive(Debug, Clone, Default)]
pub struct FrozenTrees {
    /// Nodes of all trees. Node i of a tree is i places after its root.
    nodes: Vec<FrozenNode>,
    /// Root of each tree.
    pub roots: Vec<u32>,
    /// True for each node where missing values go right; false at leaves.
    missing_right: Vec<bool>,
    /// Categories that go left, by node; empty if no feature is categorical.
    sets: Vec<Option<Box<[f32]>>>,
    /// Start of each node's votes, and its vote for all other classes.
    leaves: Vec<(u32, f32)>,
    /// Classes present in each leaf, with its votes for them.
    votes: Vec<(u32, f32)>,
}

impl FrozenTrees {
    /// Freezes `trees`, which must be sound.
    pub fn new(trees: &[Tree]) -> Self {
        let mut frozen = Self::default();
        let has_sets = trees.iter().any(|tree| !tree.sets.is_empty());
        for tree in trees {
            frozen.roots.push(frozen.nodes.len() as u32);
            for (at, node) in (0..).zip(&tree.nodes) {
                let is_leaf = node.is_leaf();
                let (start, mut others) = (frozen.votes.len() as u32, 0.0);
                if is_leaf {
                    let leaf = node.feature as usize;
                    frozen.votes.extend(tree.leaves.listed(leaf));
                    others = tree.leaves.others[leaf];
                }
                frozen.leaves.push((start, others));
                frozen.nodes.push(FrozenNode {
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
                    let values = |set: u32| tree.sets[set as usize].values.as_slice().into();
                    frozen.sets.push(node.set.map(values));
                }
            }
        }
        frozen.leaves.push((frozen.votes.len() as u32, 0.0));
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

    /// Returns the leaves below the `roots` for rows that start at `offsets` among the values.
    /// `PLAIN` requires that no value is missing and no feature categorical.
    fn traverse<const PLAIN: bool>(
        &self,
        roots: [u32; LANES],
        offsets: [usize; LANES],
        values: &[f32],
    ) -> [u32; LANES] {
        let mut at = roots;
        loop {
            let mut goes_on = 0;
            for (at, offset) in at.iter_mut().zip(offsets) {
                let node = &self.nodes[*at as usize];
                let value = values[offset + node.feature as usize];
                let mut right = value > node.threshold;
                if !PLAIN {
                    right |= value.is_nan() & self.missing_right[*at as usize];
                    if let Some(Some(set)) = self.sets.get(*at as usize) {
                        let is_in =
                            |set: &[f32]| set.binary_search_by(|v| v.total_cmp(&value)).is_ok();
                        right = if value.is_nan() { right } else { !is_in(set) };
                    }
                }
                goes_on |= node.to_left;
                *at += node.to_left + u32::from(right);
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
    /// Values of the block, row by row.
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
        self.read(rows, which);
        let traverse = if self.has_missing || !trees.sets.is_empty() {
            FrozenTrees::traverse::<false>
        } else {
            FrozenTrees::traverse::<true>
        };
        if n_rows < MIN_ROWS_SIDE_BY_SIDE {
            for row in 0..n_rows {
                for first in wanted.clone().step_by(LANES) {
                    let roots = from_fn(|lane| trees.roots[(first + lane).min(wanted.end - 1)]);
                    let leaves = traverse(trees, roots, [row * width; LANES], &self.values);
                    for (tree, leaf) in (first..wanted.end).zip(leaves) {
                        visit(LeafHit { row, tree, leaf });
                    }
                }
            }
            return;
        }
        // A tree stays in the cache while all rows go through it.
        for tree in wanted {
            self.leaves.clear();
            for first in (0..n_rows).step_by(LANES) {
                let offsets = from_fn(|lane| (first + lane).min(n_rows - 1) * width);
                let roots = [trees.roots[tree]; LANES];
                let leaves = traverse(trees, roots, offsets, &self.values);
                self.leaves.extend(leaves);
            }
            for (row, &leaf) in (0..n_rows).zip(&self.leaves) {
                visit(LeafHit { row, tree, leaf });
            }
        }
    }

    /// Replaces the block by the rows `which`. Its cost follows the entries of sparse rows, not all
    /// their columns.
    pub fn read(&mut self, rows: &Rows<'_>, which: impl ExactSizeIterator<Item = usize>) {
        for at in self.written.drain(..) {
            self.values[at] = 0.0;
        }
        self.has_missing = false;
        let size = which.len() * rows.n_cols();
        if size > self.values.len() {
            // Zeroed memory takes no pages until it is written, so unused columns cost nothing.
            self.values = vec![0.0; size];
        }
        for (row, number) in which.enumerate() {
            rows.read(number, &mut self.buffer);
            self.written.reserve(self.buffer.columns.len());
            for (&column, &value) in self.buffer.columns.iter().zip(&self.buffer.values) {
                let at = row * rows.n_cols() + column as usize;
                self.has_missing |= value.is_nan();
                self.values[at] = value;
                self.written.push(at);
            }
        }
    }
}
