//! Prepared examples: their non-zeros and, where many columns are filled, full rows.
//!
//! Learning takes one example at a time down a tree ([`PathExample`]). Prediction takes a
//! [`Block`] of them: walking one at a time, a tree's weights come from afar at every node; sent
//! down together, the examples at a node share its weights, and the examples themselves, kept as
//! non-zeros, are a fraction of their size.

use super::{lookup, AlignedRow, Slot, StepLimit, Weights};
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::simd::{axpy, dot, dot_lanes, four_sums, sparse_dot, LANES};

/// One example on its way down a tree.
///
/// Beside the non-zeros it has them in whole registers where so many columns are filled
/// that this is the cheaper way.
#[derive(Debug, Default, Clone)]
pub struct PathExample {
    /// The non-zeros, the constant last.
    pub(super) row: RowBuffer,
    /// All columns are below this; 0 until that was looked at.
    width: usize,
    /// Step direction per non-zero, if the optimiser has one for all nodes.
    pub(super) direction: Vec<f32>,
    /// How far a step along the direction may go.
    pub(super) limit: StepLimit,
    /// How many dimensions there are to learn from it; see
    /// [`Preconditioner::direction`].
    pub(super) dimension: f32,
    /// All columns, with zeros, and the direction likewise; unless the row is sparse.
    is_spread: bool,
    spread: AlignedRow<f32>,
    spread_direction: AlignedRow<f32>,
}

impl PathExample {
    /// An example of which at least one column in so many is filled is cheaper in
    /// whole registers than one value at a time.
    pub const DENSE_SHARE: usize = 16;

    /// Replaces the example by `other` with an indicator for each of `columns`.
    pub fn widened(&mut self, other: &Self, columns: impl IntoIterator<Item = u32>) {
        self.width = 0;
        self.is_spread = false;
        self.row.clone_from(&other.row);
        self.row.columns.extend(columns);
        self.row.values.resize(self.row.columns.len(), 1.0);
    }

    /// Replaces the example by row `i`, prepared.
    pub fn read(&mut self, preparation: &Preparation, rows: &Rows<'_>, i: usize) {
        self.width = 0;
        preparation.read(rows, i, &mut self.row);
    }

    /// Replaces the example by row `i` of a stream, prepared by what is known with it.
    pub fn observe_and_read(&mut self, preparation: &mut Preparation, rows: &Rows<'_>, i: usize) {
        self.width = 0;
        preparation.observe_and_read(rows, i, &mut self.row);
    }

    /// Replaces the example by row `i` of a block, to be scored.
    pub fn take(&mut self, block: &Block, i: usize) {
        let (columns, values) = block.row(i);
        self.width = 0;
        self.row.columns.clear();
        self.row.columns.extend_from_slice(columns);
        self.row.values.clear();
        self.row.values.extend_from_slice(values);
        self.settle(block.width());
    }

    /// Checks the columns and decides on the form.
    pub(super) fn settle(&mut self, width: usize) {
        let RowBuffer { columns, values } = &self.row;
        assert_below(columns, width);
        self.width = width;
        self.is_spread = columns.len() * Self::DENSE_SHARE >= width;
        if self.is_spread {
            self.spread.reset(width);
            spread(columns, values, &mut self.spread);
        }
    }

    /// Effective number of dimensions, at least 1.
    pub fn dimension(&self) -> f32 {
        self.dimension.max(1.0)
    }

    /// The non-zeros, the constant last.
    pub fn row(&self) -> &RowBuffer {
        &self.row
    }

    /// Step direction per non-zero, where the optimiser has one for all nodes.
    pub fn direction(&self) -> &[f32] {
        &self.direction
    }

    /// How far a step along the direction may go.
    pub fn limit(&self) -> StepLimit {
        self.limit
    }

    pub(super) fn settle_direction(&mut self) {
        self.limit = StepLimit::new(&self.direction, 1.0);
        if self.is_spread {
            self.spread_direction.reset(self.width);
            let (columns, direction) = (&self.row.columns, &self.direction);
            spread(columns, direction, &mut self.spread_direction);
        }
    }

    /// Product with the weights of one regressor.
    ///
    /// # Panics
    ///
    /// If a row of weights is shorter than the example is wide, or its form not settled.
    #[inline]
    pub fn dot(&self, weights: &Weights<f32>) -> f32 {
        let RowBuffer { columns, values } = &self.row;
        match weights {
            Weights::Row(row) if self.is_spread => dot(&self.spread, row),
            Weights::Row(row) => {
                assert!(row.len() >= self.width && self.width > 0);
                // SAFETY: `settle` has compared all columns with `width`, and `read`,
                // which alone changes them, takes that back.
                unsafe { sparse_dot(columns, values, row) }
            }
            Weights::Table(table) => dot_slots(columns, values, table.slots()),
        }
    }

    /// Adds `step` times the direction to the weights of one regressor of `width`
    /// columns.
    #[inline]
    pub fn add(&self, step: f32, weights: &mut Weights<f32>, width: usize) {
        if self.is_spread {
            weights.spread(width);
        } else {
            weights.prepare_for(self.row.columns.len(), width);
        }
        match weights {
            Weights::Row(row) if self.is_spread => axpy(step, &self.spread_direction, row),
            weights => {
                let direction = &self.direction;
                weights.change(&self.row.columns, |entry, w| *w += step * direction[entry]);
            }
        }
    }
}

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

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.full_at.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.full_at.is_empty()
    }

    /// Product of row `i` with the weights of one regressor.
    ///
    /// # Panics
    ///
    /// If a row of weights is not as long as the block is wide.
    #[inline]
    pub fn dot(&self, i: usize, weights: &Weights<f32>) -> f32 {
        match weights {
            Weights::Row(row) => self.dot_row(i, row),
            Weights::Table(table) => self.dot_slots(i, table.slots()),
        }
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
        self.full_at[i] == SPARSE || self.width <= MAX_NARROW_COLUMNS
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

/// Panics unless all columns are below `width`: unchecked products rely on it.
fn assert_below(columns: &[u32], width: usize) {
    let highest = columns
        .iter()
        .fold(0, |highest, &column| column.max(highest));
    assert!((highest as usize) < width);
}

/// Adds the values to a full row of zeros; hashed columns may collide.
fn spread(columns: &[u32], values: &[f32], into: &mut [f32]) {
    for (&column, &value) in columns.iter().zip(values) {
        into[column as usize] += value;
    }
}

/// Product with weights in the slots of a table.
#[inline]
fn dot_slots(columns: &[u32], values: &[f32], slots: &[Slot<f32>]) -> f32 {
    let mut sum = 0.0;
    if !slots.is_empty() {
        for (&column, &x) in columns.iter().zip(values) {
            if let Some(w) = lookup(slots, column) {
                sum += w * x;
            }
        }
    }
    sum
}

/// `width` rounded up to whole registers.
pub fn padded(width: usize) -> usize {
    width.next_multiple_of(LANES)
}
