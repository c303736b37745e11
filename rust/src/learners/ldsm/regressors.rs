//! The M regressors of a node, which learn from the same examples in O(M) per value, and the choice
//! of the weights that a slim node keeps.
//!
//! **Sparse rows**: normalized adaptive gradients (NAG; Ross, Mineiro & Langford, "Normalized
//! online learning", UAI 2013). Steps follow the LdSM authors' program, not Vowpal Wabbit's, which
//! [`crate::linear`] and one-against-all reproduce number for number. A step is the plain gradient
//! step, and importance only scales its gradient; a zero gradient still counts in t and N. Scale and
//! N are updated before the margin is computed, G after it. The program multiplies a weight by 0 at
//! its feature's first value; here the first weight stays. One scale serves all M regressors, and
//! its inverse saves a division per value.
//!
//! **Dense rows**: stochastic gradient descent on features that are standardized by the node's own
//! examples. An example x of importance h moves the weights of a regressor of margin m by -u x. Up
//! to h = 1, u is h times the gradient step of the authors' program, rate (p(m) - target). The
//! remaining h - 1 follow the gradient flow from the end of the step of h = 1, in closed form
//! ([`Loss::step`]). So an example of importance 2 has about the effect of two equal examples, and
//! the step grows like ln h; h times the gradient would overshoot without bound.

use super::tree::is_full;
use crate::choices;
use crate::data::Examples;
use crate::linear::Loss;
use crate::simd::{short_dot, sum_of_squares, LANES};

choices! {
    /// The probability that a regressor's margin m stands for.
    pub enum NodeLoss {
        /// The logistic function of 4 m - 2: 1/2 where examples are routed, at m = 1/2,
        /// with slope 1 there.
        Centred = "centred",
        /// The logistic function of m, as in the authors' program.
        Logistic = "logistic",
    }
}

impl NodeLoss {
    /// Returns the logit of the probability that a margin stands for.
    #[inline]
    pub fn logit(self, margin: f32) -> f32 {
        match self {
            Self::Centred => 4.0 * margin - 2.0,
            Self::Logistic => margin,
        }
    }

    /// Returns whether each pass over a node's examples has a new order. The authors' program, whose
    /// loss is the logistic one, keeps one order for a tree.
    pub fn reshuffles(self) -> bool {
        self == Self::Centred
    }

    /// Returns the probability of going to a child, from its regressor's margin.
    #[inline]
    pub fn probability(self, margin: f32) -> f32 {
        1.0 / (1.0 + (-self.logit(margin)).exp())
    }
}

/// The regressors of a node, by the kind of its rows.
pub enum Regressors<const M: usize> {
    Sparse(NagRegressors<M>),
    Dense(DenseRegressors<M>),
}

/// The state of all regressors for one feature, which an example needs together.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Feature<const M: usize> {
    weights: [f32; M],
    /// G: sums of squared gradients.
    squares: [f32; M],
    /// s, the largest absolute value so far, and its inverse.
    largest: f32,
    inverse: f32,
}

/// M linear regressors that learn from the same sparse examples.
pub struct NagRegressors<const M: usize> {
    features: Vec<Feature<M>>,
    rate: f32,
    /// t, the number of examples seen.
    seen: f64,
    /// N, the squared lengths of all examples with each feature in units of its largest value.
    norm: f64,
}

impl<const M: usize> NagRegressors<M> {
    /// Creates regressors from the first weights of each feature.
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

    /// Updates scales and norm with an example and returns its margins.
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
                // The inverse of the smallest floats overflows.
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

    /// Takes the step of the example that was just observed, with the `gradients` of the loss by
    /// the margins, and updates the margins.
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
                // The smallest float avoids a division by 0 if all gradients are 0.
                feature.squares[j] += gradient * gradient + f32::MIN_POSITIVE;
                let step = steps[j] * unit / feature.squares[j].sqrt();
                feature.weights[j] -= step;
                margins[j] -= step * x;
            }
        }
    }

    /// Returns the weights of each feature. Those whose largest product with a value so far is below
    /// `small` become 0. For values of at most 1 these are the weights below `small`, as in the
    /// authors' program.
    pub fn weights(&self, small: f32) -> impl Iterator<Item = [f32; M]> + '_ {
        self.features.iter().map(move |feature| {
            let unit = feature.largest.max(1.0);
            let kept = |w: f32| if w.abs() * unit < small { 0.0 } else { w };
            feature.weights.map(kept)
        })
    }
}

/// Standardized rows of a node, and its regressors.
pub struct DenseRegressors<const M: usize> {
    /// Values of all features of each row, filled up to `stride`.
    rows: Vec<f32>,
    stride: usize,
    /// Squared length of each row with the constant.
    lengths: Vec<f32>,
    means: Vec<f32>,
    /// 1 / deviation, or 0 for a constant feature; its standardized values and its weight are 0.
    inverse: Vec<f32>,
    /// Weights of the standardized features of each regressor, filled up to `stride`.
    weights: [Vec<f32>; M],
    bias: [f32; M],
    rate: f32,
}

impl<const M: usize> DenseRegressors<M> {
    pub fn new(data: &Examples, weights: impl Iterator<Item = [f32; M]>, rate: f32) -> Self {
        let (width, stride) = (data.width, data.width.next_multiple_of(LANES));
        let mut rows: Vec<f32> = vec![0.0; stride * data.len()];
        let (mut sums, mut total) = (vec![0.0f64; width], 0.0);
        for (i, row) in (0..).zip(rows.chunks_exact_mut(stride)) {
            let (features, values) = data.row(i);
            let weight = f64::from(data.weight(i));
            total += weight;
            if is_full(features) {
                row[..values.len()].copy_from_slice(values);
                let sums = sums.iter_mut().zip(values);
                sums.for_each(|(sum, &x)| *sum += weight * f64::from(x));
                continue;
            }
            for (&feature, &x) in features.iter().zip(values) {
                // Columns that were hashed to the same column add up.
                row[feature as usize] += x;
                sums[feature as usize] += weight * f64::from(x);
            }
        }
        let means: Vec<f64> = sums.iter().map(|sum| sum / total).collect();
        let mut squares = vec![0.0f64; width];
        for (i, row) in (0..).zip(rows.chunks_exact(stride)) {
            let weight = f64::from(data.weight(i));
            for ((square, &x), mean) in squares.iter_mut().zip(row).zip(&means) {
                *square += weight * (f64::from(x) - mean).powi(2);
            }
        }
        let inverse = |(square, mean): (&f64, &f64)| {
            let deviation = (square / total).sqrt();
            // The deviation of equal values is a rounding error. The inverse of a smaller deviation
            // would overflow.
            let varies = deviation > 1e-6 * mean.abs() && deviation > 1e-30;
            if varies {
                deviation.recip() as f32
            } else {
                0.0
            }
        };
        let inverse: Vec<f32> = squares.iter().zip(&means).map(inverse).collect();
        let means: Vec<f32> = means.into_iter().map(|mean| mean as f32).collect();
        for row in rows.chunks_exact_mut(stride) {
            for ((x, mean), inverse) in row.iter_mut().zip(&means).zip(&inverse) {
                // The difference of two floats can overflow a float.
                let difference = f64::from(*x) - f64::from(*mean);
                *x = (difference * f64::from(*inverse)) as f32;
            }
        }
        let length = |row: &[f32]| 1.0 + sum_of_squares(row);
        let mut by_regressor = [(); M].map(|()| vec![0.0; stride]);
        for (feature, weights) in weights.enumerate() {
            for (regressor, weight) in by_regressor.iter_mut().zip(weights) {
                regressor[feature] = weight;
            }
        }
        Self {
            lengths: rows.chunks_exact(stride).map(length).collect(),
            rows,
            stride,
            means,
            inverse,
            weights: by_regressor,
            bias: [0.0; M],
            rate,
        }
    }

    #[inline]
    pub fn margins(&self, i: u32) -> [f32; M] {
        let row = &self.rows[i as usize * self.stride..][..self.stride];
        let (row, _) = row.as_chunks::<LANES>();
        std::array::from_fn(|j| {
            let (weights, _) = self.weights[j].as_chunks::<LANES>();
            self.bias[j] + short_dot(row, weights)
        })
    }

    /// Returns the step of example `i` for a regressor with this margin and `target` (0 or 1), as a
    /// multiple of the features to be subtracted from the weights.
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
        // Beyond 50 the loss is 0.
        let logit = y * (y * loss.logit(margin - step * length)).min(50.0);
        step - Loss::Logistic.step(y, logit, self.rate * (importance - 1.0), slope * length)
    }

    /// Takes the `steps` of example `i` and updates the margins.
    #[inline]
    pub fn step(&mut self, i: u32, steps: &[f32; M], margins: &mut [f32; M]) {
        let row = &self.rows[i as usize * self.stride..][..self.stride];
        for j in 0..M {
            for (weight, x) in self.weights[j].iter_mut().zip(row) {
                *weight -= steps[j] * x;
            }
            self.bias[j] -= steps[j];
            margins[j] -= steps[j] * self.lengths[i as usize];
        }
    }

    /// Returns the weights of the features before standardization; the weight of feature `constant`
    /// absorbs the means. Weights of standardized features below `small` become 0.
    pub fn weights(&self, constant: usize, small: f32) -> Vec<[f32; M]> {
        let kept = |w: f32| if w.abs() < small { 0.0 } else { w };
        let scaled = |(feature, inverse): (usize, &f32)| {
            std::array::from_fn(|j| kept(self.weights[j][feature]) * inverse)
        };
        let mut weights: Vec<[f32; M]> = self.inverse.iter().enumerate().map(scaled).collect();
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

/// Drops the features of the smallest contributions to a node's margins, which together make up at
/// most `share` of all contributions. The contribution of a feature is the variance of its part in
/// the margins over `examples`, so the scales of features and weights do not matter.
///
/// Returns the kept features without the `constant`, and the mean part of the dropped ones in the
/// margins, to be added to the constant.
pub fn kept_features<const M: usize>(
    examples: &Examples,
    weights: &[[f32; M]],
    constant: Option<usize>,
    share: f64,
) -> (Vec<usize>, [f32; M]) {
    let is_feature = |&feature: &usize| {
        let mut weights = weights[feature].iter();
        Some(feature) != constant && weights.any(|&w| w != 0.0)
    };
    let mut features: Vec<usize> = (0..weights.len()).filter(is_feature).collect();
    let mut mean_dropped = [0.0f64; M];
    if share > 0.0 {
        let moments = moments(examples, weights.len());
        let contribution = |feature: usize| {
            let squares = weights[feature].map(|w| f64::from(w) * f64::from(w));
            let (_, variance) = moments[feature];
            squares.iter().sum::<f64>() * variance
        };
        let mut contributions: Vec<(f64, usize)> = features
            .iter()
            .map(|&feature| (contribution(feature), feature))
            .collect();
        let all: f64 = contributions.iter().map(|&(part, _)| part).sum();
        let n_dropped = partition_smallest(&mut contributions, share * all);
        let (dropped, kept) = contributions.split_at(n_dropped);
        for &(_, feature) in dropped {
            let (feature_mean, _) = moments[feature];
            for (mean, &w) in mean_dropped.iter_mut().zip(&weights[feature]) {
                *mean += f64::from(w) * feature_mean;
            }
        }
        features = kept.iter().map(|&(_, feature)| feature).collect();
    }
    (features, mean_dropped.map(|mean| mean as f32))
}

/// Moves the smallest of `parts` whose sum is at most `limit` to the front and returns their number;
/// of equal parts the feature of lower number comes first. Takes O(n) by partitioning the half that
/// the limit lies in again, instead of sorting.
fn partition_smallest(parts: &mut [(f64, usize)], limit: f64) -> usize {
    let (mut start, mut end, mut sum) = (0, parts.len(), 0.0);
    while start < end {
        let middle = (end - start) / 2;
        let rest = &mut parts[start..end];
        rest.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let smaller: f64 = rest[..=middle].iter().map(|&(part, _)| part).sum();
        if sum + smaller <= limit {
            sum += smaller;
            start += middle + 1;
        } else {
            end = start + middle;
        }
    }
    start
}

/// Returns mean and variance of each of `n` features.
fn moments(examples: &Examples, n: usize) -> Vec<(f64, f64)> {
    let mut moments = vec![(0.0, 0.0); n];
    for i in 0..examples.len() as u32 {
        let (features, values) = examples.row(i);
        for (&feature, &x) in features.iter().zip(values) {
            let (sum, square_sum) = &mut moments[feature as usize];
            *sum += f64::from(x);
            *square_sum += f64::from(x) * f64::from(x);
        }
    }
    let n_examples = examples.len() as f64;
    for (mean, variance) in &mut moments {
        *mean /= n_examples;
        *variance = (*variance / n_examples - *mean * *mean).max(0.0);
    }
    moments
}
