//! Progress and interruption of long work.
//!
//! A learner calls [`Control::tick`] every few dozen examples. The caller reads the counters from
//! another thread and sets the stop flag. The core knows nothing of terminals, signals or Python.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Counters and a stop flag, shared by a running learner and the thread that watches it.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    /// Bits of the progressive loss so far; NaN if there is none.
    loss: AtomicU64,
    /// Bits of the progressive recall of the candidates so far; NaN if there is none.
    recall: AtomicU64,
}

/// A reading of a [`Control`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Finished units of work: examples, summed over passes and trees.
    pub done: u64,
    /// Total units of work; 0 while unknown.
    pub total: u64,
    /// Progressive loss so far, if the learner has one.
    pub loss: Option<f64>,
    /// Progressive recall so far, if the learner proposes candidates.
    pub recall: Option<f64>,
}

impl Control {
    /// Examples that a learner processes between two ticks.
    pub const CHUNK: usize = 64;

    /// Creates a control for `total` units of work.
    pub fn new(total: u64) -> Self {
        let control = Self::default();
        control.total.store(total, Ordering::Relaxed);
        control.set_loss(f64::NAN);
        control.set_recall(f64::NAN);
        control
    }

    /// Reports `examples` more finished units. Returns an error if the caller asked to stop.
    pub fn tick(&self, examples: usize) -> Result<()> {
        self.done.fetch_add(examples as u64, Ordering::Relaxed);
        self.check()
    }

    /// Returns an error if the caller asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Sets the total amount of work, once it is known.
    pub fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Publishes the progressive loss.
    pub fn set_loss(&self, loss: f64) {
        self.loss.store(loss.to_bits(), Ordering::Relaxed);
    }

    /// Publishes the share of examples whose label was among the candidates.
    pub fn set_recall(&self, recall: f64) {
        self.recall.store(recall.to_bits(), Ordering::Relaxed);
    }

    /// Makes the learner stop at its next tick.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the current counters.
    pub fn progress(&self) -> Progress {
        let read = |bits: &AtomicU64| {
            let value = f64::from_bits(bits.load(Ordering::Relaxed));
            (!value.is_nan()).then_some(value)
        };
        Progress {
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            loss: read(&self.loss),
            recall: read(&self.recall),
        }
    }
}
