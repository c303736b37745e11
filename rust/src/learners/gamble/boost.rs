//! Algorithm 2: rounds of one tree each, and the weights between them.

use super::examples::Examples;
use super::grow::Grower;
use super::leaf::{push_votes, Leaves};
use super::node::Node;
use super::params::{Algorithm, Params};
use super::replay::Replay;
use super::samme::{self, heaviest, share_wrong};
use super::sampling::RowSampler;
use super::split_search::TrainingSet;
use super::tree::Tree;
use super::validation::Validation;
use super::weights::Weights;
use crate::control::Control;
use crate::error::Result;

/// By how much the log weight of a row that a tree was not grown from may rise in a round. For
/// a row that it was grown from the leaf has the class, which bounds the rise by itself; where
/// none of the m classes of a leaf is the row's own, it would be m without this limit.
const MAX_RISE_UNSAMPLED: f64 = 1.0;

/// The trees of all rounds, of which `trees` are those learned before.
///
/// Their rounds are gone through again, as they were if the examples are the same ones: the weights
/// follow from the trees and the samples from seed and round, so that nothing else need be stored.
pub fn boost(
    params: &Params,
    mut trees: Vec<Tree>,
    examples: &Examples<'_>,
    threads: bool,
    control: &Control,
) -> Result<Vec<Tree>> {
    let (columns, n_classes) = (examples.columns, examples.n_classes);
    let (labels, seed) = (examples.learned.labels, params.seed);
    if n_classes == 1 {
        return Ok(trees);
    }
    control.set_total(u64::from(params.n_estimators));
    let mut weights = Weights::new(examples.learned.importances.iter().copied());
    let validation = examples.validation.filter(|_| params.early_stopping);
    let validation = validation.map(|rows| Validation::new(rows, n_classes));
    let mut validation = validation.transpose()?;
    let mut grower = Grower::new(params, columns.columns.len(), n_classes);
    let sampler = RowSampler::new(labels, n_classes, params.subsample, params.trim);
    let (mut rows, mut node) = (Vec::new(), Node::new(n_classes, 0));
    let (n_before, mut replay) = (trees.len(), Replay::default());
    for round in 0..params.n_estimators as usize {
        weights.refresh();
        sampler.sample(&weights, seed, round as u64, &mut rows);
        let mut is_last = false;
        if round < n_before {
            let tree = &trees[round];
            replay.route(tree, &examples.learned, &rows);
            if params.algorithm == Algorithm::Samme && round + 1 == n_before {
                // One for each leaf.
                let choices = &tree.leaves.classes;
                is_last = share_wrong(choices, replay.leaves(), labels, &weights.plain) == 0.0;
            }
            reweigh(
                &mut weights,
                &tree.leaves,
                replay.leaves(),
                labels,
                n_classes,
            );
        } else {
            let training_set = TrainingSet {
                columns,
                labels,
                weights: &weights.plain,
                seed: (seed, round as u64),
                threads,
                control,
            };
            grower.grow(&training_set, &rows)?;
            let found = votes(params, &grower, &mut node, &training_set, n_classes);
            let Some((leaves, is_right)) = found else {
                break;
            };
            is_last = is_right;
            reweigh(&mut weights, &leaves, grower.leaves(), labels, n_classes);
            trees.push(grower.freeze(columns, leaves));
        }
        if let Some(validation) = &mut validation {
            let n_rounds = validation.add(&trees[round]);
            is_last |= n_rounds >= params.patience as usize && round + 1 >= n_before;
            control.set_loss(validation.error);
        }
        control.tick(1)?;
        if is_last {
            break;
        }
    }
    if let Some(validation) = validation {
        trees.truncate(validation.best_round);
    }
    Ok(trees)
}

/// The votes of the leaves of the tree just grown, and whether SAMME ends with it as it is right for
/// all rows; none where SAMME ends without it as it is no better than chance.
fn votes(
    params: &Params,
    grower: &Grower,
    node: &mut Node,
    training_set: &TrainingSet<'_>,
    n_classes: usize,
) -> Option<(Leaves, bool)> {
    let (labels, weights) = (training_set.labels, training_set.weights);
    let mut leaves = Leaves::new();
    let by_leaf = grower.leaves().map(|(sampled, _)| {
        node.read(sampled, labels, weights);
        node.by_class()
    });
    match params.algorithm {
        Algorithm::Gamble => {
            let (clip, rate) = (params.clip, params.learning_rate);
            for by_class in by_leaf {
                push_votes(&mut leaves, &by_class, n_classes, clip, rate);
            }
            Some((leaves, false))
        }
        Algorithm::Samme => {
            let choices: Vec<u32> = by_leaf.map(|by_class| heaviest(&by_class)).collect();
            let wrong = share_wrong(&choices, grower.leaves(), labels, weights);
            let vote = params.learning_rate * samme::vote(wrong, n_classes)?;
            samme::push_votes(&mut leaves, &choices, vote, n_classes);
            Some((leaves, wrong == 0.0))
        }
    }
}

/// Step (e): w *= exp(-(1/K) y.f). As the labels' codes and f sum to 0 over the classes,
/// (1/K) y.f is f of the row's own class over K - 1. `rows` are those of each leaf: the ones that
/// it was grown from, and the others.
pub fn reweigh<'a>(
    weights: &mut Weights,
    leaves: &Leaves,
    rows: impl Iterator<Item = (&'a [u32], &'a [u32])>,
    labels: &[u32],
    n_classes: usize,
) {
    let by = |vote: f32| -f64::from(vote) / (n_classes as f64 - 1.0);
    // Of each class the last leaf that lists it and what that adds to the class's log weights.
    let mut listed = vec![(usize::MAX, 0.0); n_classes];
    for (leaf, (sampled, others)) in rows.enumerate() {
        let (classes, votes) = leaves.listed(leaf);
        for (&class, &vote) in classes.iter().zip(votes) {
            listed[class as usize] = (leaf, by(vote));
        }
        let unlisted = by(leaves.others[leaf]);
        let of = |row: u32| match listed[labels[row as usize] as usize] {
            (at, by) if at == leaf => by,
            _ => unlisted,
        };
        for &row in sampled {
            weights.scale(row as usize, of(row));
        }
        for &row in others {
            weights.scale(row as usize, of(row).min(MAX_RISE_UNSAMPLED));
        }
    }
}
