//! Training on rows that lie in several places: trees on samples of them, scorers by groups of
//! labels. See [`Groups`](crate::learners::one_against_some::Groups).

use super::model::Ldsm;
use super::train::{candidates, TrainingSet};
use crate::control::Control;
use crate::data::{Batch, Examples};
use crate::error::{require, Error, Result};
use crate::learners::one_against_some::{FitSample, Groups, Piece};

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

    /// Divides rows among the groups. For each row, `learned` says of each tree whether it has learned
    /// the row. Without it these are the rows of the fit, which no tree has learned; they come once more
    /// after the groups, with all labels that the trees find likely. Each place has another `number`.
    /// Weights are divided by the mean of all rows.
    pub fn divide(
        &self,
        batch: &Batch<'_>,
        number: u64,
        learned: Option<&[bool]>,
        groups: &Groups,
        control: &Control,
    ) -> Result<Vec<Piece>> {
        let preparation = self.preparation.as_ref();
        let preparation = preparation.ok_or_else(|| Error::data("there are no trees"))?;
        preparation.check_columns(&batch.rows)?;
        let examples = Examples::read(batch, preparation, batch.targets.n_classes(), control)?;
        let (n, n_trees) = (examples.len(), self.trees.len());
        let is_sound = examples.n_labels == self.n_classes
            && groups.fits(&examples)
            && learned.is_none_or(|learned| learned.len() == n * n_trees);
        require(is_sound, "rows, trees and groups do not match")?;
        let is_out =
            |tree: usize, row: u32| learned.is_none_or(|l| !l[row as usize * n_trees + tree]);
        let fit_sample = FitSample::first(if learned.is_none() { n } else { 0 });
        let (trees, params) = (&self.trees, &groups.facts.params);
        let found = candidates(&examples, trees, params, fit_sample, is_out, false, control)?;
        let mut pieces = groups.divide(&examples, &found, number);
        if learned.is_none() {
            pieces.push(Piece {
                fit: (0..n as u32).collect(),
                scored: found.scored,
                examples,
                ..Piece::default()
            });
        }
        Ok(pieces)
    }
}
