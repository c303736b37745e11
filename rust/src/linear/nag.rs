//! Normalized adaptive gradient steps with importance-aware updates, equal to Vowpal Wabbit's
//! default.
//!
//! Ross, Mineiro & Langford, "Normalized online learning" (UAI 2013). The prediction p is clamped
//! to the [`Span`] of the labels. If the loss L is not 0, an example x of importance weight h
//! updates a regressor as follows:
//!
//! 1. `G_j += h (dL/dp)^2 x_j^2`;
//! 2. if `|x_j| > s_j`: `w_j *= s_j / |x_j|`, then `s_j = |x_j|`;
//! 3. `rate_j = 1 / (s_j sqrt(G_j))`;
//! 4. `t += h`, `N += h sum_j x_j^2 / s_j^2`, `M = sqrt(t / N)`;
//! 5. `w_j += u M x_j rate_j`, where u is the step of the loss ([`Loss::step`]) for a prediction
//!    that changes by `M sum_j x_j^2 rate_j` per unit of u.
//!
//! [`NagSlot::update`] does steps 1 to 3 for one weight, [`NagTotals::update`] does step 4.
//! [`learn`] applies them to one regressor, one-against-all to a vector of classes at a time. The
//! cost per weight is a square root and four divisions.
//!
//! This optimizer exists for comparison with the papers. `pn` ([`super::Preconditioner`]) is as
//! accurate, faster, and needs a third of the memory.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::pn::{bounded_change, bounded_score, bounded_sum, Scores};
use super::{Loss, Weights};
use crate::data::{RowBuffer, LARGEST_VALUE};
use crate::file::bounded_count;

/// A weight and its two sums.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NagSlot {
    /// Weight.
    pub w: f32,
    /// Sum of squared gradients.
    pub g: f32,
    /// Largest size of the feature so far.
    pub s: f32,
}

impl From<NagSlot> for f32 {
    fn from(slot: NagSlot) -> Self {
        slot.w
    }
}

impl NagSlot {
    /// Does steps 1 to 3 for a feature of `size` |x|, where `slope_squared` is the squared slope of
    /// the loss times the importance weight. Returns `x^2 / s^2` and the rate. A slope of 0 changes
    /// nothing.
    ///
    /// The selects allow loops over several regressors to vectorize.
    #[inline(always)]
    pub fn update(&mut self, size: f32, slope_squared: f32) -> (f32, f32) {
        let Self { w, s, .. } = *self;
        let square = size * size;
        self.g = bounded_sum(self.g + slope_squared * square);
        let is_larger = size > s && slope_squared > 0.0;
        let rescaled = if s > 0.0 { w * (s / size) } else { w };
        self.w = if is_larger { rescaled } else { w };
        self.s = if is_larger { size } else { s };
        // A weight that has never changed has no size yet.
        let s = if self.s > 0.0 { self.s } else { size };
        (square / (s * s), rate(self.g, s))
    }
}

/// Returns 1/(s sqrt(G)), which is 0 if G is 0 because gradients were tiny, and always finite.
#[inline(always)]
fn rate(g: f32, s: f32) -> f32 {
    let root = g.sqrt();
    let inverse = if root > 0.0 { 1.0 / root } else { 0.0 };
    (inverse * (1.0 / s)).min(f32::MAX)
}

/// Smallest size of a feature, 2^-63, so that its square is not 0.
const SMALLEST_SIZE: f32 = 1.084_202e-19;

/// Range of the sizes of features, in accord with prepared values.
pub(super) const SIZES: RangeInclusive<f32> = SMALLEST_SIZE..=LARGEST_VALUE;

/// Returns the size of a feature of value `x`.
#[inline(always)]
pub fn size(x: f32) -> f32 {
    x.abs().max(SMALLEST_SIZE)
}

/// Sums that a regressor keeps besides its weights.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NagTotals {
    /// Sum of importance weights.
    pub t: f64,
    /// Sum of normalized squared lengths.
    pub n: f64,
}

impl NagTotals {
    /// Does step 4 for an example of normalized squared length `length`, and returns M.
    pub fn update(&mut self, importance: f32, length: f32) -> f32 {
        self.t = bounded_count(self.t + f64::from(importance));
        self.n = bounded_count(self.n + f64::from(importance) * f64::from(length));
        let mut ratio = self.t as f32 / self.n as f32;
        // In single precision, both may be infinite or 0.
        if ratio.is_nan() {
            ratio = (self.t / self.n) as f32;
        }
        bounded_sum(ratio).sqrt()
    }
}

/// Span of the labels so far, to which predictions are clamped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Lowest label, at most 0.
    pub low: f32,
    /// Highest label, at least 0.
    pub high: f32,
}

impl Span {
    /// Span of all numbers, which clamps nothing.
    pub const UNBOUNDED: Self = Self {
        low: f32::NEG_INFINITY,
        high: f32::INFINITY,
    };

    /// Widens the span to `label`.
    pub fn widen(&mut self, label: f32) {
        self.low = self.low.min(label);
        self.high = self.high.max(label);
    }

    /// Returns whether this is a span of labels or of clamped logistic scores.
    pub fn is_sound(self) -> bool {
        (-50.0..=0.0).contains(&self.low) && (0.0..=50.0).contains(&self.high)
    }

    /// Clamps `p` to the span.
    pub fn clamp(self, p: f32) -> f32 {
        p.clamp(self.low, self.high)
    }
}

/// Returns the product of an example with the weights of one regressor, which may have lost the sums
/// beside them.
pub(super) fn product<S: Copy + Default + Into<f32>>(weights: &Weights<S>, row: &RowBuffer) -> f32 {
    let mut sum = 0.0;
    for (&column, &x) in row.columns.iter().zip(&row.values) {
        sum += weights.get(column).into() * x;
    }
    bounded_score(sum)
}

/// Target value and weight of an example.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// Target value.
    pub y: f32,
    /// Learning rate times importance weight.
    pub a: f32,
    /// Weight of the example in adaptive sums.
    pub importance: f32,
}

/// Updates one regressor with one example.
pub(super) fn learn(
    (totals, weights): &mut (NagTotals, Weights<NagSlot>),
    span: &mut Span,
    loss: Loss,
    row: &RowBuffer,
    target: Target,
    width: usize,
) -> Scores {
    let Target { y, a, importance } = target;
    let clamp = |span: &Span, p: f32| match loss {
        Loss::Logistic => p.clamp(-50.0, 50.0),
        _ => span.clamp(p),
    };
    let before = product(weights, row);
    span.widen(y);
    let p = clamp(span, before);
    let slope_squared = bounded_sum(importance * loss.slope_squared(y, p));
    if slope_squared != 0.0 {
        weights.prepare_for(row.columns.len(), width);
        let (mut length, mut ppu) = (0.0, 0.0);
        weights.change(&row.columns, |entry, slot| {
            let size = size(row.values[entry]);
            let (square, rate) = slot.update(size, slope_squared);
            length += square;
            ppu += size * size * rate;
        });
        let factor = totals.update(importance, length);
        let ppu = bounded_sum(ppu * factor);
        let step = bounded_change(loss.step(y, p, a, ppu) * factor);
        weights.change(&row.columns, |entry, slot| {
            slot.w += bounded_change(step * (row.values[entry] * rate(slot.g, slot.s)));
        });
    }
    let raw = product(weights, row);
    Scores {
        before,
        after: clamp(span, raw),
        raw,
    }
}
