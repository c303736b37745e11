//! One step of one regressor: what it is to learn, its scores before and after.

use super::Weights;
use crate::data::RowBuffer;

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

impl Scores {
    pub(super) fn unclamped(before: f32, after: f32) -> Self {
        Self {
            before,
            after,
            raw: after,
        }
    }
}

/// What a regressor is to learn of an example.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// The target value.
    pub y: f32,
    /// Learning rate times importance.
    pub a: f32,
    /// What adaptive sums count.
    pub importance: f32,
}

/// Product of an example with weights that carry sums.
#[inline]
pub(super) fn product<S: Copy + Default>(
    weights: &Weights<S>,
    row: &RowBuffer,
    w: impl Fn(S) -> f32,
) -> f32 {
    let mut sum = 0.0;
    weights.visit(&row.columns, |entry, slot| {
        sum += w(slot) * row.values[entry];
    });
    sum
}
