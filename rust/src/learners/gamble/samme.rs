//! SAMME.Discrete (Zhu, Rosset, Zou & Hastie, "Multi-class AdaBoost", 2009): the same
//! loss, codes and trees, but a leaf votes for one class and all leaves of a tree alike.
//!
//! A tree's answers are codes of classes, 1 for the one and -1/(K-1) for the others. Its
//! weight in the committee is beta = (K-1)^2 / K alpha, alpha = log((1 - e) / e) + log(K-1),
//! where e is the share of the weight that it answers wrongly. With this beta the weights
//! change as in GAMBLE, exp(-(1/K) y.f): those of wrong answers rise by e^alpha against
//! those of right ones.

use super::leaf::Leaves;

/// The least share of wrong answers that a tree's weight is worked out from: one without
/// any would weigh infinitely much.
const LEAST_WRONG: f64 = 1e-10;

/// The class of the most weight, of equals the first.
pub fn heaviest(by_class: &[(u32, f64)]) -> u32 {
    let mut best = (0, f64::NEG_INFINITY);
    for &(class, weight) in by_class {
        if weight > best.1 {
            best = (class, weight);
        }
    }
    best.0
}

/// Share of the weight of all rows that their leaves' choices are wrong for. Of each leaf the rows
/// that it was grown from and the others.
pub fn share_wrong<'a>(
    choices: &[u32],
    leaves: impl Iterator<Item = (&'a [u32], &'a [u32])>,
    labels: &[u32],
    weights: &[f64],
) -> f64 {
    let (mut wrong, mut all) = (0.0, 0.0);
    for (choice, (sampled, others)) in choices.iter().zip(leaves) {
        for &row in sampled.iter().chain(others) {
            let weight = weights[row as usize];
            all += weight;
            if labels[row as usize] != *choice {
                wrong += weight;
            }
        }
    }
    wrong / all
}

/// beta; none where the tree is no better than chance.
pub fn vote(wrong: f64, n_classes: usize) -> Option<f64> {
    let others = n_classes as f64 - 1.0;
    let wrong = wrong.max(LEAST_WRONG);
    let alpha = ((1.0 - wrong) / wrong).ln() + others.ln();
    (alpha > 1e-9).then(|| others * others / (others + 1.0) * alpha)
}

/// Appends a leaf for each choice.
pub fn push_votes(leaves: &mut Leaves, choices: &[u32], vote: f64, n_classes: usize) {
    for &choice in choices {
        leaves.push([(choice, vote)], -vote / (n_classes as f64 - 1.0));
    }
}
