//! Training on rows that lie in several places: trees on a sample of them, scorers by groups of
//! labels. See [`Groups`](crate::learners::one_against_some::Groups).

use super::model::Ldsm;
use super::train::{candidates, TrainingSet};
use crate::control::Control;
use crate::data::{Batch, Examples, Preparation};
use crate::error::{require, Error, Result};
use crate::learners::one_against_some::{
    Candidates, FitSample, GroupScorers, Groups, Piece, Settings,
};

/// Groups of labels, their scorers, and the settings of these.
pub type Parts = (Groups, Vec<GroupScorers>, Settings);

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

    /// Returns the model with the scorers of all groups, or with scorers that are trained on the
    /// rows of `training`, on which the trees were grown. Centroids are those of these rows.
    pub fn complete(
        mut self,
        training: &TrainingSet,
        parts: Option<Parts>,
        n_threads: usize,
        control: &Control,
    ) -> Result<Self> {
        self.scorers = if let Some((groups, parts, settings)) = parts {
            let fit_sample = FitSample::new(training.examples.len());
            let fit = training.examples.chosen(|row| fit_sample.contains(row));
            let all = FitSample::first(fit.len());
            let found = self.candidates(&fit, &groups, all, false, control)?;
            Some(groups.join(&parts, &fit, &found.scored, settings)?)
        } else {
            training.train_scorers(&self.trees, n_threads, control)?
        };
        self.centroids = training.centroids();
        Ok(self)
    }

    /// Prepares rows that the trees were not grown on. Weights are divided by the mean of all rows.
    pub fn read(&self, batch: &Batch<'_>, control: &Control) -> Result<Examples> {
        let preparation = self.preparation.as_ref();
        let preparation = preparation.ok_or_else(|| Error::data("there are no trees"))?;
        preparation.check_columns(&batch.rows)?;
        Examples::read(batch, preparation, batch.targets.n_classes(), control)
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
        let sizes = (Some(examples.width), examples.n_labels);
        let is_sound = (width, self.n_classes) == sizes && groups.fits(examples);
        require(is_sound, "rows, trees and groups do not match")?;
        let (trees, params) = (&self.trees, &groups.facts.params);
        candidates(
            examples, trees, params, fit_sample, grown_on, false, control,
        )
    }

    /// Divides rows among the groups: the sample that the trees were grown on, or the rows of a place
    /// with a number.
    pub fn divide(
        &self,
        examples: &Examples,
        place: Option<u64>,
        groups: &Groups,
        control: &Control,
    ) -> Result<Vec<Piece>> {
        let (grown_on, n) = (place.is_none(), examples.len());
        let fit_sample = place.map_or_else(|| FitSample::new(n), |_| FitSample::first(0));
        let found = self.candidates(examples, groups, fit_sample, grown_on, control)?;
        let seed = place.map_or(0, |number| (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Ok(groups.divide(
            examples,
            fit_sample,
            &found,
            groups.facts.params.seed ^ seed,
        ))
    }
}
