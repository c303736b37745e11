//! Trees as rows traverse them: nodes of twelve bytes, several traversals side by side.
//!
//! The path of one row through one tree is a chain of waits for memory. So eight run side by side: eight
//! rows of a block through one tree, or, where rows are few, one row through eight trees.

use std::ops::Range;

use super::tree::Tree;
use crate::data::{RowBuffer, Rows};
use crate::error::{Error, Result};
use crate::memory::{self, can_alloc};

/// Values of a block of rows, about.
pub const BLOCK_VALUES: usize = 1 << 16;

/// Rows of a block, at most.
pub const MAX_BLOCK_ROWS: usize = 512;

/// An error where there is no memory for a block of the fewest rows and the scores of a row.
pub fn check_memory(n_columns: usize, n_classes: usize) -> Result<()> {
    /// Bytes that need no asking.
    const UNCHECKED_BYTES: usize = 1 << 28;
    let of_scores = n_classes.saturating_mul(size_of::<f64>());
    if can_alloc(n_columns.checked_mul(LANES * size_of::<f32>()))
        && (of_scores <= UNCHECKED_BYTES || memory::fits(of_scores))
    {
        return Ok(());
    }
    Err(Error::Memory(format!(
        "rows of {n_columns} columns and scores of {n_classes} classes: there is no memory for them"
    )))
}

/// All values of a block of rows: of each group of rows column by column.
#[derive(Default)]
pub struct DenseBlock {
    buffer: RowBuffer,
    /// Zero between blocks.
    values: Vec<f32>,
    width: usize,
    /// Rows of a group.
    together: usize,
    pub n_rows: usize,
    pub has_missing: bool,
}

impl DenseBlock {
    /// Reads the rows `which`, in groups of `together` rows, until they are taken away by
    /// [`clear`](Self::clear).
    pub fn fill(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize>,
        together: usize,
    ) {
        (self.width, self.together) = (rows.n_cols(), together);
        (self.n_rows, self.has_missing) = (which.len(), false);
        let size = self.n_rows.next_multiple_of(together) * self.width;
        if size > self.values.len() {
            // Zeros from the system take no memory until something is written there, so that of
            // very many columns only those count that are filled.
            self.values = vec![0.0; size];
        }
        for (at, row) in which.enumerate() {
            rows.read(row, &mut self.buffer);
            let first = self.first_value(at);
            for (&column, &value) in self.buffer.columns.iter().zip(&self.buffer.values) {
                self.has_missing |= value.is_nan();
                self.values[first + column as usize * together] = value;
            }
        }
    }

    /// Takes away the rows `which` that [`fill`](Self::fill) has read: at the cost of their
    /// entries, not of all columns.
    pub fn clear(&mut self, rows: &Rows<'_>, which: impl ExactSizeIterator<Item = usize>) {
        for (at, row) in which.enumerate() {
            rows.read(row, &mut self.buffer);
            let first = self.first_value(at);
            for &column in &self.buffer.columns {
                self.values[first + column as usize * self.together] = 0.0;
            }
        }
    }

    /// Where the value of row `at` in column 0 is.
    fn first_value(&self, at: usize) -> usize {
        at / self.together * self.together * self.width + at % self.together
    }

    /// The values of each group; those of rows that the last one lacks are zero.
    pub fn groups(&self) -> impl Iterator<Item = &[f32]> {
        let groups = self.values.chunks_exact(self.together * self.width);
        groups.take(self.n_rows.div_ceil(self.together))
    }
}

/// Routes rows through one tree. Workspace.
#[derive(Default)]
pub struct Router {
    frozen: FrozenNodes,
    block: DenseBlock,
    leaves: Vec<u32>,
}

impl Router {
    /// Calls `found` with the place in `which` of each of these rows, and the leaf of `tree` that
    /// it is routed to.
    pub fn route(
        &mut self,
        tree: &Tree,
        rows: &Rows<'_>,
        which: &[u32],
        mut found: impl FnMut(usize, usize),
    ) {
        self.frozen.freeze(std::iter::once(tree));
        let step = (BLOCK_VALUES / rows.n_cols()).clamp(LANES, MAX_BLOCK_ROWS);
        let mut at = 0;
        for part in which.chunks(step) {
            let numbers = part.iter().map(|&row| row as usize);
            self.block.fill(rows, numbers.clone(), LANES);
            self.frozen.leaves_of_rows(0, &self.block, &mut self.leaves);
            self.block.clear(rows, numbers);
            for &node in &self.leaves {
                found(at, tree.nodes[node as usize].feature as usize);
                at += 1;
            }
        }
    }
}

/// Traversals that go on side by side.
pub const LANES: usize = 8;

/// A node.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Values up to it go left; infinity at a leaf.
    threshold: f32,
    /// Column of X that decides; 0 at a leaf, which reads any value and stays.
    feature: u32,
    /// How far on the left child is, the right one is next to it; 0 at a leaf.
    to_left: u32,
}

/// The nodes of some trees, one tree after the other. Nodes keep their order, so that node i of a tree
/// is i places after its root.
#[derive(Debug, Clone, Default)]
pub struct FrozenNodes {
    nodes: Vec<Node>,
    /// Of each tree.
    pub roots: Vec<u32>,
    /// Whether missing values go right, by node; not at leaves.
    missing_right: Vec<bool>,
    /// The categories that go left, by node; empty if no feature is categorical.
    sets: Vec<Option<Box<[f32]>>>,
}

impl FrozenNodes {
    /// Replaces what is here by `trees`, which are sound.
    pub fn freeze<'a>(&mut self, trees: impl Iterator<Item = &'a Tree> + Clone) {
        self.nodes.clear();
        self.roots.clear();
        self.missing_right.clear();
        self.sets.clear();
        let has_sets = trees.clone().any(|tree| !tree.sets.is_empty());
        for tree in trees {
            self.roots.push(self.nodes.len() as u32);
            for (at, node) in (0..).zip(&tree.nodes) {
                let is_leaf = node.is_leaf();
                self.nodes.push(Node {
                    threshold: if is_leaf {
                        f32::INFINITY
                    } else {
                        node.threshold
                    },
                    feature: if is_leaf { 0 } else { node.feature },
                    to_left: if is_leaf { 0 } else { node.left - at },
                });
                self.missing_right.push(!is_leaf && !node.missing_left);
                if has_sets {
                    let set = node.set.filter(|_| !is_leaf);
                    let values = |set: u32| tree.sets[set as usize].values.as_slice().into();
                    self.sets.push(set.map(values));
                }
            }
        }
    }

    /// Replaces `leaves` by the leaf of tree `tree` that each row of `block`, in groups of
    /// [`LANES`], is routed to: its node, among those of all trees.
    pub fn leaves_of_rows(&self, tree: usize, block: &DenseBlock, leaves: &mut Vec<u32>) {
        let starts = [self.roots[tree]; LANES];
        leaves.clear();
        for group in block.groups() {
            let value = |lane: usize, feature: usize| group[feature * LANES + lane];
            leaves.extend(self.traverse(starts, block.has_missing, value));
        }
        leaves.truncate(block.n_rows);
    }

    /// The same of one row for each of `trees`, which are [`LANES`] or fewer.
    pub fn leaves_of_trees(
        &self,
        trees: Range<usize>,
        row: &[f32],
        has_missing: bool,
    ) -> [u32; LANES] {
        let starts =
            std::array::from_fn(|lane| self.roots[(trees.start + lane).min(trees.end - 1)]);
        self.traverse(starts, has_missing, |_, feature| row[feature])
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn traverse(
        &self,
        starts: [u32; LANES],
        has_missing: bool,
        value: impl Fn(usize, usize) -> f32,
    ) -> [u32; LANES] {
        if !has_missing && self.sets.is_empty() {
            self.go::<true>(starts, value)
        } else {
            self.go::<false>(starts, value)
        }
    }

    /// The leaves below the nodes `at`. `PLAIN`: no value is missing, and no feature categorical.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn go<const PLAIN: bool>(
        &self,
        mut at: [u32; LANES],
        value: impl Fn(usize, usize) -> f32,
    ) -> [u32; LANES] {
        loop {
            let mut goes_on = 0;
            for (lane, at) in at.iter_mut().enumerate() {
                let node = &self.nodes[*at as usize];
                let value = value(lane, node.feature as usize);
                let mut right = value > node.threshold;
                if !PLAIN {
                    right |= value.is_nan() & self.missing_right[*at as usize];
                    if let Some(Some(set)) = self.sets.get(*at as usize) {
                        right = self.is_outside(*at, set, value);
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

    fn is_outside(&self, at: u32, set: &[f32], value: f32) -> bool {
        if value.is_nan() {
            return self.missing_right[at as usize];
        }
        set.binary_search_by(|other| other.total_cmp(&value))
            .is_err()
    }
}

/// Trees as prediction uses them: where rows go and what they get there.
#[derive(Debug, Clone, Default)]
pub struct FrozenTrees {
    pub nodes: FrozenNodes,
    /// By node: where the votes of the leaf begin, which end where the next node's do, and its vote
    /// for all other classes.
    leaves: Vec<(u32, f32)>,
    /// Classes listed and the votes for them.
    votes: Vec<(u32, f32)>,
}

impl FrozenTrees {
    /// From `trees`, which are sound.
    pub fn new(trees: &[Tree]) -> Self {
        let mut frozen = Self::default();
        frozen.nodes.freeze(trees.iter());
        for tree in trees {
            for node in &tree.nodes {
                let (start, mut others) = (frozen.votes.len() as u32, 0.0);
                if node.is_leaf() {
                    let leaf = node.feature as usize;
                    let (classes, votes) = tree.leaves.listed(leaf);
                    let votes = classes.iter().copied().zip(votes.iter().copied());
                    frozen.votes.extend(votes);
                    others = tree.leaves.others[leaf];
                }
                frozen.leaves.push((start, others));
            }
        }
        frozen.leaves.push((frozen.votes.len() as u32, 0.0));
        frozen
    }

    /// Adds the votes of the leaf at node `at` to the `scores` of all classes, up to what these have in
    /// common, which is added to `common`.
    #[inline]
    pub fn add(&self, at: u32, scores: &mut [f64], common: &mut f64) {
        let (start, others) = self.leaves[at as usize];
        let (end, _) = self.leaves[at as usize + 1];
        let others = f64::from(others);
        for &(class, vote) in &self.votes[start as usize..end as usize] {
            scores[class as usize] += f64::from(vote) - others;
        }
        *common += others;
    }
}
