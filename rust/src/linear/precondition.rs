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
        direction.extend(
            example
                .columns
                .iter()
                .zip(&example.values)
                .map(|(&column, &x)| {
                    let square = &mut self.squares[column as usize];
                    *square += importance * x * x;
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
}
