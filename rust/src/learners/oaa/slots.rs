//! Which row of the weights belongs to which column of the examples.

use crate::alloc::{push, zeros};
use crate::data::RowBuffer;

/// Rows ("slots") are given to columns when they first occur, so that memory
/// grows with the features seen and not with the width of X.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FeatureSlots {
    /// Slot + 1 per column, 0 for none: pages of zeros that are never touched
    /// take no memory.
    slots: Vec<u32>,
    columns: Vec<u32>,
}

impl FeatureSlots {
    /// For columns below `width`, none of which has a slot.
    pub fn new(width: usize) -> Self {
        Self {
            slots: zeros(width),
            columns: Vec::new(),
        }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// The column of each slot.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The slot of `column`, a new one if it has none.
    #[inline]
    pub fn get_or_insert(&mut self, column: u32) -> u32 {
        let slot = &mut self.slots[column as usize];
        if *slot == 0 {
            push(&mut self.columns, column);
            *slot = self.columns.len() as u32;
        }
        *slot - 1
    }

    /// Takes the slots from number `n` on away.
    pub fn truncate(&mut self, n: usize) {
        for column in self.columns.drain(n..) {
            self.slots[column as usize] = 0;
        }
    }

    /// Gives slots to stored `columns` in their order; false where the first does not have
    /// slot 0 already, or another one is too high or has a slot.
    pub fn insert_all(&mut self, columns: &[u32]) -> bool {
        let mut numbered = (0..).zip(columns);
        let fits = |&column: &u32| (column as usize) < self.slots.len();
        !columns.is_empty()
            && columns.iter().all(fits)
            && numbered.all(|(slot, &column)| self.get_or_insert(column) == slot)
    }

    /// The slot of `column`, if it has one.
    #[inline]
    fn get(&self, column: u32) -> Option<u32> {
        self.slots[column as usize].checked_sub(1)
    }

    /// Turns the columns of a row to be predicted into slots; those without a slot,
    /// of which nothing was learned, are left out.
    pub fn translate(&self, row: &mut RowBuffer) {
        let mut n = 0;
        for at in 0..row.columns.len() {
            if let Some(slot) = self.get(row.columns[at]) {
                row.columns[n] = slot;
                row.values[n] = row.values[at];
                n += 1;
            }
        }
        row.columns.truncate(n);
        row.values.truncate(n);
    }
}
