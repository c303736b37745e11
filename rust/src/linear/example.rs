//! Prepared examples: their non-zeros, and dense rows if many columns are filled.
//!
//! Learning sends one example at a time down a tree ([`PathExample`]). Prediction sends a [`Block`]
//! of examples, so that those at a node share its weights. One at a time, every node would be a
//! cache miss.

use super::{lookup, prefetch_slot, AlignedRow, Slot, StepLimit, Weights};
use crate::data::{Preparation, RaggedRows, RowBuffer, Rows};
use crate::simd::{
    axpy, dispatched, dot, dot_lanes, dot_rows, four_sums, sparse_dot, strided_dot, LANES,
};

/// One example on its way down a tree, with a dense copy if that makes products faster.
#[derive(Debug, Default, Clone)]
pub struct PathExample {
    /// Non-zeros; the last is the constant.
    pub(super) row: RowBuffer,
    /// Bound of the columns; 0 until they have been checked.
    width: usize,
    /// Step direction per non-zero, if the optimizer has one for all nodes.
    pub(crate) direction: Vec<f32>,
    /// Maximum length of a step along the direction.
    pub(crate) limit: StepLimit,
    /// Effective number of dimensions; see [`Preconditioner::direction`].
    pub(super) dimension: f32,
    /// True if the dense copies below are used.
    is_spread: bool,
    spread: AlignedRow<f32>,
    spread_direction: AlignedRow<f32>,
}

impl PathExample {
    /// Products use dense rows if at least one column in this many is filled.
    pub const DENSE_SHARE: usize = 16;

    /// Replaces the example by `other` with the value 1 in each of `columns` added.
    pub fn widened(&mut self, other: &Self, columns: impl IntoIterator<Item = u32>) {
        self.width = 0;
        self.is_spread = false;
        self.row.clone_from(&other.row);
        self.row.columns.extend(columns);
        self.row.values.resize(self.row.columns.len(), 1.0);
    }

    /// Replaces the example by row `i`; see [`Preparation::read_to_learn`].
    pub fn read(
        &mut self,
        preparation: &mut Preparation,
        rows: &Rows<'_>,
        i: usize,
        is_stream: bool,
    ) {
        self.width = 0;
        preparation.read_to_learn(rows, i, is_stream, &mut self.row);
    }

    /// Replaces the example by row `i` of a block.
    pub fn take(&mut self, block: &Block, i: usize) {
        let (columns, values) = block.row(i);
        self.width = 0;
        columns.clone_into(&mut self.row.columns);
        values.clone_into(&mut self.row.values);
        self.settle(block.width());
    }

    /// Checks the columns and makes a dense copy of dense rows.
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

    /// Returns the effective number of dimensions, at least 1.
    pub fn dimension(&self) -> f32 {
        self.dimension.max(1.0)
    }

    /// Returns the non-zeros; the last is the constant.
    pub fn row(&self) -> &RowBuffer {
        &self.row
    }

    /// Limits steps along a new direction and makes its dense copy.
    pub(super) fn settle_direction(&mut self) {
        self.limit = StepLimit::new(&self.direction, 1.0);
        if self.is_spread {
            self.spread_direction.reset(self.width);
            let (columns, direction) = (&self.row.columns, &self.direction);
            spread(columns, direction, &mut self.spread_direction);
        }
    }

    /// Returns the product with the weights of one regressor.
    ///
    /// # Panics
    ///
    /// If a dense row of weights is narrower than the example, or before [`Regressors::prepare`].
    ///
    /// [`Regressors::prepare`]: super::Regressors::prepare
    pub fn dot(&self, weights: &Weights<f32>) -> f32 {
        let RowBuffer { columns, values } = &self.row;
        match weights {
            Weights::Row(row) if self.is_spread => dot(&self.spread, row),
            Weights::Row(row) => {
                assert!(row.len() >= self.width && self.width > 0);
                // SAFETY: `settle` has checked that all columns are below `width`, and every change
                // of the columns resets `width` to 0.
                unsafe { sparse_dot(columns, values, row) }
            }
            Weights::Table(table) => dot_slots(columns, values, table.slots(), |w| w),
        }
    }

    /// Adds `step` times the direction to the weights of one regressor of `width` columns.
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

/// A block of prepared rows. The storage of a row, and so the last bit of its products, depends on
/// this row only.
#[derive(Debug, Clone, Default)]
pub struct Block {
    width: usize,
    rows: RaggedRows,
    /// Position of each row in `full`, or `SPARSE`.
    full_at: Vec<usize>,
    /// Dense rows.
    full: AlignedRow<f32>,
    row: RowBuffer,
}

/// Position of rows that are not stored densely.
const SPARSE: usize = usize::MAX;

/// Up to this many columns, products by value are as fast as by vector register.
const MAX_NARROW_COLUMNS: usize = 64;

/// Largest number of a row's values whose slots are prefetched.
const MAX_PREFETCHED: usize = 16;

impl Block {
    /// Rows are stored densely if at least one column in this many is filled.
    pub const MAX_COLUMNS_PER_VALUE: usize = 4;

    /// Replaces the block by the rows `which`, for weights of `width` columns.
    ///
    /// # Panics
    ///
    /// If a prepared column is not below `width`.
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
            if columns.len() * Self::MAX_COLUMNS_PER_VALUE >= width {
                self.full_at.push(self.full.len());
                spread(columns, values, self.full.grow(width));
            } else {
                self.full_at.push(SPARSE);
            }
            self.rows.push(columns.iter().copied(), values);
        }
    }

    /// Number of columns of the weights.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        self.rows.row(i)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.full_at.len()
    }

    /// Returns whether row `i` is stored densely.
    pub fn is_full(&self, i: usize) -> bool {
        self.full_at[i] != SPARSE
    }

    /// Returns whether no row is stored densely.
    pub fn is_sparse(&self) -> bool {
        self.full.is_empty()
    }

    /// Returns the product of row `i` with the weights of one regressor.
    ///
    /// # Panics
    ///
    /// If a dense row of weights has another width than the block.
    pub fn dot(&self, i: usize, weights: &Weights<f32>) -> f32 {
        match weights {
            Weights::Row(row) => self.dot_row(i, row),
            Weights::Table(table) => self.dot_slots(i, table.slots()),
        }
    }

    /// Returns the product of row `i` with the `weight` of each entry of one regressor, to the bit that
    /// of [`Self::dot`] with these weights.
    ///
    /// # Panics
    ///
    /// If a dense row of weights is narrower than a column, or has another width than the block.
    pub fn dot_with<S: Copy + Default>(
        &self,
        i: usize,
        entries: &Weights<S>,
        weight: impl Fn(S) -> f32,
    ) -> f32 {
        let (columns, values) = self.rows.row(i);
        match entries {
            Weights::Table(table) => dot_slots(columns, values, table.slots(), weight),
            Weights::Row(row) if self.full_at[i] == SPARSE => {
                four_sums(columns, values, |column| weight(row[column as usize]))
            }
            Weights::Row(_) => self.dot(i, &entries.map(weight)),
        }
    }

    /// Returns the product of row `i` with a dense row of weights.
    ///
    /// # Panics
    ///
    /// If `weights` have another width than the block.
    pub fn dot_row(&self, i: usize, weights: &[f32]) -> f32 {
        assert_eq!(weights.len(), self.width);
        match self.full_at[i] {
            SPARSE => {
                let (columns, values) = self.rows.row(i);
                // SAFETY: `fill` has checked that all columns are below `width`.
                unsafe { sparse_dot(columns, values, weights) }
            }
            from => dot(&self.full[from..from + self.width], weights),
        }
    }

    /// Replaces `products` by those of `rows` with a dense row of weights, to the bit those of
    /// [`Self::dot_row`]. Returns false if some row of the block is not stored densely.
    ///
    /// # Panics
    ///
    /// If `weights` have another width than the block.
    pub fn dot_rows(&self, rows: &[u32], weights: &[f32], products: &mut Vec<f32>) -> bool {
        assert_eq!(weights.len(), self.width);
        if self.full.len() < self.len() * self.width {
            return false;
        }
        products.resize(rows.len(), 0.0);
        dot_rows(&self.full, rows, weights, products);
        true
    }

    /// Returns the products of row `i` with the weights in each lane.
    ///
    /// # Panics
    ///
    /// If there are fewer weights than the block has columns.
    pub fn dot_lanes(&self, i: usize, lanes: &[[f32; LANES]]) -> [f32; LANES] {
        let (columns, values) = self.rows.row(i);
        dot_lanes(columns, values, lanes)
    }

    /// Returns the products of row `i` with the weights of `n` regressors, at most [`LANES`], which
    /// are side by side for each column: to the bit those of [`Self::dot_row`] if the row is not
    /// stored densely.
    ///
    /// # Panics
    ///
    /// If `weights` do not have [`LANES`] floats more than the block's columns need.
    pub fn dot_strided(&self, i: usize, weights: &[f32], n: usize) -> [f32; LANES] {
        assert!(weights.len() >= self.width * n + LANES);
        let (columns, values) = self.rows.row(i);
        // SAFETY: `fill` has checked that all columns are below `width`.
        unsafe {
            match n {
                0..=4 => widened(strided_dot::<4>(columns, values, weights, n)),
                5..=8 => widened(strided_dot::<8>(columns, values, weights, n)),
                _ => strided_dot(columns, values, weights, n),
            }
        }
    }

    /// Returns the products of row `i` with the weights of `n` regressors, at most [`LANES`], which
    /// are side by side at the place of a column in `slots`: to the bit those of
    /// [`Self::dot_slots`] with the table of each regressor, except for the sign of zero.
    ///
    /// # Panics
    ///
    /// If there are fewer than [`LANES`] weights from a place on.
    pub fn dot_strided_slots(
        &self,
        i: usize,
        slots: &[Slot<u32>],
        weights: &[f32],
        n: usize,
    ) -> [f32; LANES] {
        let (columns, values) = self.rows.row(i);
        match n {
            0..=4 => widened(strided_slots::<4>(columns, values, slots, weights)),
            5..=8 => widened(strided_slots::<8>(columns, values, slots, weights)),
            _ => strided_slots(columns, values, slots, weights),
        }
    }

    /// Returns whether row `i` should be scored with [`Self::dot_lanes`], value by value with many
    /// regressors, and not with one dense row of weights after the other.
    pub fn is_for_lanes(&self, i: usize) -> bool {
        self.full_at[i] == SPARSE || self.width <= MAX_NARROW_COLUMNS
    }

    /// Returns the product of row `i` with the weights of one regressor, with sums in the order of
    /// [`Self::dot_lanes`].
    ///
    /// # Panics
    ///
    /// If a dense row of weights has another width than the block.
    pub fn dot_as_lane(&self, i: usize, weights: &Weights<f32>) -> f32 {
        let (columns, values) = self.rows.row(i);
        match weights {
            Weights::Row(row) => {
                assert_eq!(row.len(), self.width);
                // SAFETY: `fill` has checked that all columns are below `width`.
                unsafe { sparse_dot(columns, values, row) }
            }
            Weights::Table(table) => {
                let weight = |column| table.get(column).copied().unwrap_or_default();
                four_sums(columns, values, weight)
            }
        }
    }

    /// Prefetches the slots that [`Self::dot_slots`] reads first for row `i`.
    pub fn prefetch_slots(&self, i: usize, slots: &[Slot<f32>]) {
        let columns = self.rows.row(i).0.iter().take(MAX_PREFETCHED);
        columns.for_each(|&column| prefetch_slot(slots, column));
    }

    /// Returns the product of row `i` with weights in the slots of a table.
    pub fn dot_slots(&self, i: usize, slots: &[Slot<f32>]) -> f32 {
        let (columns, values) = self.rows.row(i);
        dot_slots(columns, values, slots, |w| w)
    }
}

/// Panics unless all columns are below `width`, on which unchecked products rely.
fn assert_below(columns: &[u32], width: usize) {
    let highest = columns
        .iter()
        .fold(0, |highest, &column| column.max(highest));
    assert!((highest as usize) < width);
}

/// Adds the values to a dense row of zeros. Hashed columns may collide.
fn spread(columns: &[u32], values: &[f32], into: &mut [f32]) {
    for (&column, &value) in columns.iter().zip(values) {
        into[column as usize] += value;
    }
}

/// Returns the product with the weights of the slots of a table.
fn dot_slots<V: Copy>(
    columns: &[u32],
    values: &[f32],
    slots: &[Slot<V>],
    weight: impl Fn(V) -> f32,
) -> f32 {
    let mut sum = 0.0;
    for (&column, &x) in columns.iter().zip(values) {
        if let Some(&entry) = lookup(slots, column) {
            sum += weight(entry) * x;
        }
    }
    sum
}

dispatched! {
    /// Returns the products with the L weights at the place of each column.
    fn strided_slots[L](
        columns: &[u32],
        values: &[f32],
        slots: &[Slot<u32>],
        weights: &[f32],
    ) -> [f32; L] {
        let mut sums = [0.0; L];
        for (&column, &x) in columns.iter().zip(values) {
            if let Some(&at) = lookup(slots, column) {
                let weights = &weights[at as usize..][..L];
                for lane in 0..L {
                    sums[lane] += weights[lane] * x;
                }
            }
        }
        sums
    }
}

/// Appends zeros.
fn widened<const L: usize>(products: [f32; L]) -> [f32; LANES] {
    let mut all = [0.0; LANES];
    all[..L].copy_from_slice(&products);
    all
}

/// Rounds `width` up to a multiple of the SIMD lanes.
pub fn padded(width: usize) -> usize {
    width.next_multiple_of(LANES)
}
