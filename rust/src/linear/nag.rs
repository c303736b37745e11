//! Normalised adaptive gradient steps with importance-aware updates: what
//! Vowpal Wabbit does by default, number for number.
//!
//! Ross, Mineiro & Langford, "Normalized online learning" (UAI 2013). Kept for
//! comparison with the papers' own runs; `pn` ([`super::Preconditioner`]) is
//! as good, faster and a third of the size.

/// What one weight carries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NagSlot {
    /// The weight.
    pub w: f32,
    /// Sum of squared gradients.
    pub g: f32,
    /// Largest size of the feature so far.
    pub s: f32,
}

impl NagSlot {
    /// Takes in a feature `x` and the weighted square of the loss's slope,
    /// which is not 0. Returns the squared feature in units of its largest
    /// size, and the squared feature times this weight's rate.
    #[inline]
    pub fn absorb(&mut self, x: f32, slope_squared: f32) -> (f32, f32) {
        let size = x.abs().max(TINIEST);
        let square = size * size;
        self.g += slope_squared * square;
        if size > self.s {
            if self.s > 0.0 {
                self.w *= self.s / size;
            }
            self.s = size;
        }
        (square / (self.s * self.s), square * self.rate())
    }

    /// 1/(s sqrt(G)).
    #[inline]
    pub fn rate(&self) -> f32 {
        (1.0 / self.g.sqrt()) * (1.0 / self.s)
    }
}

/// Sizes below this are taken for it, so that their squares do not vanish.
pub(crate) const TINIEST: f32 = 1.084_202e-19;

/// What one regressor carries beside its weights.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NagTotals {
    /// Sum of importances.
    pub t: f64,
    /// Sum of normalised squared lengths.
    pub n: f64,
}

impl NagTotals {
    /// Takes in an example of normalised squared length `share`; returns the
    /// factor common to all its weights.
    #[inline]
    pub fn absorb(&mut self, importance: f32, share: f32) -> f32 {
        self.t += f64::from(importance);
        self.n += f64::from(importance) * f64::from(share);
        (self.t as f32 / self.n as f32).sqrt()
    }
}

/// The span of labels learned so far, which predictions are clamped to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Span {
    /// The lowest label, at most 0.
    pub low: f32,
    /// The highest label, at least 0.
    pub high: f32,
}

impl Span {
    /// Widens the span to `label`.
    #[inline]
    pub fn widen(&mut self, label: f32) {
        self.low = self.low.min(label);
        self.high = self.high.max(label);
    }

    /// `p`, brought into the span.
    #[inline]
    pub fn clamp(self, p: f32) -> f32 {
        p.clamp(self.low, self.high)
    }
}
