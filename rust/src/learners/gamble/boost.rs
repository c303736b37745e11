//! Algorithm 2: rounds of one tree each, and the weights between them.

use super::examples::Examples;
use super::grow::Grower;
use super::held_out::HeldOut;
use super::leaf::{push_votes, Leaves};
use super::params::{Algorithm, Params};
use super::samme::{self, heaviest};
use super::sampling::{FeatureSampler, RowSampler};
use super::split_finder::TrainingSet;
use super::tree::Tree;
use super::weights::Weights;
use crate::control::Control;
use crate::error::Result;

/// By how much the log weight of a row that a tree was not grown from may rise in a round. For
/// a row that it was grown from the leaf has the class, which bounds the rise by itself; where
/// none of the m classes of a leaf is the row's own, it would be m without this limit.
const MAX_RISE_UNSAMPLED: f64 = 1.0;

/// Learns a committee.
pub fn boost(
    params: &Params,
    examples: &Examples<'_>,
    threads: bool,
    control: &Control,
) -> Result<Vec<Tree>> {
    let &Examples {
        columns,
        labels,
        n_learned,
        n_classes,
        ..
    } = examples;
    let (labels, seed) = (&labels[..n_learned], params.seed);
    let mut trees = Vec::new();
    if n_classes == 1 {
        return Ok(trees);
    }
    control.set_total(u64::from(params.n_estimators));
    let mut weights = Weights::new(examples.importances[..n_learned].iter().copied());
    let mut held_out = HeldOut::new(params, examples)?;
    let features = FeatureSampler::new(columns.columns.len(), params.max_features);
    let mut grower = Grower::new(params, &features, n_classes, threads);
    let mut sampler = RowSampler::new(labels, n_classes, params.subsample, params.trim);
    let (mut rows, mut sums) = (Vec::new(), ClassSums::new(n_classes));
    for round in 0..u64::from(params.n_estimators) {
        weights.refresh();
        sampler.sample(&weights, seed, round, &mut rows);
        let training_set = TrainingSet {
            columns,
            labels,
            weights: &weights.plain,
            seed: (seed, round),
            control,
        };
        grower.grow(&training_set, &rows)?;
        let mut leaves = Leaves::new();
        let by_leaf = grower.leaves().map(|(sampled, _)| sampled);
        let mut is_last = false;
        match params.algorithm {
            Algorithm::Gamble => {
                for rows in by_leaf {
                    let by_class = sums.of(rows, labels, &weights.plain);
                    push_votes(
                        &mut leaves,
                        by_class,
                        n_classes,
                        params.clip,
                        params.learning_rate,
                    );
                }
            }
            Algorithm::Samme => {
                let by_leaf = by_leaf.map(|rows| heaviest(sums.of(rows, labels, &weights.plain)));
                let choices: Vec<u32> = by_leaf.collect();
                let wrong = samme::share_wrong(&choices, &grower, labels, &weights.plain);
                let Some(vote) = samme::vote(wrong, n_classes) else {
                    break;
                };
                let vote = params.learning_rate * vote;
                samme::push_votes(&mut leaves, &choices, vote, n_classes);
                is_last = wrong == 0.0;
            }
        }
        reweigh(&mut weights, &leaves, &grower, labels, n_classes);
        let mut tree = grower.freeze(columns);
        tree.leaves = leaves;
        let goes_on = held_out.as_mut().is_none_or(|held_out| {
            let goes_on = held_out.add(&tree, &grower, columns);
            control.set_loss(held_out.error());
            goes_on
        });
        trees.push(tree);
        control.tick(1)?;
        if is_last || !goes_on {
            break;
        }
    }
    if let Some(held_out) = held_out {
        trees.truncate(held_out.best_round());
    }
    Ok(trees)
}

/// Step (e): w *= exp(-(1/K) y.f). As the labels' codes and f sum to 0 over the classes,
/// (1/K) y.f is f of the row's own class over K - 1.
fn reweigh(
    weights: &mut Weights,
    leaves: &Leaves,
    grower: &Grower,
    labels: &[u32],
    n_classes: usize,
) {
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

/// Weights by class of a few rows, at a cost of those rows alone.
struct ClassSums {
    by_class: Vec<f64>,
    present: Vec<u32>,
    sums: Vec<(u32, f64)>,
}

impl ClassSums {
    fn new(n_classes: usize) -> Self {
        Self {
            by_class: vec![0.0; n_classes],
            present: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// The classes of `rows`, rising, with their weights.
    fn of(&mut self, rows: &[u32], labels: &[u32], weights: &[f64]) -> &[(u32, f64)] {
        self.present.clear();
        for &row in rows {
            let label = labels[row as usize];
            let sum = &mut self.by_class[label as usize];
            if *sum == 0.0 {
                self.present.push(label);
            }
            // Plain weights are above 0.
            *sum += weights[row as usize];
        }
        self.present.sort_unstable();
        self.sums.clear();
        for &label in &self.present {
            self.sums
                .push((label, std::mem::take(&mut self.by_class[label as usize])));
        }
        &self.sums
    }
}
