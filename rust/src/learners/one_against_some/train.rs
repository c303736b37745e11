//! Training of scorers, round by round.
//!
//! ```text
//! solve -> mine -> solve -> mine -> sample of labels with each power of inverse document
//!   frequencies and cost -> solve with the best -> join, calibration
//! ```

use serde::{Deserialize, Serialize};

use super::choose::{is_sampled, Choice, Settings, COST};
use super::dense::{DenseColumns, BLOCK};
use super::fit::{best_gains, FitRow, FitSample};
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

/// The power of inverse document frequencies in mining. These negatives suit powers 0 and 1, which
/// are compared afterwards: long texts gain much by 1, short ones lose.
const POWER_OF_MINING: f64 = 0.5;
/// Number of times that negatives are mined.
const N_MINING: usize = 2;
/// Number of times that progress counts each label.
pub const N_ROUNDS: usize = 1 + N_MINING;

/// Accuracy of the last solutions, liblinear's usual 0.1: weights hardly change below it.
const ACCURACY: Accuracy = Accuracy {
    max_rounds: 20,
    tolerance: 0.1,
};
/// Accuracy of other solutions: mined negatives and comparisons hardly depend on more.
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
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
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
    /// The negatives that remain in another round, if rows have dense columns.
    active: Vec<u32>,
    /// The rows of the fit and their margins by a scorer trained without them, if needed.
    held_out: HeldOut,
}

/// Rows and their margins by a scorer trained without them.
pub(super) type HeldOut = Vec<(u32, f32)>;

/// Solutions by label; None for labels without examples and labels outside a sample.
type Solutions = Vec<Option<Solution>>;

/// Settings of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// Power of the inverse document frequencies that scale the rows.
    power: f64,
    cost: f64,
    stage: Stage,
}

/// The purpose of the solutions of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Negatives are mined with them, and their dual variables are kept.
    Mining,
    /// They are compared on the rows of the fit, which they leave out.
    Comparison,
    /// They are final. The rows of the fit have margins by solutions without them, too.
    Last,
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
    let fit_sample = FitSample::new(examples.len());
    let mut trainer = Trainer::new(params, examples, dense_columns, fit_sample, control);
    let counts = trainer.positives.lengths();
    trainer.positive_weights = positive_weights(counts, examples.len(), params.tail_weight)?;
    let first = first_negatives(examples, &candidates.hard, params.n_negatives, params.seed);
    trainer.negatives.push(first, examples.n_labels);
    trainer.scored = candidates.scored;
    trainer.is_parallel = is_parallel;
    trainer.train()
}

/// State of the training between rounds.
pub(super) struct Trainer<'a> {
    pub params: ScorerParams,
    pub choice: Choice,
    pub examples: &'a Examples,
    /// Numbers of rows with each column and of all rows, if `examples` are a part of them.
    pub column_counts: Option<(&'a [u32], usize)>,
    /// The rows of each label.
    pub positives: Ragged<u32>,
    /// The weight of a positive's loss, by label.
    pub positive_weights: Vec<f64>,
    /// True if each row has one label.
    pub has_one_label: bool,
    pub fit_sample: FitSample,
    /// Rows of the fit equal no other rows, because solutions for the fit leave them out.
    pub distinct: DistinctRows,
    pub dense_columns: &'a DenseColumns,
    /// [`Candidates::scored`].
    pub scored: Ragged<(u32, f32)>,
    pub negatives: Negatives,
    /// Dual variables of the previous round, by label.
    pub duals: Vec<Vec<f32>>,
    pub is_parallel: bool,
    pub control: &'a Control,
}

impl<'a> Trainer<'a> {
    /// Prepares a training on all rows, which still needs negatives and weights of positives.
    pub fn new(
        params: ScorerParams,
        examples: &'a Examples,
        dense_columns: &'a DenseColumns,
        fit_sample: FitSample,
        control: &'a Control,
    ) -> Self {
        let shape = (examples.len(), examples.rows.n_values());
        let columns = (dense_columns.len(), examples.width);
        let by_label = |row, &label: &u32| (label, row);
        Self {
            params,
            choice: Choice::new(params.cost, examples.n_labels, shape, columns),
            examples,
            column_counts: None,
            positives: examples.labels.regroup(examples.n_labels, by_label),
            positive_weights: Vec::new(),
            has_one_label: examples.labels.lengths().all(|n| n == 1),
            fit_sample,
            distinct: DistinctRows::new(examples, |row| fit_sample.contains(row)),
            dense_columns,
            scored: Ragged::default(),
            negatives: Negatives::default(),
            duals: Vec::new(),
            is_parallel: false,
            control,
        }
    }

    fn train(mut self) -> Result<OneAgainstSome> {
        self.mine_all()?;
        let (power, cost) = self.choice.best(self.gains())?;
        let (rows, stage) = (self.rows(power), Stage::Last);
        let solved = self.solve(&rows, Round { power, cost, stage })?;
        let weights = self.weights(&rows, &solved)?;
        let fit_rows = self.fit_rows(&weights, &solved, &self.scored);
        Ok(OneAgainstSome::fit(weights, &fit_rows, power, cost))
    }

    /// Mines negatives, round after round.
    pub fn mine_all(&mut self) -> Result<()> {
        let cost = self.params.cost.unwrap_or(COST);
        let round = Round {
            power: if self.choice.has_powers {
                POWER_OF_MINING
            } else {
                0.0
            },
            cost,
            stage: Stage::Mining,
        };
        let rows = self.rows(round.power);
        // The first negatives are of two kinds. A part of the labels gets its share of the mined ones.
        let n_mined = |row| match self.column_counts {
            Some(_) => self.negatives.first(row).len().div_ceil(2),
            None => self.params.n_negatives,
        };
        let n_mined: Vec<usize> = (0..self.examples.len()).map(n_mined).collect();
        for _ in 0..N_MINING {
            let mut solved = self.solve(&rows, round)?;
            let duals = |solution: &mut Option<Solution>| {
                let duals = solution.as_mut().map(|solution| &mut solution.duals);
                duals.map(std::mem::take).unwrap_or_default()
            };
            self.duals = solved.iter_mut().map(duals).collect();
            let weights = self.weights(&rows, &solved)?;
            if !self.dense_columns.is_empty() {
                let mut active = Ragged::default();
                for solution in &mut solved {
                    let rows = solution.as_mut().map(|solution| &mut solution.active);
                    let mut rows = rows.map(std::mem::take).unwrap_or_default();
                    rows.sort_unstable();
                    active.push(rows);
                }
                self.negatives.retain(&active, self.examples.len());
            }
            drop(solved);
            self.mine(&weights, &n_mined)?;
        }
        Ok(())
    }

    /// Returns the scorers with this power and cost, and by label the rows of the fit and their
    /// margins by a scorer trained without them.
    pub fn solve_last(&self, (power, cost): Settings) -> Result<Vec<(Scorer, HeldOut)>> {
        let (rows, stage) = (self.rows(power), Stage::Last);
        let solved = self.solve(&rows, Round { power, cost, stage })?;
        let last = |solution: Option<Solution>| {
            let scorer = unscaled(&rows, solution.as_ref());
            let held_out = solution.unwrap_or_default().held_out;
            (scorer.unwrap_or_else(Scorer::none), held_out)
        };
        Ok(solved.into_iter().map(last).collect())
    }

    fn rows(&self, power: f64) -> ScorerRows<'a> {
        let (examples, dense_columns) = (self.examples, self.dense_columns);
        match self.column_counts {
            Some(counts) => ScorerRows::with_counts(examples, dense_columns, power, counts),
            None => ScorerRows::new(examples, dense_columns, power),
        }
    }

    /// Returns a function of settings, for what each row of the fit gains by scorers of a sample of
    /// the labels.
    pub fn gains(&self) -> impl FnMut(Settings) -> Result<Vec<f64>> + use<'_, 'a> {
        let (mut power_of_rows, mut rows) = (0.0, self.rows(0.0));
        move |(power, cost)| {
            if power != power_of_rows {
                (power_of_rows, rows) = (power, self.rows(power));
            }
            self.gains_of(
                &rows,
                Round {
                    power,
                    cost,
                    stage: Stage::Comparison,
                },
            )
        }
    }

    fn gains_of(&self, rows: &ScorerRows<'_>, round: Round) -> Result<Vec<f64>> {
        let is_sampled = |label| is_sampled(label, self.choice.step, self.params.seed);
        let solved = self.map_labels(rows, |solver, label| {
            self.control.check()?;
            let is_solved = is_sampled(label) && !self.positives.get(label).is_empty();
            Ok(is_solved.then(|| self.solve_label(solver, round, label)))
        })?;
        let sampled = |&entry: &(u32, f32)| is_sampled(entry.0 as usize).then_some(entry);
        let scored = self.scored.filter_map(sampled);
        let weights = self.weights(rows, &solved)?;
        Ok(best_gains(&self.fit_rows(&weights, &solved, &scored)))
    }

    /// Solves the problems of all labels.
    fn solve(&self, rows: &ScorerRows<'_>, round: Round) -> Result<Solutions> {
        self.map_labels(rows, |solver, label| {
            self.control.tick(1)?;
            let is_solved = !self.positives.get(label).is_empty();
            Ok(is_solved.then(|| self.solve_label(solver, round, label)))
        })
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

    fn solve_label(&self, solver: &mut Solver<'_>, round: Round, label: usize) -> Solution {
        let positives = self.positives.get(label);
        let is_out = |row| self.fit_sample.contains(row);
        let (out, kept): (Vec<u32>, Vec<u32>) = positives.iter().partition(|&&row| is_out(row));
        let is_split = self.has_one_label && kept.len() >= LEAST_POSITIVES;
        let is_last = round.stage == Stage::Last;
        let problem = Problem {
            positives: if is_split { &kept } else { positives },
            negatives: &self.negatives.rows(label),
            late_positives: if is_split && is_last { &out } else { &[] },
            positive_weight: self.positive_weights[label],
            cost: round.cost,
        };
        let seed = mix(self.params.seed ^ (label as u64 + 1).rotate_left(32));
        // Solutions of a high cost are far from those that they start from.
        let is_far = round.stage == Stage::Comparison && round.cost > COST;
        solver.accuracy = if is_last || is_far {
            ACCURACY
        } else {
            FIRST_ACCURACY
        };
        let duals = self.duals.get(label).map_or(&[][..], Vec::as_slice);
        if round.stage == Stage::Comparison {
            solver.solve_rest(&problem, duals, is_out, seed);
        } else {
            solver.solve(&problem, duals, seed);
        }
        let mut solution = Solution {
            scorer: solver.scorer(self.params.weight_threshold),
            ..Solution::default()
        };
        match round.stage {
            // With dense columns the margins of all labels are computed, so mining finds a negative
            // again if it comes to have a loss.
            Stage::Mining if !self.dense_columns.is_empty() => {
                (solution.active, solution.duals) = solver.active(&problem);
            }
            Stage::Mining => solution.duals = solver.duals(),
            Stage::Comparison => {}
            Stage::Last => solution.held_out = solver.solve_without(&problem, is_out, seed),
        }
        solution
    }

    /// Adds up to so many labels of large margins that each row does not have to the negatives.
    fn mine(&mut self, weights: &LabelWeights, n_mined: &[usize]) -> Result<()> {
        let n_rows = self.examples.len();
        let mine_block = |margins: &mut RowMargins, block: usize| {
            self.control.check()?;
            let rows = block * BLOCK..n_rows.min((block + 1) * BLOCK);
            let rows = rows.start as u32..rows.end as u32;
            margins.read_block(weights, rows.clone().map(|row| self.examples.row(row)));
            let mine_row = |row| {
                let is_known = |label| self.negatives.contains(row, label);
                let n = n_mined[row as usize];
                margins.mine(weights, self.examples, row, n, is_known)
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
        let scorers = solved
            .iter()
            .map(|solution| unscaled(rows, solution.as_ref()));
        LabelWeights::new(scorers, self.dense_columns, self.examples)
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
        let (sample, examples) = (self.fit_sample, self.examples);
        let margins = sample.margins(weights, examples, scored, held_out);
        sample.candidates(examples, scored, &[margins])
    }
}

/// Returns the scorer of a solution, for rows of length 1.
fn unscaled(rows: &ScorerRows<'_>, solution: Option<&Solution>) -> Option<Scorer> {
    let mut scorer = solution?.scorer.clone();
    for (column, weight) in &mut scorer.weights {
        *weight *= rows.scale(*column);
    }
    Some(scorer)
}

/// Returns (inverse propensity of a label)^`tail_weight`, divided by the mean over all positives.
pub(super) fn positive_weights(
    counts: impl Iterator<Item = usize>,
    n_rows: usize,
    tail_weight: f64,
) -> Result<Vec<f64>> {
    let counts: Vec<i64> = counts.map(|n| n as i64).collect();
    let propensities = propensities(&counts, n_rows, PROPENSITY_A, PROPENSITY_B)?;
    let mut weights: Vec<f64> = propensities.iter().map(|p| p.powf(-tail_weight)).collect();
    let all = weights.iter().zip(&counts);
    let total: f64 = all.map(|(weight, &n)| weight * n as f64).sum();
    let mean = total / counts.iter().sum::<i64>() as f64;
    weights.iter_mut().for_each(|weight| *weight /= mean);
    Ok(weights)
}
