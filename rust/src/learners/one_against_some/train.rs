//! Training of scorers, round by round.
//!
//! ```text
//! sample with each power of inverse document frequencies -> solve -> mine -> solve -> mine
//!   -> sample with each cost -> solve -> join, calibration
//! ```

use super::dense::{DenseColumns, BLOCK};
use super::fit::{fit_calibration, fit_join, FitRow, FitSample};
use super::negatives::{first_negatives, Candidates, Negatives};
use super::rank::OneAgainstSome;
use super::rows::{DistinctRows, ScorerRows};
use super::svm::{Accuracy, Problem, Scorer, Solver};
use super::weights::{LabelWeights, RowMargins};
use crate::control::Control;
use crate::data::{Examples, Ragged};
use crate::error::Result;
use crate::learners::mix;
use crate::metrics::propensities;
use crate::threads::map_with_worker;

/// Powers of inverse document frequencies that are compared: long texts gain much by 1, short ones
/// lose.
const POWERS: [f64; 2] = [0.0, 1.0];
/// Factor by which power 1 must rank held-out rows better than power 0. The comparison favors 1,
/// because the few negatives of the first round leave frequent features too much weight, and so
/// does a sample of the labels. With mined negatives, gains of a few percent turn into losses.
const CLEAR_GAIN: f64 = 1.1;
/// Costs that are compared in the last round unless one is given: few features and noisy labels
/// need a lower cost.
const COSTS: [f64; 2] = [1.0, 0.25];
/// Factor by which cost 1/4 must rank held-out rows better than cost 1. The sample hides a part of
/// what cost 1/4 loses, because it has fewer labels to confuse.
const CLEAR_GAIN_OF_COST: f64 = 1.02;
/// Number of times that negatives are mined.
const N_MINING: usize = 2;
/// Number of times that progress counts each label.
pub const N_ROUNDS: usize = 1 + N_MINING;

/// Least number of labels to compare on, approximately, if there are so many.
const MIN_SAMPLED: usize = 256;
/// At least one label in this many is sampled to compare powers, and to compare costs: the sample
/// is a smaller problem of the same kind.
pub(super) const MAX_STEP: usize = 4;
const MAX_STEP_OF_COST: usize = 16;

/// Accuracy of the last solutions, liblinear's usual 0.1: weights hardly change below it.
const ACCURACY: Accuracy = Accuracy {
    max_rounds: 20,
    tolerance: 0.1,
};
/// Accuracy of solutions that the next round continues: mined negatives hardly depend on more.
const FIRST_ACCURACY: Accuracy = Accuracy {
    max_rounds: 5,
    ..ACCURACY
};
/// If each row has one label, negatives are mined with scorers that have not learned the rows of the
/// fit, except for labels that would have fewer positives. The mining has not known new rows either,
/// and else their probabilities are too low (omniglot by 4 points). Label sets gain or lose up to
/// half a point of precision by it.
const LEAST_POSITIVES: usize = 4;

/// The usual propensity model of benchmarks in the field.
const PROPENSITY_A: f64 = 0.55;
const PROPENSITY_B: f64 = 1.5;

/// Parameters of the scorers' training.
#[derive(Debug, Clone, Copy)]
pub struct ScorerParams {
    /// Largest number of negatives of a row, of each kind and round.
    pub n_negatives: usize,
    /// Positives weigh (inverse propensity of the label)^`tail_weight`, 1 on average.
    pub tail_weight: f64,
    /// C, the weight of losses against |w|^2 / 2; None: fitted.
    pub cost: Option<f64>,
    /// Smaller weights are dropped.
    pub weight_threshold: f64,
    pub seed: u64,
}

/// The solution of a label's problem.
#[derive(Debug, Default)]
struct Solution {
    scorer: Scorer,
    /// The dual variables, if another round continues them.
    duals: Vec<f32>,
    /// The rows of the fit and their margins by a scorer trained without them, if needed.
    held_out: Vec<(u32, f32)>,
}

/// Solutions by label; None for labels without examples and labels outside a sample.
type Solutions = Vec<Option<Solution>>;

/// Settings of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// Power of the inverse document frequencies that scale the rows.
    power: f64,
    cost: f64,
    /// Set in the last round, whose solutions are final; others keep their dual variables.
    is_last: bool,
}

/// Trains the scorers of `examples`, whose dense columns are known, from `candidates`. `is_parallel`
/// is as in [`map_with_worker`]; the number of threads does not change the model.
pub fn train(
    examples: &Examples,
    dense_columns: &DenseColumns,
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
        has_one_label: labels.lengths().all(|n| n == 1),
        fit_sample,
        distinct: DistinctRows::new(examples, |row| fit_sample.contains(row)),
        dense_columns,
        scored: candidates.scored,
        negatives,
        duals: Vec::new(),
        is_parallel,
        control,
    };
    trainer.train()
}

/// State of the training between rounds.
struct Trainer<'a> {
    params: ScorerParams,
    examples: &'a Examples,
    /// The rows of each label.
    positives: Ragged<u32>,
    /// The weight of a positive's loss, by label.
    positive_weights: Vec<f64>,
    /// True if each row has one label.
    has_one_label: bool,
    fit_sample: FitSample,
    /// Rows of the fit equal no other rows, because solutions for the fit leave them out.
    distinct: DistinctRows,
    dense_columns: &'a DenseColumns,
    /// [`Candidates::scored`].
    scored: Ragged<(u32, f32)>,
    negatives: Negatives,
    /// Dual variables of the previous round, by label.
    duals: Vec<Vec<f32>>,
    is_parallel: bool,
    control: &'a Control,
}

impl<'a> Trainer<'a> {
    fn train(mut self) -> Result<OneAgainstSome> {
        let round = Round {
            power: POWERS[0],
            cost: self.params.cost.unwrap_or(COSTS[0]),
            is_last: false,
        };
        let (mut round, mut known) = (round, Vec::new());
        // The powers scale sparse columns only.
        if self.dense_columns.len() + 1 < self.examples.width {
            let powers = POWERS.map(|power| Round { power, ..round });
            (round, known) = self.choose(powers, CLEAR_GAIN)?;
        }
        let rows = self.rows(round.power);
        for _ in 0..N_MINING {
            let mut solved = self.solve(&rows, round, known)?;
            let duals = |solution: &mut Option<Solution>| {
                let duals = solution.as_mut().map(|solution| &mut solution.duals);
                duals.map(std::mem::take).unwrap_or_default()
            };
            self.duals = solved.iter_mut().map(duals).collect();
            let weights = self.weights(&rows, &solved)?;
            known = Vec::new();
            drop(solved);
            self.mine(&weights)?;
        }
        round.is_last = true;
        if self.params.cost.is_none() {
            let costs = COSTS.map(|cost| Round { cost, ..round });
            (round, known) = self.choose(costs, CLEAR_GAIN_OF_COST)?;
        }
        let solved = self.solve(&rows, round, known)?;
        let weights = self.weights(&rows, &solved)?;
        let fit_rows = self.fit_rows(&weights, &solved, &self.scored);
        let (join, _) = fit_join(&fit_rows);
        Ok(OneAgainstSome {
            weights,
            join,
            calibration: fit_calibration(&fit_rows, join, self.examples.n_labels),
            idf_power: round.power,
            cost: round.cost,
        })
    }

    fn rows(&self, power: f64) -> ScorerRows<'a> {
        ScorerRows::new(self.examples, self.dense_columns, power)
    }

    /// Returns the second of two rounds if its scorers rank the rows of the fit better by the
    /// factor `clear_gain`, else the first, and its solutions. Both are tried on a sample of the
    /// labels.
    fn choose(&self, rounds: [Round; 2], clear_gain: f64) -> Result<(Round, Solutions)> {
        let [first, second] = rounds;
        let (solved, gain) = self.solve_sample(first)?;
        let (other, other_gain) = self.solve_sample(second)?;
        Ok(if other_gain > clear_gain * gain {
            (second, other)
        } else {
            (first, solved)
        })
    }

    /// Solves the problems of a sample of the labels. Returns the solutions and the gain of their
    /// scorers on the rows of the fit.
    fn solve_sample(&self, round: Round) -> Result<(Solutions, f64)> {
        let rows = self.rows(round.power);
        let (n_labels, seed) = (self.examples.n_labels, self.params.seed);
        let max_step = if round.is_last {
            MAX_STEP_OF_COST
        } else {
            MAX_STEP
        };
        let is_sampled = |label| is_sampled(label, n_labels, max_step, seed);
        let solved = self.map_labels(&rows, |solver, label| {
            self.control.check()?;
            let is_solved = is_sampled(label) && !self.positives.get(label).is_empty();
            Ok(is_solved.then(|| self.solve_label(solver, round, label, true)))
        })?;
        let mut scored = Ragged::default();
        for i in 0..self.scored.len() {
            let labels = self.scored.get(i).iter().copied();
            scored.push(labels.filter(|&(label, _)| is_sampled(label as usize)));
        }
        let weights = self.weights(&rows, &solved)?;
        let (_, gain) = fit_join(&self.fit_rows(&weights, &solved, &scored));
        Ok((solved, gain))
    }

    /// Solves the problems of all labels, except those whose solution is `known`.
    fn solve(&self, rows: &ScorerRows<'_>, round: Round, known: Solutions) -> Result<Solutions> {
        let mut solved = self.map_labels(rows, |solver, label| {
            self.control.tick(1)?;
            let is_known = known.get(label).is_some_and(Option::is_some);
            let is_solved = !is_known && !self.positives.get(label).is_empty();
            Ok(is_solved.then(|| self.solve_label(solver, round, label, round.is_last)))
        })?;
        for (solution, known) in solved.iter_mut().zip(known) {
            *solution = known.or_else(|| solution.take());
        }
        Ok(solved)
    }

    /// Returns the result of `solve` for each label.
    fn map_labels(
        &self,
        rows: &ScorerRows<'_>,
        solve: impl Fn(&mut Solver<'_>, usize) -> Result<Option<Solution>> + Sync + Send,
    ) -> Result<Solutions> {
        let new_solver = || Solver::new(rows, &self.distinct, ACCURACY);
        let labels = (self.examples.n_labels, 1);
        map_with_worker(self.is_parallel, labels, new_solver, solve)
    }

    fn solve_label(
        &self,
        solver: &mut Solver<'_>,
        round: Round,
        label: usize,
        holds_out: bool,
    ) -> Solution {
        let positives = self.positives.get(label);
        let (out, kept): (Vec<u32>, Vec<u32>) = positives
            .iter()
            .partition(|&&row| self.fit_sample.contains(row));
        let is_split = self.has_one_label && kept.len() >= LEAST_POSITIVES;
        let problem = Problem {
            positives: if is_split { &kept } else { positives },
            negatives: &self.negatives.rows(label),
            late_positives: if is_split && round.is_last { &out } else { &[] },
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

    /// Adds the labels of large margins that rows do not have to the negatives.
    fn mine(&mut self, weights: &LabelWeights) -> Result<()> {
        let n_rows = self.examples.len();
        let mine_block = |margins: &mut RowMargins, block: usize| {
            self.control.check()?;
            let rows = block * BLOCK..n_rows.min((block + 1) * BLOCK);
            let rows = rows.start as u32..rows.end as u32;
            margins.read_block(weights, rows.clone().map(|row| self.examples.row(row)));
            let mine_row = |row| {
                let is_known = |label| self.negatives.contains(row, label);
                margins.mine(
                    weights,
                    self.examples,
                    row,
                    self.params.n_negatives,
                    is_known,
                )
            };
            Ok(rows.map(mine_row).collect::<Vec<_>>())
        };
        let blocks = (n_rows.div_ceil(BLOCK), 32);
        let mined = map_with_worker(self.is_parallel, blocks, RowMargins::default, mine_block)?;
        let mut lists = Ragged::default();
        let mined = mined.into_iter().flatten();
        mined.for_each(|labels| lists.push(labels));
        self.negatives.push(lists, self.examples.n_labels);
        Ok(())
    }

    /// Stores the weights of the solutions, as weights for rows of length 1.
    fn weights(&self, rows: &ScorerRows<'_>, solved: &Solutions) -> Result<LabelWeights> {
        let unscaled = |solution: &Option<Solution>| {
            let mut scorer = solution.as_ref()?.scorer.clone();
            for (column, weight) in &mut scorer.weights {
                *weight *= rows.scale(*column);
            }
            Some(scorer)
        };
        LabelWeights::new(
            solved.iter().map(unscaled),
            self.dense_columns,
            self.examples,
        )
    }

    /// Returns the rows to fit join and calibration on.
    fn fit_rows(
        &self,
        weights: &LabelWeights,
        solved: &Solutions,
        scored: &Ragged<(u32, f32)>,
    ) -> Vec<FitRow> {
        let held_out = solved.iter().map(|solution| match solution {
            Some(solution) => &solution.held_out[..],
            None => &[],
        });
        self.fit_sample
            .read(weights, self.examples, scored, held_out)
    }
}

/// Returns whether a label belongs to the sample, which has at least one label in `max_step`.
pub(super) fn is_sampled(label: usize, n_labels: usize, max_step: usize, seed: u64) -> bool {
    let step = (n_labels / MIN_SAMPLED).clamp(1, max_step) as u64;
    mix(label as u64 ^ seed.rotate_left(7)).is_multiple_of(step)
}

/// Returns (inverse propensity of a label)^`tail_weight`, divided by the mean over all positives.
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
