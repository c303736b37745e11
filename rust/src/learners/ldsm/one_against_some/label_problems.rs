//! A round: the problems of all labels, solved.

use super::super::params::Params;
use super::fit_rows::FitSample;
use super::negatives::Negatives;
use super::out_of_sample::OutOfSample;
use super::scorer_rows::{DistinctRows, ScorerRows};
use super::svm::{Accuracy, Problem, Scorer, Solver};
use crate::data::Ragged;
use crate::error::Result;
use crate::metrics::propensities;
use crate::random::mix;
use crate::threads::map_with_worker;

/// Of the last solutions. As liblinear's callers in the field have it: weights hardly change
/// after that.
const ACCURACY: Accuracy = Accuracy {
    most_rounds: 20,
    tolerance: 0.1,
};
/// Of solutions that are gone on from: negatives are mined with them, which hardly depend on the
/// last digits.
const FIRST_ACCURACY: Accuracy = Accuracy {
    most_rounds: 5,
    ..ACCURACY
};
/// The usual propensity model of the field's benchmarks.
const PROPENSITY_A: f64 = 0.55;
const PROPENSITY_B: f64 = 1.5;

/// What is needed to solve the labels' problems.
pub struct LabelProblems<'a> {
    pub params: &'a Params,
    pub source: &'a OutOfSample<'a>,
    /// The rows of each label.
    positives: Ragged<u32>,
    /// What the loss of a positive weighs, by label.
    positive_weights: Vec<f64>,
    pub is_parallel: bool,
    pub fit_sample: FitSample,
    /// Rows of the fit apart: these are left out.
    distinct: DistinctRows,
}

/// Rows that the join is fitted on, and their margins by a label's scorer trained without them.
pub type HeldOutMargins = Vec<(u32, f32)>;

/// Every so many labels from one on: what is solved in one place. Frequent labels, which often
/// lie together and take long, are then spread over all places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelBlock {
    pub first: usize,
    pub step: usize,
    /// Number of labels in the block.
    pub len: usize,
}

impl LabelBlock {
    /// Block `number` of `n_blocks` of `n_labels` labels.
    pub fn new(number: usize, n_blocks: usize, n_labels: usize) -> Self {
        Self {
            first: number,
            step: n_blocks,
            len: n_labels.saturating_sub(number).div_ceil(n_blocks),
        }
    }

    /// All of `n_labels` labels.
    pub fn all(n_labels: usize) -> Self {
        Self::new(0, 1, n_labels)
    }

    /// The label at place `at` of the block.
    pub fn label(self, at: usize) -> usize {
        self.first + at * self.step
    }
}

/// What a round makes of each label of a block.
#[derive(Debug, Clone, Default)]
pub struct Solved {
    pub scorers: Vec<Option<Scorer>>,
    /// The dual variables, in rounds after which there is another.
    pub duals: Vec<Vec<f32>>,
    /// In rounds that are judged.
    pub held_out: Vec<HeldOutMargins>,
}

impl Solved {
    /// Whether the problem of the label at this place was solved.
    pub fn has(&self, at: usize) -> bool {
        self.scorers.get(at).is_some_and(Option::is_some)
    }

    /// Adds what another round makes of labels that this one left out.
    pub fn add(&mut self, mut other: Self) {
        if self.scorers.is_empty() {
            *self = other;
            return;
        }
        for at in 0..self.scorers.len() {
            if other.has(at) {
                self.scorers[at] = other.scorers[at].take();
                self.duals[at] = std::mem::take(&mut other.duals[at]);
                self.held_out[at] = std::mem::take(&mut other.held_out[at]);
            }
        }
    }
}

/// How a round is solved.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// C of the problems.
    pub cost: f64,
    /// Whether it is the last one: it alone is solved to the end, and the dual variables are
    /// kept of the others.
    pub is_last: bool,
    /// Whether it is of a sample, beside the round that progress is counted in.
    pub is_sample: bool,
}

impl Round {
    /// Whether the problems are solved without the rows that the join is fitted on, too.
    fn is_judged(self) -> bool {
        self.is_last || self.is_sample
    }
}

impl<'a> LabelProblems<'a> {
    pub fn new(params: &'a Params, source: &'a OutOfSample<'a>, is_parallel: bool) -> Result<Self> {
        let examples = source.examples;
        let labels = &examples.labels;
        let positives = labels.regroup(examples.n_labels, |row, &label| (label, row));
        let fit_sample = FitSample::new(examples.len());
        Ok(Self {
            params,
            source,
            positive_weights: positive_weights(&positives, examples.len(), params.tail_weight)?,
            positives,
            is_parallel,
            fit_sample,
            distinct: DistinctRows::new(examples, |row| fit_sample.contains(row)),
        })
    }

    /// Solves the problems of those labels of a block that `is_meant` says by their places there,
    /// from their dual variables of the round before. Nothing becomes of the others, and of those
    /// without examples.
    pub fn solve(
        &self,
        rows: &ScorerRows<'_>,
        negatives: &Negatives,
        duals: &[Vec<f32>],
        round: Round,
        block: LabelBlock,
        is_meant: impl Fn(usize) -> bool + Sync,
    ) -> Result<Solved> {
        let new_solver = || Solver::new(rows, &self.distinct, ACCURACY);
        let one = |solver: &mut Solver<'_>, at: usize| {
            self.source.control.tick(usize::from(!round.is_sample))?;
            let label = block.label(at);
            let is_solved = is_meant(at) && !self.positives.get(label).is_empty();
            let before = duals.get(at).map_or(&[][..], Vec::as_slice);
            Ok(is_solved.then(|| self.solve_one(solver, negatives, before, round, label)))
        };
        let numbers = (block.len, 1);
        let solved = map_with_worker(self.is_parallel, numbers, new_solver, one)?;
        let mut all = Solved::default();
        for of_label in solved {
            let (scorer, duals, held_out) = of_label.map_or_else(Default::default, |of_label| {
                let (scorer, duals, held_out) = of_label;
                (Some(scorer), duals, held_out)
            });
            all.scorers.push(scorer);
            all.duals.push(duals);
            all.held_out.push(held_out);
        }
        Ok(all)
    }

    fn solve_one(
        &self,
        solver: &mut Solver<'_>,
        negatives: &Negatives,
        duals: &[f32],
        round: Round,
        label: usize,
    ) -> (Scorer, Vec<f32>, HeldOutMargins) {
        let problem = Problem {
            positives: self.positives.get(label),
            negatives: &negatives.rows_of(label),
            positive_weight: self.positive_weights[label],
            cost: round.cost,
        };
        let seed = mix(self.params.seed ^ (label as u64 + 1).rotate_left(32));
        solver.accuracy = if round.is_last {
            ACCURACY
        } else {
            FIRST_ACCURACY
        };
        solver.solve(&problem, duals, seed);
        let scorer = solver.scorer(self.params.weight_threshold);
        let duals = if round.is_last {
            Vec::new()
        } else {
            solver.duals()
        };
        let held_out = if round.is_judged() {
            solver.accuracy = ACCURACY;
            solver.solve_without(&problem, |row| self.fit_sample.contains(row), seed)
        } else {
            HeldOutMargins::new()
        };
        (scorer, duals, held_out)
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
