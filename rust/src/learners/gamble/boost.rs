//! Algorithm 2: rounds of one tree each, the weights between them, and early stopping.

use rand::seq::SliceRandom;

use super::columns::Columns;
use super::frozen::Router;
use super::grow::{Grower, TrainingSet};
use super::node::Node;
use super::sampling::{generator, RowSampler, Weights};
use super::tree::{heaviest, push_samme_votes, push_votes, samme_vote, share_wrong, Leaves, Tree};
use super::{Algorithm, Params};
use crate::control::Control;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::memory::try_alloc;

/// Some rows of a batch.
#[derive(Debug, Clone, Copy)]
pub struct LabelledRows<'a> {
    pub batch: &'a Batch<'a>,
    pub which: &'a [u32],
}

impl LabelledRows<'_> {
    /// The label of the row at `place`.
    pub fn label(&self, place: usize) -> u32 {
        self.batch.labels()[self.which[place] as usize]
    }

    /// Its importance.
    pub fn importance(&self, place: usize) -> f64 {
        self.batch.weight(self.which[place] as usize).into()
    }

    /// The labels of all.
    pub fn labels(&self) -> Vec<u32> {
        (0..self.which.len()).map(|at| self.label(at)).collect()
    }
}

/// The examples of a fit.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    pub learned: LabelledRows<'a>,
    /// The codes of the rows learned, in their order; rows that follow are not looked at.
    pub columns: &'a Columns,
    /// The rows whose error decides when to stop.
    pub validation: Option<LabelledRows<'a>>,
    pub n_classes: usize,
}

/// The rows of a weight above 0, those that are held out last, if any are to be, and how many
/// are learned.
pub fn split_rows(
    params: &Params,
    n_classes: usize,
    batch: &Batch<'_>,
    holds_out: bool,
) -> Result<(Vec<u32>, usize)> {
    let mut which = batch.present();
    if which.is_empty() {
        return Err(Error::data("there is no example with a weight above 0"));
    }
    if !holds_out {
        let n = which.len();
        return Ok((which, n));
    }
    let n = (which.len() as f64 * params.validation_fraction).ceil() as usize;
    if n >= which.len() {
        return Err(Error::data(format!(
            "early stopping holds out {n} of n_samples={}, which leaves none to learn from",
            which.len()
        )));
    }
    which.shuffle(&mut generator(params.seed, u64::MAX, 0));
    // The last row of a class is learned: there is no other to learn the class from.
    let label = |row: u32| batch.labels()[row as usize] as usize;
    let mut left = vec![0u32; n_classes];
    which.iter().for_each(|&row| left[label(row)] += 1);
    let mut held_out = Vec::new();
    which.retain(|&row| {
        let left = &mut left[label(row)];
        let is_held_out = held_out.len() < n && *left > 1;
        if is_held_out {
            *left -= 1;
            held_out.push(row);
        }
        !is_held_out
    });
    if held_out.is_empty() {
        return Err(Error::data(
            "early stopping has no row to hold out: each is the only one of its class",
        ));
    }
    which.sort_unstable();
    let n_learned = which.len();
    which.extend(held_out);
    Ok((which, n_learned))
}

/// The committee on the validation rows.
pub struct Validation<'a> {
    examples: LabelledRows<'a>,
    n_classes: usize,
    router: Router,
    /// Scores of all classes for each row, up to what all classes have in common.
    scores: Vec<f32>,
    /// The first class of the highest score, for each row.
    bests: Vec<u32>,
    pub error: f64,
    lowest: f64,
    n_rounds: usize,
    /// Number of rounds up to the lowest error.
    pub best_round: usize,
}

impl<'a> Validation<'a> {
    pub fn new(examples: LabelledRows<'a>, n_classes: usize) -> Result<Self> {
        let n_rows = examples.which.len();
        Ok(Self {
            examples,
            n_classes,
            router: Router::default(),
            scores: try_alloc(n_rows, n_classes, 0.0)?,
            bests: vec![0; n_rows],
            error: 1.0,
            lowest: f64::INFINITY,
            n_rounds: 0,
            best_round: 0,
        })
    }

    /// Adds a tree to the committee. Returns the number of rounds since the lowest error.
    pub fn add(&mut self, tree: &Tree) -> usize {
        let (examples, k) = (self.examples, self.n_classes);
        let (scores, bests) = (&mut self.scores, &mut self.bests);
        let (mut wrong, mut all) = (0.0, 0.0);
        let add = |row: usize, leaf: usize| {
            let (scores, best) = (&mut scores[row * k..(row + 1) * k], &mut bests[row]);
            let (classes, votes) = tree.leaves.listed(leaf);
            for (&class, vote) in classes.iter().zip(votes) {
                let score = &mut scores[class as usize];
                *score += vote - tree.leaves.others[leaf];
                let score = *score;
                // A leaf gives no class that it lists less than those that it does not:
                // scores only rise, and the best class changes among the listed ones alone.
                let highest = scores[*best as usize];
                if score > highest || (score == highest && class < *best) {
                    *best = class;
                }
            }
            let weight = examples.importance(row);
            all += weight;
            if *best != examples.label(row) {
                wrong += weight;
            }
        };
        let rows = &examples.batch.rows;
        self.router.route(tree, rows, examples.which, add);
        self.error = wrong / all;
        self.n_rounds += 1;
        if self.error < self.lowest {
            self.lowest = self.error;
            self.best_round = self.n_rounds;
        }
        self.n_rounds - self.best_round
    }
}

/// The rows of each leaf. Workspace for one tree after the other.
#[derive(Default)]
pub struct Replay {
    router: Router,
    /// By leaf the rows that the tree was grown from, and the others.
    rows: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Replay {
    /// Routes the rows of `examples` to the leaves of `tree`, which was grown from those of the
    /// places `sampled`, which rise.
    pub fn route(&mut self, tree: &Tree, examples: &LabelledRows<'_>, sampled: &[u32]) {
        self.rows.clear();
        self.rows.resize_with(tree.leaves.count(), Default::default);
        let (rows, mut sampled) = (&mut self.rows, sampled.iter().peekable());
        let add = |at: usize, leaf: usize| {
            let is_sampled = sampled.next_if_eq(&&(at as u32)).is_some();
            let (of_sample, others) = &mut rows[leaf];
            if is_sampled { of_sample } else { others }.push(at as u32);
        };
        let rows = &examples.batch.rows;
        self.router.route(tree, rows, examples.which, add);
    }

    /// Of each leaf the rows that it was grown from, and the others.
    pub fn leaves(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let rows = self.rows.iter();
        rows.map(|(sampled, others)| (sampled.as_slice(), others.as_slice()))
    }
}

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
    control: &Control,
) -> Result<Vec<Tree>> {
    let (columns, n_classes) = (examples.columns, examples.n_classes);
    let (learned, seed) = (examples.learned, params.seed);
    let labels = &learned.labels()[..];
    if n_classes == 1 {
        return Ok(trees);
    }
    control.set_total(u64::from(params.n_estimators));
    let mut weights = Weights::new((0..labels.len()).map(|at| learned.importance(at)));
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
            let vote = params.learning_rate * samme_vote(wrong, n_classes)?;
            push_samme_votes(&mut leaves, &choices, vote, n_classes);
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
