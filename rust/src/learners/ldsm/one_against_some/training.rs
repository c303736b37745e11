//! From held-out trees to scorers and their join.

use rayon::prelude::*;

use super::super::params::Params;
use super::calibration::Calibration;
use super::fit_rows::ScoredLabels;
use super::join_fit::{fit, FitRow};
use super::label_problems::{Keep, LabelProblems, Solved};
use super::mining::{Miner, ShortIndex};
use super::negatives::{negatives, Negatives};
use super::out_of_sample::OutOfSample;
use super::scorer_rows::ScorerRows;
use super::scorers::OneAgainstSome;
use crate::error::Result;
use crate::random::mix;
use crate::threads::with_threads;

/// What `idf_power` becomes where it is not given: long texts gain much by 1, short ones lose.
const IDF_POWERS: [f64; 2] = [0.0, 1.0];
/// By what factor 1 must rank held-out rows better than 0: the first round, in which they are
/// compared, flatters 1, since its few negatives leave frequent features too much weight, and a
/// sample of the labels does so as well. With mined negatives gains of some per cent turn into
/// losses.
const CLEAR_GAIN: f64 = 1.1;
/// How often negatives are mined.
const MINING_ROUNDS: usize = 2;

/// Labels that the powers are compared on at least, about, where there are so many.
const LEAST_SAMPLED: usize = 256;
/// At most one label in so many is left: the sample is a smaller problem of the same kind.
const MOST_STEP: usize = 4;

/// How often the labels are gone through.
pub fn n_rounds(params: &Params) -> usize {
    let n_compared = params.idf_power.map_or(IDF_POWERS.len(), |_| 0);
    n_compared + 1 + MINING_ROUNDS
}

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

/// The labels by which `idf_power` is chosen: one in so many, by their hash.
#[derive(Debug, Clone, Copy)]
pub struct LabelSample {
    step: u64,
    seed: u64,
}

impl LabelSample {
    pub fn new(params: &Params, n_labels: usize) -> Self {
        Self {
            step: (n_labels / LEAST_SAMPLED).clamp(1, MOST_STEP) as u64,
            seed: params.seed.rotate_left(7),
        }
    }

    pub fn contains(self, label: usize) -> bool {
        mix(label as u64 ^ self.seed).is_multiple_of(self.step)
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
            let keep = Keep {
                duals: round < MINING_ROUNDS,
                held_out: round == MINING_ROUNDS,
            };
            solved = problems.solve(&rows, &negatives, &solved.duals, keep, |_| true)?;
        }
        drop(negatives);
        let (mut model, fit_rows, _) = self.joined(&rows, solved, &by_trees);
        model.set_calibration(Calibration::fit(&fit_rows, model.join(problems.params)));
        model.set_idf_power(rows.idf_power);
        Ok(model)
    }

    /// The scaled rows and the first round.
    fn first_round(
        &self,
        negatives: &Negatives,
        by_trees: &[ScoredLabels],
    ) -> Result<(ScorerRows<'_>, Solved)> {
        let Self(problems) = self;
        let (power, rows, mut solved) = match problems.params.idf_power {
            Some(power) => (power, None, Solved::default()),
            None => self.fitted_power(negatives, by_trees)?,
        };
        let rows = rows.unwrap_or_else(|| ScorerRows::new(problems.source.examples, power));
        let keep = Keep {
            duals: true,
            held_out: false,
        };
        let is_solved = |label: usize| solved.scorers.get(label).is_some_and(Option::is_some);
        let rest = problems.solve(&rows, negatives, &[], keep, |label| !is_solved(label))?;
        solved.add(rest);
        Ok((rows, solved))
    }

    /// The power with which the labels of held-out rows are ranked better, the smaller if the
    /// larger is not clearly better, with its rows and the scorers of the labels that it is
    /// chosen by.
    fn fitted_power(
        &self,
        negatives: &Negatives,
        by_trees: &[ScoredLabels],
    ) -> Result<(f64, Option<ScorerRows<'_>>, Solved)> {
        let Self(problems) = self;
        let sample = LabelSample::new(problems.params, problems.source.examples.n_labels);
        let keep_sampled = |scored: &ScoredLabels| -> ScoredLabels {
            let scored = scored.iter().copied();
            scored
                .filter(|&(label, _)| sample.contains(label as usize))
                .collect()
        };
        let by_trees: Vec<ScoredLabels> = by_trees.iter().map(keep_sampled).collect();
        let keep = Keep {
            duals: true,
            held_out: true,
        };
        let mut best = None;
        let mut most = 0.0;
        for power in IDF_POWERS {
            let rows = ScorerRows::new(problems.source.examples, power);
            let is_sampled = |label| sample.contains(label);
            let mut solved = problems.solve(&rows, negatives, &[], keep, is_sampled)?;
            let judged = Solved {
                scorers: solved.scorers.clone(),
                held_out: std::mem::take(&mut solved.held_out),
                ..Solved::default()
            };
            let (_, _, gain) = self.joined(&rows, judged, &by_trees);
            if best.is_none() || gain > CLEAR_GAIN * most {
                (best, most) = (Some((power, Some(rows), solved)), gain);
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
        let Self(problems) = self;
        let scorers = solved.scorers.iter_mut().flatten();
        scorers.for_each(|scorer| rows.unscale(scorer));
        let mut model = OneAgainstSome::new(&solved.scorers, rows.examples);
        solved.scorers = Vec::new();
        let sample = problems.fit_sample;
        let fit_rows = sample.read(&model, problems.source, by_trees, &solved.held_out);
        let weight = problems.params.scorer_weight.map(|weight| weight as f32);
        let (join, gain) = fit(&fit_rows, weight);
        model.set_join(join);
        (model, fit_rows, gain)
    }

    /// The labels that each row is a negative example of in the first round.
    fn first_negatives(&self) -> Result<Vec<Vec<u32>>> {
        let Self(problems) = self;
        let examples = problems.source.examples;
        let all: Vec<u32> = (0..examples.len() as u32).collect();
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
        let one = |miner: &mut Miner<'_>, row: u32| {
            if row.is_multiple_of(1 << 12) {
                problems.source.control.check()?;
            }
            Ok(miner.mine(row, n, |label| known.contains(row, label)))
        };
        let numbers = 0..rows.examples.len() as u32;
        if problems.is_parallel {
            let numbers = numbers.into_par_iter().with_min_len(256);
            numbers.map_init(new_miner, one).collect()
        } else {
            let mut miner = new_miner();
            numbers.map(|row| one(&mut miner, row)).collect()
        }
    }
}
