//! One step of one regressor: what it is to learn, its scores before and after, and how far it may
//! go.
//!
//! Learning keeps every number of a model finite, whatever finite rows come, so that what was
//! saved can be loaded: values are at most 1e18 in size once prepared, scores at most
//! [`LARGEST_SCORE`], and no step changes a weight by more than [`LARGEST_CHANGE`]. Weights end by
//! themselves far below [`LARGEST`]: from 2^25 times the largest change on, one changes nothing.
//! Sums of squares are cut off there.

use super::Weights;
use crate::data::RowBuffer;
use crate::file::LARGEST;

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
    /// For steps along `direction` that change the score by `ppu` a unit. Where steps are also
    /// summed up, they are multiplied by `factor` before.
    pub fn new(direction: &[f32], ppu: f32, factor: f32) -> Self {
        // Bits of positive floats are in the order of the floats, and their maximum vectorizes.
        let sizes = direction.iter().map(|d| d.abs().to_bits());
        let largest = f32::from_bits(sizes.fold(0, u32::max));
        Self((LARGEST_CHANGE / largest / factor.max(1.0)).min(LARGEST_SCORE / ppu))
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
    bounded_score(sum)
}
