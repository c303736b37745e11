//! Hash tables of weights that no longer change, for prediction.
//!
//! A bucket of eight keys and their weights is one cache line, and one comparison of vectors finds a
//! key in it. In the table of the learner every probe is a branch that the processor cannot guess.

use super::Table;
use crate::simd::{dispatched, prefetch};

/// Keys of a bucket.
const KEYS: usize = 8;

/// Keys per bucket on average. More keys save memory, and more of them lie outside their bucket.
const FILL: usize = 5;

/// Key of free places, which no column has.
const FREE: u32 = u32::MAX;

/// Keys and their weights; the keys come first, then the free places.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Bucket {
    keys: [u32; KEYS],
    weights: [f32; KEYS],
}

impl Bucket {
    const EMPTY: Self = Self {
        keys: [FREE; KEYS],
        weights: [0.0; KEYS],
    };

    /// Appends the buckets of a table. A key is in the first bucket with a free place from its own
    /// on, and the first bucket follows the last.
    pub fn extend(into: &mut Vec<Self>, table: &Table<f32>) {
        let start = into.len();
        into.resize(start + table.len().div_ceil(FILL), Self::EMPTY);
        let buckets = &mut into[start..];
        for (key, &weight) in table.iter() {
            let mut at = place(key, buckets.len());
            loop {
                let bucket = &mut buckets[at];
                let n_keys = bucket.keys.iter().filter(|&&key| key != FREE).count();
                if n_keys < KEYS {
                    (bucket.keys[n_keys], bucket.weights[n_keys]) = (key, weight);
                    break;
                }
                at = after(at, buckets.len());
            }
        }
    }
}

/// Returns the bucket of a key. The upper half of its product with 2^32 / golden ratio spreads the
/// keys evenly.
#[inline(always)]
fn place(key: u32, n_buckets: usize) -> usize {
    let spread = key.wrapping_mul(0x9E37_79B1);
    ((u64::from(spread) * n_buckets as u64) >> 32) as usize
}

/// Returns the bucket after `at`.
#[inline(always)]
fn after(at: usize, n_buckets: usize) -> usize {
    if at + 1 == n_buckets {
        0
    } else {
        at + 1
    }
}

/// Prefetches the buckets of these columns.
#[inline]
pub fn prefetch_buckets(columns: &[u32], buckets: &[Bucket]) {
    if !buckets.is_empty() {
        for &column in columns {
            prefetch(&buckets[place(column, buckets.len())]);
        }
    }
}

dispatched! {
    /// Returns the product of a row with the weights in buckets. Columns without a weight add 0.
    pub fn dot_buckets(columns: &[u32], values: &[f32], buckets: &[Bucket]) -> f32 {
        let mut sum = 0.0;
        if buckets.is_empty() {
            return sum;
        }
        for (&column, &x) in columns.iter().zip(values) {
            let mut at = place(column, buckets.len());
            loop {
                let Bucket { keys, weights } = &buckets[at];
                let mut bits = 0;
                for i in 0..KEYS {
                    let mask = u32::from(keys[i] == column).wrapping_neg();
                    bits |= weights[i].to_bits() & mask;
                }
                // A weight of zero adds nothing, so the search may go on as if it were not there. One
                // condition, because the processor cannot guess whether a column has a weight.
                if (bits != 0) | (keys[KEYS - 1] == FREE) {
                    sum += f32::from_bits(bits) * x;
                    break;
                }
                at = after(at, buckets.len());
            }
        }
        sum
    }
}
