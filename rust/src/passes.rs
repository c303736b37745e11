//! The loop that every online learner's `fit` runs: passes over the examples,
//! shuffled anew each time, until they are done or a held-out share says stop.

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::data::{LabelSets, Labels, Rows};
use crate::error::{Error, Result};

/// What is to be learned for each row.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// One label.
    One(Labels<'a>),
    /// A set of labels.
    Sets(LabelSets<'a>),
}

impl Targets<'_> {
    /// Number of classes that may occur.
    pub fn n_classes(&self) -> usize {
        match self {
            Self::One(labels) => labels.n_classes(),
            Self::Sets(sets) => sets.n_classes(),
        }
    }
}

/// Examples with their targets and importances, checked against one another.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The examples.
    pub rows: Rows<'a>,
    /// Their targets.
    pub targets: Targets<'a>,
    weights: Option<&'a [f32]>,
}

impl<'a> Batch<'a> {
    /// Checks that the parts are of one length, that there is an example, and
    /// that weights are finite and not negative.
    pub fn new(rows: Rows<'a>, targets: Targets<'a>, weights: Option<&'a [f32]>) -> Result<Self> {
        let n_targets = match targets {
            Targets::One(labels) => labels.len(),
            Targets::Sets(sets) => sets.len(),
        };
        check_parts(rows.n_rows(), n_targets, weights)?;
        Ok(Self {
            rows,
            targets,
            weights,
        })
    }

    /// The labels of a learner that takes one per row.
    pub fn one_label_each(&self, learner: &str) -> Result<Labels<'a>> {
        match self.targets {
            Targets::One(labels) => Ok(labels),
            Targets::Sets(_) => Err(Error::data(format!(
                "{learner} learns one label per row, y holds sets of labels"
            ))),
        }
    }

    /// Weighted share of the rows of `which` that are answered wrongly. `answer`
    /// is handed `n` of them at most at a time and writes a label for each.
    pub(crate) fn share_wrong(
        &self,
        labels: &[u32],
        which: &[u32],
        n: usize,
        control: &Control,
        mut answer: impl FnMut(&[u32], &mut [u32]),
    ) -> Result<f64> {
        let mut answers = Vec::new();
        let (mut all, mut wrong) = (0.0, 0.0);
        for rows in which.chunks(n) {
            answers.resize(rows.len(), 0);
            answer(rows, &mut answers);
            for (&i, &answer) in rows.iter().zip(&answers) {
                let weight = f64::from(self.weight(i as usize));
                all += weight;
                if answer != labels[i as usize] {
                    wrong += weight;
                }
            }
            control.check()?;
        }
        Ok(wrong / all)
    }

    /// Importance of row `i`.
    pub fn weight(&self, i: usize) -> f32 {
        self.weights.map_or(1.0, |weights| weights[i])
    }

    /// The rows that count: a weight of 0 is the same as not being there.
    pub fn present(&self) -> Vec<u32> {
        (0..self.rows.n_rows() as u32)
            .filter(|&i| self.weight(i as usize) > 0.0)
            .collect()
    }
}

/// Checks that there are as many targets and weights as rows, and that weights are finite
/// and not negative.
pub(crate) fn check_parts(n_rows: usize, n_targets: usize, weights: Option<&[f32]>) -> Result<()> {
    if n_targets != n_rows {
        return Err(Error::data(format!(
            "X has {n_rows} rows, y has {n_targets}"
        )));
    }
    if let Some(weights) = weights {
        if weights.len() != n_rows {
            return Err(Error::data(format!(
                "X has {n_rows} rows, sample_weight has {}",
                weights.len()
            )));
        }
        if let Some(row) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::data(format!(
                "row {row}: sample_weight is {}; it must be finite and not negative",
                weights[row]
            )));
        }
    }
    if n_rows > u32::MAX as usize {
        return Err(Error::data(format!(
            "{n_rows} rows at once; at most {} are possible, pass them in parts to partial_fit",
            u32::MAX
        )));
    }
    Ok(())
}

/// A learner that takes examples one after the other.
pub trait Online: Clone {
    /// Learns the rows of `order` in that order. `clock` is the share of a
    /// pass that each of them is: 1/N in `fit`; 0 in a stream, where no pass
    /// ends and the learning rate stays as it is.
    fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        control: &Control,
    ) -> Result<()>;

    /// Weighted share of the rows of `held_out` that are predicted wrongly.
    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64>;
}

/// How often and in which order `fit` goes through the examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Refuses what cannot be followed.
    pub fn check(&self) -> Result<()> {
        if self.n_passes == 0 {
            return Err(Error::parameter("n_passes", 0, "at least 1"));
        }
        if self.patience == 0 {
            return Err(Error::parameter("patience", 0, "at least 1"));
        }
        if !(self.validation_fraction > 0.0 && self.validation_fraction < 1.0) {
            return Err(Error::parameter(
                "validation_fraction",
                self.validation_fraction,
                "between 0 and 1, both excluded",
            ));
        }
        Ok(())
    }

    /// Takes `learner` through the passes. Stopped from outside it stays as
    /// far as it has come; stopped early it goes back to its best pass.
    pub fn fit<L: Online>(
        &self,
        learner: &mut L,
        batch: &Batch<'_>,
        control: &Control,
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
            learner.learn(batch, &order, clock, control)?;
            if self.early_stopping {
                let error = learner.error(batch, &held_out, control)?;
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
