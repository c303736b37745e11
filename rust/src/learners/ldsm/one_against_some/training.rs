//! From held-out trees to scorers and their join.

use rayon::prelude::*;

use super::super::params::Params;
use super::calibration::Calibration;
use super::join_fit::{fit, Candidate, FitRow};
use super::margins::RowMargins;
use super::mining::{Miner, ShortIndex};
use super::negatives::{negatives, Negatives};
use super::out_of_sample::OutOfSample;
use super::scorer_rows::ScorerRows;
use super::scorers::OneAgainstSome;
use super::svm::{Accuracy, Problem, Scorer, Solver};
use crate::classifier::keep_best;
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
/// What `idf_power` becomes where it is not given: long texts gain much by 1, short ones lose.
const IDF_POWERS: [f64; 2] = [0.0, 1.0];
/// By what factor 1 must rank held-out rows better than 0: the first round, in which they are
/// compared, flatters 1, since its few negatives leave frequent features too much weight. With
/// mined negatives gains of some per cent turn into losses.
const CLEAR_GAIN: f64 = 1.05;
/// How often negatives are mined.
const MINING_ROUNDS: usize = 2;
/// Rows that the join is fitted on, at most.
const FIT_ROWS: usize = 4096;
/// At most one row in so many, since labels must keep most of their rows in that fit.
const LEAST_STEP: usize = 5;
/// Candidates of these by the trees, and by margins.
const CANDIDATES: usize = 100;

/// What `idf_power` may become.
fn idf_powers(params: &Params) -> Vec<f64> {
    params
        .idf_power
        .map_or(IDF_POWERS.to_vec(), |power| vec![power])
}

/// How often the problems of all labels are solved.
pub fn n_rounds(params: &Params) -> usize {
    idf_powers(params).len() + MINING_ROUNDS
}

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

/// What a round makes of each label.
#[derive(Default)]
struct Solved {
    scorers: Vec<Option<Scorer>>,
    /// The dual variables, in rounds after which there is another.
    duals: Vec<Vec<f32>>,
    /// In rounds that are judged.
    held_out: Vec<HeldOutMargins>,
}

/// What is to be kept of a round.
#[derive(Clone, Copy)]
struct Keep {
    duals: bool,
    held_out: bool,
}

impl Training<'_> {
    fn run(&self) -> Result<OneAgainstSome> {
        let examples = self.source.examples;
        let mut negatives = Negatives::default();
        negatives.push(self.first_negatives()?, examples.n_labels);
        let by_trees = self.candidates_by_trees()?;
        let (rows, mut solved) = self.first_round(&negatives, &by_trees)?;
        for round in 1..=MINING_ROUNDS {
            let index = ShortIndex::new(&solved.scorers, rows.n_features());
            solved.scorers = Vec::new();
            negatives.push(self.mine(&rows, &index, &negatives)?, examples.n_labels);
            let keep = Keep {
                duals: round < MINING_ROUNDS,
                held_out: round == MINING_ROUNDS,
            };
            solved = self.solve(&rows, &negatives, &solved.duals, keep)?;
        }
        drop(negatives);
        let (mut model, fit_rows, _) = self.joined(&rows, solved, &by_trees);
        model.set_calibration(Calibration::fit(&fit_rows, model.join(self.params)));
        model.set_idf_power(rows.idf_power);
        Ok(model)
    }

    /// The first round, with the scales of features that rank the labels of held-out rows
    /// better; the smaller power if the larger is not clearly better.
    fn first_round(
        &self,
        negatives: &Negatives,
        by_trees: &[ScoredLabels],
    ) -> Result<(ScorerRows<'_>, Solved)> {
        let examples = self.source.examples;
        let powers = idf_powers(self.params);
        let mut best = None;
        let mut most = 0.0;
        for &power in &powers {
            let rows = ScorerRows::new(examples, power);
            let keep = Keep {
                duals: true,
                held_out: powers.len() > 1,
            };
            let mut solved = self.solve(&rows, negatives, &[], keep)?;
            let mut gain = 0.0;
            if keep.held_out {
                let judged = Solved {
                    scorers: solved.scorers.clone(),
                    held_out: std::mem::take(&mut solved.held_out),
                    ..Solved::default()
                };
                (_, _, gain) = self.joined(&rows, judged, by_trees);
            }
            if best.is_none() || gain > CLEAR_GAIN * most {
                (best, most) = (Some((rows, solved)), gain);
            }
        }
        Ok(best.expect("there is a power"))
    }

    /// The model of the scorers, joined to the trees, the rows of the fit and its gain.
    fn joined(
        &self,
        rows: &ScorerRows<'_>,
        mut solved: Solved,
        by_trees: &[ScoredLabels],
    ) -> (OneAgainstSome, Vec<FitRow>, f64) {
        let scorers = solved.scorers.iter_mut().flatten();
        scorers.for_each(|scorer| rows.unscale(scorer));
        let mut model = OneAgainstSome::new(&solved.scorers, rows.examples);
        solved.scorers = Vec::new();
        let fit_rows = self.fit_rows(&model, by_trees, &solved.held_out);
        let weight = self.params.scorer_weight.map(|weight| weight as f32);
        let (join, gain) = fit(&fit_rows, weight);
        model.set_join(join);
        (model, fit_rows, gain)
    }

    /// Solves the problems of all labels, from their dual variables of the round before.
    fn solve(
        &self,
        rows: &ScorerRows<'_>,
        negatives: &Negatives,
        duals: &[Vec<f32>],
        keep: Keep,
    ) -> Result<Solved> {
        let solved = self.each_label(rows, |solver, label| {
            let problem = Problem {
                positives: self.positives.get(label),
                negatives: &negatives.rows_of(label),
                positive_weight: self.positive_weights[label],
            };
            let seed = mix(self.params.seed ^ (label as u64 + 1).rotate_left(32));
            let before = duals.get(label).map_or(&[][..], Vec::as_slice);
            solver.solve(&problem, before, seed);
            let scorer = solver.scorer(self.params.weight_threshold);
            let duals = if keep.duals {
                solver.duals()
            } else {
                Vec::new()
            };
            let held_out = if keep.held_out {
                solver.solve_without(|row| self.is_of_fit(row), seed)
            } else {
                HeldOutMargins::new()
            };
            (scorer, duals, held_out)
        })?;
        let mut all = Solved::default();
        for of_label in solved {
            let (scorer, duals, held_out) = match of_label {
                Some((scorer, duals, held_out)) => (Some(scorer), duals, held_out),
                None => (None, Vec::new(), HeldOutMargins::new()),
            };
            all.scorers.push(scorer);
            all.duals.push(duals);
            all.held_out.push(held_out);
        }
        Ok(all)
    }

    /// What `of_label` makes of each label; nothing of those without examples.
    fn each_label<T: Send>(
        &self,
        rows: &ScorerRows<'_>,
        of_label: impl Fn(&mut Solver<'_>, usize) -> T + Sync,
    ) -> Result<Vec<Option<T>>> {
        let new_solver = || Solver::new(rows, ACCURACY);
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

    /// The labels that each row is a negative example of in the first round.
    fn first_negatives(&self) -> Result<Vec<Vec<u32>>> {
        let examples = self.source.examples;
        let all: Vec<u32> = (0..examples.len() as u32).collect();
        self.source.map(&all, self.is_parallel, |row, scores| {
            negatives(examples, row, scores, self.params)
        })
    }

    /// The labels that each row becomes a negative example of in the next round.
    fn mine(
        &self,
        rows: &ScorerRows<'_>,
        index: &ShortIndex,
        known: &Negatives,
    ) -> Result<Vec<Vec<u32>>> {
        let n = self.params.n_mined_negatives as usize;
        let new_miner = || Miner::new(index, rows);
        let one = |miner: &mut Miner<'_>, row: u32| {
            if row.is_multiple_of(1 << 12) {
                self.source.control.check()?;
            }
            Ok(miner.mine(row, n, |label| known.contains(row, label)))
        };
        let numbers = 0..rows.examples.len() as u32;
        if self.is_parallel {
            let numbers = numbers.into_par_iter().with_min_len(256);
            numbers.map_init(new_miner, one).collect()
        } else {
            let mut miner = new_miner();
            numbers.map(|row| one(&mut miner, row)).collect()
        }
    }

    fn is_of_fit(&self, row: u32) -> bool {
        (row as usize).is_multiple_of(self.fit_step)
    }

    /// The rows that the join is fitted on.
    fn rows_of_fit(&self) -> Vec<u32> {
        let rows = 0..self.source.examples.len() as u32;
        rows.step_by(self.fit_step).collect()
    }

    /// The best labels of the rows of the fit by the trees that do not know them.
    fn candidates_by_trees(&self) -> Result<Vec<ScoredLabels>> {
        let rows = self.rows_of_fit();
        self.source.map(&rows, self.is_parallel, |_, scores| {
            let mut scored = ScoredLabels::new();
            scores.for_each(|label, score| scored.push((label, score)));
            keep_best(&mut scored, CANDIDATES);
            scored.shrink_to_fit();
            scored.sort_unstable_by_key(|&(label, _)| label);
            scored
        })
    }

    /// The candidates of the rows of the fit, with scores of trees and scorers that do not know
    /// the row.
    fn fit_rows(
        &self,
        model: &OneAgainstSome,
        by_trees: &[ScoredLabels],
        held_out: &[HeldOutMargins],
    ) -> Vec<FitRow> {
        let examples = self.source.examples;
        let rows = self.rows_of_fit();
        let mut without = vec![ScoredLabels::new(); rows.len()];
        for (label, margins) in (0u32..).zip(held_out) {
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
        fit_rows
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

/// The best labels of a row by the trees, increasing, and by its `margins`, of which those by
/// scorers `without` it, increasing, replace the others.
fn candidates(
    by_trees: &[(u32, f32)],
    margins: &RowMargins<'_>,
    without: &[(u32, f32)],
    own: &[u32],
) -> Vec<Candidate> {
    let mut by_margin: ScoredLabels = margins.found();
    keep_best(&mut by_margin, CANDIDATES);
    let listed = by_trees.iter().chain(&by_margin);
    let mut labels: Vec<u32> = listed.map(|&(label, _)| label).collect();
    labels.sort_unstable();
    labels.dedup();
    let look_up = |list: &[(u32, f32)], label| {
        let at = list.binary_search_by_key(&label, |&(label, _)| label);
        at.ok().map(|at| list[at].1)
    };
    let candidate = |label| Candidate {
        tree_score: look_up(by_trees, label).unwrap_or(0.0),
        margin: look_up(without, label).unwrap_or_else(|| margins.margin(label)),
        is_own: own.binary_search(&label).is_ok(),
    };
    labels.into_iter().map(candidate).collect()
}
