//! From candidates to scorers, in steps.
//!
//! A step's work is done in blocks of labels or rows, on the threads of this machine or, block by
//! block, on many. What all blocks have made takes the training to the next step. Neither blocks nor
//! threads change the model.
//!
//! ```text
//! sample with each power of inverse document frequencies -> solve -> mine -> solve -> mine
//!   -> sample with each cost -> solve -> join, calibration
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use super::candidates::{Candidates, FitSample};
use super::join::{fit, Calibration, FitRow};
use super::negatives::{first_negatives, Miner, ShortIndex};
use super::rows::{DistinctRows, ScaledValues, ScorerRows};
use super::state::{Block, Solved, SolvedLabel, TrainingState, Work};
use super::svm::{Accuracy, Problem, Solver};
use super::weights::OneAgainstSome;
use crate::control::Control;
use crate::data::{Examples, Ragged};
use crate::error::{Error, Result};
use crate::metrics::propensities;
use crate::random::mix;
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

/// A step of the training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Solves a sample of the labels' problems on rows that are scaled by this power.
    SamplePower(f64),
    /// Solves all problems, to mine with.
    Solve,
    /// Finds the labels that scorers wrongly take rows to have.
    Mine,
    /// Solves a sample of the labels' problems at this cost.
    SampleCost(f64),
    /// Solves all problems for good.
    SolveLast,
}

impl Step {
    /// The steps in their order.
    pub fn all(params: &ScorerParams) -> Vec<Self> {
        let mut steps = Vec::from(POWERS.map(Self::SamplePower));
        steps.extend([Self::Solve, Self::Mine].repeat(N_MINING));
        if params.cost.is_none() {
            steps.extend(COSTS.map(Self::SampleCost));
        }
        steps.push(Self::SolveLast);
        steps
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::SamplePower(_) | Self::SampleCost(_) => "sample",
            Self::Solve | Self::SolveLast => "solve",
            Self::Mine => "mine",
        }
    }

    /// How the step solves problems, if it does.
    fn round(self, state: &TrainingState) -> Option<Round> {
        let round = Round {
            power: state.power,
            cost: state.cost,
            is_last: matches!(self, Self::SampleCost(_) | Self::SolveLast),
            is_sample: matches!(self, Self::SamplePower(_) | Self::SampleCost(_)),
        };
        match self {
            Self::Mine => None,
            Self::SamplePower(power) => Some(Round { power, ..round }),
            Self::SampleCost(cost) => Some(Round { cost, ..round }),
            Self::Solve | Self::SolveLast => Some(round),
        }
    }
}

/// How often progress counts each label.
pub const N_ROUNDS: usize = 1 + N_MINING;

/// What the training needs of the examples, made once.
#[derive(Debug)]
pub struct TrainingData {
    /// The rows of each label.
    positives: Ragged<u32>,
    /// What the loss of a positive weighs, by label.
    positive_weights: Vec<f64>,
    fit_sample: FitSample,
    /// Rows of the fit apart: these are left out.
    distinct: DistinctRows,
    /// The values of the rows by the power that was asked for last.
    scaled: Mutex<Option<Arc<ScaledValues>>>,
}

impl TrainingData {
    pub fn new(examples: &Examples, tail_weight: f64) -> Result<Self> {
        let labels = &examples.labels;
        let positives = labels.regroup(examples.n_labels, |row, &label| (label, row));
        let fit_sample = FitSample::new(examples.len());
        Ok(Self {
            positive_weights: positive_weights(&positives, examples.len(), tail_weight)?,
            positives,
            fit_sample,
            distinct: DistinctRows::new(examples, |row| fit_sample.contains(row)),
            scaled: Mutex::default(),
        })
    }

    fn rows<'a>(&self, examples: &'a Examples, power: f64) -> ScorerRows<'a> {
        let mut kept = self.scaled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.take().filter(|values| values.idf_power == power);
        let values = known.unwrap_or_else(|| ScaledValues::new(examples, power).into());
        *kept = Some(Arc::clone(&values));
        ScorerRows::with_values(examples, values)
    }
}

/// Trains scorers, step by step.
pub struct Trainer<'a> {
    pub params: ScorerParams,
    pub examples: &'a Examples,
    pub data: &'a TrainingData,
    pub control: &'a Control,
    /// What [`with_threads`](crate::threads::with_threads) says.
    pub is_parallel: bool,
}

/// How problems are solved.
#[derive(Debug, Clone, Copy)]
struct Round {
    power: f64,
    cost: f64,
    /// Whether they are solved to the end; the dual variables are kept of the others.
    is_last: bool,
    /// Whether they are a sample, beside the round that progress is counted in.
    is_sample: bool,
}

impl Trainer<'_> {
    /// All steps, on this machine.
    pub fn train(&self, candidates: Candidates) -> Result<OneAgainstSome> {
        let mut state = self.start(candidates);
        for _ in Step::all(&self.params) {
            let work = self.work(&state, Block::ALL)?;
            state = self.advance(state, vec![work])?;
        }
        self.finish(state)
    }

    /// What the first step begins with.
    pub fn start(&self, candidates: Candidates) -> TrainingState {
        let ScorerParams {
            n_negatives, seed, ..
        } = self.params;
        let first = first_negatives(self.examples, &candidates.hard, n_negatives, seed);
        let mut state = TrainingState {
            scored: candidates.scored,
            cost: self.params.cost.unwrap_or(COSTS[0]),
            ..TrainingState::default()
        };
        state.negatives.push(first, self.examples.n_labels);
        state
    }

    /// Does a part of the next step.
    pub fn work(&self, state: &TrainingState, block: Block) -> Result<Work> {
        let mut work = Work {
            block,
            ..Work::default()
        };
        let step = self.next_step(state)?;
        match step.round(state) {
            Some(round) => work.solved = self.solve(state, round, block)?,
            None => work.mined = self.mine(state, block)?,
        }
        Ok(work)
    }

    /// Takes in what all blocks have made of the next step.
    pub fn advance(&self, mut state: TrainingState, mut works: Vec<Work>) -> Result<TrainingState> {
        works.sort_unstable_by_key(|work| work.block.number);
        let n = works.len();
        let blocks = works.iter().map(|work| work.block);
        if !blocks.eq((0..n).map(|number| Block {
            number,
            n_blocks: n,
        })) {
            return Err(Error::data("the parts of a step are not all blocks"));
        }
        let step = self.next_step(&state)?;
        state.n_done += 1;
        let Some(round) = step.round(&state) else {
            state
                .negatives
                .push(self.mined(&works)?, self.examples.n_labels);
            state.index = ShortIndex::default();
            return Ok(state);
        };
        let solved = works.into_iter().map(|work| work.solved);
        let solved = Solved::of_blocks(solved.collect(), self.examples.n_labels)?;
        if round.is_sample {
            let gain = self.gain(&state, round, &solved)?;
            let clear = if round.is_last {
                CLEAR_GAIN_OF_COST
            } else {
                CLEAR_GAIN
            };
            if state.solved.is_empty() || gain > clear * state.gain {
                state.power = round.power;
                state.cost = round.cost;
                state.gain = gain;
                state.solved = solved;
            }
            return Ok(state);
        }
        // The sample is not solved again.
        state.solved.add(solved);
        if !round.is_last {
            state.duals = state.solved.take_duals();
            state.index = ShortIndex::new(state.solved.scorers(), self.examples.width - 1);
            state.solved = Solved::default();
        }
        Ok(state)
    }

    /// The model, after the last step.
    pub fn finish(&self, mut state: TrainingState) -> Result<OneAgainstSome> {
        let solved = std::mem::take(&mut state.solved);
        let missing = self.examples.labels.entries().iter();
        if let Some(label) = missing.copied().find(|&label| !solved.has(label as usize)) {
            return Err(Error::data(format!(
                "the scorer of label {label} is missing"
            )));
        }
        let rows = self.data.rows(self.examples, state.power);
        let (mut model, fit_rows) = self.model(&rows, solved, &state.scored)?;
        model.join = fit(&fit_rows).join;
        model.calibration = Calibration::fit(&fit_rows, model.join, self.examples.n_labels);
        (model.idf_power, model.cost) = (state.power, state.cost);
        Ok(model)
    }

    /// An error where all steps are done.
    fn next_step(&self, state: &TrainingState) -> Result<Step> {
        let step = Step::all(&self.params).get(state.n_done).copied();
        step.ok_or_else(|| Error::data("all steps are done"))
    }

    /// The problems of a block's labels: of the sample, or of those that were not solved with it.
    fn solve(&self, state: &TrainingState, round: Round, block: Block) -> Result<Solved> {
        let rows = self.data.rows(self.examples, round.power);
        let labels = block.labels(self.examples.n_labels);
        let sample = self.sample(round);
        let new_solver = || Solver::new(&rows, &self.data.distinct, ACCURACY);
        let one = |solver: &mut Solver<'_>, at: usize| {
            self.control.tick(usize::from(!round.is_sample))?;
            let label = labels[at];
            let is_meant = if round.is_sample {
                sample.contains(label)
            } else {
                !state.solved.has(label)
            };
            let is_solved = is_meant && !self.data.positives.get(label).is_empty();
            Ok(if is_solved {
                self.solve_one(solver, state, round, label)
            } else {
                SolvedLabel::default()
            })
        };
        let solved = map_with_worker(self.is_parallel, (labels.len(), 1), new_solver, one)?;
        Ok(solved.into())
    }

    fn solve_one(
        &self,
        solver: &mut Solver<'_>,
        state: &TrainingState,
        round: Round,
        label: usize,
    ) -> SolvedLabel {
        let problem = Problem {
            positives: self.data.positives.get(label),
            negatives: &state.negatives.rows(label),
            positive_weight: self.data.positive_weights[label],
            cost: round.cost,
        };
        let seed = mix(self.params.seed ^ (label as u64 + 1).rotate_left(32));
        solver.accuracy = if round.is_last {
            ACCURACY
        } else {
            FIRST_ACCURACY
        };
        let duals = state.duals.get(label).map_or(&[][..], Vec::as_slice);
        solver.solve(&problem, duals, seed);
        let mut solved = SolvedLabel {
            is_solved: true,
            scorer: solver.scorer(self.params.weight_threshold),
            ..SolvedLabel::default()
        };
        if !round.is_last {
            solved.duals = solver.duals();
        }
        if round.is_last || round.is_sample {
            solver.accuracy = ACCURACY;
            let is_out = |row| self.data.fit_sample.contains(row);
            solved.held_out = solver.solve_without(&problem, is_out, seed);
        }
        solved
    }

    /// The labels that a block's rows become negative examples of.
    fn mine(&self, state: &TrainingState, block: Block) -> Result<Ragged<u32>> {
        let rows = self.data.rows(self.examples, state.power);
        let which = block.rows(self.examples.len());
        let new_miner = || Miner::new(&state.index, &rows);
        let one = |miner: &mut Miner<'_>, at: usize| {
            let row = which.start + at as u32;
            if row.is_multiple_of(1 << 12) {
                self.control.check()?;
            }
            let is_known = |label| state.negatives.contains(row, label);
            Ok(miner.mine(row, self.params.n_negatives, is_known))
        };
        let mined = map_with_worker(self.is_parallel, (which.len(), 256), new_miner, one)?;
        let mut lists = Ragged::with_capacity(mined.len(), mined.iter().map(Vec::len).sum());
        mined.into_iter().for_each(|labels| lists.push(labels));
        Ok(lists)
    }

    /// The labels that all rows become negative examples of.
    fn mined(&self, works: &[Work]) -> Result<Ragged<u32>> {
        let mut all = Ragged::default();
        for Work { mined, .. } in works {
            (0..mined.len()).for_each(|row| all.push(mined.get(row).iter().copied()));
        }
        if all.len() == self.examples.len() {
            Ok(all)
        } else {
            Err(Error::data("a part of the rows is missing"))
        }
    }

    /// The labels that powers, or costs, are compared by.
    fn sample(&self, round: Round) -> LabelSample {
        let most_step = if round.is_last {
            MOST_STEP_OF_COST
        } else {
            MOST_STEP
        };
        LabelSample::new(self.params.seed, self.examples.n_labels, most_step)
    }

    /// What the scorers of a sample are worth on the rows of the fit.
    fn gain(&self, state: &TrainingState, round: Round, solved: &Solved) -> Result<f64> {
        let sample = self.sample(round);
        let mut scored = Ragged::default();
        for i in 0..state.scored.len() {
            let labels = state.scored.get(i).iter().copied();
            scored.push(labels.filter(|&(label, _)| sample.contains(label as usize)));
        }
        let rows = self.data.rows(self.examples, round.power);
        let (_, fit_rows) = self.model(&rows, solved.clone(), &scored)?;
        Ok(fit(&fit_rows).gain)
    }

    /// The model of the scorers, without join and calibration, and the rows to fit these on.
    fn model(
        &self,
        rows: &ScorerRows<'_>,
        mut solved: Solved,
        scored: &Ragged<(u32, f32)>,
    ) -> Result<(OneAgainstSome, Vec<FitRow>)> {
        solved.unscale(rows);
        let model = OneAgainstSome::new(solved.scorers(), self.examples)?;
        let sample = self.data.fit_sample;
        let fit_rows = sample.read(&model, self.examples, scored, solved.held_out());
        Ok((model, fit_rows))
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
