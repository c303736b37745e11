//! Training on rows that lie in several places: trees on a sample of them, scorers by groups of
//! labels. See [`Groups`](crate::learners::one_against_some::Groups).

use std::num::NonZeroUsize;

use super::model::Ldsm;
use super::train::{candidates, leaves_out, TrainingSet};
use crate::control::Control;
use crate::data::{Batch, Examples, Preparation};
use crate::error::{require, Error, Result};
use crate::learners::one_against_some::{Candidates, FitSample, Groups, Piece};

impl Ldsm {
    /// Joins models with one or more trees each, or returns an error if trees are missing.
    pub fn of_trees(parts: impl Iterator<Item = Result<Self>>) -> Result<Self> {
        let mut parts = parts.collect::<Result<Vec<Self>>>()?.into_iter();
        let mut all = (parts.next()).ok_or_else(|| Error::data("there are no trees"))?;
        parts.for_each(|part| all.trees.extend(part.trees));
        let (n_trees, wanted) = (all.trees.len(), all.params.n_estimators);
        let what = format!("the parts must have {wanted} trees together, got {n_trees}");
        require(n_trees == wanted as usize, what).map(|()| all)
    }

    /// Returns the model with scorers that are trained on the rows of `training`, on which the trees
    /// were grown.
    pub fn complete(
        mut self,
        training: &TrainingSet,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        self.scorers = training.train_scorers(&self.trees, n_threads, control)?;
        Ok(self)
    }

    /// Returns the candidates of rows by the trees that left them out, as `is_out` says.
    fn candidates(
        &self,
        examples: &Examples,
        groups: &Groups,
        is_fit: bool,
        is_out: impl Fn(usize, u32) -> bool + Sync + Send,
        control: &Control,
    ) -> Result<Candidates> {
        let width = self.preparation.as_ref().map(Preparation::width);
        let sizes = (Some(examples.width), examples.n_labels);
        let is_sound = (width, self.n_classes) == sizes && groups.fits(examples);
        require(is_sound, "rows, trees and groups do not match")?;
        let fit_sample = FitSample::first(if is_fit { examples.len() } else { 0 });
        let (trees, params) = (&self.trees, &groups.facts.params);
        candidates(examples, trees, params, fit_sample, is_out, false, control)
    }

    /// Divides a part of the sample that the trees were grown on among the groups: the rows of the
    /// fit are part 0, the others are parts 1 to `n_parts`. After the pieces of part 0 come the rows
    /// of the fit, with all labels that the trees find likely for them.
    pub fn divide_sample(
        &self,
        sample: &Examples,
        (part, n_parts): (usize, NonZeroUsize),
        groups: &Groups,
        control: &Control,
    ) -> Result<Vec<Piece>> {
        require(part <= n_parts.get(), "there is no such part of the sample")?;
        let (n, fit_sample) = (sample.len(), FitSample::new(sample.len()));
        let part_of = |row| (!fit_sample.contains(row)).then(|| row as usize % n_parts);
        let is_in = |row: &u32| part_of(*row) == part.checked_sub(1);
        let rows: Vec<u32> = (0..n as u32).filter(is_in).collect();
        let examples = sample.chosen(|row| is_in(&row));
        let is_out = |tree, i: u32| leaves_out(self.params.seed, n, tree, rows[i as usize]);
        let found = self.candidates(&examples, groups, part == 0, is_out, control)?;
        let mut pieces = groups.divide(&examples, &found, part as u64);
        if part == 0 {
            pieces.push(Piece {
                fit: (0..examples.len() as u32).collect(),
                scored: found.scored,
                examples,
                ..Piece::default()
            });
        }
        Ok(pieces)
    }

    /// Divides rows that the trees have not learned among the groups. Each place has another
    /// `number`. Weights are divided by the mean of all rows.
    pub fn divide(
        &self,
        batch: &Batch<'_>,
        number: u64,
        groups: &Groups,
        control: &Control,
    ) -> Result<Vec<Piece>> {
        let preparation = self.preparation.as_ref();
        let preparation = preparation.ok_or_else(|| Error::data("there are no trees"))?;
        preparation.check_columns(&batch.rows)?;
        let examples = Examples::read(batch, preparation, batch.targets.n_classes(), control)?;
        let found = self.candidates(&examples, groups, false, |_, _| true, control)?;
        Ok(groups.divide(&examples, &found, !number))
    }
}
