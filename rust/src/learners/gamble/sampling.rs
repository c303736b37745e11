//! Weights of the rows, samples of rows for each round, and samples of features for each split.
//!
//! Weights are stored as logarithms, because plain weights could underflow to 0, and no later round
//! would raise them again. Every sample depends only on the seed and its purpose, not on earlier
//! samples.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use crate::learners::mix;
use crate::threads::map_chunks;

/// Largest distance of a log weight below the greatest one; smaller weights count as if at this
/// distance, so that plain weights stay above 0. No node of the paper's trees is as far below: a
/// child has at least e^-24 of its parent's weight, as its split gains too little otherwise, and 15
/// leaves have at most 14 levels.
const MAX_LOG_BELOW: f64 = 700.0;

/// Least share of the weight of a row in that of the heaviest row of its node, e^-80; smaller shares
/// count as this one. They and their squares stay above 0, so every leaf has weight, and they keep
/// full precision in f32.
pub const MIN_SHARE: f64 = 1.804_851_4e-35;

/// Rows whose weights are added up together. Sums over more rows are those of such chunks, added in
/// their order, so that chunks may run on several threads.
pub const CHUNK_ROWS: usize = 1 << 15;

/// Rows whose plain weights a thread computes at a time.
const REFRESHED_ROWS: usize = 1 << 12;

/// Weights of the rows, up to a common factor.
#[derive(Debug, Clone)]
pub struct Weights {
    logs: Vec<f64>,
    highest: f64,
    /// Plain weights at the last [`refresh`](Self::refresh). The greatest is 1. Those above
    /// [`MIN_SHARE`] are rounded to single precision, as in scans.
    pub plain: Vec<f64>,
}

impl Weights {
    /// Starts from importance weights, which are above 0.
    pub fn new(importances: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = importances.map(f64::ln).collect();
        let mut weights = Self {
            plain: vec![0.0; logs.len()],
            logs,
            highest: 0.0,
        };
        weights.refresh(false);
        weights
    }

    /// Multiplies the weight of row `row` by e^`by`.
    pub fn scale(&mut self, row: usize, by: f64) {
        self.logs[row] += by;
    }

    /// Computes the plain weights from the logarithms.
    pub fn refresh(&mut self, threads: bool) {
        let max = |a: f64, b: f64| a.max(b);
        let highest = map_chunks(threads, &self.logs, REFRESHED_ROWS, |_, logs| {
            logs.iter().copied().fold(f64::NEG_INFINITY, max)
        });
        let highest = highest.into_iter().fold(f64::NEG_INFINITY, max);
        self.highest = highest;
        let refresh = |(plain, logs): (&mut [f64], &[f64])| {
            for (plain, log) in plain.iter_mut().zip(logs) {
                let weight = (log - highest).max(-MAX_LOG_BELOW).exp();
                let single = f64::from(weight as f32);
                *plain = if single > MIN_SHARE { single } else { weight };
            }
        };
        if threads {
            let chunks = self.plain.par_chunks_mut(REFRESHED_ROWS);
            chunks
                .zip(self.logs.par_chunks(REFRESHED_ROWS))
                .for_each(refresh);
        } else {
            refresh((&mut self.plain, &self.logs));
        }
    }

    /// Returns the distance of the log weight of row `row` below the greatest one.
    pub fn below(&self, row: usize) -> f64 {
        self.highest - self.logs[row]
    }
}

/// Returns the random generator for one purpose, given by `round` and `place`.
pub fn generator(seed: u64, round: u64, place: u64) -> Pcg64Mcg {
    let mixed = seed
        .wrapping_add(round.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(place.wrapping_mul(0xD1B5_4A32_D192_ED03));
    Pcg64Mcg::seed_from_u64(mixed)
}

/// Largest number of columns whose sample is listed. If there are more, a hash decides on each
/// column alone, as a list would take longer than reading the entries of a small node.
const MAX_LISTED_COLUMNS: usize = 1024;

/// Samples the columns among which a split is chosen.
#[derive(Debug, Clone)]
pub struct FeatureSampler {
    n: usize,
    pub n_sampled: usize,
    order: Vec<u32>,
    is_sampled: Vec<bool>,
}

/// The columns among which a split is chosen.
#[derive(Debug, Clone, Copy)]
pub enum SampledFeatures<'a> {
    /// True for each column that is sampled.
    Listed(&'a [bool]),
    /// Columns are sampled if their hash with the key of the node is at most `max_hash`.
    Hashed { key: u64, max_hash: u64 },
}

impl SampledFeatures<'_> {
    /// Returns true if `column` is sampled.
    pub fn contains(&self, column: u32) -> bool {
        match *self {
            Self::Listed(is_sampled) => is_sampled[column as usize],
            Self::Hashed { key, max_hash } => {
                let column = u64::from(column).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                mix(key.wrapping_add(column)) <= max_hash
            }
        }
    }
}

impl FeatureSampler {
    /// Samples a share of `n` columns, but at least one if there is any.
    pub fn new(n: usize, share: f64) -> Self {
        Self {
            n,
            // A product that rounding puts just above a whole number is not rounded up.
            n_sampled: ((n as f64 * share - 1e-9).ceil() as usize).clamp(n.min(1), n),
            order: Vec::new(),
            is_sampled: Vec::new(),
        }
    }

    /// Samples the columns for the node with the number `path` in round `round`.
    pub fn sample(&mut self, seed: u64, round: u64, path: u64) -> SampledFeatures<'_> {
        let (n, n_sampled) = (self.n, self.n_sampled);
        let mut random = generator(seed, round, path.wrapping_add(1));
        if n > MAX_LISTED_COLUMNS {
            return SampledFeatures::Hashed {
                key: random.random(),
                // The cast saturates: 2^64 becomes the greatest hash.
                max_hash: (n_sampled as f64 / n as f64 * 2f64.powi(64)) as u64,
            };
        }
        self.is_sampled.clear();
        self.is_sampled.resize(n, n_sampled == n);
        if n_sampled < n {
            self.order.clear();
            self.order.extend(0..n as u32);
            for at in 0..n_sampled {
                // The bias of this product is below 2^-22, which does not matter here.
                let left = (n - at) as u64;
                let other = at + ((u64::from(random.random::<u32>()) * left) >> 32) as usize;
                self.order.swap(at, other);
                self.is_sampled[self.order[at] as usize] = true;
            }
        }
        SampledFeatures::Listed(&self.is_sampled)
    }
}

/// Smallest number of classes for which all rows are sampled if classes have few rows.
///
/// A row that is left out of a tree seldom finds another row of its class in its leaf if classes
/// are many and have few rows. It keeps its weight while those of sampled rows fall, so weights
/// would depend on the sample. With fewer classes or more rows it finds one, and its weight
/// measures the tree on rows from which it was not grown.
const MIN_CLASSES_UNSAMPLED: usize = 100;

/// Largest mean number of rows per class for which all rows are sampled.
const MAX_ROWS_UNSAMPLED: usize = 15;

/// Samples the rows from which a tree is grown.
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
        let takes_all =
            n_present >= MIN_CLASSES_UNSAMPLED && labels.len() <= MAX_ROWS_UNSAMPLED * n_present;
        Self {
            share: if takes_all { 1.0 } else { share },
            trim,
        }
    }

    /// Returns true if no row is left out at random.
    pub fn takes_all(&self) -> bool {
        self.share >= 1.0
    }

    /// Returns, row by row, whether the random sample of round `round` has the row.
    pub fn random_rows(&self, seed: u64, round: u64) -> impl Iterator<Item = bool> {
        let (mut random, share) = (generator(seed, round, 0), self.share);
        std::iter::repeat_with(move || random.random::<f64>() < share)
    }

    /// Replaces `rows` by the rows for round `round`, in rising order: the random sample without
    /// the lightest rows, or all but the lightest rows if that is empty.
    pub fn sample(&self, weights: &Weights, seed: u64, round: u64, rows: &mut Vec<u32>) {
        let max_below = self.max_below(weights);
        let all = 0..weights.plain.len() as u32;
        let is_heavy = |row: &u32| weights.below(*row as usize) <= max_below;
        rows.clear();
        if !self.takes_all() {
            rows.resize(all.len(), 0);
            let mut n = 0;
            // Every row takes a random number, so that the weight of a row does not affect others.
            // Branchless: every row is written, and rows that are left out are overwritten.
            for (row, is_sampled) in all.clone().zip(self.random_rows(seed, round)) {
                rows[n] = row;
                n += usize::from(is_sampled & is_heavy(&row));
            }
            rows.truncate(n);
        }
        if rows.is_empty() {
            rows.extend(all.filter(is_heavy));
        }
    }

    /// Returns the largest distance of a sampled row's log weight below the greatest one. Rows
    /// further below have at most the share `trim` of all weight. Distances are rounded to
    /// sixteenths instead of sorted.
    fn max_below(&self, weights: &Weights) -> f64 {
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
        let max_trimmed = self.trim * by_level.iter().sum::<f64>();
        let mut trimmed = 0.0;
        let last_kept = (1..N_LEVELS).rev().find(|&level| {
            trimmed += by_level[level];
            trimmed > max_trimmed
        });
        match last_kept {
            // The last level has no lower end.
            Some(level) if level == N_LEVELS - 1 => f64::INFINITY,
            level => (level.unwrap_or(0) + 1) as f64 / LEVELS_PER_UNIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n_sampled(n_rows: usize, n_classes: usize) -> usize {
        let labels: Vec<u32> = (0..n_rows).map(|row| (row % n_classes) as u32).collect();
        let weights = Weights::new(labels.iter().map(|_| 1.0));
        // A class without rows does not change the mean number of rows per class.
        let rows = RowSampler::new(&labels, n_classes + 1, 0.5, 0.0);
        let mut sampled = Vec::new();
        rows.sample(&weights, 0, 0, &mut sampled);
        sampled.len()
    }

    #[test]
    fn all_rows_are_sampled_if_many_classes_have_few_rows() {
        assert_eq!(n_sampled(1500, 100), 1500);
        for some in [n_sampled(1501, 100), n_sampled(1485, 99)] {
            assert!((600..900).contains(&some), "{some}");
        }
    }

    #[test]
    fn the_lightest_rows_are_trimmed() {
        // Ten rows each of weight 1, 1/2, 1/4 and so on.
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
    fn every_node_samples_its_own_share_of_the_columns() {
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
