//! "pn": preconditioned, normalised steps with no state per weight.
//!
//! r_f = (sum over examples of h x_f^2)^(-1/4) stands between no
//! preconditioning and `AdaGrad`'s root; the direction d_f = r_f x_f / sum_f r_f x_f^2
//! has x . d = 1, so that the learning rate has no unit. The direction depends
//! on the example alone: it is computed once and serves every regressor that
//! learns from it, be that all classes or the nodes of a path.

use crate::data::RowBuffer;

/// Sums of squares per column and the direction they give.
#[derive(Debug, Clone, PartialEq)]
pub struct Preconditioner {
    squares: Vec<f32>,
}

impl Preconditioner {
    /// For examples of `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            squares: vec![0.0; width],
        }
    }

    /// Takes `example` in and replaces `direction` by its step direction, one
    /// value per entry of the example.
    pub fn direction(&mut self, example: &RowBuffer, importance: f32, direction: &mut Vec<f32>) {
        direction.clear();
        let mut norm = 0.0f32;
        for (&column, &x) in example.columns.iter().zip(&example.values) {
            let square = &mut self.squares[column as usize];
            *square += importance * x * x;
            // A value so small that its square vanishes does not move anything.
            let step = if *square > 0.0 {
                x / square.sqrt().sqrt()
            } else {
                0.0
            };
            norm += step * x;
            direction.push(step);
        }
        if norm > 0.0 {
            let scale = norm.recip();
            direction.iter_mut().for_each(|d| *d *= scale);
        }
    }

    /// The sums, for saving.
    pub fn squares(&self) -> &[f32] {
        &self.squares
    }

    /// From saved sums.
    pub fn from_squares(squares: Vec<f32>) -> Self {
        Self { squares }
    }
}
