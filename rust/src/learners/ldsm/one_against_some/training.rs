//! From held-out trees to scorers and their join.

use rayon::prelude::*;

use super::super::params::Params;
use super::join_fit::{fit, Candidate, FitRow};
use super::lengths::inverse_length;
use super::margins::RowMargins;
use super::negatives::negatives;
use super::out_of_sample::OutOfSample;
use super::scorers::OneAgainstSome;
use super::svm::{Accuracy, Scorer, ScorerRows, Solver};
use crate::classifier::keep_best;
use crate::data::Ragged;
use crate::error::Result;
use crate::random::mix;
use crate::threads::with_threads;

/// As liblinear's callers in the field have it: weights hardly change after that.
const ACCURACY: Accuracy = Accuracy {
    most_rounds: 20,
    tolerance: 0.1,
};
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
        let training = Training {
            params,
            source,
            is_parallel,
            fit_step: source.examples.len().div_ceil(FIT_ROWS).max(LEAST_STEP),
        };
        training.run()
    })?
}

struct Training<'a> {
    params: &'a Params,
    source: &'a OutOfSample<'a>,
    is_parallel: bool,
    /// The join is fitted on every row whose number is a multiple of this.
    fit_step: usize,
}

/// Rows that the join is fitted on, and their margins by a label's scorer trained without them.
type HeldOutMargins = Vec<(u32, f32)>;

impl Training<'_> {
    fn run(&self) -> Result<OneAgainstSome> {
        let examples = self.source.examples;
        let rows = 0..examples.len() as u32;
        let inverse_lengths: Vec<f32> = rows.map(|row| inverse_length(examples.row(row))).collect();
        let rows = ScorerRows {
            examples,
            inverse_lengths: &inverse_lengths,
        };
        let trained = self.train_labels(rows)?;
        let (scorers, held_out_margins): (Vec<_>, Vec<_>) = trained.into_iter().unzip();
        let mut model = OneAgainstSome::new(&scorers, examples);
        drop(scorers);
        let fit_rows = self.fit_rows(&model, &held_out_margins)?;
        let weight = self.params.scorer_weight.map(|weight| weight as f32);
        model.set_join(fit(&fit_rows, weight));
        Ok(model)
    }

    /// The scorer of each label that has examples, and the rows of the fit that are among these.
    fn train_labels(&self, rows: ScorerRows<'_>) -> Result<Vec<(Option<Scorer>, HeldOutMargins)>> {
        let examples = rows.examples;
        let negatives = self.rows_by_negative_label()?;
        let positives = examples
            .labels
            .regroup(examples.n_labels, |row, &label| (label, row));
        let new_solver = || Solver::new(rows, ACCURACY);
        let one = |solver: &mut Solver<'_>, label: usize| {
            self.source.control.tick(1)?;
            let positives = positives.get(label);
            if positives.is_empty() {
                return Ok((None, HeldOutMargins::new()));
            }
            let seed = mix(self.params.seed ^ (label as u64 + 1).rotate_left(32));
            let threshold = self.params.weight_threshold;
            solver.solve(positives, negatives.get(label), seed);
            let scorer = solver.scorer(threshold);
            let margins = solver.solve_without(|row| self.is_of_fit(row), seed);
            Ok((Some(scorer), margins))
        };
        let labels = 0..examples.n_labels;
        if self.is_parallel {
            labels.into_par_iter().map_init(new_solver, one).collect()
        } else {
            let mut solver = new_solver();
            labels.map(|label| one(&mut solver, label)).collect()
        }
    }

    /// The rows that are negative examples of each label.
    fn rows_by_negative_label(&self) -> Result<Ragged<u32>> {
        let examples = self.source.examples;
        let all: Vec<u32> = (0..examples.len() as u32).collect();
        let labels_of = self.source.map(&all, self.is_parallel, |row, scores| {
            negatives(examples, row, scores, self.params)
        })?;
        let n = labels_of.iter().map(Vec::len).sum();
        let mut lists = Ragged::with_capacity(all.len(), n);
        labels_of.into_iter().for_each(|labels| lists.push(labels));
        Ok(lists.regroup(examples.n_labels, |row, &label| (label, row)))
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
            scored.shrink_to_fit();
            scored
        })?;
        let mut without = vec![ScoredLabels::new(); rows.len()];
        for (label, margins) in (0u32..).zip(held_out_margins) {
            for &(row, margin) in margins {
                without[row as usize / self.fit_step].push((label, margin));
            }
        }
        let mut margins = RowMargins::new(model);
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

/// Labels and their scores or margins.
type ScoredLabels = Vec<(u32, f32)>;

/// The best labels of a row by the trees and by its `margins`, of which those by scorers
/// `without` it, increasing, replace the others.
fn candidates(
    mut by_trees: ScoredLabels,
    margins: &RowMargins<'_>,
    without: &[(u32, f32)],
    own: &[u32],
) -> Vec<Candidate> {
    let mut by_margin: ScoredLabels = margins.found();
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
