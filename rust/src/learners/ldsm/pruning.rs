//! Which weights of a node and which labels of a leaf are worth keeping.

use super::examples::Examples;

/// The features of a node that are kept: all but those of the smallest contribution to its
/// margins, which together make up at most `share` of it. A feature's contribution is its mean
/// squared part of the margins over `examples`, so neither the scale of the features nor that
/// of the weights matters. `constant` is no feature and not among them.
pub fn kept_features<const M: usize>(
    examples: &Examples,
    weights: &[[f32; M]],
    constant: Option<usize>,
    share: f64,
) -> Vec<usize> {
    let is_feature = |&feature: &usize| {
        let mut weights = weights[feature].iter();
        Some(feature) != constant && weights.any(|&w| w != 0.0)
    };
    let mut kept: Vec<usize> = (0..weights.len()).filter(is_feature).collect();
    if share == 0.0 {
        return kept;
    }
    let mut contributions = vec![0.0f64; weights.len()];
    for i in 0..examples.len() as u32 {
        let (features, values) = examples.row(i);
        for (&feature, &x) in features.iter().zip(values) {
            contributions[feature as usize] += f64::from(x) * f64::from(x);
        }
    }
    for (contribution, weights) in contributions.iter_mut().zip(weights) {
        let squares = weights.iter().map(|&w| f64::from(w) * f64::from(w));
        *contribution *= squares.sum::<f64>();
    }
    let all: f64 = kept.iter().map(|&feature| contributions[feature]).sum();
    kept.sort_by(|&a, &b| contributions[a].total_cmp(&contributions[b]));
    let mut dropped = 0.0;
    let n_dropped = kept.iter().take_while(|&&feature| {
        dropped += contributions[feature];
        dropped <= share * all
    });
    let n_dropped = n_dropped.count();
    kept.drain(..n_dropped);
    kept
}

/// Removes the labels of a leaf that have less than `share` of its most frequent one's weight.
pub fn keep_frequent(labels: &mut Vec<(u32, f32)>, share: f64) {
    let most = labels.iter().map(|&(_, count)| count).fold(0.0, f32::max);
    labels.retain(|&(_, count)| f64::from(count) >= share * f64::from(most));
}
