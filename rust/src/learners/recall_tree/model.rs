//! The Recall Tree classifier: fit, predict, and what is known of the model.

use std::sync::OnceLock;

use super::frozen::FrozenTree;
use super::learner::OnlineRecallTree;
use super::params::{uniform_bits, Params, NAME};
use super::predict::{BeamOptions, BlockPredictor};
use crate::alloc::try_alloc;
use crate::classifier::checks;
use crate::classifier::Online;
use crate::classifier::TopK;
use crate::classifier::{block_rows, in_blocks, row_values};
use crate::control::Control;
use crate::data::Batch;
use crate::data::{Preparation, Rows};
use crate::error::{Error, Result};
use crate::tree::FrozenRouters;

/// Recall Tree.
#[derive(Debug, Clone)]
pub struct RecallTree {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// Columns of X; 0 before anything was learned.
    pub(super) n_features: usize,
    pub(super) learner: Option<OnlineRecallTree>,
    /// Made at the first prediction after learning.
    frozen: OnceLock<FrozenTree>,
}

impl RecallTree {
    /// Checks the parameters; learns nothing yet.
    pub fn new(params: Params, n_classes: usize) -> Result<Self> {
        checks::check_n_classes(n_classes)?;
        Ok(Self::from_parts(params.check()?, n_classes, 0, None))
    }

    pub(super) fn from_parts(
        params: Params,
        n_classes: usize,
        n_features: usize,
        learner: Option<OnlineRecallTree>,
    ) -> Self {
        Self {
            params,
            n_classes,
            n_features,
            learner,
            frozen: OnceLock::new(),
        }
    }

    /// Forgets everything and learns `batch` in several passes. On an error it
    /// stays as it was; stopped half way, it is as far as it has come.
    pub fn fit(&mut self, batch: &Batch<'_>, n_threads: usize, control: &Control) -> Result<()> {
        let mut preparation = self.prepare(batch)?;
        preparation.observe_all(&batch.rows, &batch.present(), control)?;
        let label_bits = self.params.label_bits(batch, self.n_classes)?;
        let mut learner = self.new_tree(preparation, label_bits, &batch.rows);
        learner.n_threads = n_threads;
        let schedule = self.params.schedule.clone();
        control.set_total(u64::from(schedule.n_passes) * batch.rows.n_rows() as u64);
        let done = schedule.fit(&mut learner, batch, control);
        if matches!(done, Ok(()) | Err(Error::Stopped)) && learner.progress.examples > 0 {
            self.n_features = batch.rows.n_cols();
            self.learner = Some(learner);
            self.frozen = OnceLock::new();
        }
        done
    }

    /// Learns `batch` in one pass on top of what is known, in the order of its rows.
    pub fn partial_fit(
        &mut self,
        batch: &Batch<'_>,
        n_threads: usize,
        control: &Control,
    ) -> Result<()> {
        self.check_labels(batch)?;
        if self.learner.is_none() {
            // Nobody knows how often the labels of a stream will occur.
            let label_bits = uniform_bits(self.n_classes);
            let learner = self.new_tree(self.prepare(batch)?, label_bits, &batch.rows);
            self.learner = Some(learner);
            self.n_features = batch.rows.n_cols();
        }
        self.check_columns(&batch.rows)?;
        self.frozen = OnceLock::new();
        control.set_total(batch.rows.n_rows() as u64);
        let Some(learner) = &mut self.learner else {
            return Ok(());
        };
        learner.n_threads = n_threads;
        learner.streaming = true;
        learner.learn(batch, &batch.present(), 0.0, control)
    }

    fn prepare(&self, batch: &Batch<'_>) -> Result<Preparation> {
        self.check_labels(batch)?;
        Preparation::new(self.params.scaling, self.params.n_bits, &batch.rows)
    }

    fn new_tree(
        &self,
        preparation: Preparation,
        label_bits: f64,
        rows: &Rows<'_>,
    ) -> OnlineRecallTree {
        let n_filled = row_values(Some(&preparation), rows);
        OnlineRecallTree::new(
            &self.params,
            preparation,
            self.n_classes,
            label_bits,
            n_filled,
        )
    }

    fn check_labels(&self, batch: &Batch<'_>) -> Result<()> {
        checks::labels(batch, NAME, self.n_classes).map(|_| ())
    }

    /// What was learned, if `rows` have its columns.
    fn check_columns(&self, rows: &Rows<'_>) -> Result<&OnlineRecallTree> {
        let learner = self.learner.as_ref().ok_or_else(checks::nothing_learned)?;
        checks::check_columns(rows, self.params.n_bits, self.n_features)?;
        Ok(learner)
    }

    /// The tree as prediction walks it: made by the first prediction after
    /// learning, at a cost of the whole tree's size.
    fn frozen(&self, learner: &OnlineRecallTree, control: &Control) -> Result<&FrozenTree> {
        if let Some(frozen) = self.frozen.get() {
            return Ok(frozen);
        }
        let frozen = learner.tree.freeze(control)?;
        Ok(self.frozen.get_or_init(|| frozen))
    }

    /// How many products a prediction of `rows` is about.
    pub fn effort(&self, rows: &Rows<'_>, beam: BeamOptions) -> usize {
        /// What a node costs to freeze.
        const NODE: usize = 256;
        let Some(learner) = &self.learner else {
            return 0;
        };
        let fresh = match self.frozen.get() {
            Some(_) => 0,
            None => learner.tree.arena.nodes.len().saturating_mul(NODE),
        };
        self.walk_effort(rows, beam).saturating_add(fresh)
    }

    /// How many products it is about to score `rows`.
    pub fn walk_effort(&self, rows: &Rows<'_>, beam: BeamOptions) -> usize {
        let Some(learner) = &self.learner else {
            return 0;
        };
        let ways = (beam.size as usize).saturating_mul(32 + learner.tree.arena.max_candidates());
        row_values(Some(&learner.preparation), rows)
            .saturating_mul(rows.n_rows())
            .saturating_mul(ways)
    }

    /// The `k` candidates of highest score for each row, best first, into
    /// arrays of rows x k; [`TopK::NO_LABEL`] and minus infinity where there are
    /// fewer candidates.
    pub fn predict_topk(
        &self,
        rows: &Rows<'_>,
        k: usize,
        beam: BeamOptions,
        n_threads: usize,
        control: &Control,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        let learner = self.check_columns(rows)?;
        if k == 0 {
            return Err(Error::parameter("k", k, "at least 1"));
        }
        beam.check()?;
        let mut labels = try_alloc(rows.n_rows(), k, TopK::NO_LABEL)?;
        let mut scores = try_alloc(rows.n_rows(), k, f32::NEG_INFINITY)?;
        let frozen = self.frozen(learner, control)?;
        let step = block_rows(
            row_values(Some(&learner.preparation), rows),
            FrozenRouters::BLOCK,
        );
        let parts = labels.chunks_mut(step * k).zip(scores.chunks_mut(step * k));
        let new_predictor = || BlockPredictor::new(learner, frozen, beam);
        in_blocks(
            rows.n_rows(),
            step,
            parts,
            n_threads,
            control,
            new_predictor,
            |predictor, which, (labels, scores)| {
                let mut top = TopK::new(k.min(self.n_classes));
                predictor.read(rows, which);
                predictor.topk(&mut top, k, labels, scores);
                Ok(())
            },
        )?;
        Ok((labels, scores))
    }

    /// The options.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// F: candidates of a node at most, of what was learned.
    pub fn max_candidates(&self) -> Option<usize> {
        Some(self.learner.as_ref()?.tree.arena.max_candidates())
    }

    /// D: levels below the root at most, of what was learned.
    pub fn max_depth(&self) -> Option<u32> {
        Some(self.learner.as_ref()?.tree.max_depth)
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Columns of X; 0 before anything was learned.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Examples learned.
    pub fn n_examples_seen(&self) -> u64 {
        self.learner
            .as_ref()
            .map_or(0, |learner| learner.progress.examples)
    }

    /// Share of examples that were answered wrongly before they were learned.
    pub fn progressive_loss(&self) -> Option<f64> {
        self.learner.as_ref()?.progress.loss()
    }

    /// Share of examples whose label was among the candidates before they were
    /// learned.
    pub fn progressive_recall(&self) -> Option<f64> {
        Some(1.0 - self.learner.as_ref()?.missed.loss()?)
    }
}

impl Online for OnlineRecallTree {
    fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        control: &Control,
    ) -> Result<()> {
        self.learn_batch(batch, order, clock, control)
    }

    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        self.error_on(batch, held_out, control)
    }
}
