//! LdSM as it is used from outside: an ensemble of trees and its training.

use rayon::prelude::*;

use super::centroids::Centroids;
use super::examples::Examples;
use super::growth::grow;
use super::node_data::LocalIds;
use super::node_training::TrainingContext;
use super::params::Params;
use super::scorers::train_scorers;
use super::scratch_pool::ScratchPool;
use super::tree::Tree;
use crate::classifier::checks;
use crate::control::Control;
use crate::data::{Batch, Preparation, Rows};
use crate::error::{Error, Result};
use crate::learners::oaa::Oaa;
use crate::threads::with_threads;

/// LdSM.
#[derive(Debug, Clone)]
pub struct Ldsm {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// Made from the rows of the first fit.
    pub(super) preparation: Option<Preparation>,
    pub(super) trees: Vec<Tree>,
    /// For the re-ranking, if there is to be any.
    pub(super) centroids: Option<Centroids>,
    /// One scorer for each label, if there are to be any.
    pub(super) scorers: Option<Oaa>,
}

impl Ldsm {
    /// Checks the parameters; learns nothing yet.
    pub fn new(params: Params, n_classes: usize) -> Result<Self> {
        checks::check_n_classes(n_classes)?;
        Ok(Self {
            params: params.check()?,
            n_classes,
            preparation: None,
            trees: Vec::new(),
            centroids: None,
            scorers: None,
        })
    }

    /// Grows trees until there are `n_estimators`: all of them, or what is missing
    /// of them if `adds` and some were grown before. On an error, or stopped half
    /// way, it stays as it was.
    pub fn fit(
        &mut self,
        batch: &Batch<'_>,
        adds: bool,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        checks::check_classes(batch.targets.n_classes(), self.n_classes)?;
        let before = if adds { self.trees.len() } else { 0 };
        let preparation = match &self.preparation {
            Some(preparation) if before > 0 => {
                checks::check_columns(&batch.rows, self.params.n_bits, preparation.n_features())?;
                preparation.clone()
            }
            _ => self.prepare(batch, control)?,
        };
        let examples = Examples::read(batch, &preparation, self.n_classes, control)?;
        let context = TrainingContext {
            examples: &examples,
            params: &self.params,
            is_dense: self.params.is_dense(examples.filled()),
            control,
        };
        // The scorers first: they count their rows, the trees their nodes.
        let scorers = match before {
            0 => train_scorers(&self.params, batch, &examples, n_threads, control)?,
            _ => None,
        };
        let missing = (self.params.n_estimators as usize).saturating_sub(before);
        let nodes = missing as u64 * u64::from(self.params.max_nodes);
        control.set_total(control.progress().done + nodes);
        let pool = ScratchPool::new(|| LocalIds::new(examples.width, examples.n_labels));
        let numbers = before..before + missing;
        let seed = |t: usize| {
            let step = (t as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.params.seed.wrapping_add(step)
        };
        let trees: Result<Vec<Tree>> = with_threads(n_threads, |parallel| {
            if parallel {
                // Trees enough for all threads need no leaves trained ahead.
                let ahead = if missing < 2 * n_threads {
                    n_threads
                } else {
                    1
                };
                let one = |t| grow(&context, seed(t), ahead, &pool);
                numbers.into_par_iter().map(one).collect()
            } else {
                numbers.map(|t| grow(&context, seed(t), 1, &pool)).collect()
            }
        })?;
        let trees = trees?;
        if before == 0 {
            self.scorers = scorers;
            self.centroids = (self.params.beta < 1.0).then(|| Centroids::of(&examples));
        }
        self.trees.truncate(before);
        self.trees.extend(trees);
        self.preparation = Some(preparation);
        Ok(())
    }

    fn prepare(&self, batch: &Batch<'_>, control: &Control) -> Result<Preparation> {
        let mut preparation =
            Preparation::new(self.params.scaling, self.params.n_bits, &batch.rows)?;
        preparation.observe_all(&batch.rows, &Examples::labelled_rows(batch), control)?;
        Ok(preparation)
    }

    /// How rows are prepared, if `rows` have the columns that were learned from.
    pub(super) fn check_columns(&self, rows: &Rows<'_>) -> Result<&Preparation> {
        let preparation = self
            .preparation
            .as_ref()
            .ok_or_else(checks::nothing_learned)?;
        checks::check_columns(rows, self.params.n_bits, preparation.n_features())?;
        Ok(preparation)
    }

    /// About how many multiplications growing trees from `rows` takes, at least.
    pub fn fit_effort(&self, rows: &Rows<'_>) -> usize {
        let visits = self.params.n_estimators as usize * self.params.n_epochs as usize;
        rows.n_values()
            .saturating_mul(visits)
            .saturating_mul(self.params.arity as usize)
    }

    /// Replaces the options of further trees and predictions. Those that the trees
    /// there are depend on must stay as they are.
    pub fn set_params(&mut self, params: Params) -> Result<()> {
        let params = params.check()?;
        let kept = |params: &Params| (params.arity, params.scaling, params.n_bits);
        if kept(&params) != kept(&self.params) {
            return Err(Error::data(
                "arity, scaling and n_bits must stay as they are where trees are added",
            ));
        }
        self.params = params;
        Ok(())
    }

    /// Whether there are scorers beside the trees.
    pub fn has_scorers(&self) -> bool {
        self.scorers.is_some()
    }

    /// The options.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Columns of X; 0 before anything was learned.
    pub fn n_features(&self) -> usize {
        self.preparation.as_ref().map_or(0, Preparation::n_features)
    }

    /// The trees.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }
}
