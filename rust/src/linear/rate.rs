//! How large a router's steps are.

use super::PathExample;
use crate::file::LARGEST;

/// A router's step has fallen to 1/sqrt(2) after so many trainings, and so many
/// more per effective dimension of the example: rare features are still to be
/// learned when frequent ones have long settled. Found on held-out parts of the
/// training data; a factor of 2 either way changes little.
const ALWAYS: f32 = 4.0;
/// See [`ALWAYS`].
const PER_DIMENSION: f32 = 0.03;

/// Step sizes of routers: after n trainings rate / sqrt(1 + decay n / (4 + 0.03 d)) for
/// an example of effective dimension d.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    rate: f32,
    decay: f32,
}

impl Rate {
    /// From the options of the same names.
    pub fn new(learning_rate: f64, decay: f64) -> Self {
        Self {
            rate: learning_rate.min(LARGEST.into()) as f32,
            decay: decay.min(LARGEST.into()) as f32,
        }
    }

    /// The step, times `importance`, of a router that was trained on `n` examples.
    #[inline]
    pub fn step(self, importance: f32, n: f64, example: &PathExample) -> f32 {
        let age = n as f32 / (ALWAYS + PER_DIMENSION * example.dimension());
        (importance * self.rate).min(f32::MAX) / (1.0 + self.decay * age).sqrt()
    }
}
