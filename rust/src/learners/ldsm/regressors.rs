//! The M regressors of a node, which learn from the same examples: O(M) per value.
//!
//! **Sparse rows**: normalised adaptive gradients (NAG; Ross, Mineiro & Langford, "Normalized
//! online learning", UAI 2013). The arithmetic is that of the LdSM authors' program, and not Vowpal
//! Wabbit's, which [`crate::linear`] and one-against-all reproduce number for number. A step is the
//! plain gradient step, and importance scales its gradient alone; a zero gradient still counts in t
//! and N. Scale and N are updated before the margin is taken, G after it. One scale serves all M
//! regressors, and its inverse saves a division per value.
//!
//! **Dense rows**: features standardised by the node's own examples, stochastic gradient descent.
//! An example x of importance h moves the weights of a regressor of margin m by -u x. Up to h = 1, u
//! is h times the gradient step of the authors' program, rate (p(m) - target). The remaining h - 1
//! follow the gradient flow from where the step of h = 1 ends, in closed form ([`Loss::step`]). So
//! an example of importance 2 is learned about like one that comes twice in a row, and the step grows
//! like ln h; h times the gradient would overshoot without bound.

use super::params::NodeLoss;
use crate::data::Examples;
use crate::linear::Loss;

/// The regressors of a node, by the kind of its rows.
pub enum Regressors<const M: usize> {
    Sparse(NagRegressors<M>),
    Dense(DenseRegressors<M>),
}

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

/// Rows of a node, standardised, and its regressors.
pub struct DenseRegressors<const M: usize> {
    /// One row after the other, every feature filled.
    rows: Vec<f32>,
    /// Squared length of each row, the constant with it.
    lengths: Vec<f32>,
    means: Vec<f32>,
    /// 1 / deviation; 0 for a feature that does not vary, and then, as its
    /// standardised values are all 0, neither does its weight.
    inverse: Vec<f32>,
    /// Weight of each feature, standardised, for each regressor.
    weights: Vec<[f32; M]>,
    bias: [f32; M],
    rate: f32,
}

impl<const M: usize> DenseRegressors<M> {
    pub fn new(data: &Examples, weights: impl Iterator<Item = [f32; M]>, rate: f32) -> Self {
        let width = data.width;
        let mut rows: Vec<f32> = vec![0.0; width * data.len()];
        let (mut sums, mut total) = (vec![0.0f64; width], 0.0);
        for (i, row) in (0..).zip(rows.chunks_exact_mut(width)) {
            let (features, values) = data.row(i);
            let weight = f64::from(data.weight(i));
            total += weight;
            for (&feature, &x) in features.iter().zip(values) {
                // Columns that were hashed to one add up.
                row[feature as usize] += x;
                sums[feature as usize] += weight * f64::from(x);
            }
        }
        let means: Vec<f64> = sums.iter().map(|sum| sum / total).collect();
        let mut squares = vec![0.0f64; width];
        for (i, row) in (0..).zip(rows.chunks_exact(width)) {
            let weight = f64::from(data.weight(i));
            for ((square, &x), mean) in squares.iter_mut().zip(row).zip(&means) {
                *square += weight * (f64::from(x) - mean).powi(2);
            }
        }
        let inverse = |(square, mean): (&f64, &f64)| {
            let deviation = (square / total).sqrt();
            // Equal values leave a deviation of rounding errors; the inverse of a tinier
            // one would overflow single floats.
            let varies = deviation > 1e-6 * mean.abs() && deviation > 1e-30;
            if varies {
                deviation.recip() as f32
            } else {
                0.0
            }
        };
        let inverse: Vec<f32> = squares.iter().zip(&means).map(inverse).collect();
        let means: Vec<f32> = means.into_iter().map(|mean| mean as f32).collect();
        for row in rows.chunks_exact_mut(width) {
            for ((x, mean), inverse) in row.iter_mut().zip(&means).zip(&inverse) {
                // The difference of two single floats can overflow one.
                let difference = f64::from(*x) - f64::from(*mean);
                *x = (difference * f64::from(*inverse)) as f32;
            }
        }
        let length = |row: &[f32]| row.iter().fold(1.0, |sum, x| sum + x * x);
        Self {
            lengths: rows.chunks_exact(width).map(length).collect(),
            rows,
            means,
            inverse,
            weights: weights.collect(),
            bias: [0.0; M],
            rate,
        }
    }

    #[inline]
    pub fn margins(&self, i: u32) -> [f32; M] {
        let mut margins = self.bias;
        let width = self.weights.len();
        let row = &self.rows[i as usize * width..][..width];
        for (&x, weights) in row.iter().zip(&self.weights) {
            for j in 0..M {
                margins[j] += weights[j] * x;
            }
        }
        margins
    }

    /// How far example `i` of this importance moves a regressor of this margin towards its
    /// `target` of 0 or 1, in multiples of its features.
    #[inline]
    pub fn step_length(
        &self,
        i: u32,
        importance: f32,
        loss: NodeLoss,
        target: f32,
        margin: f32,
    ) -> f32 {
        let gradient = importance.min(1.0) * (loss.probability(margin) - target);
        let step = self.rate * gradient;
        if importance <= 1.0 {
            return step;
        }
        let length = self.lengths[i as usize];
        let (y, slope) = (2.0 * target - 1.0, loss.logit(1.0) - loss.logit(0.0));
        // Beyond 50 there is nothing left to learn.
        let logit = y * (y * loss.logit(margin - step * length)).min(50.0);
        step - Loss::Logistic.step(y, logit, self.rate * (importance - 1.0), slope * length)
    }

    /// Takes the `steps` of example `i`; the margins are updated.
    #[inline]
    pub fn step(&mut self, i: u32, steps: &[f32; M], margins: &mut [f32; M]) {
        let width = self.weights.len();
        let row = &self.rows[i as usize * width..][..width];
        for (&x, weights) in row.iter().zip(&mut self.weights) {
            for j in 0..M {
                weights[j] -= steps[j] * x;
            }
        }
        for j in 0..M {
            self.bias[j] -= steps[j];
            margins[j] -= steps[j] * self.lengths[i as usize];
        }
    }

    /// Weights for the features before standardisation; that of the constant, feature
    /// number `constant`, absorbs the means. Weights of standardised features below
    /// `small` become 0.
    pub fn weights(&self, constant: usize, small: f32) -> Vec<[f32; M]> {
        let kept = |w: f32| if w.abs() < small { 0.0 } else { w };
        let weights = self.weights.iter().zip(&self.inverse);
        let weights = weights.map(|(weights, inverse)| weights.map(|w| kept(w) * inverse));
        let mut weights: Vec<[f32; M]> = weights.collect();
        let mut bias = self.bias;
        for (weights, mean) in weights.iter().zip(&self.means) {
            for j in 0..M {
                bias[j] -= weights[j] * mean;
            }
        }
        weights[constant] = bias;
        weights
    }
}
