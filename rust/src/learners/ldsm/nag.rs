//! The M regressors of a node on sparse rows: normalised adaptive gradients (NAG;
//! Ross, Mineiro & Langford, "Normalized online learning", UAI 2013),
//! O(M) per non-zero value.
//!
//! The arithmetic is that of the LdSM authors' program, and not Vowpal Wabbit's, which
//! [`crate::linear`] and one-against-all reproduce number for number. A step is the plain
//! gradient step, and importance scales its gradient alone; a zero gradient still counts
//! in t and N. Scale and N are updated before the margin is taken, G after it. All M
//! regressors learn from every example, so one scale serves them all, and its inverse
//! saves a division per value.

/// The state of all regressors for one feature, side by side: an example needs all
/// of it at once.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Feature<const M: usize> {
    weights: [f32; M],
    /// G: sums of squared gradients.
    squares: [f32; M],
    /// s: the largest absolute value so far, and its inverse.
    largest: f32,
    inverse: f32,
}

/// M linear regressors that learn from the same sparse examples.
pub struct NagRegressors<const M: usize> {
    features: Vec<Feature<M>>,
    rate: f32,
    /// t: examples seen.
    seen: f64,
    /// N: squared lengths of all examples, each feature in units of its largest value.
    norm: f64,
}

impl<const M: usize> NagRegressors<M> {
    /// Regressors of these weights, one feature after the other.
    pub fn new(weights: impl Iterator<Item = [f32; M]>, rate: f32) -> Self {
        let feature = |weights| Feature {
            weights,
            squares: [0.0; M],
            largest: 0.0,
            inverse: 0.0,
        };
        Self {
            features: weights.map(feature).collect(),
            rate,
            seen: 0.0,
            norm: 0.0,
        }
    }

    /// Takes the values of an example into scales and norm and returns its margins.
    #[inline]
    pub fn observe(&mut self, row: &[u32], values: &[f32]) -> [f32; M] {
        let mut margins = [0.0f32; M];
        let mut length = 0.0f32;
        for (&feature, &x) in row.iter().zip(values) {
            let feature = &mut self.features[feature as usize];
            let size = x.abs();
            if size > feature.largest {
                if feature.largest > 0.0 {
                    let shrunk = feature.largest / size;
                    feature.weights.iter_mut().for_each(|w| *w *= shrunk);
                }
                feature.largest = size;
                // The inverse of the tiniest values overflows a single float.
                feature.inverse = size.recip().min(f32::MAX);
            }
            let unit = x * feature.inverse;
            length += unit * unit;
            for (margin, weight) in margins.iter_mut().zip(&feature.weights) {
                *margin += weight * x;
            }
        }
        self.seen += 1.0;
        self.norm += f64::from(length);
        margins
    }

    /// Takes the step of the example that was just observed. `gradients` are those
    /// of the loss by the margins; the margins are updated.
    #[inline]
    pub fn step(
        &mut self,
        row: &[u32],
        values: &[f32],
        gradients: &[f32; M],
        margins: &mut [f32; M],
    ) {
        let scale = self.rate * (self.seen / self.norm).sqrt() as f32;
        let steps = gradients.map(|gradient| scale * gradient);
        for (&feature, &x) in row.iter().zip(values) {
            let feature = &mut self.features[feature as usize];
            let unit = x * feature.inverse;
            for j in 0..M {
                let gradient = gradients[j] * x;
                // The smallest number keeps a zero gradient from dividing by 0.
                feature.squares[j] += gradient * gradient + f32::MIN_POSITIVE;
                let step = steps[j] * unit / feature.squares[j].sqrt();
                feature.weights[j] -= step;
                margins[j] -= step * x;
            }
        }
    }

    /// The weights, one feature after the other. Those whose largest product with a
    /// value so far is below `small` become 0. Where values are at most 1 these are the
    /// weights below `small`, as in the authors' program.
    pub fn weights(&self, small: f32) -> impl Iterator<Item = [f32; M]> + '_ {
        self.features.iter().map(move |feature| {
            let unit = feature.largest.max(1.0);
            let kept = |w: f32| if w.abs() * unit < small { 0.0 } else { w };
            feature.weights.map(kept)
        })
    }
}
