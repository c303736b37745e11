//! Normalised adaptive gradient steps with importance-aware updates: what
//! Vowpal Wabbit does by default, number for number.
//!
//! Ross, Mineiro & Langford, "Normalized online learning" (UAI 2013). An example
//! x of importance h, of which the prediction p is clamped to the [`Span`] of the
//! labels and the loss L is not 0, updates a regressor thus:
//!
//! 1. `G_j += h (dL/dp)^2 x_j^2`;
//! 2. where `|x_j| > s_j`: `w_j *= s_j / |x_j|`, then `s_j = |x_j|`;
//! 3. `rate_j = 1 / (s_j sqrt(G_j))`;
//! 4. `t += h`, `N += h sum_j x_j^2 / s_j^2`, `M = sqrt(t / N)`;
//! 5. `w_j += u M x_j rate_j`, where u is the step of the loss ([`Loss::step`]) for
//!    a prediction that changes by `M sum_j x_j^2 rate_j` per unit of u.
//!
//! [`NagSlot::update`] is 1 to 3 for one weight, [`NagTotals::update`] is 4.
//! [`learn`] applies them to one regressor; one-against-all does so to a vector
//! of classes at a time. Cost per weight: a square root and four divisions.
//!
//! Kept for comparison with the papers' own runs; `pn` ([`super::Preconditioner`])
//! is as good, faster and a third of the size.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::pn::{bounded_change, bounded_score, bounded_sum, Scores};
use super::{Loss, Weights};
use crate::data::{RowBuffer, LARGEST_VALUE};
use crate::file::bounded_count;

/// A weight and its two sums.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NagSlot {
    /// The weight.
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
    /// Steps 1 to 3; `slope_squared` is the squared slope of the loss times the
    /// importance. Returns `x^2 / s^2` and the rate.
    ///
    /// `IN_LANES` is for a loop over several regressors, which vectorises: all is
    /// computed without branches, and those of slope 0 do not change. The numbers are
    /// the same.
    #[inline(always)]
    pub fn update<const IN_LANES: bool>(&mut self, x: Magnitude, slope_squared: f32) -> (f32, f32) {
        let Self { w, s, .. } = *self;
        self.g = bounded_sum(self.g + slope_squared * x.square);
        let is_larger = x.size > s && (!IN_LANES || slope_squared > 0.0);
        if IN_LANES || is_larger {
            let rescaled = if s > 0.0 { w * (s / x.size) } else { w };
            self.w = if is_larger { rescaled } else { w };
            self.s = if is_larger { x.size } else { s };
        }
        if IN_LANES {
            // One that has never changed has no size.
            let s = if self.s > 0.0 { self.s } else { x.size };
            (x.square / (s * s), rate(self.g, s))
        } else {
            (x.square / (self.s * self.s), self.rate())
        }
    }

    #[inline]
    fn rate(&self) -> f32 {
        rate(self.g, self.s)
    }
}

/// 1/(s sqrt(G)): 0 where the gradients so far were so small that G is 0, and finite where s is as
/// small.
#[inline(always)]
fn rate(g: f32, s: f32) -> f32 {
    let root = g.sqrt();
    let inverse = if root > 0.0 { 1.0 / root } else { 0.0 };
    (inverse * (1.0 / s)).min(f32::MAX)
}

/// The size of a feature and its square. Sizes below 2^-63 are taken for that, so
/// that their squares do not vanish.
#[derive(Debug, Clone, Copy)]
pub struct Magnitude {
    size: f32,
    /// The square of the size.
    pub square: f32,
}

impl Magnitude {
    const SMALLEST: f32 = 1.084_202e-19;

    /// From the smallest to that of the largest value of a prepared example.
    pub const RANGE: RangeInclusive<f32> = Self::SMALLEST..=LARGEST_VALUE;

    /// That of a feature of value `x`.
    #[inline(always)]
    pub fn new(x: f32) -> Self {
        let size = x.abs().max(Self::SMALLEST);
        Self {
            size,
            square: size * size,
        }
    }
}

/// What one regressor keeps beside its weights.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NagTotals {
    /// Sum of importances.
    pub t: f64,
    /// Sum of normalised squared lengths.
    pub n: f64,
}

impl NagTotals {
    /// Step 4 for an example of normalised squared length `length`; returns M.
    #[inline]
    pub fn update(&mut self, importance: f32, length: f32) -> f32 {
        self.t = bounded_count(self.t + f64::from(importance));
        self.n = bounded_count(self.n + f64::from(importance) * f64::from(length));
        let ratio = self.t as f32 / self.n as f32;
        // In single precision both may be infinite, or both vanish.
        let ratio = if ratio.is_nan() {
            (self.t / self.n) as f32
        } else {
            ratio
        };
        bounded_sum(ratio).sqrt()
    }
}

/// The span of labels learned so far, which predictions are clamped to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The lowest label, at most 0.
    pub low: f32,
    /// The highest label, at least 0.
    pub high: f32,
}

impl Span {
    /// Clamps nothing.
    pub const UNBOUNDED: Self = Self {
        low: f32::NEG_INFINITY,
        high: f32::INFINITY,
    };

    /// Widens the span to `label`.
    #[inline]
    pub fn widen(&mut self, label: f32) {
        self.low = self.low.min(label);
        self.high = self.high.max(label);
    }

    /// Whether it is one of labels, or of the clamped logistic scores.
    pub fn is_sound(self) -> bool {
        (-50.0..=0.0).contains(&self.low) && (0.0..=50.0).contains(&self.high)
    }

    /// `p`, brought into the span.
    #[inline]
    pub fn clamp(self, p: f32) -> f32 {
        p.clamp(self.low, self.high)
    }
}

/// Returns the product of an example with the weights of one regressor, which may have lost the sums
/// beside them.
#[inline]
pub(super) fn product<S: Copy + Default + Into<f32>>(weights: &Weights<S>, row: &RowBuffer) -> f32 {
    let mut sum = 0.0;
    weights.visit(&row.columns, |entry, weight| {
        sum += weight.into() * row.values[entry];
    });
    bounded_score(sum)
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

/// One regressor learns one example.
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
    if !loss.is_satisfied(y, p) && slope_squared != 0.0 {
        weights.prepare_for(row.columns.len(), width);
        let (mut length, mut ppu) = (0.0, 0.0);
        weights.change(&row.columns, |entry, slot| {
            let x = Magnitude::new(row.values[entry]);
            let (square, rate) = slot.update::<false>(x, slope_squared);
            length += square;
            ppu += x.square * rate;
        });
        let factor = totals.update(importance, length);
        let ppu = bounded_sum(ppu * factor);
        let step = bounded_change(loss.step(y, p, a, ppu) * factor);
        weights.change(&row.columns, |entry, slot| {
            slot.w += bounded_change(step * (row.values[entry] * slot.rate()));
        });
    }
    let raw = product(weights, row);
    Scores {
        before,
        after: clamp(span, raw),
        raw,
    }
}
