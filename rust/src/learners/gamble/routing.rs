//! Routing rows of X to the leaves of a learned tree, block by block.

use super::tree::Tree;
use crate::data::{RowBuffer, Rows};

/// Rows that traverse a tree side by side.
const TOGETHER: usize = 8;

/// Values of a block of rows, about.
pub const BLOCK: usize = 1 << 14;

/// Rows of a block, at most.
pub const BLOCK_ROWS: usize = 64;

/// All values of a block of rows, row by row.
#[derive(Default)]
pub struct DenseBlock {
    buffer: RowBuffer,
    /// Zero between blocks.
    values: Vec<f32>,
    width: usize,
}

impl DenseBlock {
    /// Reads the rows `which`, until they are taken away by [`clear`](Self::clear).
    pub fn fill(&mut self, rows: &Rows<'_>, which: impl ExactSizeIterator<Item = usize>) {
        self.width = rows.n_cols();
        self.values.resize(which.len() * self.width, 0.0);
        for (row, values) in which.zip(self.values.chunks_exact_mut(self.width)) {
            rows.read(row, &mut self.buffer);
            for (&column, &value) in self.buffer.columns.iter().zip(&self.buffer.values) {
                values[column as usize] = value;
            }
        }
    }

    /// Takes away the rows `which` that [`fill`](Self::fill) has read: at the cost of their
    /// entries, not of all columns.
    pub fn clear(&mut self, rows: &Rows<'_>, which: impl ExactSizeIterator<Item = usize>) {
        for (row, values) in which.zip(self.values.chunks_exact_mut(self.width)) {
            rows.read(row, &mut self.buffer);
            for &column in &self.buffer.columns {
                values[column as usize] = 0.0;
            }
        }
    }

    /// Replaces `leaves` by the leaf of `tree` that each row is routed to.
    pub fn find_leaves(&self, tree: &Tree, leaves: &mut Vec<u32>) {
        let width = self.width;
        leaves.clear();
        let mut together = self.values.chunks_exact(TOGETHER * width);
        for values in &mut together {
            let row = |at: usize| &values[at * width..(at + 1) * width];
            leaves.extend(tree.leaves_of::<TOGETHER>(std::array::from_fn(row)));
        }
        for row in together.remainder().chunks_exact(width) {
            leaves.extend(tree.leaves_of([row]));
        }
    }
}

/// Routes rows through one tree. Workspace.
#[derive(Default)]
pub struct Router {
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
        let step = (BLOCK / rows.n_cols()).clamp(1, BLOCK_ROWS);
        let mut at = 0;
        for part in which.chunks(step) {
            let numbers = part.iter().map(|&row| row as usize);
            self.block.fill(rows, numbers.clone());
            self.block.find_leaves(tree, &mut self.leaves);
            self.block.clear(rows, numbers);
            for &leaf in &self.leaves {
                found(at, leaf as usize);
                at += 1;
            }
        }
    }
}
