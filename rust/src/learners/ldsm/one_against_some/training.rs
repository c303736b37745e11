//! From held-out trees to scorers and their join.

use rayon::prelude::*;

use super::super::params::Params;
use super::join_fit::{fit, Candidate, FitRow};
use super::lengths::inverse_length;
use super::negatives::{keep_best, negatives};
use super::out_of_sample::OutOfSample;
use super::scorers::{IndexMargins, OneAgainstSome};
use super::svm::{Accuracy, Scorer, ScorerRows, Solver};
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
        let mut spread = vec![0.0; examples.width];
        let rows = 0..examples.len() as u32;
        let inverse_lengths: Vec<f32> = rows
            .map(|row| inverse_length(examples.row(row), &mut spread))
            .collect();
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
            let mut scored = Vec::new();
            scores.for_each(|label, score| scored.push((label, score)));
            keep_best(&mut scored, CANDIDATES);
            scored
        })?;
        let mut without = vec![Vec::new(); rows.len()];
        for (label, margins) in (0u32..).zip(held_out_margins) {
            for &(row, margin) in margins {
                without[row as usize / self.fit_step].push((label, margin));
            }
        }
        let mut margins = IndexMargins::new(model);
        let candidates =
            |((&row, mut scored), without): ((&u32, Vec<(u32, f32)>), &Vec<(u32, f32)>)| {
                margins.read(examples.row(row));
                scored.sort_unstable_by_key(|&(label, _)| label);
                let score = |label| {
                    let at = scored.binary_search_by_key(&label, |&(label, _)| label);
                    at.map_or(0.0, |at| scored[at].1)
                };
                let margin = |label| {
                    // Other scorers do not know the row anyway.
                    let at = without.binary_search_by_key(&label, |&(label, _)| label);
                    at.map_or_else(|_| margins.margin(label), |at| without[at].1)
                };
                let mut by_margin: Vec<(u32, f32)> = margins.touched().collect();
                keep_best(&mut by_margin, CANDIDATES);
                let mut labels: Vec<u32> = scored
                    .iter()
                    .chain(&by_margin)
                    .map(|&(label, _)| label)
                    .collect();
                labels.sort_unstable();
                labels.dedup();
                let own = examples.labels(row);
                let candidate = |label: u32| Candidate {
                    tree_score: score(label),
                    margin: margin(label),
                    is_own: own.binary_search(&label).is_ok(),
                };
                (
                    labels.into_iter().map(candidate).collect(),
                    examples.weight(row),
                )
            };
        // Rows that no tree left out say nothing of the trees' scores.
        let each = rows.iter().zip(by_trees).zip(&without);
        Ok(each
            .filter(|((_, scored), _)| !scored.is_empty())
            .map(candidates)
            .collect())
    }
}
