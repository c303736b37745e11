//! Which rows each tree leaves out.

use super::super::params::Params;
use crate::random::mix;

/// Systematic sampling: a row has a random place on a circle of length 1, and tree t leaves
/// out those in the arc of length `share` that begins at t times `share`. So of T trees each
/// row is left out by T times `share`, rounded up or down, and no tree needs a list.
#[derive(Debug, Clone, Copy)]
pub struct HeldOut {
    share: f64,
    seed: u64,
    n_rows: usize,
}

impl HeldOut {
    pub fn new(params: &Params, n_rows: usize) -> Self {
        Self {
            share: params.held_out_share,
            seed: params.seed,
            n_rows,
        }
    }

    /// Whether `tree` does not train on `row`.
    pub fn leaves_out(self, tree: usize, row: u32) -> bool {
        // Each tree keeps one row at least.
        if row as usize == tree % self.n_rows {
            return false;
        }
        let hash = mix(self.seed ^ (u64::from(row) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03));
        let place = (hash >> 11) as f64 / (1u64 << 53) as f64;
        // Where the arc begins is at 0 now.
        let begin = (tree as f64 * self.share).fract();
        let place = place - begin + f64::from(u8::from(place < begin));
        place < self.share
    }

    /// The rows that `tree` trains on.
    pub fn training_rows(self, tree: usize) -> impl Iterator<Item = u32> {
        (0..self.n_rows as u32).filter(move |&row| !self.leaves_out(tree, row))
    }
}
