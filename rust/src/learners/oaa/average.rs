//! Averages of the weights that favour the late ones.
//!
//! Shamir & Zhang, "Stochastic gradient descent for non-smooth optimization"
//! (ICML 2013), section 4, polynomial-decay averaging: the weights after example t
//! count with about t^[`POWER`]. That is close to an average over the last pass of
//! five and needs no number of examples in advance, so it serves streams too.
//!
//! With C_t the sum of these counts up to t, the average after T examples is
//! `sum_t (1 - C_{t-1}/C_T) delta_t = w - u/C_T` with `u = sum_t C_{t-1} delta_t`.
//! A step adds to w and to u ("average sums") in the same places, so sparse steps
//! stay sparse.

use serde::{Deserialize, Serialize};

use crate::file::is_count;

/// Growth of the weights' counts.
pub(super) const POWER: f64 = 4.0;

/// Above this all sums are scaled down, long before f32 overflows.
const MAX_TOTAL: f64 = 1e18;

/// No total is larger: it is scaled down before.
const MOST: f64 = 1e24;

/// The sum C of the counts, in a unit that changes when C gets too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PolynomialAverage {
    examples: f64,
    total: f64,
}

impl PolynomialAverage {
    /// C before the next example, the factor with which its step is added to `u`.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Whether restored sums are such as examples make, between two that are scaled down.
    pub fn is_sound(&self) -> bool {
        is_count(&self.examples)
            && self.examples.fract() == 0.0
            && (self.total == 0.0 || (0.5..=MOST).contains(&self.total))
    }

    /// Counts the weights after the next example.
    pub fn advance(&mut self) {
        self.examples += 1.0;
        let t = self.examples;
        self.total = if t <= 1.0 {
            1.0
        } else {
            (self.total * ((t + POWER) / (t - 1.0))).min(MOST)
        };
    }

    /// What to multiply every `u` by so that C stays within bounds, if
    /// anything: a power of two, so that nothing is rounded.
    pub fn rescale(&mut self) -> Option<f32> {
        (self.total > MAX_TOTAL).then(|| {
            let factor = 2.0f64.powi(-60);
            self.total *= factor;
            factor as f32
        })
    }
}
