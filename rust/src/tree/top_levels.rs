//! The top of a tree, scored at once.
//!
//! Every example passes the first few levels. Their routers' weights lie here
//! side by side, one lane per node: a feature's weights for all of them are one
//! register, and one pass over an example gives the scores of four levels.

use crate::linear::{AlignedRow, Block, Weights};
use crate::simd::LANES;

/// Bytes that the weights may take; beyond it they are left out.
const MOST_BYTES: usize = 128 << 20;

/// Weights of the first `LANES` nodes in breadth-first order.
#[derive(Debug, Clone, Default)]
pub struct TopLevels {
    /// [`LANES`] for each column.
    lanes: AlignedRow<f32>,
}

impl TopLevels {
    /// Whether there are top levels for weights of `width` columns.
    pub fn fits(width: usize) -> bool {
        width * size_of::<[f32; LANES]>() <= MOST_BYTES
    }

    /// Zero weights of `width` columns, or none where that is too much.
    pub fn new(width: usize) -> Self {
        Self {
            lanes: AlignedRow::new(if Self::fits(width) { width * LANES } else { 0 }),
        }
    }

    /// Takes in the weights of node `at`, if it is among the first.
    pub fn set(&mut self, at: usize, weights: &Weights<f32>) {
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
    pub fn scores(&self, block: &Block, i: usize) -> Option<[f32; LANES]> {
        (!self.lanes.is_empty()).then(|| block.dot_lanes(i, self.lanes.as_chunks().0))
    }
}
