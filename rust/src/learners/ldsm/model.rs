//! The model: an ensemble of trees, and its training.

use rayon::prelude::*;

use super::centroids::Centroids;
use super::examples::Examples;
use super::growth::grow;
use super::node_data::LocalIds;
use super::node_training::TrainingContext;
use super::params::Params;
use super::scorers::LabelScorers;
use super::scratch_pool::ScratchPool;
use super::tree::Tree;
use crate::classifier::{checks, seed_of, FitOptions};
use crate::control::Control;
use crate::data::{Batch, Preparation};
use crate::error::Result;
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
    pub(super) scorers: Option<LabelScorers>,
}

impl Ldsm {
    /// Grows trees until there are `n_estimators`: all of them, or with a warm start
    /// those that are missing. On an error, or stopped half way, it stays as it was.
    pub(super) fn train(
        &mut self,
        batch: &Batch<'_>,
        options: FitOptions,
        control: &Control,
    ) -> Result<()> {
        checks::check_classes(batch.targets.n_classes(), self.n_classes)?;
        checks::no_missing_values(&batch.rows, "LdSM")?;
        let FitOptions {
            n_threads,
            warm_start,
        } = options;
        let before = if warm_start { self.trees.len() } else { 0 };
        let preparation = match &self.preparation {
            Some(preparation) if before > 0 => {
                preparation.check_columns(&batch.rows)?;
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
            0 => LabelScorers::train(&self.params, batch, &examples, n_threads, control)?,
            _ => None,
        };
        let missing = (self.params.n_estimators as usize).saturating_sub(before);
        let nodes = missing as u64 * u64::from(self.params.max_nodes);
        control.set_total(control.progress().done + nodes);
        let pool = ScratchPool::new(|| LocalIds::new(examples.width, examples.n_labels));
        let seed = |number| seed_of(self.params.seed, number);
        let grow_tree = |number, ahead| grow(&context, seed(number), ahead, &pool);
        let numbers = before..before + missing;
        let trees: Result<Vec<Tree>> = with_threads(n_threads, |parallel| {
            if parallel {
                // Trees enough for all threads need no leaves trained ahead.
                let ahead = if missing < 2 * n_threads {
                    n_threads
                } else {
                    1
                };
                let numbers = numbers.into_par_iter();
                numbers.map(|t| grow_tree(t, ahead)).collect()
            } else {
                numbers.map(|t| grow_tree(t, 1)).collect()
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

    /// The trees.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }
}
