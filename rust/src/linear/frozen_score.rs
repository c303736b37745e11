//! What prediction sees of a regressor: the weights that are frozen, and the scores by them where
//! nothing was frozen.
//!
//! A frozen tree defines the predictions, down to the order in which products are added up.
//! [`frozen_score`] follows it on the weights as they lie in a tree that learns on.

use super::{AdaSlot, AlignedRow, Block, NagSlot, Weights};
use crate::simd::{dot, four_sums};

/// A weight with whatever an optimiser keeps beside it.
pub(super) trait PlainWeight: Copy + Default {
    /// The weight as prediction sees it.
    fn plain(self) -> f32;

    /// A row's product with an example of all columns.
    fn dot_full(row: &[Self], example: &[f32]) -> f32 {
        let row: Vec<f32> = row.iter().map(|slot| slot.plain()).collect();
        dot(example, &row)
    }
}

impl PlainWeight for f32 {
    #[inline]
    fn plain(self) -> f32 {
        self
    }

    #[inline]
    fn dot_full(row: &[Self], example: &[f32]) -> f32 {
        dot(example, row)
    }
}

impl PlainWeight for AdaSlot {
    #[inline]
    fn plain(self) -> f32 {
        self.w
    }
}

impl PlainWeight for NagSlot {
    #[inline]
    fn plain(self) -> f32 {
        self.w
    }
}

/// The weights to be frozen.
pub(super) fn plain<S: PlainWeight>(weights: &Weights<S>) -> Weights<f32> {
    match weights {
        Weights::Table(table) => Weights::Table(
            table
                .iter()
                .map(|(key, slot)| (key, slot.plain()))
                .collect(),
        ),
        Weights::Row(row) => {
            let mut plain = AlignedRow::new(row.len());
            let pairs = plain.iter_mut().zip(row.iter());
            pairs.for_each(|(plain, slot)| *plain = slot.plain());
            Weights::Row(plain)
        }
    }
}

/// The score for row `i` of `block` by the weights that [`plain`] would freeze, added up as in the
/// first levels of a frozen tree (`at_top`) or below them.
#[inline]
pub(super) fn frozen_score<S: PlainWeight>(
    weights: &Weights<S>,
    block: &Block,
    i: usize,
    at_top: bool,
) -> f32 {
    let (columns, values) = block.row(i);
    match weights {
        Weights::Row(row) => match block.full_row(i) {
            Some(example) if !at_top => S::dot_full(row, example),
            _ => four_sums(columns, values, |column| row[column as usize].plain()),
        },
        Weights::Table(table) if at_top => {
            let weight = |column| table.get(column).map_or(0.0, |slot| slot.plain());
            four_sums(columns, values, weight)
        }
        Weights::Table(table) => {
            let mut sum = 0.0;
            if !table.is_empty() {
                for (&column, &x) in columns.iter().zip(values) {
                    if let Some(slot) = table.get(column) {
                        sum += slot.plain() * x;
                    }
                }
            }
            sum
        }
    }
}
