//! "pn": preconditioned, normalised steps with no state per weight; and what bounds a step.
//!
//! r_f = (sum over examples of h x_f^2)^(-power): a power of 1/4 stands between
//! no preconditioning and `AdaGrad`'s root, 1/2 is that root. The direction
//! d_f = r_f x_f / sum_f r_f x_f^2 has x . d = 1, so that the learning rate has no
//! unit. It depends on the example alone: it is computed once, in O(non-zeros),
//! for all regressors that learn from the example, be they those of all classes
//! or of the nodes of a path.
//!
//! Learning keeps every number of a model finite, whatever finite rows come, so that what was
//! saved can be loaded: values are at most 1e18 in size once prepared, scores at most
//! [`LARGEST_SCORE`], and no step changes a weight by more than [`LARGEST_CHANGE`]. Weights end by
//! themselves far below [`LARGEST`]: from 2^25 times the largest change on, one changes nothing.
//! Sums of squares are cut off there.

use serde::{Deserialize, Serialize};

use crate::data::RowBuffer;
use crate::error::{Error, Result};
use crate::file::{is_count, is_sum, LARGEST};
use crate::simd::{over_fourth_root, over_root};

/// No score is larger: sums of products may overflow where values and weights are extreme.
const LARGEST_SCORE: f32 = 1e18;

/// No step changes a weight by more.
const LARGEST_CHANGE: f32 = 1e30;

/// `x` brought into -`most` to `most`; NaN becomes `most`.
#[inline(always)]
pub(crate) fn bounded_by(most: f32, x: f32) -> f32 {
    let x = if x < most { x } else { most };
    if x > -most {
        x
    } else {
        -most
    }
}

/// A sum of products as a score.
#[inline(always)]
pub(crate) fn bounded_score(sum: f32) -> f32 {
    bounded_by(LARGEST_SCORE, sum)
}

/// Brings the change of a weight, or the length of a step, within bounds.
#[inline(always)]
pub(crate) fn bounded_change(change: f32) -> f32 {
    bounded_by(LARGEST_CHANGE, change)
}

/// Brings a sum of squares, which is not negative, within bounds.
#[inline(always)]
pub(crate) fn bounded_sum(sum: f32) -> f32 {
    sum.min(LARGEST)
}

/// How long a step along a direction may be: it moves no weight, nor the score, too far. No step of
/// ordinary data comes near.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepLimit(f32);

impl StepLimit {
    /// For steps along `direction`, which change the score by their length. Where steps are also
    /// summed up, they are multiplied by `factor` before.
    pub fn new(direction: &[f32], factor: f32) -> Self {
        // Bits of positive floats are in the order of the floats, and their maximum vectorizes.
        let sizes = direction.iter().map(|d| d.abs().to_bits());
        let largest = f32::from_bits(sizes.fold(0, u32::max));
        Self((LARGEST_CHANGE / largest / factor.max(1.0)).min(LARGEST_SCORE))
    }

    /// `step`, no longer than allowed.
    #[inline(always)]
    pub fn shorten(self, step: f32) -> f32 {
        bounded_by(self.0, step)
    }
}

/// A score before and after the regressor learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Before, not clamped.
    pub before: f32,
    /// After; what a router descends by.
    pub after: f32,
    /// After, not clamped to the labels seen (only `Nag` clamps).
    pub raw: f32,
}

/// From so many examples on a sum of squares has no digit for the next one alike.
const MAX_TOTAL_PER_IMPORTANCE: f64 = (1 << 24) as f64;

/// The multiples of the golden section are spread evenly over fractions.
const GOLDEN_FRACTION: f64 = 0.618_033_988_749_894_9;

/// Sums of squares per column and the direction they give.
#[derive(Debug, Clone, PartialEq)]
pub struct Preconditioner {
    power: Power,
    /// Sum of importances.
    pub(crate) total: f64,
    /// Sum of importance times squared value, by column.
    pub(crate) squares: Vec<f32>,
}

/// The root of a column's sum of squares that its steps are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Power {
    /// The fourth root.
    Quarter,
    /// The square root.
    Half,
}

impl Preconditioner {
    /// For examples of `width` columns.
    pub fn new(power: Power, width: usize) -> Self {
        Self {
            power,
            total: 0.0,
            squares: vec![0.0; width],
        }
    }

    /// What restored sums are not.
    pub(crate) fn check_sums(&self) -> Result<()> {
        if is_count(&self.total) && self.squares.iter().all(is_sum) {
            return Ok(());
        }
        Err(Error::data("sums of squares of columns are out of range"))
    }

    /// Columns of an example.
    pub fn width(&self) -> usize {
        self.squares.len()
    }

    /// Has `width` columns from now on, if it has fewer.
    pub fn widen(&mut self, width: usize) {
        if self.squares.len() < width {
            self.squares.resize(width, 0.0);
        }
    }

    /// Adds `example` to the sums and replaces `direction` by its step direction, one
    /// value per entry of the example.
    ///
    /// Returns the example's effective dimension, the sum over its columns of
    /// x_f^2 / (mean of x_f^2 so far): the number of columns where all are
    /// alike, and the more the rarer they are. A regressor that has learned from
    /// fewer examples than that still has most of this one to learn.
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
        // A value so small that its square vanishes does not move anything.
        let (norm, dimension) = match self.power {
            Power::Quarter => over_fourth_root(&example.values, direction),
            Power::Half => over_root(&example.values, direction),
        };
        if norm > 0.0 {
            let scale = norm.recip().min(f32::MAX);
            direction.iter_mut().for_each(|d| *d *= scale);
        }
        bounded_sum(dimension * self.total as f32)
    }

    /// Adds `example` to the sums, rounded up or down by chance so that they are right on
    /// average. Rounded to nearest they would stand still, and with them the rates that fall as
    /// they grow.
    #[cold]
    fn add_by_chance(&mut self, example: &RowBuffer, importance: f32) {
        let chance = (self.total * GOLDEN_FRACTION).fract();
        for (&column, &x) in example.columns.iter().zip(&example.values) {
            let square = &mut self.squares[column as usize];
            let exact = f64::from(*square) + f64::from(importance * x * x);
            let nearest = exact as f32;
            let is_above = f64::from(nearest) > exact;
            let low = if is_above {
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
    fn sums_grow_on_after_more_examples_than_a_float_has_digits_for() {
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
        // Two columns that are as in all examples before count as one dimension each.
        assert!((dimension - 2.0).abs() < 1e-3, "{dimension}");
    }
}
