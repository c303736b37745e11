//! Routing rows of X to the leaves of learned trees, block by block.

use super::frozen::{FrozenNodes, LANES};
use super::tree::Tree;
use crate::alloc::{can_alloc, zeros};
use crate::data::{RowBuffer, Rows};
use crate::error::{Error, Result};
use crate::memory;

/// Values of a block of rows, about.
pub const BLOCK: usize = 1 << 16;

/// Rows of a block, at most.
pub const BLOCK_ROWS: usize = 512;

/// An error where there is no memory for a block of the fewest rows and the scores of a row.
pub fn check_memory(n_columns: usize, n_classes: usize) -> Result<()> {
    /// Bytes that need no asking.
    const FREE: usize = 1 << 28;
    let of_scores = n_classes.saturating_mul(size_of::<f64>());
    if can_alloc(n_columns.checked_mul(LANES * size_of::<f32>()))
        && (of_scores <= FREE || memory::fits(of_scores))
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
            self.values = zeros(size);
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
        let step = (BLOCK / rows.n_cols()).clamp(LANES, BLOCK_ROWS);
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
