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
        let moments = moments(examples, weights.len());
        let contribution = |feature: usize| {
            let squares = weights[feature].map(|w| f64::from(w) * f64::from(w));
            squares.iter().sum::<f64>() * moments[feature].variance
        };
        let mut contributions: Vec<(f64, usize)> = features
            .iter()
            .map(|&feature| (contribution(feature), feature))
            .collect();
        let all: f64 = contributions.iter().map(|&(part, _)| part).sum();
        let n_dropped = part_smallest(&mut contributions, share * all);
        let (dropped, kept) = contributions.split_at(n_dropped);
        for &(_, feature) in dropped {
            for (mean, &w) in mean_dropped.iter_mut().zip(&weights[feature]) {
                *mean += f64::from(w) * moments[feature].mean;
            }
        }
        features = kept.iter().map(|&(_, feature)| feature).collect();
    }
    Kept {
        features,
        mean_dropped: mean_dropped.map(|mean| mean as f32),
    }
}

/// Moves the smallest of `parts` that together make up at most `most` to the front and returns
/// how many these are; of equal ones the first feature's. It takes O(n): the half that the limit
/// lies in is parted again, and nothing is sorted.
fn part_smallest(parts: &mut [(f64, usize)], most: f64) -> usize {
    let (mut start, mut end, mut sum) = (0, parts.len(), 0.0);
    while start < end {
        let middle = (end - start) / 2;
        let rest = &mut parts[start..end];
        rest.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let smaller: f64 = rest[..=middle].iter().map(|&(part, _)| part).sum();
        if sum + smaller <= most {
            sum += smaller;
            start += middle + 1;
        } else {
            end = start + middle;
        }
    }
    start
}

/// Of a feature.
#[derive(Clone, Copy, Default)]
struct Moments {
    mean: f64,
    variance: f64,
}

/// Those of each of `n` features.
fn moments(examples: &Examples, n: usize) -> Vec<Moments> {
    let mut moments = vec![Moments::default(); n];
    for i in 0..examples.len() as u32 {
        let (features, values) = examples.row(i);
        for (&feature, &x) in features.iter().zip(values) {
            let moments = &mut moments[feature as usize];
            moments.mean += f64::from(x);
            moments.variance += f64::from(x) * f64::from(x);
        }
    }
    let n_examples = examples.len() as f64;
    for Moments { mean, variance } in &mut moments {
        *mean /= n_examples;
        *variance = (*variance / n_examples - *mean * *mean).max(0.0);
    }
    moments
}

/// Removes the labels of a leaf that have less than `share` of its most frequent one's weight.
pub fn keep_frequent(labels: &mut Vec<(u32, f32)>, share: f64) {
    let most = labels.iter().map(|&(_, count)| count).fold(0.0, f32::max);
    labels.retain(|&(_, count)| f64::from(count) >= share * f64::from(most));
}
