//! The weights of the rows, as logarithms: plain ones would underflow to 0, which no
//! later round could undo.

use crate::alloc::{collect, zeros};
use crate::simd::dispatched;

/// How far below the greatest a log weight counts. Plain weights stay above 0, so that no
/// leaf is without weight, and their squares too; in single precision they keep all its
/// digits.
const DEEPEST: f64 = 80.0;

dispatched! {
    /// e^(log - highest) for each of the logs, none of which is above the highest, rounded to
    /// single precision: a sorted scan moves the weights, and is as fast as they are small. Without
    /// the system's library it is one vector operation after another, and the same to the
    /// last bit on every machine.
    fn exp_below(logs: &[f64], highest: f64, plain: &mut [f64]) {
        /// Adding and taking it away again rounds to the nearest integer, which is then in
        /// the lowest bits of the sum.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        /// ln 2 in two parts, the first of few enough bits that its multiples are exact.
        const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
        /// 1 / k!, the last first.
        const SERIES: [f64; 14] = {
            let mut series = [1.0; 14];
            let (mut k, mut term) = (1, 1.0);
            while k < 14 {
                term /= k as f64;
                series[13 - k] = term;
                k += 1;
            }
            series
        };
        for (plain, log) in plain.iter_mut().zip(logs) {
            let x = (log - highest).max(-DEEPEST);
            let shifted = x * std::f64::consts::LOG2_E + ROUND;
            let n = shifted - ROUND;
            let r = (x - n * LN_2[0]) - n * LN_2[1];
            // The exponential series; |r| is at most (ln 2) / 2.
            let mut sum = 0.0;
            for term in SERIES {
                sum = sum * r + term;
            }
            // 2^n, put together from its bits.
            let power = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
            *plain = f64::from((sum * power) as f32);
        }
    }
}

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
    pub fn new(importances: impl Iterator<Item = f32>) -> Self {
        let logs: Vec<f64> = collect(importances.map(|weight| f64::from(weight).ln()));
        let mut weights = Self {
            plain: zeros(logs.len()),
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
        exp_below(&self.logs, self.highest, &mut self.plain);
    }

    /// By how much the log weight of row `row` is below the greatest.
    #[inline]
    pub fn below(&self, row: usize) -> f64 {
        self.highest - self.logs[row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_that_of_the_library() {
        let logs: Vec<f64> = (0..10_000).map(|i| f64::from(i) * -0.012_345).collect();
        let mut plain = vec![0.0; logs.len()];
        exp_below(&logs, 0.0, &mut plain);
        for (log, plain) in logs.iter().zip(plain) {
            let expected = log.max(-DEEPEST).exp();
            assert!(
                (plain / expected - 1.0).abs() < 1e-7,
                "{log}: {plain} {expected}"
            );
        }
    }
}
