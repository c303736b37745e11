//! One example as the regressors of a path read it: its non-zeros and, where many columns are
//! filled, whole registers of them.
//!
//! Columns that are filled together lie together: of the strokes of a letter a row fills an
//! eighth of the columns, but only half of the chunks of [`LANES`] columns. What is left out
//! would add zeros: sums have the bits of those over the full row.

use super::{lookup, AlignedRow, Block, Slot, StepLimit, Weights};
use crate::data::{Preparation, RowBuffer, Rows};
use crate::simd::{add_chunks, axpy, dot, dot_chunks, prefetch, sparse_dot, LANES};

/// Sums that a product is added up in, side by side: chunk n goes to sum n modulo this.
const SUMS: usize = 4;

/// Which chunks of a row are filled. Entry i is of a chunk whose number is i modulo [`SUMS`];
/// where there are fewer of these than of others, an entry of zeros takes the place.
#[derive(Debug, Default, Clone)]
pub(super) struct FilledChunks {
    /// The number of each entry's chunk, in increasing order within a sum.
    numbers: Vec<u32>,
    /// The entry of each chunk; of empty ones anything.
    entry_of: Vec<u32>,
    is_filled: Vec<bool>,
    /// Whether there is an entry for each chunk, in order, instead: the full row.
    is_whole: bool,
    n_entries: usize,
}

impl FilledChunks {
    /// Finds the chunks that `columns` lie in, all below `width`, a multiple of [`LANES`].
    pub fn find(&mut self, columns: &[u32], width: usize) {
        let n_chunks = width / LANES;
        self.n_entries = n_chunks;
        // So many can hardly leave a chunk out.
        self.is_whole = columns.len() * 2 >= width;
        if self.is_whole {
            return;
        }
        self.is_filled.clear();
        self.is_filled.resize(n_chunks, false);
        for &column in columns {
            self.is_filled[column as usize / LANES] = true;
        }
        self.entry_of.clear();
        self.entry_of.resize(n_chunks, 0);
        self.numbers.clear();
        let mut next = [0, 1, 2, 3];
        const { assert!(SUMS == 4) };
        for (number, &is_filled) in self.is_filled.iter().enumerate() {
            if is_filled {
                let entry = &mut next[number % SUMS];
                // Of an entry of zeros any chunk will do; this one is read anyway.
                self.numbers
                    .resize(self.numbers.len().max(*entry + 1), number as u32);
                self.numbers[*entry] = number as u32;
                self.entry_of[number] = *entry as u32;
                *entry += SUMS;
            }
        }
        self.n_entries = self.numbers.len();
    }

    /// The values of `columns` by entry; hashed columns may collide.
    pub fn spread(&self, columns: &[u32], values: &[f32], into: &mut AlignedRow<f32>) {
        into.reset(self.n_entries * LANES);
        for (&column, &value) in columns.iter().zip(values) {
            let (number, lane) = (column as usize / LANES, column as usize % LANES);
            let entry = if self.is_whole {
                number
            } else {
                self.entry_of[number] as usize
            };
            into[entry * LANES + lane] += value;
        }
    }

    /// Whether the full row is meant.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Product of spread values with a full row of weights.
    #[inline]
    pub fn dot(&self, values: &[f32], weights: &[f32]) -> f32 {
        if self.is_whole {
            dot(values, weights)
        } else {
            dot_chunks(values, &self.numbers, weights)
        }
    }

    /// Adds `a` times spread values to a full row of weights.
    #[inline]
    pub fn add(&self, a: f32, values: &[f32], weights: &mut [f32]) {
        if self.is_whole {
            axpy(a, values, weights);
        } else {
            add_chunks(a, values, &self.numbers, weights);
        }
    }

    /// Asks for the weights of these chunks ahead of their use.
    #[inline]
    pub fn prefetch(&self, weights: &[f32]) {
        let first = |number: &u32| weights.get(*number as usize * LANES);
        self.numbers.iter().filter_map(first).for_each(prefetch);
    }
}

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

    /// How far a step along the direction may go.
    pub fn limit(&self) -> StepLimit {
        self.limit
    }

    pub(super) fn settle_direction(&mut self) {
        self.limit = StepLimit::new(&self.direction, 1.0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// To the bit, wherever the columns lie and however often one comes.
        #[test]
        fn what_is_left_out_adds_nothing(
            n_chunks in 1usize..40,
            places in prop::collection::vec(any::<u32>(), 0..120),
            step in -2.0f32..2.0,
        ) {
            let width = n_chunks * LANES;
            let columns: Vec<u32> = places.iter().map(|place| place % width as u32).collect();
            let value = |place: &u32| (place % 1000) as f32 / 300.0 - 1.0;
            let values: Vec<f32> = places.iter().map(value).collect();
            let weights: Vec<f32> = (0..width).map(|i| (i as f32).sin()).collect();
            let mut full = vec![0.0; width];
            for (&column, &value) in columns.iter().zip(&values) {
                full[column as usize] += value;
            }
            let (mut chunks, mut spread) = (FilledChunks::default(), AlignedRow::default());
            chunks.find(&columns, width);
            chunks.spread(&columns, &values, &mut spread);
            let product = chunks.dot(&spread, &weights);
            prop_assert_eq!(product.to_bits(), dot(&full, &weights).to_bits());
            let (mut some, mut all) = (weights.clone(), weights);
            chunks.add(step, &spread, &mut some);
            axpy(step, &full, &mut all);
            prop_assert_eq!(some, all);
            let filled: BTreeSet<u32> = columns.iter().map(|c| c / LANES as u32).collect();
            prop_assert!(chunks.is_whole() || spread.len() <= filled.len() * SUMS * LANES);
        }
    }
}
