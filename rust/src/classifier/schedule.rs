//! The loop that every online learner's `fit` runs: passes over the examples,
//! shuffled anew each time, until they are done or a held-out share says stop.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::data::Batch;
use crate::error::{Error, Result};

/// How often and in which order `fit` goes through the examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Passes over the data, at most.
    pub n_passes: u32,
    /// Fixes the order of the examples.
    pub seed: u64,
    /// Whether to hold examples out and stop when their error no longer falls.
    pub early_stopping: bool,
    /// Share of the examples held out for that.
    pub validation_fraction: f64,
    /// Passes without a new lowest error after which to stop.
    pub patience: u32,
}

impl Schedule {
    /// Takes `learner` through the passes over the examples of `batch`: `learn` is called with
    /// rows in their order and the share of a pass that each is, `error` with the rows held
    /// out. Stopped from outside it stays as far as it has come; stopped early it goes back to
    /// its best pass.
    pub fn run<L: Clone>(
        &self,
        learner: &mut L,
        batch: &Batch<'_>,
        mut learn: impl FnMut(&mut L, &[u32], f64) -> Result<()>,
        mut error: impl FnMut(&L, &[u32]) -> Result<f64>,
    ) -> Result<()> {
        let mut order = batch.present();
        if order.is_empty() {
            return Err(Error::data("there is no example with a weight above 0"));
        }
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut held_out = Vec::new();
        if self.early_stopping {
            order.shuffle(&mut random);
            let n = (order.len() as f64 * self.validation_fraction).ceil() as usize;
            if n >= order.len() {
                return Err(Error::data(format!(
                    "early stopping holds out {n} of {} examples, which leaves none to learn from",
                    order.len()
                )));
            }
            held_out = order.split_off(order.len() - n);
        }
        let clock = (order.len() as f64).recip();
        let mut best: Option<(f64, L)> = None;
        let mut since = 0;
        for _ in 0..self.n_passes {
            order.shuffle(&mut random);
            learn(learner, &order, clock)?;
            if self.early_stopping {
                let error = error(learner, &held_out)?;
                if best.as_ref().is_none_or(|(lowest, _)| error < *lowest) {
                    best = Some((error, learner.clone()));
                    since = 0;
                } else {
                    since += 1;
                    if since == self.patience {
                        break;
                    }
                }
            }
        }
        if let Some((_, model)) = best {
            *learner = model;
        }
        Ok(())
    }
}
