//! One example as the regressors of a path read it.

use super::filled_chunks::FilledChunks;
use super::{lookup, AlignedRow, Block, Slot, StepLimit, Weights};
use crate::data::{Preparation, RowBuffer, Rows};
use crate::simd::{sparse_dot, LANES};

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
    /// Product of example and direction.
    pub(super) ppu: f32,
    /// How far a step along the direction may go.
    pub(super) limit: StepLimit,
    /// How many dimensions there are to learn from it; see
    /// [`Preconditioner::direction`].
    pub(super) dimension: f32,
    is_spread: bool,
    chunks: FilledChunks,
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
            self.chunks.find(columns, width);
            self.chunks.spread(columns, values, &mut self.spread);
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

    /// Product of example and direction.
    pub fn ppu(&self) -> f32 {
        self.ppu
    }

    /// How far a step along the direction may go.
    pub fn limit(&self) -> StepLimit {
        self.limit
    }

    pub(super) fn settle_direction(&mut self) {
        self.limit = StepLimit::new(&self.direction, self.ppu, 1.0);
        if self.is_spread {
            let (columns, direction) = (&self.row.columns, &self.direction);
            self.chunks
                .spread(columns, direction, &mut self.spread_direction);
        }
    }

    /// Asks for the weights that the example will meet, ahead of their use.
    #[inline]
    pub fn prefetch(&self, weights: &Weights<f32>) {
        match weights {
            Weights::Row(row) if self.is_spread && !self.chunks.is_whole() => {
                self.chunks.prefetch(row);
            }
            weights => weights.prefetch(&self.row.columns),
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
            Weights::Row(row) if self.is_spread => self.chunks.dot(&self.spread, row),
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
            Weights::Row(row) if self.is_spread => {
                self.chunks.add(step, &self.spread_direction, row);
            }
            weights => {
                let direction = &self.direction;
                weights.change(&self.row.columns, |entry, w| *w += step * direction[entry]);
            }
        }
    }
}

/// Panics unless all columns are below `width`: unchecked products rely on it.
pub(super) fn assert_below(columns: &[u32], width: usize) {
    let highest = columns
        .iter()
        .fold(0, |highest, &column| column.max(highest));
    assert!((highest as usize) < width);
}

/// Adds the values to a full row of zeros; hashed columns may collide.
pub(super) fn spread(columns: &[u32], values: &[f32], into: &mut [f32]) {
    for (&column, &value) in columns.iter().zip(values) {
        into[column as usize] += value;
    }
}

/// Product with weights in the slots of a table.
#[inline]
pub(super) fn dot_slots(columns: &[u32], values: &[f32], slots: &[Slot<f32>]) -> f32 {
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
