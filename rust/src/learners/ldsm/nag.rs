//! The M regressors of a node on sparse rows: logistic loss, normalised adaptive
//! gradients (Ross, Mineiro & Langford, UAI 2013).

/// What the regressors know of one feature, side by side: an example asks for all
/// of it at once.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Feature<const M: usize> {
    /// A weight for each regressor.
    weights: [f32; M],
    /// Sums of squared gradients.
    squares: [f32; M],
    /// The largest size that the feature has had, and its inverse.
    largest: f32,
    inverse: f32,
}

/// M linear regressors that learn from the same examples.
#[derive(Debug)]
pub struct Nag<const M: usize> {
    features: Vec<Feature<M>>,
    rate: f32,
    /// t: examples seen.
    seen: f64,
    /// N: squared lengths of all examples, each feature in units of its largest.
    norm: f64,
}

impl<const M: usize> Nag<M> {
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

    /// The margins of an example, which is about to be learned.
    #[inline]
    pub fn meet(&mut self, row: &[u32], values: &[f32]) -> [f32; M] {
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
                // That of the tiniest sizes is no single float.
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

    /// Takes the step of an example that has just been met. `gradients` are those
    /// of the loss by the margins, which the steps move.
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
                // So that a gradient of zero divides by something.
                feature.squares[j] += gradient * gradient + f32::MIN_POSITIVE;
                let step = steps[j] * unit / feature.squares[j].sqrt();
                feature.weights[j] -= step;
                margins[j] -= step * x;
            }
        }
    }

    /// The weights, one feature after the other. Those whose largest product so far
    /// is below `small` are 0, and so are, as in the authors' program, all below it
    /// themselves where values are at most 1: they were never needed.
    pub fn weights(&self, small: f32) -> impl Iterator<Item = [f32; M]> + '_ {
        self.features.iter().map(move |feature| {
            let unit = feature.largest.max(1.0);
            let kept = |w: f32| if w.abs() * unit < small { 0.0 } else { w };
            feature.weights.map(kept)
        })
    }
}
