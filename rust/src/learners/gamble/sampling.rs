//! Weights of the rows, and samples of rows per round and of features per split.
//!
//! Weights are kept as logarithms: plain ones would underflow to 0, which no later round could undo.
//! Every sample is a function of the seed and of its purpose, never of earlier samples.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::learners::mix;

/// How far below the greatest a log weight counts. Plain weights stay above 0, so that no
/// leaf is without weight, and their squares too; in single precision they keep all its
/// digits.
const MAX_LOG_BELOW: f64 = 80.0;

/// Weights of the rows, up to a common factor.
#[derive(Debug, Clone)]
pub struct Weights {
    logs: Vec<f64>,
    highest: f64,
    /// The weights themselves, of which the greatest is 1. As of the last
    /// [`refresh`](Self::refresh).
    pub plain: Vec<f64>,
}

impl Weights {
    /// Starts from importances above 0.
    pub fn new(importances: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = importances.map(f64::ln).collect();
        let mut weights = Self {
            plain: vec![0.0; logs.len()],
            logs,
            highest: 0.0,
        };
        weights.refresh();
        weights
    }

    /// Multiplies the weight of row `row` by e^`by`.
    #[inline]
    pub fn scale(&mut self, row: usize, by: f64) {
        self.logs[row] += by;
    }

    /// Makes the plain weights those of the logarithms.
    pub fn refresh(&mut self) {
        let highest = |a: f64, b: &f64| a.max(*b);
        self.highest = self.logs.iter().fold(f64::NEG_INFINITY, highest);
        for (plain, log) in self.plain.iter_mut().zip(&self.logs) {
            // Single precision: a scan moves the weights, and is as fast as they are small.
            *plain = ((log - self.highest).max(-MAX_LOG_BELOW).exp() as f32).into();
        }
    }

    /// By how much the log weight of row `row` is below the greatest.
    #[inline]
    pub fn below(&self, row: usize) -> f64 {
        self.highest - self.logs[row]
    }
}

/// Number of classes from which, and rows per class, on average, up to which no row is left out.
/// A row left out would seldom find another of its class in its leaf and keep its weight, while
/// those sampled lose theirs: weights would tell which rows were sampled. With fewer classes it
/// finds one, and its weight says how good the tree is on rows that it was not grown from.
const UNSAMPLED_CLASSES_AND_ROWS: (usize, usize) = (100, 15);

/// The generator for one purpose.
pub fn generator(seed: u64, round: u64, place: u64) -> Pcg64Mcg {
    let mixed = seed
        .wrapping_add(round.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(place.wrapping_mul(0xD1B5_4A32_D192_ED03));
    Pcg64Mcg::seed_from_u64(mixed)
}

/// Columns above which each is sampled on its own, by a hash: listing those sampled would take
/// longer than reading a small node's entries.
const MAX_LISTED_COLUMNS: usize = 1024;

/// Samples the columns that a split chooses from.
#[derive(Debug, Clone)]
pub struct FeatureSampler {
    n: usize,
    /// How many are sampled for a split, about.
    pub n_sampled: usize,
    order: Vec<u32>,
    marks: Vec<bool>,
}

/// The columns that a split chooses from.
#[derive(Debug, Clone, Copy)]
pub enum SampledFeatures<'a> {
    /// Those whose mark is true.
    Marked(&'a [bool]),
    /// Those whose hash with the key of the node is at most `max_hash`.
    Hashed { key: u64, max_hash: u64 },
}

impl SampledFeatures<'_> {
    /// Whether `column` is one of them.
    #[inline]
    pub fn contains(&self, column: u32) -> bool {
        match *self {
            Self::Marked(marks) => marks[column as usize],
            Self::Hashed { key, max_hash } => {
                let column = u64::from(column).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                mix(key.wrapping_add(column)) <= max_hash
            }
        }
    }
}

impl FeatureSampler {
    /// A share of `n` columns, at least one if there is one.
    pub fn new(n: usize, share: f64) -> Self {
        Self {
            n,
            // A whole number that rounding put just above itself is not rounded up.
            n_sampled: ((n as f64 * share - 1e-9).ceil() as usize).clamp(n.min(1), n),
            order: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// The columns for node `node` of round `round`.
    pub fn sample(&mut self, seed: u64, round: u64, node: u64) -> SampledFeatures<'_> {
        let (n, n_sampled) = (self.n, self.n_sampled);
        let mut random = generator(seed, round, node + 1);
        if n > MAX_LISTED_COLUMNS {
            return SampledFeatures::Hashed {
                key: random.random(),
                // 2^64 is rounded to the greatest there is.
                max_hash: (n_sampled as f64 / n as f64 * 2f64.powi(64)) as u64,
            };
        }
        self.marks.clear();
        self.marks.resize(n, n_sampled == n);
        if n_sampled < n {
            self.order.clear();
            self.order.extend(0..n as u32);
            for at in 0..n_sampled {
                // Up to 2^-32 not uniform, which no test could tell.
                let left = (n - at) as u64;
                let other = at + ((u64::from(random.random::<u32>()) * left) >> 32) as usize;
                self.order.swap(at, other);
                self.marks[self.order[at] as usize] = true;
            }
        }
        SampledFeatures::Marked(&self.marks)
    }
}

/// Samples the rows that a tree is grown from.
#[derive(Debug)]
pub struct RowSampler {
    share: f64,
    trim: f64,
}

impl RowSampler {
    pub fn new(labels: &[u32], n_classes: usize, share: f64, trim: f64) -> Self {
        let mut present = vec![false; n_classes];
        for &label in labels {
            present[label as usize] = true;
        }
        let n_present = present.iter().filter(|present| **present).count();
        let (many, few) = UNSAMPLED_CLASSES_AND_ROWS;
        let all = n_present >= many && labels.len() <= few * n_present;
        Self {
            share: if all { 1.0 } else { share },
            trim,
        }
    }

    /// Whether no row is left out by chance.
    pub fn takes_all(&self) -> bool {
        self.share >= 1.0
    }

    /// Which of `n` rows chance has sampled for round `round`, some of which may have been trimmed.
    pub fn mark(&self, n: usize, seed: u64, round: u64, is_sampled: &mut Vec<bool>) {
        let mut is_drawn = self.draws(seed, round);
        is_sampled.clear();
        is_sampled.extend((0..n).map(|_| is_drawn()));
    }

    /// Called for one row after the other: whether chance samples it for round `round`.
    fn draws(&self, seed: u64, round: u64) -> impl FnMut() -> bool {
        let (mut random, share) = (generator(seed, round, 0), self.share);
        move || random.random::<f64>() < share
    }

    /// The rows for round `round`, rising.
    pub fn sample(&self, weights: &Weights, seed: u64, round: u64, rows: &mut Vec<u32>) {
        let least = self.least(weights);
        let all = 0..weights.plain.len() as u32;
        let stays = |row: &u32| weights.below(*row as usize) <= least;
        rows.clear();
        rows.reserve(all.len());
        if !self.takes_all() {
            // A number for every row, so that one row's weight does not decide over others.
            let mut is_drawn = self.draws(seed, round);
            let sampled = all.clone().filter(|_| is_drawn());
            rows.extend(sampled.filter(stays));
        }
        if rows.is_empty() {
            rows.extend(all.filter(stays));
        }
    }

    /// How far below the greatest a row's log weight may be: the rows below have at most
    /// the share `trim` of all weight. Found in steps of a 16th, without sorting.
    fn least(&self, weights: &Weights) -> f64 {
        const LEVELS_PER_UNIT: f64 = 16.0;
        const N_LEVELS: usize = 1024;
        if self.trim == 0.0 {
            return f64::INFINITY;
        }
        let mut by_level = [0.0; N_LEVELS];
        for (row, weight) in weights.plain.iter().enumerate() {
            let level = (weights.below(row) * LEVELS_PER_UNIT) as usize;
            by_level[level.min(N_LEVELS - 1)] += weight;
        }
        let most = self.trim * by_level.iter().sum::<f64>();
        let mut gone = 0.0;
        for level in (1..N_LEVELS).rev() {
            gone += by_level[level];
            if gone > most {
                // The last level is open.
                let is_last = level == N_LEVELS - 1;
                return if is_last {
                    f64::INFINITY
                } else {
                    (level + 1) as f64 / LEVELS_PER_UNIT
                };
            }
        }
        1.0 / LEVELS_PER_UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n_sampled(n_rows: usize, n_classes: usize) -> usize {
        let labels: Vec<u32> = (0..n_rows).map(|row| (row % n_classes) as u32).collect();
        let weights = Weights::new(labels.iter().map(|_| 1.0));
        // A class that nobody has makes none of the others smaller.
        let rows = RowSampler::new(&labels, n_classes + 1, 0.5, 0.0);
        let mut sampled = Vec::new();
        rows.sample(&weights, 0, 0, &mut sampled);
        sampled.len()
    }

    #[test]
    fn no_row_is_left_out_where_many_classes_have_few() {
        assert_eq!(n_sampled(1500, 100), 1500);
        for some in [n_sampled(1501, 100), n_sampled(1485, 99)] {
            assert!((600..900).contains(&some), "{some}");
        }
    }

    #[test]
    fn the_lightest_are_trimmed() {
        // Weights of one half, a quarter and so on, ten times each.
        let weights = Weights::new((0..100).map(|row| 0.5f64.powi(row / 10)));
        let labels = vec![0; 100];
        for (trim, left) in [(0.0, 100), (0.01, 70), (0.1, 40), (0.3, 20), (0.9, 10)] {
            let mut rows = Vec::new();
            RowSampler::new(&labels, 1, 1.0, trim).sample(&weights, 0, 0, &mut rows);
            assert_eq!(rows, (0..left).collect::<Vec<u32>>(), "trim {trim}");
        }
    }

    fn columns(n: usize, share: f64, node: u64) -> Vec<u32> {
        let mut features = FeatureSampler::new(n, share);
        let sampled = features.sample(7, 3, node);
        (0..n as u32)
            .filter(|&column| sampled.contains(column))
            .collect()
    }

    #[test]
    fn a_share_of_the_columns_is_sampled_anew_for_every_node() {
        for (n, share, least, most) in [
            (100, 0.07, 7, 7),
            (100, 0.071, 8, 8),
            (3, 1e-9, 1, 1),
            (100_000, 0.3, 29_000, 31_000),
            (100_000, 1.0, 100_000, 100_000),
        ] {
            let sampled = columns(n, share, 1);
            assert!(
                (least..=most).contains(&sampled.len()),
                "{n} {share}: {}",
                sampled.len()
            );
            assert_eq!(sampled, columns(n, share, 1));
            assert_eq!(sampled == columns(n, share, 2), share == 1.0 || n == 3);
        }
    }
}
