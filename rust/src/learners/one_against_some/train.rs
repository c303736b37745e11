//! From candidates to scorers.
//!
//! ```text
//! sample with each power of inverse document frequencies -> solve -> mine -> solve -> mine
//!   -> sample with each cost -> solve -> join, calibration
//! ```

use super::candidates::{Candidates, FitSample};
use super::join::{fit, Calibration, FitRow};
use super::margins::{MarginMemory, RowMargins};
use super::negatives::{first_negatives, mined_negatives, Negatives};
use super::rows::{DistinctRows, ScorerRows};
use super::svm::{Accuracy, Problem, Scorer, Solver};
use super::weights::OneAgainstSome;
use crate::control::Control;
use crate::data::{Examples, Ragged};
use crate::error::Result;
use crate::learners::mix;
use crate::metrics::propensities;
use crate::threads::map_with_worker;

/// Powers that are compared: long texts gain much by 1, short ones lose.
const POWERS: [f64; 2] = [0.0, 1.0];
/// By what factor 1 must rank held-out rows better than 0: the first round, in which they are
/// compared, flatters 1, since its few negatives leave frequent features too much weight, and a
/// sample of the labels does so as well. With mined negatives gains of some per cent turn into
/// losses.
const CLEAR_GAIN: f64 = 1.1;
/// What the cost may become where it is not given: few features and noisy labels want less. They are
/// compared in the last round, by scorers as they will be used.
const COSTS: [f64; 2] = [1.0, 0.25];
/// By what factor 1/4 must rank held-out rows better than 1. These rows have few trees that do not
/// know them, so better scorers count for more there than they will with all trees.
const CLEAR_GAIN_OF_COST: f64 = 1.04;
/// How often negatives are mined.
const N_MINING: usize = 2;

/// Labels that are compared on at least, about, where there are so many.
const LEAST_SAMPLED: usize = 256;
/// At least one label in so many is taken to compare powers, and costs: the sample is a smaller
/// problem of the same kind.
pub(super) const MOST_STEP: usize = 4;
const MOST_STEP_OF_COST: usize = 16;

/// Stopping tolerance of the last solutions, liblinear's usual 0.1: weights hardly change below it.
const ACCURACY: Accuracy = Accuracy {
    most_rounds: 20,
    tolerance: 0.1,
};
/// Accuracy of solutions that are gone on from: negatives are mined with them, which hardly depend
/// on the last digits.
const FIRST_ACCURACY: Accuracy = Accuracy {
    most_rounds: 5,
    ..ACCURACY
};
/// The usual propensity model of the field's benchmarks.
const PROPENSITY_A: f64 = 0.55;
const PROPENSITY_B: f64 = 1.5;

/// How scorers are trained.
#[derive(Debug, Clone, Copy)]
pub struct ScorerParams {
    /// Negatives of a row, of each kind and round, at most.
    pub n_negatives: usize,
    /// Positives weigh (inverse propensity of the label)^`tail_weight`, 1 on average.
    pub tail_weight: f64,
    /// C: what losses weigh against |w|^2 / 2. None: fitted.
    pub cost: Option<f64>,
    /// Smaller weights are dropped.
    pub weight_threshold: f64,
    pub seed: u64,
}

/// How often progress counts each label.
pub const N_ROUNDS: usize = 1 + N_MINING;

/// A label's solution.
#[derive(Debug, Clone, Default)]
struct Solution {
    scorer: Scorer,
    /// The dual variables, where another round begins with them.
    duals: Vec<f32>,
    /// Rows that the join is fitted on, and their margins by a scorer trained without them, where
    /// they are needed.
    held_out: Vec<(u32, f32)>,
}

/// The solutions by label; none of labels without examples, or outside a sample.
type Solutions = Vec<Option<Solution>>;

fn scorers(solutions: &Solutions) -> impl Iterator<Item = Option<&Scorer>> + Clone {
    let solutions = solutions.iter().map(Option::as_ref);
    solutions.map(|solution| Some(&solution?.scorer))
}

/// How problems are solved.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// Of inverse document frequencies, which scale the rows.
    power: f64,
    cost: f64,
    /// Whether they are solved to the end; the dual variables are kept of the others.
    is_last: bool,
}

/// Trains the scorers of `examples` from `candidates`. `is_parallel` is what
/// [`with_threads`](crate::threads::with_threads) says; threads do not change the model.
pub fn train(
    examples: &Examples,
    candidates: Candidates,
    params: ScorerParams,
    is_parallel: bool,
    control: &Control,
) -> Result<OneAgainstSome> {
    let ScorerParams {
        n_negatives, seed, ..
    } = params;
    let labels = &examples.labels;
    let positives = labels.regroup(examples.n_labels, |row, &label| (label, row));
    let fit_sample = FitSample::new(examples.len());
    let mut negatives = Negatives::default();
    let first = first_negatives(examples, &candidates.hard, n_negatives, seed);
    negatives.push(first, examples.n_labels);
    let trainer = Trainer {
        params,
        examples,
        positive_weights: positive_weights(&positives, examples.len(), params.tail_weight)?,
        positives,
        fit_sample,
        distinct: DistinctRows::new(examples, |row| fit_sample.contains(row)),
        scored: candidates.scored,
        negatives,
        duals: Vec::new(),
        is_parallel,
        control,
    };
    trainer.train()
}

/// Trains scorers, round by round.
struct Trainer<'a> {
    params: ScorerParams,
    examples: &'a Examples,
    /// The rows of each label.
    positives: Ragged<u32>,
    /// What the loss of a positive weighs, by label.
    positive_weights: Vec<f64>,
    fit_sample: FitSample,
    /// Rows of the fit apart: these are left out.
    distinct: DistinctRows,
    /// [`Candidates::scored`].
    scored: Ragged<(u32, f32)>,
    negatives: Negatives,
    /// Dual variables of the round before, by label.
    duals: Vec<Vec<f32>>,
    is_parallel: bool,
    control: &'a Control,
}

impl Trainer<'_> {
    fn train(mut self) -> Result<OneAgainstSome> {
        let round = Round {
            power: POWERS[0],
            cost: self.params.cost.unwrap_or(COSTS[0]),
            is_last: false,
        };
        let powers = POWERS.map(|power| Round { power, ..round });
        let (mut round, mut known) = self.choose(powers, CLEAR_GAIN)?;
        let rows = ScorerRows::new(self.examples, round.power);
        for _ in 0..N_MINING {
            let mut solved = self.solve(&rows, round, known)?;
            let duals = |found: &mut Option<Solution>| {
                let found = found.as_mut();
                found.map_or_else(Vec::new, |found| std::mem::take(&mut found.duals))
            };
            self.duals = solved.iter_mut().map(duals).collect();
            let model = self.model(&rows, &mut solved)?;
            known = Vec::new();
            drop(solved);
            self.mine(&model)?;
        }
        round.is_last = true;
        if self.params.cost.is_none() {
            let costs = COSTS.map(|cost| Round { cost, ..round });
            (round, known) = self.choose(costs, CLEAR_GAIN_OF_COST)?;
        }
        let mut solved = self.solve(&rows, round, known)?;
        let mut model = self.model(&rows, &mut solved)?;
        let fit_rows = self.fit_rows(&model, &solved, &self.scored);
        model.join = fit(&fit_rows).join;
        model.calibration = Calibration::fit(&fit_rows, model.join, self.examples.n_labels);
        (model.idf_power, model.cost) = (round.power, round.cost);
        Ok(model)
    }

    /// The second of two rounds if a sample of its scorers ranks the rows of the fit better by the
    /// factor `clear`, else the first; and the sample's solutions.
    fn choose(&self, rounds: [Round; 2], clear: f64) -> Result<(Round, Solutions)> {
        let [first, second] = rounds;
        let (solved, gain) = self.solve_sample(first)?;
        let (other, other_gain) = self.solve_sample(second)?;
        Ok(if other_gain > clear * gain {
            (second, other)
        } else {
            (first, solved)
        })
    }

    /// The solutions of a sample of the labels' problems, and what their scorers are worth on the
    /// rows of the fit.
    fn solve_sample(&self, round: Round) -> Result<(Solutions, f64)> {
        let rows = ScorerRows::new(self.examples, round.power);
        let most_step = if round.is_last {
            MOST_STEP_OF_COST
        } else {
            MOST_STEP
        };
        let sample = LabelSample::new(self.params.seed, self.examples.n_labels, most_step);
        let solved = self.map_labels(&rows, |solver, label| {
            self.control.check()?;
            let is_sampled = sample.contains(label) && !self.positives.get(label).is_empty();
            Ok(is_sampled.then(|| self.solve_one(solver, round, label, true)))
        })?;
        let mut scored = Ragged::default();
        for i in 0..self.scored.len() {
            let labels = self.scored.get(i).iter().copied();
            scored.push(labels.filter(|&(label, _)| sample.contains(label as usize)));
        }
        let mut unscaled = solved.clone();
        let model = self.model(&rows, &mut unscaled)?;
        let fit_rows = self.fit_rows(&model, &unscaled, &scored);
        Ok((solved, fit(&fit_rows).gain))
    }

    /// The solutions of all problems, of which some are `known`.
    fn solve(&self, rows: &ScorerRows<'_>, round: Round, known: Solutions) -> Result<Solutions> {
        let mut solved = self.map_labels(rows, |solver, label| {
            self.control.tick(1)?;
            let is_known = known.get(label).is_some_and(Option::is_some);
            let is_new = !is_known && !self.positives.get(label).is_empty();
            Ok(is_new.then(|| self.solve_one(solver, round, label, round.is_last)))
        })?;
        for (solution, known) in solved.iter_mut().zip(known) {
            *solution = known.or_else(|| solution.take());
        }
        Ok(solved)
    }

    /// What `solve` makes of each label, in their order.
    fn map_labels(
        &self,
        rows: &ScorerRows<'_>,
        solve: impl Fn(&mut Solver<'_>, usize) -> Result<Option<Solution>> + Sync + Send,
    ) -> Result<Solutions> {
        let new_solver = || Solver::new(rows, &self.distinct, ACCURACY);
        let labels = (self.examples.n_labels, 1);
        map_with_worker(self.is_parallel, labels, new_solver, solve)
    }

    fn solve_one(
        &self,
        solver: &mut Solver<'_>,
        round: Round,
        label: usize,
        holds_out: bool,
    ) -> Solution {
        let problem = Problem {
            positives: self.positives.get(label),
            negatives: &self.negatives.rows(label),
            positive_weight: self.positive_weights[label],
            cost: round.cost,
        };
        let seed = mix(self.params.seed ^ (label as u64 + 1).rotate_left(32));
        solver.accuracy = if round.is_last {
            ACCURACY
        } else {
            FIRST_ACCURACY
        };
        let duals = self.duals.get(label).map_or(&[][..], Vec::as_slice);
        solver.solve(&problem, duals, seed);
        let mut solution = Solution {
            scorer: solver.scorer(self.params.weight_threshold),
            ..Solution::default()
        };
        if !round.is_last {
            solution.duals = solver.duals();
        }
        if holds_out {
            solver.accuracy = ACCURACY;
            let is_out = |row| self.fit_sample.contains(row);
            solution.held_out = solver.solve_without(&problem, is_out, seed);
        }
        solution
    }

    /// Adds the labels that the scorers of `model` wrongly take rows to have to the negatives.
    fn mine(&mut self, model: &OneAgainstSome) -> Result<()> {
        let one = |memory: &mut MarginMemory, row: usize| {
            if row.is_multiple_of(1 << 12) {
                self.control.check()?;
            }
            let (row, n) = (row as u32, self.params.n_negatives);
            let mut margins = RowMargins::new(model, memory);
            let is_known = |label| self.negatives.contains(row, label);
            Ok(mined_negatives(
                &mut margins,
                self.examples,
                row,
                n,
                is_known,
            ))
        };
        let n_rows = (self.examples.len(), 256);
        let mined = map_with_worker(self.is_parallel, n_rows, MarginMemory::default, one)?;
        let mut lists = Ragged::with_capacity(mined.len(), mined.iter().map(Vec::len).sum());
        mined.into_iter().for_each(|labels| lists.push(labels));
        self.negatives.push(lists, self.examples.n_labels);
        Ok(())
    }

    /// The model of the scorers, without join and calibration; their weights become those for rows
    /// of length 1.
    fn model(&self, rows: &ScorerRows<'_>, solved: &mut Solutions) -> Result<OneAgainstSome> {
        for solution in solved.iter_mut().flatten() {
            rows.unscale(&mut solution.scorer.weights);
        }
        OneAgainstSome::new(scorers(solved), self.examples)
    }

    /// The rows to fit join and calibration on.
    fn fit_rows(
        &self,
        model: &OneAgainstSome,
        solved: &Solutions,
        scored: &Ragged<(u32, f32)>,
    ) -> Vec<FitRow> {
        let held_out = solved.iter().map(|solution| match solution {
            Some(solution) => &solution.held_out[..],
            None => &[],
        });
        self.fit_sample.read(model, self.examples, scored, held_out)
    }
}

/// A sample of the labels: one in so many, by their hash.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelSample {
    step: u64,
    seed: u64,
}

impl LabelSample {
    /// At least one label in `most_step`.
    pub fn new(seed: u64, n_labels: usize, most_step: usize) -> Self {
        Self {
            step: (n_labels / LEAST_SAMPLED).clamp(1, most_step) as u64,
            seed: seed.rotate_left(7),
        }
    }

    pub fn contains(self, label: usize) -> bool {
        mix(label as u64 ^ self.seed).is_multiple_of(self.step)
    }
}

/// (inverse propensity of a label)^`tail_weight`, divided by their mean over all positives.
pub(super) fn positive_weights(
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
