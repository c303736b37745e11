//! The weights of one regressor.

use super::{AlignedRow, Table};
use crate::simd::prefetch;

/// Weights (and whatever an optimiser keeps beside them) by column.
///
/// A node that has seen few columns keeps a hash table of those; once the
/// table would take as much memory as all columns in a row, it becomes that
/// row. The row's length is a multiple of the SIMD lanes.
#[derive(Debug, Clone)]
pub enum Weights<S: Copy + Default> {
    /// Only the columns seen.
    Table(Table<S>),
    /// All columns.
    Row(AlignedRow<S>),
}

impl<S: Copy + Default> Default for Weights<S> {
    fn default() -> Self {
        Self::Table(Table::new())
    }
}

impl<S: Copy + Default> Weights<S> {
    /// Prepares for at most `incoming` further columns: turns into a row
    /// of `width` where a table with them in it would be no smaller.
    #[inline]
    pub fn prepare_for(&mut self, incoming: usize, width: usize) {
        if let Self::Table(table) = self {
            // Every second slot of a grown table may be empty, and a slot
            // carries a key beside the value.
            let slots = (table.len() + incoming) * 2;
            if slots * (size_of::<S>() + size_of::<u32>()) >= width * size_of::<S>() {
                self.spread(width);
            }
        }
    }

    /// All columns in a row of `width`.
    #[cold]
    pub fn spread(&mut self, width: usize) {
        if let Self::Table(table) = self {
            let mut row = AlignedRow::of_default(width);
            for (column, &value) in table.iter() {
                row[column as usize] = value;
            }
            *self = Self::Row(row);
        }
    }

    /// Calls `visit(entry, weight)` for each of `columns`, in order.
    #[inline]
    pub fn visit(&self, columns: &[u32], mut visit: impl FnMut(usize, S)) {
        match self {
            Self::Table(table) if table.is_empty() => {}
            Self::Table(table) => {
                for (entry, &column) in columns.iter().enumerate() {
                    if let Some(&slot) = table.get(column) {
                        visit(entry, slot);
                    }
                }
            }
            Self::Row(row) => {
                for (entry, &column) in columns.iter().enumerate() {
                    visit(entry, row[column as usize]);
                }
            }
        }
    }

    /// Calls `change(entry, weight)` for each of `columns`, in order.
    #[inline]
    pub fn change(&mut self, columns: &[u32], mut change: impl FnMut(usize, &mut S)) {
        match self {
            Self::Table(table) => {
                for (entry, &column) in columns.iter().enumerate() {
                    change(entry, table.entry(column));
                }
            }
            Self::Row(row) => {
                for (entry, &column) in columns.iter().enumerate() {
                    change(entry, &mut row[column as usize]);
                }
            }
        }
    }

    /// Asks for the weights of `columns` ahead of their use.
    #[inline]
    pub fn prefetch(&self, columns: &[u32]) {
        // Of a row the first lines: the machine notices that more is wanted.
        const LINES: usize = 4;
        match self {
            Self::Table(table) => columns.iter().for_each(|&column| table.prefetch(column)),
            Self::Row(row) => {
                let line = (64 / size_of::<S>()).max(1);
                row.iter().step_by(line).take(LINES).for_each(prefetch);
            }
        }
    }
}
