//! What is drawn: rows per round, features per split. Everything is a function of the
//! seed and of what it is drawn for, never of what was drawn before, so that neither
//! threads nor the order of the work matter.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::weights::Weights;

/// Classes from which, and rows per class, on average, up to which no row is left out. One that
/// is seldom finds another of its class in its leaf then and keeps its weight, while those
/// drawn lose theirs: weights would say who was drawn. With fewer classes it finds one, and
/// what it tells of a tree that it had no part in is worth having.
const MANY_OF_FEW: (usize, usize) = (100, 15);

/// The generator for one purpose.
pub fn generator(seed: u64, round: u64, place: u64) -> Pcg64Mcg {
    let mixed = seed
        .wrapping_add(round.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(place.wrapping_mul(0xD1B5_4A32_D192_ED03));
    Pcg64Mcg::seed_from_u64(mixed)
}

/// Draws the columns that a split chooses from.
#[derive(Debug, Clone)]
pub struct Features {
    /// All columns; rising between draws.
    all: Vec<u32>,
    n_drawn: usize,
    swaps: Vec<usize>,
    drawn: Vec<u32>,
}

impl Features {
    /// A share of `n` columns, at least one if there is one.
    pub fn new(n: usize, share: f64) -> Self {
        Self {
            all: (0..n as u32).collect(),
            n_drawn: ((n as f64 * share).ceil() as usize).min(n),
            swaps: Vec::new(),
            drawn: Vec::new(),
        }
    }

    /// How many are drawn for a split.
    pub fn n_drawn(&self) -> usize {
        self.n_drawn
    }

    /// The columns for node `node` of round `round`, in any order.
    pub fn draw(&mut self, seed: u64, round: u64, node: u64) -> &[u32] {
        let n = self.all.len();
        if self.n_drawn == n {
            return &self.all;
        }
        let mut random = generator(seed, round, node + 1);
        self.swaps.clear();
        for at in 0..self.n_drawn {
            // Up to 2^-32 not uniform, which no test could tell.
            let left = (n - at) as u64;
            let other = at + ((u64::from(random.random::<u32>()) * left) >> 32) as usize;
            self.all.swap(at, other);
            self.swaps.push(other);
        }
        self.drawn.clear();
        self.drawn.extend_from_slice(&self.all[..self.n_drawn]);
        // Put back, for the next draw must not depend on this one.
        for at in (0..self.n_drawn).rev() {
            self.all.swap(at, self.swaps[at]);
        }
        &self.drawn
    }
}

/// Draws the rows that a tree learns from.
#[derive(Debug)]
pub struct Rows {
    share: f64,
    trim: f64,
    /// Weight of the rows by how far below the greatest theirs is.
    by_level: Vec<f64>,
}

impl Rows {
    /// For rows of these labels.
    pub fn new(labels: &[u32], n_classes: usize, share: f64, trim: f64) -> Self {
        let mut present = vec![false; n_classes];
        labels
            .iter()
            .for_each(|&label| present[label as usize] = true);
        let n_present = present.iter().filter(|present| **present).count();
        let (many, few) = MANY_OF_FEW;
        let all = n_present >= many && labels.len() <= few * n_present;
        Self {
            share: if all { 1.0 } else { share },
            trim,
            by_level: Vec::new(),
        }
    }

    /// The rows for round `round`, rising.
    pub fn draw(&mut self, weights: &Weights, seed: u64, round: u64, rows: &mut Vec<u32>) {
        let least = self.least(weights);
        let stays = |row: usize| weights.below(row) <= least;
        let all = 0..weights.plain.len();
        rows.clear();
        if self.share < 1.0 {
            let mut random = generator(seed, round, 0);
            rows.extend(
                all.clone()
                    // Drawn for every row, so that one row's weight does not decide over others.
                    .filter(|_| random.random::<f64>() < self.share)
                    .filter(|&row| stays(row))
                    .map(|row| row as u32),
            );
        }
        if rows.is_empty() {
            rows.extend(all.filter(|&row| stays(row)).map(|row| row as u32));
        }
    }

    /// How far below the greatest a row's log weight may be: the rows below have at most
    /// the share `trim` of all weight. Found in steps of a 16th, without sorting.
    fn least(&mut self, weights: &Weights) -> f64 {
        const STEPS: f64 = 16.0;
        const LEVELS: usize = 1024;
        if self.trim == 0.0 {
            return f64::INFINITY;
        }
        self.by_level.clear();
        self.by_level.resize(LEVELS, 0.0);
        for (row, weight) in weights.plain.iter().enumerate() {
            let level = (weights.below(row) * STEPS) as usize;
            self.by_level[level.min(LEVELS - 1)] += weight;
        }
        let most = self.trim * self.by_level.iter().sum::<f64>();
        let mut gone = 0.0;
        for level in (1..LEVELS).rev() {
            gone += self.by_level[level];
            if gone > most {
                return if level == LEVELS - 1 {
                    f64::INFINITY
                } else {
                    (level + 1) as f64 / STEPS
                };
            }
        }
        1.0 / STEPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(n_rows: usize, n_classes: usize) -> usize {
        let labels: Vec<u32> = (0..n_rows).map(|row| (row % n_classes) as u32).collect();
        let weights = Weights::new(labels.iter().map(|_| 1.0));
        // A class that nobody has makes none of the others smaller.
        let mut rows = Rows::new(&labels, n_classes + 1, 0.5, 0.0);
        let mut drawn = Vec::new();
        rows.draw(&weights, 0, 0, &mut drawn);
        drawn.len()
    }

    #[test]
    fn no_row_is_left_out_where_many_classes_have_few() {
        assert_eq!(drawn(1500, 100), 1500);
        for some in [drawn(1501, 100), drawn(1485, 99)] {
            assert!((600..900).contains(&some), "{some}");
        }
    }
}
