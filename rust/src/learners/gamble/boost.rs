//! Algorithm 2: rounds of one tree each, the weights between them, and early stopping.

use std::slice::from_ref;

use rand::seq::SliceRandom;

use super::columns::Columns;
use super::frozen::{block_rows, FrozenTrees, Router, LANES};
use super::grow::Grower;
use super::sampling::{generator, RowSampler, Weights};
use super::search::TrainingSet;
use super::tree::{
    log_share, push_votes, response, samme_vote, weighted_error, LeafRows, Leaves, Tree,
};
use super::{Algorithm, EvalMetric, Params, Votes};
use crate::control::Control;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::memory::try_alloc;
use crate::model::first_best;

/// Some rows of a batch.
#[derive(Debug, Clone, Copy)]
pub struct LabeledRows<'a> {
    pub batch: &'a Batch<'a>,
    pub which: &'a [u32],
}

impl LabeledRows<'_> {
    /// Returns the label of the row at `place`.
    pub fn label(&self, place: usize) -> u32 {
        self.batch.labels()[self.which[place] as usize]
    }

    /// Returns the importance weight of the row at `place`.
    pub fn importance(&self, place: usize) -> f64 {
        self.batch.weight(self.which[place] as usize).into()
    }

    /// Returns the labels of all rows.
    pub fn labels(&self) -> Vec<u32> {
        (0..self.which.len()).map(|at| self.label(at)).collect()
    }

    /// Calls `visit` with the place of each row and the leaf of `tree` that it reaches.
    fn route(&self, tree: &Tree, router: &mut Router, mut visit: impl FnMut(usize, usize)) {
        let (trees, rows) = (FrozenTrees::new(from_ref(tree)), &self.batch.rows);
        let step = block_rows(rows.n_cols()).max(LANES);
        for (first, block) in (0..).step_by(step).zip(self.which.chunks(step)) {
            let numbers = block.iter().map(|&row| row as usize);
            router.route(&trees, 0..1, rows, numbers, |hit| {
                let leaf = tree.nodes[hit.leaf as usize].feature;
                visit(first + hit.row, leaf as usize);
            });
        }
    }
}

/// The examples of a fit.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    pub learned: LabeledRows<'a>,
    /// Codes of the learned rows, in their order. Rows after these are ignored.
    pub columns: &'a Columns,
    /// Rows on which each round is evaluated.
    pub validation: Option<LabeledRows<'a>>,
    pub n_classes: usize,
    /// True in a pool of threads.
    pub threads: bool,
}

/// Returns the rows of a weight above 0, with the held-out rows last, and the number of learned
/// rows.
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
    // The last row of a class is learned, because there is no other row to learn the class from.
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

/// Measures of the committee on the validation rows after each round.
#[derive(Debug, Clone, Default)]
pub struct Evaluations {
    pub errors: Vec<f64>,
    /// Empty unless it is the measure of early stopping.
    pub log_losses: Vec<f64>,
}

/// Largest number of steps of the search for a slope in a round.
const MAX_SLOPE_STEPS: usize = 20;

/// A smaller relative step ends the search. The loss is flat there.
const MIN_SLOPE_STEP: f64 = 1e-4;

/// The committee's scores on the validation rows.
pub(super) struct Validation<'a> {
    examples: LabeledRows<'a>,
    n_classes: usize,
    metric: EvalMetric,
    router: Router,
    /// Scores of all classes for each row, without the votes that all classes have in common.
    scores: Vec<f32>,
    /// First class of the highest score of each row.
    bests: Vec<u32>,
    /// Factor of the scores with the lowest log loss.
    slope: f64,
    evaluations: Evaluations,
    lowest: f64,
    /// Number of rounds up to the lowest value of the metric.
    best_round: usize,
}

impl<'a> Validation<'a> {
    pub(super) fn new(
        examples: LabeledRows<'a>,
        n_classes: usize,
        metric: EvalMetric,
    ) -> Result<Self> {
        let n_rows = examples.which.len();
        Ok(Self {
            examples,
            n_classes,
            metric,
            router: Router::default(),
            scores: try_alloc(n_rows, n_classes, 0.0)?,
            bests: vec![0; n_rows],
            slope: 1.0 / (n_classes as f64 - 1.0),
            evaluations: Evaluations::default(),
            lowest: f64::INFINITY,
            best_round: 0,
        })
    }

    /// Adds a tree to the committee. Returns the number of rounds since the lowest value of the
    /// metric.
    pub(super) fn add(&mut self, tree: &Tree, control: &Control) -> Result<usize> {
        let (examples, k) = (self.examples, self.n_classes);
        let (mut wrong, mut all) = (0.0, 0.0);
        examples.route(tree, &mut self.router, |row, leaf| {
            let scores = &mut self.scores[row * k..(row + 1) * k];
            let best = &mut self.bests[row];
            for (class, vote) in tree.leaves.listed(leaf) {
                scores[class as usize] += vote - tree.leaves.others[leaf];
                // The vote for a class present is never below that for the others. So scores only
                // rise, and the best class can only change to one of those present.
                let (score, highest) = (scores[class as usize], scores[*best as usize]);
                if score > highest || (score == highest && class < *best) {
                    *best = class;
                }
            }
            let weight = examples.importance(row);
            all += weight;
            if *best != examples.label(row) {
                wrong += weight;
            }
        });
        let mut value = wrong / all;
        self.evaluations.errors.push(value);
        if self.metric == EvalMetric::LogLoss {
            value = self.log_loss(control)?;
            self.evaluations.log_losses.push(value);
        }
        let n_rounds = self.evaluations.errors.len();
        if value < self.lowest {
            self.lowest = value;
            self.best_round = n_rounds;
        }
        Ok(n_rounds - self.best_round)
    }

    /// Returns the lowest log loss of the softmax of the scores times a slope, O(rows x classes) for
    /// each of a few steps. The loss is convex in the slope, so Newton's method finds it, from that
    /// of the round before and with limited steps.
    fn log_loss(&mut self, control: &Control) -> Result<f64> {
        let mut mean_loss = 0.0;
        for _ in 0..MAX_SLOPE_STEPS {
            let (mut loss, mut rise, mut bend, mut all) = (0.0, 0.0, 0.0, 0.0);
            for (row, scores) in self.scores.chunks_exact(self.n_classes).enumerate() {
                control.check()?;
                let highest = f64::from(scores[self.bests[row] as usize]);
                let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
                for &score in scores {
                    let below = f64::from(score) - highest;
                    let power = (self.slope * below).exp();
                    sum += power;
                    first += power * below;
                    second += power * below * below;
                }
                let own = f64::from(scores[self.examples.label(row) as usize]) - highest;
                let (weight, mean) = (self.examples.importance(row), first / sum);
                loss += weight * (sum.ln() - self.slope * own);
                rise += weight * (mean - own);
                bend += weight * (second / sum - mean * mean);
                all += weight;
            }
            mean_loss = loss / all;
            let step = rise / bend.max(f64::MIN_POSITIVE);
            let next = (self.slope - step).clamp(self.slope / 4.0, self.slope * 4.0);
            let change = (next / self.slope - 1.0).abs();
            self.slope = next.clamp(1e-9, 1e9);
            if change < MIN_SLOPE_STEP {
                break;
            }
        }
        Ok(mean_loss)
    }
}

/// Returns the rows of each leaf of a tree that was grown from the places `sampled`, which rise:
/// those places, and the others.
fn rows_by_leaf(tree: &Tree, examples: &LabeledRows<'_>, sampled: &[u32]) -> Vec<[Vec<u32>; 2]> {
    let mut leaves = vec![<[Vec<u32>; 2]>::default(); tree.leaves.count()];
    let mut sampled = sampled.iter().peekable();
    examples.route(tree, &mut Router::default(), |at, leaf| {
        let is_other = sampled.next_if_eq(&&(at as u32)).is_none();
        leaves[leaf][usize::from(is_other)].push(at as u32);
    });
    leaves
}

/// Largest increase in a round of the log weight of a row from which the tree was not grown. If the
/// tree was grown from the row, the row's leaf has its class, which bounds the increase. If not,
/// and none of the m classes of the leaf is the row's own, the increase would be m without this
/// limit.
const MAX_RISE_UNSAMPLED: f64 = 1.0;

/// Trains the trees of all rounds after the given `trees` of earlier rounds. Evaluates all rounds,
/// also those that early stopping then leaves out.
///
/// Earlier rounds are replayed: the weights follow from the trees, and the samples from the seed
/// and the round, so the model stores neither. The result is the same as without a warm start if
/// the examples are the same.
pub fn boost(
    params: &Params,
    mut trees: Vec<Tree>,
    examples: &Examples<'_>,
    control: &Control,
) -> Result<(Vec<Tree>, Evaluations)> {
    let (columns, n_classes) = (examples.columns, examples.n_classes);
    let (learned, seed, threads) = (examples.learned, params.seed, examples.threads);
    let labels = &learned.labels()[..];
    if n_classes == 1 {
        return Ok((trees, Evaluations::default()));
    }
    control.set_total(u64::from(params.n_estimators));
    let mut weights = Weights::new((0..labels.len()).map(|at| learned.importance(at)));
    let validation = examples.validation;
    let validation = validation.map(|rows| Validation::new(rows, n_classes, params.eval_metric));
    let mut validation = validation.transpose()?;
    let mut grower = Grower::new(params, columns.columns.len(), n_classes);
    let sampler = RowSampler::new(labels, n_classes, params.subsample, params.trim);
    let mut rows = Vec::new();
    let n_before = trees.len();
    for round in 0..params.n_estimators as usize {
        weights.refresh(threads);
        sampler.sample(&weights, seed, round as u64, &mut rows);
        let replayed = trees.get(round);
        let replayed = replayed.map(|tree| rows_by_leaf(tree, &learned, &rows));
        if replayed.is_none() {
            let training_set = TrainingSet {
                columns,
                labels,
                weights: &weights.plain,
                seed: (seed, round as u64),
                threads,
                takes_all: sampler.takes_all(),
                control,
            };
            grower.grow(&training_set, &rows)?;
            let Some(leaves) = vote(params, &grower, &training_set, n_classes) else {
                break;
            };
            trees.push(grower.freeze(columns, leaves));
        }
        let leaf_rows: Vec<LeafRows<'_>> = match &replayed {
            None => grower.leaves().collect(),
            Some(leaves) => {
                let rows = leaves.iter();
                rows.map(|[sampled, others]| LeafRows { sampled, others })
                    .collect()
            }
        };
        let leaves = &trees[round].leaves;
        let mut is_last = false;
        let is_pure = leaves.classes.len() == leaves.count();
        if params.algorithm == Algorithm::Samme && is_pure && round + 1 >= n_before {
            // SAMME ends after a tree without errors. Its leaves have one class each: the choice, in
            // SAMME.R the only class of the leaf's rows.
            let rows = leaf_rows.iter().copied();
            is_last = weighted_error(&leaves.classes, rows, labels, &weights.plain) == 0.0;
        }
        reweight(&mut weights, leaves, &leaf_rows, labels, n_classes);
        if let Some(validation) = &mut validation {
            let n_rounds = validation.add(&trees[round], control)?;
            let may_stop = params.early_stopping && round + 1 >= n_before;
            is_last |= may_stop && n_rounds >= params.patience as usize;
            control.set_loss(validation.evaluations.errors[round]);
        }
        control.tick(1)?;
        if is_last {
            break;
        }
    }
    let Some(validation) = validation else {
        return Ok((trees, Evaluations::default()));
    };
    if params.early_stopping {
        trees.truncate(validation.best_round);
    }
    Ok((trees, validation.evaluations))
}

/// Factor of the votes of leaves below a split by a set of categories: sets are fitted more freely
/// than cuts. A rate of 1, as in the paper, leaves all votes as they are.
const BELOW_SET: f64 = 1.0 / 3.0;

/// Returns the votes of the leaves of the tree just grown, or `None` if SAMME ends without this
/// tree because it is no better than chance.
fn vote(
    params: &Params,
    grower: &Grower,
    training_set: &TrainingSet<'_>,
    n_classes: usize,
) -> Option<Leaves> {
    let (labels, weights) = (training_set.labels, training_set.weights);
    let mut leaves = Leaves::new();
    let by_leaf = grower.classes_of_leaves();
    let (k, rate) = (n_classes as f64, params.learning_rate);
    if params.algorithm == Algorithm::Samme && params.votes == Votes::Discrete {
        let heaviest = |by_class: &[(u32, f64)]| first_best(by_class.iter().copied());
        let choices = by_leaf.map(|(by_class, _)| heaviest(by_class).map_or(0, |(class, _)| class));
        let choices: Vec<u32> = choices.collect();
        let error = weighted_error(&choices, grower.leaves(), labels, weights);
        let vote = rate * samme_vote(error, n_classes)?;
        for choice in choices {
            leaves.push([(choice, vote)], -vote / (k - 1.0));
        }
        return Some(leaves);
    }
    let response = |share| match params.algorithm {
        Algorithm::Gamble => response(share, k, params.clip),
        Algorithm::Samme => log_share(share, k),
    };
    let shrinks = params.algorithm == Algorithm::Gamble && rate < 1.0;
    let set_rate = if shrinks { BELOW_SET * rate } else { rate };
    for (by_class, below_set) in by_leaf {
        let rate = if below_set { set_rate } else { rate };
        push_votes(&mut leaves, by_class, n_classes, response, rate);
    }
    Some(leaves)
}

/// Step (e): w *= exp(-(1/K) y.f). The codes of the labels and f sum to 0 over the classes, so
/// (1/K) y.f is f of the row's own class over K - 1.
pub fn reweight(
    weights: &mut Weights,
    leaves: &Leaves,
    leaf_rows: &[LeafRows<'_>],
    labels: &[u32],
    n_classes: usize,
) {
    let change = |vote: f32| -f64::from(vote) / (n_classes as f64 - 1.0);
    // The last leaf that each class is present in, and the change of its log weights there.
    let mut listed = vec![(usize::MAX, 0.0); n_classes];
    for (leaf, rows) in leaf_rows.iter().enumerate() {
        for (class, vote) in leaves.listed(leaf) {
            listed[class as usize] = (leaf, change(vote));
        }
        let unlisted = change(leaves.others[leaf]);
        let row_change = |row: u32| match listed[labels[row as usize] as usize] {
            (at, change) if at == leaf => change,
            _ => unlisted,
        };
        for &row in rows.sampled {
            weights.scale(row as usize, row_change(row));
        }
        for &row in rows.others {
            weights.scale(row as usize, row_change(row).min(MAX_RISE_UNSAMPLED));
        }
    }
}
