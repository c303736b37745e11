//! From held-out trees to scorers and their join.

use rayon::prelude::*;

use super::super::params::Params;
use super::calibration::Calibration;
use super::join_fit::{fit, Candidate, FitRow};
use super::mining::{Miner, ShortIndex};
use super::negatives::{keep_best, negatives, Negatives};
use super::out_of_sample::OutOfSample;
use super::scorer_rows::ScorerRows;
use super::scorers::{IndexMargins, OneAgainstSome};
use super::svm::{Accuracy, Problem, Scorer, Solver};
use crate::data::Ragged;
use crate::error::Result;
use crate::metrics::propensities;
use crate::random::mix;
use crate::threads::with_threads;

/// As liblinear's callers in the field have it: weights hardly change after that.
const ACCURACY: Accuracy = Accuracy {
    most_rounds: 20,
    tolerance: 0.1,
};
/// The usual propensity model of the field's benchmarks.
const PROPENSITY_A: f64 = 0.55;
const PROPENSITY_B: f64 = 1.5;
/// How often negatives are mined.
pub const MINING_ROUNDS: usize = 2;
/// Rows that the join is fitted on, at most.
const FIT_ROWS: usize = 4096;
/// At most one row in so many, since labels must keep most of their rows in that fit.
const LEAST_STEP: usize = 5;
/// Candidates of these by the trees, and by margins.
const CANDIDATES: usize = 100;

/// Trains the scorers, on `n_threads` threads; they do not depend on their number.
pub fn train(
    params: &Params,
    source: &OutOfSample<'_>,
    n_threads: usize,
) -> Result<OneAgainstSome> {
    with_threads(n_threads, |is_parallel| {
        let examples = source.examples;
        let labels = &examples.labels;
        let positives = labels.regroup(examples.n_labels, |row, &label| (label, row));
        let training = Training {
            params,
            source,
            rows: &ScorerRows::new(examples),
            positive_weights: positive_weights(&positives, examples.len(), params.tail_weight)?,
            positives,
            is_parallel,
            fit_step: examples.len().div_ceil(FIT_ROWS).max(LEAST_STEP),
        };
        training.run()
    })?
}

struct Training<'a> {
    params: &'a Params,
    source: &'a OutOfSample<'a>,
    rows: &'a ScorerRows<'a>,
    /// The rows of each label.
    positives: Ragged<u32>,
    /// What the loss of a positive weighs, by label.
    positive_weights: Vec<f64>,
    is_parallel: bool,
    /// The join is fitted on every row whose number is a multiple of this.
    fit_step: usize,
}

/// Rows that the join is fitted on, and their margins by a label's scorer trained without them.
type HeldOutMargins = Vec<(u32, f32)>;

impl Training<'_> {
    fn run(&self) -> Result<OneAgainstSome> {
        let examples = self.source.examples;
        let mut negatives = Negatives::default();
        negatives.push(self.first_negatives()?, examples.n_labels);
        let mut duals = vec![Vec::new(); examples.n_labels];
        for _ in 0..MINING_ROUNDS {
            let solved = self.each_label(|solver, label| {
                self.solve(solver, label, &negatives, &duals);
                (solver.scorer(self.params.weight_threshold), solver.duals())
            })?;
            let scorers: Vec<Option<Scorer>>;
            (scorers, duals) = solved
                .into_iter()
                .map(|of_label| match of_label {
                    Some((scorer, duals)) => (Some(scorer), duals),
                    None => (None, Vec::new()),
                })
                .unzip();
            let index = ShortIndex::new(&scorers, self.rows.n_features());
            drop(scorers);
            negatives.push(self.mine(&index, &negatives)?, examples.n_labels);
        }
        let solved = self.each_label(|solver, label| {
            self.solve(solver, label, &negatives, &duals);
            let scorer = solver.scorer(self.params.weight_threshold);
            let margins = solver.solve_without(|row| self.is_of_fit(row), self.seed(label));
            (scorer, margins)
        })?;
        drop((negatives, duals));
        let (scorers, held_out_margins): (Vec<_>, Vec<_>) = solved
            .into_iter()
            .map(|of_label| match of_label {
                Some((scorer, margins)) => (Some(scorer), margins),
                None => (None, HeldOutMargins::new()),
            })
            .unzip();
        let mut model = OneAgainstSome::new(&scorers, examples);
        drop(scorers);
        let fit_rows = self.fit_rows(&model, &held_out_margins)?;
        let weight = self.params.scorer_weight.map(|weight| weight as f32);
        model.set_join(fit(&fit_rows, weight));
        model.set_calibration(Calibration::fit(&fit_rows, model.join(self.params)));
        Ok(model)
    }

    /// What `of_label` makes of each label; nothing of those without examples.
    fn each_label<T: Send>(
        &self,
        of_label: impl Fn(&mut Solver<'_>, usize) -> T + Sync,
    ) -> Result<Vec<Option<T>>> {
        let new_solver = || Solver::new(self.rows, ACCURACY);
        let one = |solver: &mut Solver<'_>, label: usize| {
            self.source.control.tick(1)?;
            let has_examples = !self.positives.get(label).is_empty();
            Ok(has_examples.then(|| of_label(solver, label)))
        };
        let labels = 0..self.positives.len();
        if self.is_parallel {
            labels.into_par_iter().map_init(new_solver, one).collect()
        } else {
            let mut solver = new_solver();
            labels.map(|label| one(&mut solver, label)).collect()
        }
    }

    /// Solves a label's problem, from its dual variables of the round before.
    fn solve(
        &self,
        solver: &mut Solver<'_>,
        label: usize,
        negatives: &Negatives,
        duals: &[Vec<f32>],
    ) {
        let problem = Problem {
            positives: self.positives.get(label),
            negatives: &negatives.rows_of(label),
            positive_weight: self.positive_weights[label],
        };
        solver.solve(&problem, &duals[label], self.seed(label));
    }

    fn seed(&self, label: usize) -> u64 {
        mix(self.params.seed ^ (label as u64 + 1).rotate_left(32))
    }

    /// The labels that each row is a negative example of in the first round.
    fn first_negatives(&self) -> Result<Vec<Vec<u32>>> {
        let examples = self.source.examples;
        let all: Vec<u32> = (0..examples.len() as u32).collect();
        self.source.map(&all, self.is_parallel, |row, scores| {
            negatives(examples, row, scores, self.params)
        })
    }

    /// The labels that each row becomes a negative example of in the next round.
    fn mine(&self, index: &ShortIndex, known: &Negatives) -> Result<Vec<Vec<u32>>> {
        let n = self.params.n_mined_negatives as usize;
        let new_miner = || Miner::new(index, self.rows);
        let one = |miner: &mut Miner<'_>, row: u32| {
            if row.is_multiple_of(1 << 12) {
                self.source.control.check()?;
            }
            Ok(miner.mine(row, n, |label| known.contains(row, label)))
        };
        let rows = 0..self.source.examples.len() as u32;
        if self.is_parallel {
            let rows = rows.into_par_iter().with_min_len(256);
            rows.map_init(new_miner, one).collect()
        } else {
            let mut miner = new_miner();
            rows.map(|row| one(&mut miner, row)).collect()
        }
    }

    fn is_of_fit(&self, row: u32) -> bool {
        (row as usize).is_multiple_of(self.fit_step)
    }

    /// The candidates of the rows of the fit, with scores of trees and scorers that do not know
    /// the row.
    fn fit_rows(
        &self,
        model: &OneAgainstSome,
        held_out_margins: &[HeldOutMargins],
    ) -> Result<Vec<FitRow>> {
        let examples = self.source.examples;
        let rows = (0..examples.len() as u32).step_by(self.fit_step);
        let rows: Vec<u32> = rows.collect();
        let by_trees = self.source.map(&rows, self.is_parallel, |_, scores| {
            let mut scored = ScoredLabels::new();
            scores.for_each(|label, score| scored.push((label, score)));
            keep_best(&mut scored, CANDIDATES);
            scored
        })?;
        let mut without = vec![ScoredLabels::new(); rows.len()];
        for (label, margins) in (0u32..).zip(held_out_margins) {
            for &(row, margin) in margins {
                without[row as usize / self.fit_step].push((label, margin));
            }
        }
        let mut margins = IndexMargins::new(model);
        let mut fit_rows = Vec::new();
        for ((&row, by_trees), without) in rows.iter().zip(by_trees).zip(&without) {
            // A row that no tree left out says nothing of the trees' scores.
            if !by_trees.is_empty() {
                margins.read(examples.row(row));
                let own = examples.labels(row);
                let candidates = candidates(by_trees, &margins, without, own);
                fit_rows.push((candidates, examples.weight(row)));
            }
        }
        Ok(fit_rows)
    }
}

/// (inverse propensity of a label)^`tail_weight`, divided by their mean over all positives.
pub fn positive_weights(
    positives: &Ragged<u32>,
    n_rows: usize,
    tail_weight: f64,
) -> Result<Vec<f64>> {
    let counts: Vec<i64> = positives.lengths().map(|n| n as i64).collect();
    let propensities = propensities(&counts, n_rows, PROPENSITY_A, PROPENSITY_B)?;
    let mut weights: Vec<f64> = propensities.iter().map(|p| p.powf(-tail_weight)).collect();
    let all = weights.iter().zip(&counts);
    let total: f64 = all.map(|(weight, &n)| weight * n as f64).sum();
    let mean = total / counts.iter().sum::<i64>() as f64;
    weights.iter_mut().for_each(|weight| *weight /= mean);
    Ok(weights)
}

/// Labels and their scores or margins.
type ScoredLabels = Vec<(u32, f32)>;

/// The best labels of a row by the trees and by its `margins`, of which those by scorers
/// `without` it, increasing, replace the others.
fn candidates(
    mut by_trees: ScoredLabels,
    margins: &IndexMargins<'_>,
    without: &[(u32, f32)],
    own: &[u32],
) -> Vec<Candidate> {
    let mut by_margin: ScoredLabels = margins.touched().collect();
    keep_best(&mut by_margin, CANDIDATES);
    by_trees.sort_unstable_by_key(|&(label, _)| label);
    let listed = by_trees.iter().chain(&by_margin);
    let mut labels: Vec<u32> = listed.map(|&(label, _)| label).collect();
    labels.sort_unstable();
    labels.dedup();
    let look_up = |list: &[(u32, f32)], label| {
        let at = list.binary_search_by_key(&label, |&(label, _)| label);
        at.ok().map(|at| list[at].1)
    };
    let candidate = |label| Candidate {
        tree_score: look_up(&by_trees, label).unwrap_or(0.0),
        margin: look_up(without, label).unwrap_or_else(|| margins.margin(label)),
        is_own: own.binary_search(&label).is_ok(),
    };
    labels.into_iter().map(candidate).collect()
}
