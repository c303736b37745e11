//! Averages of the weights that favour the late ones.
//!
//! Shamir & Zhang, "Stochastic gradient descent for non-smooth optimization"
//! (ICML 2013), section 4: the weights after example t count with about
//! t^[`POWER`]. That is close to an average over the last pass of five,
//! needs no knowledge of where the end is, and so serves streams too.
//!
//! With C_t the sum of these counts up to t, the average after T examples is
//! `sum_t (1 - C_{t-1}/C_T) delta_t = w - u/C_T` with `u = sum_t C_{t-1} delta_t`:
//! a step touches w and u in the same places, and sparse steps stay sparse.

use serde::{Deserialize, Serialize};

/// Growth of the weights' weights.
pub(super) const POWER: f64 = 4.0;

/// Above this all sums are scaled down, far below the end of f32.
const LARGE: f64 = 1e18;

/// The sum C of the counts, in a unit that is changed when it gets too large.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Average {
    examples: f64,
    total: f64,
}

impl Average {
    pub fn new() -> Self {
        Self {
            examples: 0.0,
            total: 0.0,
        }
    }

    /// C before the next example, with which its step enters `u`.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Counts the weights after the next example.
    pub fn advance(&mut self) {
        self.examples += 1.0;
        let t = self.examples;
        self.total = if t <= 1.0 {
            1.0
        } else {
            self.total * ((t + POWER) / (t - 1.0))
        };
    }

    /// What to multiply every `u` by so that C stays within bounds, if
    /// anything: a power of two, so that nothing is rounded.
    pub fn rescale(&mut self) -> Option<f32> {
        (self.total > LARGE).then(|| {
            let factor = 2.0f64.powi(-60);
            self.total *= factor;
            factor as f32
        })
    }
}
