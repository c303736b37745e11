//! Training of scorers, round by round.
//!
//! ```text
//! solve -> mine -> solve -> mine -> sample of labels with each power of inverse document
//!   frequencies and cost -> solve with the best -> join, calibration
//! ```

use super::dense::{DenseColumns, BLOCK};
use super::fit::{best_gains, fit_calibration, fit_join, FitRow, FitSample};
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
/// Share of the columns that rows of words fill at most.
const MAX_FILLED: f64 = 0.1;
/// The cost in mining, and the costs that it is compared with unless one is given. Few features and
/// noisy labels need a lower cost, many features and rare labels a higher one.
const COST: f64 = 1.0;
const LOW_COST: f64 = 0.25;
const HIGH_COST: f64 = 4.0;

/// Share of the gain on held-out rows by which a cost above 1 seems better than it is: a label with
/// few rows needs a higher cost if some of them are held out.
const BIAS_TO_HIGH_COST: f64 = 0.04;
/// The same for power 1, for each further step of the sample of labels: a sample has fewer labels to
/// confuse.
const BIAS_TO_POWER: f64 = 0.015;

/// Number of times that negatives are mined.
const N_MINING: usize = 2;
/// Number of times that progress counts each label.
pub const N_ROUNDS: usize = 1 + N_MINING;

/// Least number of labels to compare on, approximately, if there are so many.
const MIN_SAMPLED: usize = 256;
/// Values of rows, with [`VALUES_OF_ROW`] for the rest of each row, up to which all labels are
/// compared on. With more values fewer are: the comparison may take about a tenth of the training.
const VALUES_OF_ALL: usize = 125_000;
const VALUES_OF_ROW: usize = 10;
/// At least one label in this many is sampled.
const MAX_STEP: usize = 8;

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
    /// The negatives that remain in another round, if rows have dense columns.
    active: Vec<u32>,
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
        let cost = self.params.cost.unwrap_or(COST);
        let round = Round {
            power: if self.has_powers() {
                POWER_OF_MINING
            } else {
                0.0
            },
            cost,
            stage: Stage::Mining,
        };
        let rows = self.rows(round.power);
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
                for solution in &solved {
                    let rows = solution.iter().flat_map(|solution| &solution.active);
                    active.push(rows.copied());
                }
                self.negatives.replace(active, self.examples.len());
            }
            drop(solved);
            self.mine(&weights)?;
        }
        drop(rows);
        let round = self.choose()?;
        let rows = self.rows(round.power);
        let solved = self.solve(&rows, round)?;
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

    /// Returns whether powers matter: they scale sparse columns only, and suit words but not pixels,
    /// which fill more of a row.
    fn has_powers(&self) -> bool {
        let Examples { rows, width, .. } = self.examples;
        let n_filled = MAX_FILLED * *width as f64 * rows.len() as f64;
        self.dense_columns.len() + 1 < *width && (rows.n_values() as f64) < n_filled
    }

    /// Returns the last round, with the power and cost whose scorers rank the rows of the fit best.
    /// All are tried on the same sample of the labels; see [`lead`].
    fn choose(&self) -> Result<Round> {
        let (fits_cost, has_powers) = (self.params.cost.is_none(), self.has_powers());
        let last = |power, cost| Round {
            power,
            cost,
            stage: Stage::Last,
        };
        let cost = self.params.cost.unwrap_or(COST);
        let mut best = last(0.0, cost);
        if !fits_cost && !has_powers {
            return Ok(best);
        }
        let (n_labels, rows) = (self.examples.n_labels, &self.examples.rows);
        let step = sampling_step(n_labels, rows.n_values(), rows.len());
        let gains = |rows: &ScorerRows<'_>, power, cost| {
            let stage = Stage::Comparison;
            self.gains(rows, Round { power, cost, stage }, step)
        };
        let rows = self.rows(0.0);
        let first = gains(&rows, 0.0, cost)?;
        let mut most = 0.0;
        let mut consider = |power, cost, gains: &[f64], bias| {
            let lead = lead(&first, gains, bias);
            if lead > most {
                (most, best) = (lead, last(power, cost));
            }
        };
        let mut is_low_worse = false;
        if fits_cost {
            let low = gains(&rows, 0.0, LOW_COST)?;
            consider(0.0, LOW_COST, &low, 0.0);
            // If a low cost is better, a high one is worse, and the reverse.
            if lead(&first, &low, 0.0) <= 0.0 {
                let high = gains(&rows, 0.0, HIGH_COST)?;
                consider(0.0, HIGH_COST, &high, BIAS_TO_HIGH_COST);
            }
            is_low_worse = lead(&low, &first, 0.0) > 0.0;
        }
        if has_powers {
            let bias = BIAS_TO_POWER * (step - 1) as f64;
            let rows = self.rows(1.0);
            consider(1.0, cost, &gains(&rows, 1.0, cost)?, bias);
            // A high cost gives rare features more weight, too; together they are too much.
            if fits_cost && !is_low_worse {
                consider(1.0, LOW_COST, &gains(&rows, 1.0, LOW_COST)?, bias);
            }
        }
        Ok(best)
    }

    /// Returns what each row of the fit gains by scorers of a sample of the labels.
    fn gains(&self, rows: &ScorerRows<'_>, round: Round, step: usize) -> Result<Vec<f64>> {
        let is_sampled = |label| is_sampled(label, step, self.params.seed);
        let solved = self.map_labels(rows, |solver, label| {
            self.control.check()?;
            let is_solved = is_sampled(label) && !self.positives.get(label).is_empty();
            Ok(is_solved.then(|| self.solve_label(solver, round, label)))
        })?;
        let mut scored = Ragged::default();
        for i in 0..self.scored.len() {
            let labels = self.scored.get(i).iter().copied();
            scored.push(labels.filter(|&(label, _)| is_sampled(label as usize)));
        }
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

/// Returns one in how many labels is sampled, for rows with `n_values` values.
pub(super) fn sampling_step(n_labels: usize, n_values: usize, n_rows: usize) -> usize {
    let by_values = (n_values + VALUES_OF_ROW * n_rows) / VALUES_OF_ALL;
    by_values.min(n_labels / MIN_SAMPLED).clamp(1, MAX_STEP)
}

/// Returns whether a label belongs to the sample of about one in `step`.
pub(super) fn is_sampled(label: usize, step: usize, seed: u64) -> bool {
    mix(label as u64 ^ seed.rotate_left(7)).is_multiple_of(step as u64)
}

/// Returns by how much the gains of rows are larger than `before`, less the standard error of this
/// difference and the share `bias` of all gains before. The differences are paired, because rows
/// differ more than scorers.
pub(super) fn lead(before: &[f64], gains: &[f64], bias: f64) -> f64 {
    let differences = || gains.iter().zip(before).map(|(gain, before)| gain - before);
    let error = differences().map(|d| d * d).sum::<f64>().sqrt();
    differences().sum::<f64>() - error - bias * before.iter().sum::<f64>()
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
