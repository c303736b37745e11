//! From held-out trees to scorers and their join.

use super::super::params::Params;
use super::calibration::Calibration;
use super::fit_rows::ScoredLabels;
use super::join_fit::{fit, FitRow};
use super::label_problems::{HeldOutMargins, LabelProblems, Round, Solved};
use super::mining::{Miner, ShortIndex};
use super::negatives::{negatives, Negatives};
use super::out_of_sample::OutOfSample;
use super::scorer_rows::ScorerRows;
use super::scorers::OneAgainstSome;
use super::svm::Scorer;
use crate::alloc::collect;
use crate::error::Result;
use crate::random::mix;
use crate::threads::{map_with_worker, with_threads};

/// What `idf_power` becomes where it is not given: long texts gain much by 1, short ones lose.
const IDF_POWERS: [f64; 2] = [0.0, 1.0];
/// By what factor 1 must rank held-out rows better than 0: the first round, in which they are
/// compared, flatters 1, since its few negatives leave frequent features too much weight, and a
/// sample of the labels does so as well. With mined negatives gains of some per cent turn into
/// losses.
const CLEAR_GAIN: f64 = 1.1;
/// What `cost` becomes where it is not given: few features and noisy labels want less. They are
/// compared in the last round, by scorers as they will be used.
const COSTS: [f64; 2] = [1.0, 0.25];
/// By what factor 1/4 must rank held-out rows better than 1. These rows have few trees that do not
/// know them, so better scorers count for more there than they will with all trees.
const CLEAR_GAIN_OF_COST: f64 = 1.04;
/// How often negatives are mined.
const MINING_ROUNDS: usize = 2;
/// How often the labels are gone through.
pub const N_ROUNDS: usize = 1 + MINING_ROUNDS;

/// Labels that are compared on at least, about, where there are so many.
const LEAST_SAMPLED: usize = 256;
/// At least one label in so many is taken to compare powers, and costs: the sample is a smaller
/// problem of the same kind.
pub const MOST_STEP: usize = 4;
const MOST_STEP_OF_COST: usize = 16;

/// Trains the scorers, on `n_threads` threads; they do not depend on their number.
pub fn train(
    params: &Params,
    source: &OutOfSample<'_>,
    n_threads: usize,
) -> Result<OneAgainstSome> {
    with_threads(n_threads, |is_parallel| {
        Training(LabelProblems::new(params, source, is_parallel)?).run()
    })?
}

/// The labels by which `idf_power` and `cost` are chosen: one in so many, by their hash.
#[derive(Debug, Clone, Copy)]
pub struct LabelSample {
    step: u64,
    seed: u64,
}

impl LabelSample {
    /// At least one label in `most_step`.
    pub fn new(params: &Params, n_labels: usize, most_step: usize) -> Self {
        Self {
            step: (n_labels / LEAST_SAMPLED).clamp(1, most_step) as u64,
            seed: params.seed.rotate_left(7),
        }
    }

    pub fn contains(self, label: usize) -> bool {
        mix(label as u64 ^ self.seed).is_multiple_of(self.step)
    }

    /// The sampled labels of each list.
    fn only(self, lists: &[ScoredLabels]) -> Vec<ScoredLabels> {
        let is_sampled = |&&(label, _): &&(u32, f32)| self.contains(label as usize);
        let lists = lists.iter();
        collect(lists.map(|list| list.iter().filter(is_sampled).copied().collect()))
    }
}

/// Of the scorers.
struct Training<'a>(LabelProblems<'a>);

impl Training<'_> {
    fn run(&self) -> Result<OneAgainstSome> {
        let Self(problems) = self;
        let n_labels = problems.source.examples.n_labels;
        let mut negatives = Negatives::default();
        negatives.push(self.first_negatives()?, n_labels);
        let by_trees = problems
            .fit_sample
            .by_trees(problems.source, problems.is_parallel)?;
        let (rows, mut solved) = self.first_round(&negatives, &by_trees)?;
        for round in 1..=MINING_ROUNDS {
            let index = ShortIndex::new(&solved.scorers, rows.n_features());
            solved.scorers = Vec::new();
            negatives.push(self.mine(&rows, &index, &negatives)?, n_labels);
            if round < MINING_ROUNDS {
                let how = self.first(false);
                solved = problems.solve(&rows, &negatives, &solved.duals, how, |_| true)?;
            }
        }
        let (cost, solved) = self.last_round(&rows, &negatives, &solved.duals, &by_trees)?;
        drop(negatives);
        let Solved {
            scorers, held_out, ..
        } = solved;
        let (mut model, fit_rows, _) = self.joined(&rows, scorers, &held_out, &by_trees);
        model.set_calibration(Calibration::fit(&fit_rows, model.join(problems.params)));
        model.set_trained_with(rows.idf_power, cost);
        Ok(model)
    }

    /// How rounds before the last one are solved.
    fn first(&self, is_sample: bool) -> Round {
        let Self(problems) = self;
        Round {
            cost: problems.params.cost.unwrap_or(COSTS[0]),
            is_last: false,
            is_sample,
            is_judged: is_sample,
        }
    }

    /// The first round, and the rows with the scales that rank the labels of held-out rows better,
    /// the smaller if the larger are not clearly better.
    fn first_round(
        &self,
        negatives: &Negatives,
        by_trees: &[ScoredLabels],
    ) -> Result<(ScorerRows<'_>, Solved)> {
        let Self(problems) = self;
        let (sample, by_trees) = self.sample(MOST_STEP, by_trees);
        let scaled = |power| ScorerRows::new(problems.source.examples, power);
        let solve = |rows: &ScorerRows<'_>, how, is_meant: &(dyn Fn(usize) -> bool + Sync)| {
            problems.solve(rows, negatives, &[], how, is_meant)
        };
        let (rows, mut solved) = match problems.params.idf_power {
            Some(power) => (scaled(power), Solved::default()),
            None => best_of(IDF_POWERS.into_iter().map(scaled), CLEAR_GAIN, |rows| {
                let solved = solve(rows, self.first(true), &|label| sample.contains(label))?;
                let gain = self.gain(rows, &solved, &by_trees);
                Ok((solved, gain))
            })?,
        };
        let rest = solve(&rows, self.first(false), &|label| !solved.has(label))?;
        solved.add(rest);
        Ok((rows, solved))
    }

    /// The last round, and the C that ranks the labels of held-out rows best.
    fn last_round(
        &self,
        rows: &ScorerRows<'_>,
        negatives: &Negatives,
        duals: &[Vec<f32>],
        by_trees: &[ScoredLabels],
    ) -> Result<(f64, Solved)> {
        let Self(problems) = self;
        let (sample, by_trees) = self.sample(MOST_STEP_OF_COST, by_trees);
        let solve = |cost, is_sample, is_meant: &(dyn Fn(usize) -> bool + Sync)| {
            let how = Round {
                cost,
                is_last: true,
                is_sample,
                is_judged: true,
            };
            problems.solve(rows, negatives, duals, how, is_meant)
        };
        let (cost, mut solved) = match problems.params.cost {
            Some(cost) => (cost, Solved::default()),
            None => best_of(COSTS, CLEAR_GAIN_OF_COST, |&cost| {
                let solved = solve(cost, true, &|label| sample.contains(label))?;
                let gain = self.gain(rows, &solved, &by_trees);
                Ok((solved, gain))
            })?,
        };
        let rest = solve(cost, false, &|label| !solved.has(label))?;
        solved.add(rest);
        Ok((cost, solved))
    }

    /// A sample of the labels, and these of what trees find for the rows of the fit.
    fn sample(
        &self,
        most_step: usize,
        by_trees: &[ScoredLabels],
    ) -> (LabelSample, Vec<ScoredLabels>) {
        let Self(problems) = self;
        let n_labels = problems.source.examples.n_labels;
        let sample = LabelSample::new(problems.params, n_labels, most_step);
        (sample, sample.only(by_trees))
    }

    /// What the scorers are worth on the rows of the fit.
    fn gain(&self, rows: &ScorerRows<'_>, solved: &Solved, by_trees: &[ScoredLabels]) -> f64 {
        let (_, _, gain) = self.joined(rows, solved.scorers.clone(), &solved.held_out, by_trees);
        gain
    }

    /// The model of the scorers, joined to the trees, the rows of the fit and its gain.
    fn joined(
        &self,
        rows: &ScorerRows<'_>,
        mut scorers: Vec<Option<Scorer>>,
        held_out: &[HeldOutMargins],
        by_trees: &[ScoredLabels],
    ) -> (OneAgainstSome, Vec<FitRow>, f64) {
        let Self(problems) = self;
        let known = scorers.iter_mut().flatten();
        known.for_each(|scorer| rows.unscale(scorer));
        let mut model = OneAgainstSome::new(&scorers, rows.examples);
        drop(scorers);
        let sample = problems.fit_sample;
        let fit_rows = sample.read(&model, problems.source, by_trees, held_out);
        let weight = problems.params.scorer_weight.map(|weight| weight as f32);
        let (join, gain) = fit(&fit_rows, weight);
        model.set_join(join);
        (model, fit_rows, gain)
    }

    /// The labels that each row is a negative example of in the first round.
    fn first_negatives(&self) -> Result<Vec<Vec<u32>>> {
        let Self(problems) = self;
        let examples = problems.source.examples;
        let all: Vec<u32> = collect(0..examples.len() as u32);
        let of_row = |row, scores: &_| negatives(examples, row, scores, problems.params);
        problems.source.map(&all, problems.is_parallel, of_row)
    }

    /// The labels that each row becomes a negative example of in the next round.
    fn mine(
        &self,
        rows: &ScorerRows<'_>,
        index: &ShortIndex,
        known: &Negatives,
    ) -> Result<Vec<Vec<u32>>> {
        let Self(problems) = self;
        let n = problems.params.n_mined_negatives as usize;
        let new_miner = || Miner::new(index, rows);
        let one = |miner: &mut Miner<'_>, row: usize| {
            let row = row as u32;
            if row.is_multiple_of(1 << 12) {
                problems.source.control.check()?;
            }
            Ok(miner.mine(row, n, |label| known.contains(row, label)))
        };
        map_with_worker(
            problems.is_parallel,
            (rows.examples.len(), 256),
            new_miner,
            one,
        )
    }
}

/// The best candidate and its scorers, by their gain. A later one must exceed the gain of the one
/// before by the factor `clear`; the first that does not ends the search.
pub fn best_of<C>(
    candidates: impl IntoIterator<Item = C>,
    clear: f64,
    measure: impl Fn(&C) -> Result<(Solved, f64)>,
) -> Result<(C, Solved)> {
    let mut best: Option<(C, Solved, f64)> = None;
    for candidate in candidates {
        let (solved, gain) = measure(&candidate)?;
        if best.as_ref().is_some_and(|best| gain <= clear * best.2) {
            break;
        }
        best = Some((candidate, solved, gain));
    }
    let (candidate, solved, _) = best.expect("there is a candidate");
    Ok((candidate, solved))
}
