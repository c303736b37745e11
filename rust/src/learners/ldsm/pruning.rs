//! Which weights of a node and which labels of a leaf are worth keeping.

use super::examples::Examples;

/// What is kept of a node's weights.
pub struct Kept<const M: usize> {
    /// The features.
    pub features: Vec<usize>,
    /// What the dropped ones contribute to the margins on average, for the constant to make up.
    pub mean_dropped: [f32; M],
}

/// Drops the features of the smallest contribution to a node's margins, which together make up at
/// most `share` of it. A feature's contribution is the variance of its part in the margins over
/// `examples`, so neither the scale of the features nor that of the weights matters. `constant`
/// is no feature and not among them.
pub fn kept_features<const M: usize>(
    examples: &Examples,
    weights: &[[f32; M]],
    constant: Option<usize>,
    share: f64,
) -> Kept<M> {
    let is_feature = |&feature: &usize| {
        let mut weights = weights[feature].iter();
        Some(feature) != constant && weights.any(|&w| w != 0.0)
    };
    let mut features: Vec<usize> = (0..weights.len()).filter(is_feature).collect();
    let mut mean_dropped = [0.0f64; M];
    if share > 0.0 {
        let (means, variances) = moments(examples, weights.len());
        let contribution = |feature: usize| {
            let squares = weights[feature]
                .iter()
                .map(|&w| f64::from(w) * f64::from(w));
            squares.sum::<f64>() * variances[feature]
        };
        let all: f64 = features.iter().map(|&feature| contribution(feature)).sum();
        features.sort_by(|&a, &b| contribution(a).total_cmp(&contribution(b)));
        let mut dropped = 0.0;
        let n_dropped = features.iter().take_while(|&&feature| {
            dropped += contribution(feature);
            dropped <= share * all
        });
        let n_dropped = n_dropped.count();
        for feature in features.drain(..n_dropped) {
            for (mean, &w) in mean_dropped.iter_mut().zip(&weights[feature]) {
                *mean += f64::from(w) * means[feature];
            }
        }
    }
    Kept {
        features,
        mean_dropped: mean_dropped.map(|mean| mean as f32),
    }
}

/// Mean and variance of each of `n` features.
fn moments(examples: &Examples, n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut means, mut variances) = (vec![0.0f64; n], vec![0.0f64; n]);
    for i in 0..examples.len() as u32 {
        let (features, values) = examples.row(i);
        for (&feature, &x) in features.iter().zip(values) {
            means[feature as usize] += f64::from(x);
            variances[feature as usize] += f64::from(x) * f64::from(x);
        }
    }
    let n_examples = examples.len() as f64;
    for (mean, variance) in means.iter_mut().zip(&mut variances) {
        *mean /= n_examples;
        *variance = (*variance / n_examples - *mean * *mean).max(0.0);
    }
    (means, variances)
}

/// Removes the labels of a leaf that have less than `share` of its most frequent one's weight.
pub fn keep_frequent(labels: &mut Vec<(u32, f32)>, share: f64) {
    let most = labels.iter().map(|&(_, count)| count).fold(0.0, f32::max);
    labels.retain(|&(_, count)| f64::from(count) >= share * f64::from(most));
}
