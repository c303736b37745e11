//! From held-out trees to scorers and their join.

use std::ops::Range;

use super::super::params::Params;
use super::calibration::Calibration;
use super::fit_rows::ScoredLabels;
use super::join_fit::{fit, FitRow};
use super::label_problems::{HeldOutMargins, LabelBlock, LabelProblems, Round, Solved};
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
pub const IDF_POWERS: [f64; 2] = [0.0, 1.0];
/// By what factor 1 must rank held-out rows better than 0: the first round, in which they are
/// compared, flatters 1, since its few negatives leave frequent features too much weight, and a
/// sample of the labels does so as well. With mined negatives gains of some per cent turn into
/// losses.
const CLEAR_GAIN: f64 = 1.1;
/// What `cost` becomes where it is not given: few features and noisy labels want less. They are
/// compared in the last round, by scorers as they will be used.
pub const COSTS: [f64; 2] = [1.0, 0.25];
/// By what factor 1/4 must rank held-out rows better than 1. These rows have few trees that do not
/// know them, so better scorers count for more there than they will with all trees.
const CLEAR_GAIN_OF_COST: f64 = 1.04;
/// How often negatives are mined.
pub const MINING_ROUNDS: usize = 2;
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

/// Of the scorers. Where work is done for a part of the rows or labels, all parts together make
/// what is made of all at once, to the bit.
pub struct Training<'a>(pub LabelProblems<'a>);

impl Training<'_> {
    fn run(&self) -> Result<OneAgainstSome> {
        let Self(problems) = self;
        let examples = problems.source.examples;
        let all_rows = 0..examples.len() as u32;
        let all = LabelBlock::all(examples.n_labels);
        let mut negatives = Negatives::default();
        negatives.push(self.first_negatives(all_rows.clone())?, examples.n_labels);
        let by_trees = self.by_trees()?;
        let (rows, mut solved) = self.first_round(&negatives, &by_trees)?;
        for round in 1..=MINING_ROUNDS {
            let index = ShortIndex::new(&solved.scorers, rows.n_features());
            solved.scorers = Vec::new();
            let mined = self.mine(&rows, &index, &negatives, all_rows.clone())?;
            negatives.push(mined, examples.n_labels);
            if round < MINING_ROUNDS {
                let (how, known) = (self.first(false), Solved::default());
                solved = self.solve(&rows, &negatives, &solved.duals, how, all, known)?;
            }
        }
        let (cost, solved) = self.last_round(&rows, &negatives, &solved.duals, &by_trees)?;
        drop(negatives);
        Ok(self.finish(&rows, cost, solved, &by_trees))
    }

    /// How rounds before the last one are solved.
    pub fn first(&self, is_sample: bool) -> Round {
        let Self(problems) = self;
        Round {
            cost: problems.params.cost.unwrap_or(COSTS[0]),
            is_last: false,
            is_sample,
        }
    }

    /// What trees find for the rows of the fit.
    pub fn by_trees(&self) -> Result<Vec<ScoredLabels>> {
        let Self(problems) = self;
        let sample = problems.fit_sample;
        sample.by_trees(problems.source, problems.is_parallel)
    }

    /// The problems of a block: of the sample that `round` is of, or of all labels that are not
    /// `known`, to which they are added.
    pub fn solve(
        &self,
        rows: &ScorerRows<'_>,
        negatives: &Negatives,
        duals: &[Vec<f32>],
        round: Round,
        block: LabelBlock,
        mut known: Solved,
    ) -> Result<Solved> {
        let Self(problems) = self;
        let sample = self.sample(round.is_last);
        let is_meant = |at| {
            if round.is_sample {
                sample.contains(block.label(at))
            } else {
                !known.has(at)
            }
        };
        let solved = problems.solve(rows, negatives, duals, round, block, is_meant)?;
        known.add(solved);
        Ok(known)
    }

    /// The first round, and the rows with the scales that rank the labels of held-out rows better,
    /// the smaller if the larger are not clearly better.
    fn first_round(
        &self,
        negatives: &Negatives,
        by_trees: &[ScoredLabels],
    ) -> Result<(ScorerRows<'_>, Solved)> {
        let Self(problems) = self;
        let examples = problems.source.examples;
        let all = LabelBlock::all(examples.n_labels);
        let scaled = |power| ScorerRows::new(examples, power);
        let (rows, known) = match problems.params.idf_power {
            Some(power) => (scaled(power), Solved::default()),
            None => best_of(IDF_POWERS, CLEAR_GAIN, |power| {
                let (rows, how) = (scaled(power), self.first(true));
                let solved = self.solve(&rows, negatives, &[], how, all, Solved::default())?;
                let gain = self.gain(&rows, &solved, by_trees, how);
                Ok(((rows, solved), gain))
            })?,
        };
        let solved = self.solve(&rows, negatives, &[], self.first(false), all, known)?;
        Ok((rows, solved))
    }

    /// Which of [`IDF_POWERS`] is taken, by what the first round makes of the sample with each.
    pub fn best_power<'r>(
        &self,
        of_powers: Vec<Solved>,
        by_trees: &[ScoredLabels],
        scaled: impl Fn(f64) -> ScorerRows<'r>,
    ) -> Result<usize> {
        let candidates = IDF_POWERS.into_iter().zip(of_powers).enumerate();
        best_of(candidates, CLEAR_GAIN, |(number, (power, solved))| {
            let gain = self.gain(&scaled(power), &solved, by_trees, self.first(true));
            Ok((number, gain))
        })
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
        let all = LabelBlock::all(problems.source.examples.n_labels);
        let (cost, known) = match problems.params.cost {
            Some(cost) => (cost, Solved::default()),
            None => best_of(COSTS, CLEAR_GAIN_OF_COST, |cost| {
                let how = last(cost, true);
                let solved = self.solve(rows, negatives, duals, how, all, Solved::default())?;
                let gain = self.gain(rows, &solved, by_trees, how);
                Ok(((cost, solved), gain))
            })?,
        };
        let solved = self.solve(rows, negatives, duals, last(cost, false), all, known)?;
        Ok((cost, solved))
    }

    /// Which of [`COSTS`] is taken, by what the last round makes of the sample with each.
    pub fn best_cost(
        &self,
        rows: &ScorerRows<'_>,
        of_costs: Vec<Solved>,
        by_trees: &[ScoredLabels],
    ) -> Result<usize> {
        let candidates = COSTS.into_iter().zip(of_costs).enumerate();
        best_of(
            candidates,
            CLEAR_GAIN_OF_COST,
            |(number, (cost, solved))| {
                Ok((number, self.gain(rows, &solved, by_trees, last(cost, true))))
            },
        )
    }

    /// The model of the last round's scorers.
    pub fn finish(
        &self,
        rows: &ScorerRows<'_>,
        cost: f64,
        solved: Solved,
        by_trees: &[ScoredLabels],
    ) -> OneAgainstSome {
        let Self(problems) = self;
        let Solved {
            scorers, held_out, ..
        } = solved;
        let (mut model, fit_rows, _) = self.joined(rows, scorers, &held_out, by_trees);
        let (join, n_labels) = (
            model.join(problems.params),
            problems.source.examples.n_labels,
        );
        model.set_calibration(Calibration::fit(&fit_rows, join, n_labels));
        model.set_trained_with(rows.idf_power(), cost);
        model
    }

    /// The labels that powers, or in the last round costs, are compared by.
    fn sample(&self, is_last: bool) -> LabelSample {
        let Self(problems) = self;
        let most_step = if is_last {
            MOST_STEP_OF_COST
        } else {
            MOST_STEP
        };
        let n_labels = problems.source.examples.n_labels;
        LabelSample::new(problems.params, n_labels, most_step)
    }

    /// What the scorers of a sample are worth on the rows of the fit.
    fn gain(
        &self,
        rows: &ScorerRows<'_>,
        solved: &Solved,
        by_trees: &[ScoredLabels],
        round: Round,
    ) -> f64 {
        let by_trees = self.sample(round.is_last).only(by_trees);
        let (_, _, gain) = self.joined(rows, solved.scorers.clone(), &solved.held_out, &by_trees);
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

    /// The labels that each of these rows is a negative example of in the first round.
    pub fn first_negatives(&self, rows: Range<u32>) -> Result<Vec<Vec<u32>>> {
        let Self(problems) = self;
        let examples = problems.source.examples;
        let rows: Vec<u32> = collect(rows);
        let of_row = |row, scores: &_| negatives(examples, row, scores, problems.params);
        problems.source.map(&rows, problems.is_parallel, of_row)
    }

    /// The labels that each of the rows `which` becomes a negative example of in the next round.
    pub fn mine(
        &self,
        rows: &ScorerRows<'_>,
        index: &ShortIndex,
        known: &Negatives,
        which: Range<u32>,
    ) -> Result<Vec<Vec<u32>>> {
        let Self(problems) = self;
        let n = problems.params.n_mined_negatives as usize;
        let new_miner = || Miner::new(index, rows);
        let one = |miner: &mut Miner<'_>, at: usize| {
            let row = which.start + at as u32;
            if row.is_multiple_of(1 << 12) {
                problems.source.control.check()?;
            }
            Ok(miner.mine(row, n, |label| known.contains(row, label)))
        };
        let numbers = (which.len(), 256);
        map_with_worker(problems.is_parallel, numbers, new_miner, one)
    }
}

/// How the last round is solved.
pub fn last(cost: f64, is_sample: bool) -> Round {
    Round {
        cost,
        is_last: true,
        is_sample,
    }
}

/// What is made of the best candidate, by its gain. A later one must exceed the gain of the one
/// before by the factor `clear`; the first that does not ends the search.
pub fn best_of<C, M>(
    candidates: impl IntoIterator<Item = C>,
    clear: f64,
    measure: impl Fn(C) -> Result<(M, f64)>,
) -> Result<M> {
    let mut best: Option<(M, f64)> = None;
    for candidate in candidates {
        let (made, gain) = measure(candidate)?;
        if best.as_ref().is_some_and(|best| gain <= clear * best.1) {
            break;
        }
        best = Some((made, gain));
    }
    let (made, _) = best.expect("there is a candidate");
    Ok(made)
}
