//! A training in steps that share nothing but the examples, for many machines: each makes a
//! [`Part`] of others, for some trees, rows or labels. All of them make the model that
//! [`fit`](crate::classifier::Classifier::fit) makes, to the bit, in whatever order they are done.
//!
//! ```text
//! trees of some numbers -> join_trees -> first_negatives of some rows -> join_negatives
//!                             |       -> candidates                            |
//!   solve some labels: a sample with each power -> best_power -> the others  <-'
//!   twice: index of all scorers -> mine some rows -> join_negatives -> solve some labels, the
//!     second time a sample with each cost -> best_cost -> the others
//! all of these -> model
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::ensemble::Ldsm;
use super::one_against_some::label_problems::{LabelBlock, LabelProblems, Solved};
use super::one_against_some::mining::ShortIndex;
use super::one_against_some::negatives::{Negatives, NegativesRound};
use super::one_against_some::svm::Scorer;
use super::one_against_some::training::{last, Training, COSTS, IDF_POWERS, MINING_ROUNDS};
use super::one_against_some::OutOfSample;
use super::params::{Params, Scorers};
use super::parts::{Part, ScoredRows};
use super::training_set::TrainingSet;
use super::tree::Tree;
use crate::classifier::Learner;
use crate::control::Control;
use crate::data::Ragged;
use crate::error::{Error, Result};
use crate::threads::with_threads;

/// How many times steps of scorers are to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Powers that are compared in the first round; 1: there is no choice.
    pub n_powers: usize,
    /// Costs that are compared in the last round, likewise.
    pub n_costs: usize,
    /// Rounds after the first.
    pub n_mining_rounds: usize,
}

impl Plan {
    /// None where there are no scorers.
    pub fn of(params: &Params) -> Option<Self> {
        let n = |n, is_given| if is_given { 1 } else { n };
        (params.scorers == Scorers::OneAgainstSome).then(|| Self {
            n_powers: n(IDF_POWERS.len(), params.idf_power.is_some()),
            n_costs: n(COSTS.len(), params.cost.is_some()),
            n_mining_rounds: MINING_ROUNDS,
        })
    }
}

/// How a step runs.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Threads; the outcome does not depend on them.
    pub n_threads: usize,
    /// Interruption.
    pub control: &'a Control,
}

/// One of so many blocks of rows, or of labels.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Of the block, from 0.
    pub number: usize,
    /// Of which together are all.
    pub n_blocks: usize,
}

/// Which problems of a block of labels are solved, and how.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Number of the power that rows are scaled by.
    pub power: usize,
    /// In the last round, the number of the cost.
    pub cost: Option<usize>,
    /// Whether only the sample is solved that powers, or costs, are compared by.
    pub is_sample: bool,
}

impl TrainingSet {
    /// The trees of these numbers.
    pub fn trees(&self, numbers: &[usize], run: Run<'_>) -> Result<Part> {
        let mut model = self.empty_model()?;
        model.trees = self.grow_trees(numbers, run.n_threads, run.control)?;
        Ok(Part::Trees(model.into()))
    }

    /// All trees, from parts in their order.
    pub fn join_trees(&self, parts: &[&Part]) -> Result<Part> {
        let mut model = self.empty_model()?;
        for part in parts {
            model.trees.extend_from_slice(trees(part)?);
        }
        self.check_trees(model.trees.len())?;
        Ok(Part::Trees(model.into()))
    }

    /// The labels that a block of rows are negative examples of in the first round.
    pub fn first_negatives(&self, all: &Part, block: Block, run: Run<'_>) -> Result<Part> {
        let found = self.training(trees(all)?, run, |training| {
            training.first_negatives(self.rows_of(block))
        })?;
        Ok(Part::NegativesOfRows(ragged(found)))
    }

    /// Those of all rows in a round, from parts in their order.
    pub fn join_negatives(&self, parts: &[&Part]) -> Result<Part> {
        let mut labels = Ragged::default();
        for part in parts {
            let Part::NegativesOfRows(lists) = part else {
                return Err(part.unexpected());
            };
            (0..lists.len()).for_each(|row| labels.push(lists.get(row).iter().copied()));
        }
        if labels.len() != self.examples.len() {
            return Err(Error::data("a part of the rows is missing"));
        }
        let round = NegativesRound::new(labels, self.examples.n_labels);
        Ok(Part::Negatives(round.into()))
    }

    /// What the trees find for the rows that the join is fitted on.
    pub fn candidates(&self, all: &Part, run: Run<'_>) -> Result<Part> {
        let found = self.training(trees(all)?, run, by_trees)?;
        Ok(Part::Candidates(found))
    }

    /// The scorers of a block of labels and their dual variables, which begin with those of the
    /// round before, if there was one. What is `known` of a sample stays as it is.
    pub fn solve(
        &self,
        choice: Choice,
        negatives: &[&Part],
        duals: Option<&Part>,
        known: Option<(&Part, &Part)>,
        block: Block,
        run: Run<'_>,
    ) -> Result<(Part, Part)> {
        let negatives = rounds(negatives)?;
        let block = LabelBlock::new(block.number, block.n_blocks, self.examples.n_labels);
        let known = known.map_or(Ok(Solved::default()), |(scorers, duals)| {
            let solved = block_of(scorers)?.1.clone();
            Ok(Solved {
                duals: duals_of(duals)?.to_vec(),
                ..solved
            })
        })?;
        let before = duals.map_or(Ok(&[][..]), duals_of)?;
        let rows = self.scorer_rows(self.power(choice.power), !choice.is_sample);
        let mut solved = self.training(&[], run, |training| {
            let how = match choice.cost {
                None => training.first(choice.is_sample),
                Some(number) => last(self.cost(number), choice.is_sample),
            };
            training.solve(&rows, &negatives, before, how, block, known)
        })?;
        let duals = std::mem::take(&mut solved.duals);
        Ok((Part::Scorers(block, solved), Part::Duals(duals)))
    }

    /// The number of the power that is taken: for each power what was solved of a sample.
    pub fn best_power(
        &self,
        of_powers: &[Vec<&Part>],
        candidates: &Part,
        run: Run<'_>,
    ) -> Result<usize> {
        let of_powers = self.all_of_each(of_powers)?;
        let by_trees = candidates_of(candidates)?;
        self.training(&[], run, |training| {
            training.best_power(of_powers, by_trees, |power| self.scorer_rows(power, false))
        })
    }

    /// The number of the cost that is taken, likewise.
    pub fn best_cost(
        &self,
        power: usize,
        of_costs: &[Vec<&Part>],
        candidates: &Part,
        run: Run<'_>,
    ) -> Result<usize> {
        let of_costs = self.all_of_each(of_costs)?;
        let by_trees = candidates_of(candidates)?;
        let rows = self.scorer_rows(self.power(power), true);
        self.training(&[], run, |training| {
            training.best_cost(&rows, of_costs, by_trees)
        })
    }

    /// The scorers of all labels by feature, from the parts of a round.
    pub fn index(&self, parts: &[&Part]) -> Result<Part> {
        let solved = self.all_of(parts)?;
        let index = ShortIndex::new(&solved.scorers, self.examples.width - 1);
        Ok(Part::Index(index.into()))
    }

    /// The labels that a block of rows become negative examples of in the next round.
    pub fn mine(
        &self,
        power: usize,
        index: &Part,
        negatives: &[&Part],
        block: Block,
        run: Run<'_>,
    ) -> Result<Part> {
        let Part::Index(index) = index else {
            return Err(index.unexpected());
        };
        let negatives = rounds(negatives)?;
        let rows = self.scorer_rows(self.power(power), true);
        let found = self.training(&[], run, |training| {
            training.mine(&rows, index, &negatives, self.rows_of(block))
        })?;
        Ok(Part::NegativesOfRows(ragged(found)))
    }

    /// The model: of trees alone, or with the scorers of the last round, the numbers of the
    /// power and the cost, and what the trees find.
    pub fn model(
        &self,
        all: &Part,
        scorers: Option<(&[&Part], (usize, usize), &Part)>,
        run: Run<'_>,
    ) -> Result<Ldsm> {
        let mut model = self.empty_model()?;
        model.trees.extend_from_slice(trees(all)?);
        self.check_trees(model.trees.len())?;
        if scorers.is_some() != (self.params.scorers == Scorers::OneAgainstSome) {
            return Err(Error::data(
                "there are scorers, or none, against the parameters",
            ));
        }
        model.centroids = self.centroids();
        if let Some((parts, (power, cost), candidates)) = scorers {
            let (solved, by_trees) = (self.all_of(parts)?, candidates_of(candidates)?);
            self.check_scorers(&solved.scorers)?;
            let rows = self.scorer_rows(self.power(power), true);
            let made = self.training(&[], run, |training| {
                Ok(training.finish(&rows, self.cost(cost), solved, by_trees))
            })?;
            model.scorers = Some(made);
        }
        Ok(model)
    }

    fn empty_model(&self) -> Result<Ldsm> {
        let mut model = Ldsm::create(self.params.clone(), self.examples.n_labels, true)?;
        model.preparation = Some(self.preparation.clone());
        Ok(model)
    }

    /// What `work` makes of the scorers' training.
    fn training<T: Send>(
        &self,
        trees: &[Tree],
        run: Run<'_>,
        work: impl FnOnce(&Training<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let held_out = self.held_out();
        let source = OutOfSample {
            examples: &self.examples,
            trees,
            held_out: held_out.ok_or_else(|| Error::data("there are to be no scorers"))?,
            control: run.control,
        };
        with_threads(run.n_threads, |is_parallel| {
            let problems = LabelProblems::new(&self.params, &source, is_parallel)?;
            work(&Training(problems))
        })?
    }

    fn rows_of(&self, Block { number, n_blocks }: Block) -> Range<u32> {
        let at = |number| (self.examples.len() * number / n_blocks) as u32;
        at(number)..at(number + 1)
    }

    fn power(&self, number: usize) -> f64 {
        self.params.idf_power.unwrap_or(IDF_POWERS[number])
    }

    fn cost(&self, number: usize) -> f64 {
        self.params.cost.unwrap_or(COSTS[number])
    }

    fn all_of_each(&self, candidates: &[Vec<&Part>]) -> Result<Vec<Solved>> {
        candidates.iter().map(|parts| self.all_of(parts)).collect()
    }

    /// What was solved of all labels, without dual variables.
    fn all_of(&self, parts: &[&Part]) -> Result<Solved> {
        let n_labels = self.examples.n_labels;
        let mut all = Solved::default();
        all.scorers.resize(n_labels, None);
        all.held_out.resize(n_labels, Vec::new());
        let mut is_there = vec![false; n_labels];
        for part in parts {
            let (block, solved) = block_of(part)?;
            for at in 0..block.len {
                let label = block.label(at);
                if std::mem::replace(&mut is_there[label], true) {
                    return Err(Error::data(format!("label {label} is in two blocks")));
                }
                all.scorers[label].clone_from(&solved.scorers[at]);
                all.held_out[label].clone_from(&solved.held_out[at]);
            }
        }
        if let Some(label) = is_there.iter().position(|is_there| !is_there) {
            return Err(Error::data(format!(
                "the block of label {label} is missing"
            )));
        }
        Ok(all)
    }

    /// An error unless each label that has an example has a scorer.
    fn check_scorers(&self, scorers: &[Option<Scorer>]) -> Result<()> {
        let labels = self.examples.labels.entries();
        let missing = labels
            .iter()
            .find(|&&label| scorers[label as usize].is_none());
        missing.map_or(Ok(()), |label| {
            Err(Error::data(format!(
                "the scorer of label {label} is missing"
            )))
        })
    }

    /// An error unless these are all trees.
    fn check_trees(&self, n_trees: usize) -> Result<()> {
        let wanted = self.params.n_estimators as usize;
        if n_trees == wanted {
            return Ok(());
        }
        Err(Error::data(format!(
            "there are {n_trees} trees of {wanted}"
        )))
    }
}

fn by_trees(training: &Training<'_>) -> Result<ScoredRows> {
    training.by_trees()
}

fn trees(part: &Part) -> Result<&[Tree]> {
    match part {
        Part::Trees(model) => Ok(&model.trees),
        other => Err(other.unexpected()),
    }
}

fn rounds(parts: &[&Part]) -> Result<Negatives> {
    let rounds = parts.iter().map(|part| match part {
        Part::Negatives(round) => Ok(Arc::clone(round)),
        other => Err(other.unexpected()),
    });
    Ok(Negatives::new(rounds.collect::<Result<_>>()?))
}

fn candidates_of(part: &Part) -> Result<&ScoredRows> {
    match part {
        Part::Candidates(rows) => Ok(rows),
        other => Err(other.unexpected()),
    }
}

fn block_of(part: &Part) -> Result<(LabelBlock, &Solved)> {
    match part {
        Part::Scorers(block, solved) => Ok((*block, solved)),
        other => Err(other.unexpected()),
    }
}

fn duals_of(part: &Part) -> Result<&[Vec<f32>]> {
    match part {
        Part::Duals(duals) => Ok(duals),
        other => Err(other.unexpected()),
    }
}

fn ragged(lists: Vec<Vec<u32>>) -> Ragged<u32> {
    let mut all = Ragged::with_capacity(lists.len(), lists.iter().map(Vec::len).sum());
    lists.into_iter().for_each(|list| all.push(list));
    all
}
