//! Passes of `fit` over shuffled examples, rows held out for early stopping, and the progressive
//! loss.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::data::{Batch, MAX_EXAMPLE_COUNT};
use crate::error::{Error, Result};
use crate::file::is_count;

/// Share of the examples held out for early stopping.
const HELD_OUT: f64 = 0.1;

/// Number and order of the passes of `fit`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Maximum number of passes.
    pub n_passes: u32,
    /// Seed of the order of examples.
    pub seed: u64,
    /// Holds out examples and stops when their error no longer falls.
    pub early_stopping: bool,
}

impl Schedule {
    /// Returns the passes over the examples of `batch`.
    pub fn passes(&self, batch: &Batch<'_>) -> Result<Passes> {
        let mut order = batch.present();
        if order.is_empty() {
            return Err(Error::data("no example has a weight above 0"));
        }
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut held_out = Vec::new();
        if self.early_stopping {
            order.shuffle(&mut random);
            let n = (order.len() as f64 * HELD_OUT).ceil() as usize;
            if n >= order.len() {
                return Err(Error::data(format!(
                    "early stopping holds out {n} of {} examples, so none is left for training",
                    order.len()
                )));
            }
            held_out = order.split_off(order.len() - n);
        }
        Ok(Passes {
            clock: (order.len() as f64).recip(),
            order,
            held_out,
            random,
            n_left: self.n_passes,
        })
    }
}

/// A step of a training on data in parts.
#[derive(Debug, Clone, Copy)]
pub enum PartStep {
    /// Takes the part into the mean weight and the moments of columns. Each part is observed before
    /// the first pass. The first one decides on the scaling.
    Observe,
    /// Learns the rows of the part in an order by `seed`.
    Learn {
        /// Number of rows in all parts: each row is this part of a pass.
        n_rows: u64,
        /// Seed of the order.
        seed: u64,
        /// True after the first pass.
        repeats: bool,
    },
}

/// Returns the seed of member `number` of an ensemble. Ensembles with neighboring seeds share no
/// members.
pub fn seed_of(seed: u64, number: usize) -> u64 {
    seed.wrapping_add((number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Passes of a fit, each in a new order.
#[derive(Debug)]
pub struct Passes {
    /// Share of a pass per example.
    pub clock: f64,
    /// Rows held out for early stopping.
    pub held_out: Vec<u32>,
    order: Vec<u32>,
    random: Pcg64Mcg,
    n_left: u32,
}

impl Passes {
    /// Returns the rows of the next pass, in order; None after the last one.
    pub fn next_order(&mut self) -> Option<&[u32]> {
        self.n_left = self.n_left.checked_sub(1)?;
        self.order.shuffle(&mut self.random);
        Some(&self.order)
    }
}

/// Counts of progressive validation: each example is predicted before it is learned, so mistakes in
/// the first pass are on new data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Mistakes {
    /// Number of learned examples, counting each pass.
    pub examples: u64,
    /// Total weight of the examples of the first pass.
    pub weight: f64,
    /// Total weight of the mistakes among them.
    pub wrong: f64,
    /// True in later passes, in which only `examples` is counted.
    #[serde(skip)]
    pub repeats: bool,
}

impl Mistakes {
    /// Adds one example.
    pub fn count(&mut self, is_wrong: bool, importance: f32) {
        self.examples = (self.examples + 1).min(MAX_EXAMPLE_COUNT);
        if self.repeats {
            return;
        }
        self.weight += f64::from(importance);
        if is_wrong {
            self.wrong += f64::from(importance);
        }
    }

    /// Adds the counts of another member.
    pub fn add(&mut self, other: &Self) {
        self.examples = (self.examples + other.examples).min(MAX_EXAMPLE_COUNT);
        self.weight += other.weight;
        self.wrong += other.wrong;
    }

    /// Returns whether the counts are valid.
    pub fn is_sound(&self) -> bool {
        self.examples <= MAX_EXAMPLE_COUNT
            && is_count(&self.weight)
            && 0.0 <= self.wrong
            && self.wrong <= self.weight
    }

    /// Returns the weighted share of mistakes.
    pub fn loss(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.wrong / self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_later_passes_are_not_counted() {
        let mut mistakes = Mistakes::default();
        mistakes.count(true, 2.0);
        mistakes.repeats = true;
        mistakes.count(false, 2.0);
        assert_eq!((mistakes.examples, mistakes.loss()), (2, Some(1.0)));
        mistakes.repeats = false;
        mistakes.count(false, 2.0);
        assert_eq!((mistakes.examples, mistakes.loss()), (3, Some(0.5)));
    }

    #[test]
    fn invalid_counts_are_detected() {
        let sound = Mistakes {
            examples: 3,
            weight: 2.5,
            wrong: 2.5,
            repeats: false,
        };
        assert!(sound.is_sound() && Mistakes::default().is_sound());
        let broken = [
            Mistakes {
                examples: u64::MAX,
                ..sound
            },
            Mistakes {
                weight: f64::INFINITY,
                ..sound
            },
            Mistakes {
                wrong: -1.0,
                ..sound
            },
            Mistakes {
                wrong: f64::NAN,
                ..sound
            },
            Mistakes {
                wrong: 3.0,
                ..sound
            },
        ];
        assert!(broken.iter().all(|mistakes| !mistakes.is_sound()));
    }
}
