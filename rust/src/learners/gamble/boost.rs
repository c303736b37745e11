//! Algorithm 2: rounds of one tree each, and the weights between them.

use super::columns::Examples;
use super::grow::Grower;
use super::held_out::HeldOut;
use super::leaf::{push_votes, Leaves};
use super::node::Node;
use super::params::{Algorithm, Params};
use super::samme::{self, heaviest};
use super::sampling::RowSampler;
use super::split_search::TrainingSet;
use super::tree::Tree;
use super::weights::Weights;
use crate::control::Control;
use crate::error::Result;

/// By how much the log weight of a row that a tree was not grown from may rise in a round. For
/// a row that it was grown from the leaf has the class, which bounds the rise by itself; where
/// none of the m classes of a leaf is the row's own, it would be m without this limit.
const MAX_RISE_UNSAMPLED: f64 = 1.0;

/// The trees of all rounds.
pub fn boost(
    params: &Params,
    examples: &Examples<'_>,
    threads: bool,
    control: &Control,
) -> Result<Vec<Tree>> {
    let (columns, n_classes) = (examples.columns, examples.n_classes);
    let n_learned = examples.n_learned;
    let (labels, seed) = (&examples.labels[..n_learned], params.seed);
    let mut trees = Vec::new();
    if n_classes == 1 {
        return Ok(trees);
    }
    control.set_total(u64::from(params.n_estimators));
    let mut weights = Weights::new(examples.importances[..n_learned].iter().copied());
    let held_out = params.early_stopping.then(|| HeldOut::new(examples));
    let mut held_out = held_out.transpose()?;
    let mut grower = Grower::new(params, columns.columns.len(), n_classes);
    let sampler = RowSampler::new(labels, n_classes, params.subsample, params.trim);
    let (mut rows, mut node) = (Vec::new(), Node::new(n_classes, 0));
    for round in 0..u64::from(params.n_estimators) {
        weights.refresh();
        sampler.sample(&weights, seed, round, &mut rows);
        let training_set = TrainingSet {
            columns,
            labels,
            weights: &weights.plain,
            seed: (seed, round),
            threads,
            control,
        };
        grower.grow(&training_set, &rows)?;
        let mut leaves = Leaves::new();
        let by_leaf = grower.leaves().map(|(sampled, _)| {
            node.read(sampled, labels, &weights.plain);
            node.by_class()
        });
        let mut is_last = false;
        match params.algorithm {
            Algorithm::Gamble => {
                let (clip, rate) = (params.clip, params.learning_rate);
                for by_class in by_leaf {
                    push_votes(&mut leaves, &by_class, n_classes, clip, rate);
                }
            }
            Algorithm::Samme => {
                let choices: Vec<u32> = by_leaf.map(|by_class| heaviest(&by_class)).collect();
                let wrong = samme::share_wrong(&choices, &grower, labels, &weights.plain);
                let Some(vote) = samme::vote(wrong, n_classes) else {
                    break;
                };
                let vote = params.learning_rate * vote;
                samme::push_votes(&mut leaves, &choices, vote, n_classes);
                is_last = wrong == 0.0;
            }
        }
        reweigh(&mut weights, &leaves, &grower, examples);
        let tree = grower.freeze(columns, leaves);
        if let Some(held_out) = &mut held_out {
            is_last |= held_out.add(&tree, &grower) >= params.patience as usize;
            control.set_loss(held_out.error);
        }
        trees.push(tree);
        control.tick(1)?;
        if is_last {
            break;
        }
    }
    if let Some(held_out) = held_out {
        trees.truncate(held_out.best_round);
    }
    Ok(trees)
}

/// Step (e): w *= exp(-(1/K) y.f). As the labels' codes and f sum to 0 over the classes,
/// (1/K) y.f is f of the row's own class over K - 1.
pub fn reweigh(weights: &mut Weights, leaves: &Leaves, grower: &Grower, examples: &Examples<'_>) {
    let (labels, n_classes) = (examples.labels, examples.n_classes);
    let by = |vote: f32| -f64::from(vote) / (n_classes as f64 - 1.0);
    // Of each class the last leaf that lists it and what that adds to the class's log weights.
    let mut listed = vec![(usize::MAX, 0.0); n_classes];
    for (leaf, (sampled, others)) in grower.leaves().enumerate() {
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
