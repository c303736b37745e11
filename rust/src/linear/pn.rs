//! The optimizer "pn": preconditioned, normalized steps without state per weight. Also the bounds
//! of steps.
//!
//! The rate of a feature is r_f = (sum over examples of h x_f^2)^(-power). A power of 1/2 is the
//! root of `AdaGrad`; 1/4 is between that and no preconditioning. The direction
//! d_f = r_f x_f / sum_f r_f x_f^2 has x . d = 1, so the learning rate has no unit. It depends on
//! the example only, and is computed once, in O(non-zeros), for all regressors that learn from the
//! example: those of all classes, or of the nodes of a path.
//!
//! Learning keeps every number of a model finite, for any finite rows, so that every saved model
//! can be loaded. Prepared values are at most 1e18 in size, scores at most [`LARGEST_SCORE`], and
//! a step changes a weight by at most [`LARGEST_CHANGE`]. Weights stay far below [`LARGEST`],
//! because above 2^25 times the largest change, a step is rounded away. Sums of squares are
//! limited to [`LARGEST`].

use serde::{Deserialize, Serialize};

use crate::data::RowBuffer;
use crate::error::{Error, Result};
use crate::file::{is_count, is_sum, LARGEST};
use crate::simd::over_root;

/// Maximum size of a score. Sums of products may overflow if values and weights are extreme.
const LARGEST_SCORE: f32 = 1e18;

/// Maximum change of a weight by one step.
const LARGEST_CHANGE: f32 = 1e30;

/// Clamps `x` to -`most` and `most`; NaN becomes `most`.
#[inline(always)]
pub(crate) fn bounded_by(most: f32, x: f32) -> f32 {
    let x = if x < most { x } else { most };
    if x > -most {
        x
    } else {
        -most
    }
}

/// Limits a sum of products to the range of scores.
#[inline(always)]
pub(crate) fn bounded_score(sum: f32) -> f32 {
    bounded_by(LARGEST_SCORE, sum)
}

/// Limits the change of a weight or the length of a step.
#[inline(always)]
pub(crate) fn bounded_change(change: f32) -> f32 {
    bounded_by(LARGEST_CHANGE, change)
}

/// Limits a sum of squares, which is not negative.
#[inline(always)]
pub(crate) fn bounded_sum(sum: f32) -> f32 {
    sum.min(LARGEST)
}

/// Maximum length of a step along a direction, so that neither a weight nor the score changes too
/// much. Steps of ordinary data are far shorter.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepLimit(f32);

impl StepLimit {
    /// Computes the limit for steps along `direction`, which change the score by their length.
    /// `factor` multiplies steps that are also summed.
    pub fn new(direction: &[f32], factor: f32) -> Self {
        // Positive floats are in the order of their bits, whose maximum vectorizes.
        let sizes = direction.iter().map(|d| d.abs().to_bits());
        let largest = f32::from_bits(sizes.fold(0, u32::max));
        Self((LARGEST_CHANGE / largest / factor.max(1.0)).min(LARGEST_SCORE))
    }

    /// Limits `step`.
    #[inline(always)]
    pub fn shorten(self, step: f32) -> f32 {
        bounded_by(self.0, step)
    }
}

/// Scores of a regressor before and after an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Score before the update, not clamped.
    pub before: f32,
    /// Score after the update, by which a router chooses the child.
    pub after: f32,
    /// Score after the update, not clamped to the labels so far (only `Nag` clamps).
    pub raw: f32,
}

/// Number of equal examples after which a single precision sum of squares stops growing.
const MAX_TOTAL_PER_IMPORTANCE: f64 = (1 << 24) as f64;

/// Golden ratio, whose multiples have evenly distributed fractions.
const GOLDEN_FRACTION: f64 = 0.618_033_988_749_894_9;

/// Sums of squares per column, and the step directions that follow from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Preconditioner {
    power: Power,
    /// Sum of importance weights.
    pub(crate) total: f64,
    /// Sum of importance weight times squared value, for each column.
    pub(crate) squares: Vec<f32>,
}

/// Root of a column's sum of squares by which steps are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Power {
    /// The fourth root.
    Quarter,
    /// The square root.
    Half,
}

impl Preconditioner {
    /// Creates sums for `width` columns.
    pub fn new(power: Power, width: usize) -> Self {
        Self {
            power,
            total: 0.0,
            squares: vec![0.0; width],
        }
    }

    /// Returns an error if restored sums are out of range.
    pub(crate) fn check_sums(&self) -> Result<()> {
        if is_count(&self.total) && self.squares.iter().all(is_sum) {
            return Ok(());
        }
        Err(Error::data("sums of squares of columns are out of range"))
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.squares.len()
    }

    /// Adds columns, so that there are at least `width`.
    pub fn widen(&mut self, width: usize) {
        if self.squares.len() < width {
            self.squares.resize(width, 0.0);
        }
    }

    /// Adds `example` to the sums, and replaces `direction` by its step direction, one value per
    /// entry of the example.
    ///
    /// Returns the example's effective number of dimensions, which is the sum over its columns of
    /// x_f^2 / (mean of x_f^2 so far). It equals the number of columns if all examples are alike,
    /// and is larger if the columns are rare. A regressor that has learned fewer examples than this
    /// number cannot predict the example yet.
    pub fn direction(
        &mut self,
        example: &RowBuffer,
        importance: f32,
        direction: &mut Vec<f32>,
    ) -> f32 {
        self.total += f64::from(importance);
        direction.clear();
        let addend = if self.total < MAX_TOTAL_PER_IMPORTANCE * f64::from(importance) {
            importance
        } else {
            self.add_by_chance(example, importance);
            0.0
        };
        let entries = example.columns.iter().zip(&example.values);
        direction.extend(entries.map(|(&column, &x)| {
            let square = &mut self.squares[column as usize];
            *square = bounded_sum(*square + addend * x * x);
            *square
        }));
        // A value whose square underflows to 0 changes nothing.
        let (norm, dimension) = match self.power {
            Power::Quarter => over_root::<4>(&example.values, direction),
            Power::Half => over_root::<2>(&example.values, direction),
        };
        if norm > 0.0 {
            let scale = norm.recip().min(f32::MAX);
            direction.iter_mut().for_each(|d| *d *= scale);
        }
        bounded_sum(dimension * self.total as f32)
    }

    /// Adds `example` to the sums with stochastic rounding, which is right on average. Rounding to
    /// nearest would stop the growth of large sums, and the decrease of the rates.
    #[cold]
    fn add_by_chance(&mut self, example: &RowBuffer, importance: f32) {
        let chance = (self.total * GOLDEN_FRACTION).fract();
        for (&column, &x) in example.columns.iter().zip(&example.values) {
            let square = &mut self.squares[column as usize];
            let exact = f64::from(*square) + f64::from(importance * x * x);
            let nearest = exact as f32;
            let low = if f64::from(nearest) > exact {
                nearest.next_down()
            } else {
                nearest
            };
            let high = low.next_up();
            let share = (exact - f64::from(low)) / f64::from(high - low);
            *square = bounded_sum(if share > chance { high } else { low });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_growing_after_many_examples() {
        let mut preconditioner = Preconditioner::new(Power::Half, 3);
        preconditioner.total = MAX_TOTAL_PER_IMPORTANCE;
        preconditioner.squares = vec![
            MAX_TOTAL_PER_IMPORTANCE as f32,
            0.01 * MAX_TOTAL_PER_IMPORTANCE as f32,
            5.0,
        ];
        let example = RowBuffer {
            columns: vec![0, 1, 2],
            values: vec![1.0, 0.1, 0.0],
        };
        let (mut direction, mut dimension) = (Vec::new(), 0.0);
        for _ in 0..1_000_000 {
            dimension = preconditioner.direction(&example, 1.0, &mut direction);
        }
        let expected = MAX_TOTAL_PER_IMPORTANCE as f32 + 1e6;
        let grown = |square: f32, per_example: f32| square / (per_example * expected) - 1.0;
        let squares = &preconditioner.squares;
        assert!(grown(squares[0], 1.0).abs() < 1e-3, "{squares:?}");
        assert!(grown(squares[1], 0.01).abs() < 1e-3, "{squares:?}");
        assert_eq!(squares[2].to_bits(), 5.0f32.to_bits());
        // Two columns have the same values in all examples, so each counts as one dimension.
        assert!((dimension - 2.0).abs() < 1e-3, "{dimension}");
    }
}
