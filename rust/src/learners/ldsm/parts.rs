//! Training on rows that lie in several places: trees on a sample of them, scorers by groups of
//! labels. See [`Groups`](crate::learners::one_against_some::Groups).

use super::model::Ldsm;
use super::train::{candidates, TrainingSet};
use crate::control::Control;
use crate::data::{Batch, Examples, Preparation};
use crate::error::{Error, Result};
use crate::learners::one_against_some::{
    Candidates, FitSample, GroupScorers, Groups, Piece, Settings,
};

impl Ldsm {
    /// Joins models with one or more trees each.
    pub fn of_trees(parts: impl Iterator<Item = Result<Self>>) -> Result<Self> {
        let mut all: Option<Self> = None;
        for part in parts {
            let part = part?;
            match &mut all {
                Some(all) => all.trees.extend(part.trees),
                None => all = Some(part),
            }
        }
        all.ok_or_else(|| Error::data("there are no trees"))
    }

    /// Returns the model with scorers that are trained on the rows of `training`, on which all its
    /// trees were grown.
    pub fn complete(
        mut self,
        training: &TrainingSet,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        self.scorers = training.train_scorers(&self.trees, n_threads, control)?;
        self.centroids = training.centroids();
        self.with_all_trees()
    }

    /// Returns the model, or an error if trees are missing.
    fn with_all_trees(self) -> Result<Self> {
        let (n_trees, wanted) = (self.trees.len(), self.params.n_estimators as usize);
        if n_trees == wanted {
            return Ok(self);
        }
        Err(Error::data(format!(
            "the parts must have {wanted} trees together, got {n_trees}"
        )))
    }

    /// Returns the candidates of rows by the trees, which were `grown_on` them or have left all out.
    fn candidates(
        &self,
        examples: &Examples,
        groups: &Groups,
        fit_sample: FitSample,
        grown_on: bool,
        control: &Control,
    ) -> Result<Candidates> {
        let width = self.preparation.as_ref().map(Preparation::width);
        if width != Some(examples.width)
            || self.n_classes != examples.n_labels
            || !groups.fits(examples)
        {
            return Err(Error::data("rows, trees and groups do not match"));
        }
        let params = self.params.scorer_params(groups.has_dense_columns());
        candidates(
            examples,
            &self.trees,
            &params,
            fit_sample,
            grown_on,
            false,
            control,
        )
    }

    /// Divides the sample that the trees were grown on among the groups.
    pub fn divide_sample(
        &self,
        sample: &TrainingSet,
        groups: &Groups,
        control: &Control,
    ) -> Result<Vec<Piece>> {
        let examples = &sample.examples;
        let fit_sample = FitSample::new(examples.len());
        let found = self.candidates(examples, groups, fit_sample, true, control)?;
        let params = self.params.scorer_params(groups.has_dense_columns());
        Ok(groups.divide(examples, fit_sample, &found, &params))
    }

    /// Divides other rows among the groups. `number` is that of their place; weights are divided by
    /// the mean of all rows.
    pub fn divide_rows(
        &self,
        batch: &Batch<'_>,
        groups: &Groups,
        number: u64,
        control: &Control,
    ) -> Result<Vec<Piece>> {
        let preparation = self.preparation.as_ref();
        let preparation = preparation.ok_or_else(|| Error::data("there are no trees"))?;
        preparation.check_columns(&batch.rows)?;
        let n_labels = batch.targets.n_classes();
        let examples = Examples::read(batch, preparation, n_labels, control)?;
        let none = FitSample::first(0);
        let found = self.candidates(&examples, groups, none, false, control)?;
        let mut params = self.params.scorer_params(groups.has_dense_columns());
        // Each place draws other negatives.
        params.seed ^= (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Ok(groups.divide(&examples, none, &found, &params))
    }

    /// Returns the model with the scorers of all groups, which has its centroids from the sample.
    pub fn with_groups(
        mut self,
        sample: &TrainingSet,
        groups: &Groups,
        parts: &[GroupScorers],
        settings: Settings,
        control: &Control,
    ) -> Result<Self> {
        let examples = &sample.examples;
        let mut fit = Examples {
            width: examples.width,
            n_labels: examples.n_labels,
            ..Examples::default()
        };
        let fit_sample = FitSample::new(examples.len());
        for row in (0..examples.len() as u32).filter(|&row| fit_sample.contains(row)) {
            fit.push(examples, row, examples.labels(row).iter().copied());
        }
        let all = FitSample::first(fit.len());
        let found = self.candidates(&fit, groups, all, false, control)?;
        self.scorers = Some(groups.join(parts, &fit, &found.scored, settings)?);
        self.centroids = sample.centroids();
        self.with_all_trees()
    }
}
