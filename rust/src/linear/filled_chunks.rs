//! The part of a row that is not empty, in whole registers.
//!
//! Columns that are filled together lie together: of the strokes of a letter a row fills an
//! eighth of the columns, but only half of the chunks of [`LANES`] columns. What is left out
//! would add zeros: sums have the bits of those over the full row.

use super::AlignedRow;
use crate::simd::{add_chunks, axpy, dot, dot_chunks, prefetch, LANES};

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
