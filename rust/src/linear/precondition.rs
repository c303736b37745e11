//! "pn": preconditioned, normalised steps with no state per weight.
//!
//! r_f = (sum over examples of h x_f^2)^(-power): a power of 1/4 stands between
//! no preconditioning and `AdaGrad`'s root, 1/2 is that root. The direction
//! d_f = r_f x_f / sum_f r_f x_f^2 has x . d = 1, so that the learning rate has no
//! unit. It depends on the example alone: it is computed once, in O(non-zeros),
//! for all regressors that learn from the example, be they those of all classes
//! or of the nodes of a path.

use serde::{Deserialize, Serialize};

use crate::data::RowBuffer;
use crate::simd::{over_fourth_root, over_root};

/// Sums of squares per column and the direction they give.
#[derive(Debug, Clone, PartialEq)]
pub struct Preconditioner {
    power: Power,
    /// Sum of importances.
    pub(super) total: f64,
    /// Sum of importance times squared value, by column.
    pub(super) squares: Vec<f32>,
}

/// The root of a column's sum of squares that its steps are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Power {
    /// The fourth root.
    Quarter,
    /// The square root.
    Half,
}

/// From this weight of examples on, a sum of squares may be so large that it loses what is added.
const LONG: f64 = 4_194_304.0;

/// The number after `sum`, which has just lost `more`, as often as makes up for that on average:
/// a sum that stood still would make examples look as if they had ever more dimensions.
#[cold]
fn next(sum: f32, more: f32, total: f64) -> f32 {
    let above = sum.next_up();
    // Evenly spread over 0..1, as the total grows.
    let place = (total * 0.618_033_988_749_894_9).fract();
    if place < f64::from(more) / f64::from(above - sum) {
        above
    } else {
        sum
    }
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

    /// Columns of an example.
    pub fn width(&self) -> usize {
        self.squares.len()
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
        let total = self.total;
        direction.clear();
        direction.extend(
            example
                .columns
                .iter()
                .zip(&example.values)
                .map(|(&column, &x)| {
                    let square = &mut self.squares[column as usize];
                    let sum = *square + importance * x * x;
                    let is_lost = total > LONG && sum == *square;
                    *square = if is_lost {
                        next(sum, importance * x * x, total)
                    } else {
                        sum
                    };
                    *square
                }),
        );
        // A value so small that its square vanishes does not move anything.
        let (norm, dimension) = match self.power {
            Power::Quarter => over_fourth_root(&example.values, direction),
            Power::Half => over_root(&example.values, direction),
        };
        if norm > 0.0 {
            let scale = norm.recip();
            direction.iter_mut().for_each(|d| *d *= scale);
        }
        dimension * self.total as f32
    }

    /// The power, the sum of importances and the sums of squares, for saving.
    pub fn parts(&self) -> (Power, f64, &[f32]) {
        (self.power, self.total, &self.squares)
    }

    /// From saved parts.
    pub fn from_parts(power: Power, total: f64, squares: Vec<f32>) -> Self {
        Self {
            power,
            total,
            squares,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^26: in single precision 1 more is nothing.
    #[test]
    fn sums_of_squares_go_on_after_millions_of_examples() {
        let n = 67_108_864.0;
        let example = RowBuffer {
            columns: vec![0, 1],
            values: vec![1.0, 0.5],
        };
        let mut sums = Preconditioner {
            power: Power::Half,
            total: n,
            squares: vec![n as f32, n as f32 / 4.0],
        };
        let mut dimension = 0.0;
        for _ in 0..100_000 {
            dimension = sums.direction(&example, 1.0, &mut Vec::new());
        }
        let grown = [sums.squares[0] - n as f32, sums.squares[1] - n as f32 / 4.0];
        assert!((grown[0] - 100_000.0).abs() < 100.0, "{grown:?}");
        assert!((grown[1] - 25_000.0).abs() < 100.0, "{grown:?}");
        assert!((dimension - 2.0).abs() < 1e-4, "{dimension}");
    }
}
