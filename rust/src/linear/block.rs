//! Examples side by side, for prediction in batches.
//!
//! Walking one example at a time, a tree's weights come from afar at every
//! node. Sent down together, the examples at a node share its weights, and the
//! examples themselves, kept as non-zeros, are a fraction of their size.

use super::example::{assert_below, dot_slots, spread};
use super::{AlignedRow, Slot, Weights};
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::simd::{dot, dot_lanes, four_sums, sparse_dot, LANES};

/// An example of which at least one column in so many is filled is kept as a
/// full row as well: then whole registers are cheaper than single values.
const MAX_COLUMNS_PER_VALUE: usize = 4;

/// Some prepared rows. How a row is kept, and with it the last bit of its
/// products, depends on the row alone and not on its neighbours.
#[derive(Debug, Clone, Default)]
pub struct Block {
    width: usize,
    rows: RaggedRows,
    /// Where a row lies in `full`, or `SPARSE`.
    full_at: Vec<usize>,
    full: AlignedRow<f32>,
    row: RowBuffer,
}

const SPARSE: usize = usize::MAX;

/// Rows of which at least one column in so many is filled are cheaper in whole registers than
/// value by value, where weights are not side by side.
const MAX_COLUMNS_PER_VALUE_IN_REGISTERS: usize = 4;

/// In rows of at most so many columns single values cost no more than whole registers.
const MAX_NARROW_COLUMNS: usize = 64;

impl Block {
    /// Replaces the block by the rows `which`, for weights of `width` columns.
    ///
    /// # Panics
    ///
    /// If `preparation` makes columns that are not below `width`.
    pub fn fill(
        &mut self,
        preparation: &Preparation,
        rows: &Rows<'_>,
        which: impl Iterator<Item = usize>,
        width: usize,
    ) {
        self.width = width;
        self.rows.clear();
        self.full_at.clear();
        self.full.reset(0);
        for i in which {
            preparation.read(rows, i, &mut self.row);
            let RowBuffer { columns, values } = &self.row;
            assert_below(columns, width);
            if columns.len() * MAX_COLUMNS_PER_VALUE >= width {
                self.full_at.push(self.full.len());
                spread(columns, values, self.full.grow(width));
            } else {
                self.full_at.push(SPARSE);
            }
            self.rows.push(columns.iter().copied(), values);
        }
    }

    /// Columns that there are weights for.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        self.rows.row(i)
    }

    /// Row `i` with all columns, if it is kept so.
    pub(super) fn full_row(&self, i: usize) -> Option<&[f32]> {
        let from = self.full_at[i];
        (from != SPARSE).then(|| &self.full[from..from + self.width])
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.full_at.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.full_at.is_empty()
    }

    /// Product of row `i` with weights in a full row.
    ///
    /// # Panics
    ///
    /// If there are not as many weights as the block is wide.
    #[inline]
    pub fn dot_row(&self, i: usize, weights: &[f32]) -> f32 {
        assert_eq!(weights.len(), self.width);
        match self.full_at[i] {
            SPARSE => {
                let (columns, values) = self.rows.row(i);
                // SAFETY: `fill` has compared all columns with `width`.
                unsafe { sparse_dot(columns, values, weights) }
            }
            from => dot(&self.full[from..from + self.width], weights),
        }
    }

    /// Products of row `i` with the weights in each lane.
    ///
    /// # Panics
    ///
    /// If there are not as many weights as the block is wide.
    #[inline]
    pub fn dot_lanes(&self, i: usize, lanes: &[[f32; LANES]]) -> [f32; LANES] {
        let (columns, values) = self.rows.row(i);
        dot_lanes(columns, values, lanes)
    }

    /// Whether row `i` is scored value by value with many weights side by side; else register by
    /// register, by one row of weights after the other.
    #[inline]
    pub fn is_for_lanes(&self, i: usize) -> bool {
        self.rows.row(i).0.len() * MAX_COLUMNS_PER_VALUE_IN_REGISTERS < self.width
            || self.width <= MAX_NARROW_COLUMNS
    }

    /// Product of row `i` with the weights of one regressor, added up as a lane of
    /// [`Self::dot_lanes`] is.
    ///
    /// # Panics
    ///
    /// If a row of weights is not as long as the block is wide.
    #[inline]
    pub fn dot_as_lane(&self, i: usize, weights: &Weights<f32>) -> f32 {
        let (columns, values) = self.rows.row(i);
        match weights {
            Weights::Row(row) => {
                assert_eq!(row.len(), self.width);
                // SAFETY: `fill` has compared all columns with `width`.
                unsafe { sparse_dot(columns, values, row) }
            }
            Weights::Table(table) => {
                let weight = |column| table.get(column).copied().unwrap_or_default();
                four_sums(columns, values, weight)
            }
        }
    }

    /// Product of row `i` with weights in the slots of a table.
    #[inline]
    pub fn dot_slots(&self, i: usize, slots: &[Slot<f32>]) -> f32 {
        let (columns, values) = self.rows.row(i);
        dot_slots(columns, values, slots)
    }
}
