//! The loop that every online learner's `fit` runs, and what it counts on the way: passes over
//! shuffled examples, rows held out for early stopping, and the progressive loss.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::data::{Batch, MAX_EXAMPLE_COUNT};
use crate::error::{Error, Result};
use crate::file::is_count;

/// Share of the examples held out for early stopping.
const HELD_OUT: f64 = 0.1;

/// Passes without a new lowest error after which early stopping ends a fit.
pub(super) const PATIENCE: u32 = 2;

/// How often and in which order `fit` goes through the examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Passes over the data, at most.
    pub n_passes: u32,
    /// Fixes the order of the examples.
    pub seed: u64,
    /// Whether to hold examples out and stop when their error no longer falls.
    pub early_stopping: bool,
}

impl Schedule {
    /// That of member `number` of an ensemble.
    #[must_use]
    pub fn for_member(&self, number: usize) -> Self {
        Self {
            seed: seed_of(self.seed, number),
            ..self.clone()
        }
    }

    /// The passes over the examples of `batch`.
    pub fn passes(&self, batch: &Batch<'_>) -> Result<Passes> {
        let mut order = batch.present();
        if order.is_empty() {
            return Err(Error::data("there is no example with a weight above 0"));
        }
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut held_out = Vec::new();
        if self.early_stopping {
            order.shuffle(&mut random);
            let n = (order.len() as f64 * HELD_OUT).ceil() as usize;
            if n >= order.len() {
                return Err(Error::data(format!(
                    "early stopping holds out {n} of {} examples, which leaves none to learn from",
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

/// Members differ by their seeds; neighbouring seeds of the user's must not give neighbouring
/// ensembles the same members.
pub fn seed_of(seed: u64, number: usize) -> u64 {
    seed.wrapping_add((number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// The passes of a fit, each in an order of its own.
#[derive(Debug)]
pub struct Passes {
    /// The share of a pass that each example is.
    pub clock: f64,
    /// The rows held out for early stopping.
    pub held_out: Vec<u32>,
    order: Vec<u32>,
    random: Pcg64Mcg,
    n_left: u32,
}

impl Passes {
    /// The rows of the next pass in their order; none after the last.
    pub fn next_order(&mut self) -> Option<&[u32]> {
        self.n_left = self.n_left.checked_sub(1)?;
        self.order.shuffle(&mut self.random);
        Some(&self.order)
    }
}

/// Progressive validation: each example is predicted before it is learned, so that the mistakes of
/// the first pass are those on data never seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Mistakes {
    /// Examples learned, each pass counted.
    pub examples: u64,
    /// Importance of those of the first pass.
    pub weight: f64,
    /// Importance of those predicted wrongly.
    pub wrong: f64,
    /// Whether the examples were learned before, in an earlier pass: then they are no test, and
    /// only `examples` counts them.
    #[serde(skip)]
    pub repeats: bool,
}

impl Mistakes {
    /// Takes in one example.
    #[inline]
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

    /// Takes in another count.
    pub fn add(&mut self, other: &Self) {
        self.examples = (self.examples + other.examples).min(MAX_EXAMPLE_COUNT);
        self.weight += other.weight;
        self.wrong += other.wrong;
    }

    /// Whether these are counts.
    pub fn is_sound(&self) -> bool {
        self.examples <= MAX_EXAMPLE_COUNT
            && is_count(&self.weight)
            && 0.0 <= self.wrong
            && self.wrong <= self.weight
    }

    /// Share predicted wrongly.
    pub fn loss(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.wrong / self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_later_passes_are_no_test() {
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
    fn counts_of_files_are_counts() {
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
