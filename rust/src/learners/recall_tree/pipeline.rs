//! Many examples in order, on one thread or several.
//!
//! Routing does not look at the scorers. So with several threads the next group of
//! examples is routed while the scorers learn from this one, and the model is that
//! of example after example, to the bit. With mini-batches (`batch_size`) the
//! examples of a group are also scored in parallel: each by the scorers as they
//! stood before the mini-batch, whatever the number of threads.

use rayon::prelude::*;

use super::label_index::LabelIndex;
use super::learner::{Example, OnlineRecallTree, RoutedExample};
use super::routing_tree::RoutingTree;
use super::scorers::{ScorerWorkspace, Scorers};
use crate::classifier::{Learning, Mistakes};
use crate::control::Control;
use crate::data::{Batch, Preparation, RowBuffer};
use crate::error::Result;
use crate::threads::with_threads;

/// The first stage: prepares examples and routes them.
struct ExampleRouter<'a> {
    batch: &'a Batch<'a>,
    tree: &'a mut RoutingTree,
    preparation: &'a mut Preparation,
    label_index: &'a mut LabelIndex,
    /// Whether means and deviations follow the examples.
    is_stream: bool,
    /// Number of the next example.
    clock: u64,
    scratch: RowBuffer,
}

impl ExampleRouter<'_> {
    /// Routes the rows `which` in order; the nodes on their paths learn from them.
    fn route(&mut self, which: &[u32], group: &mut Vec<RoutedExample>) {
        let (rows, labels) = (&self.batch.rows, self.batch.labels());
        group.resize_with(which.len(), RoutedExample::default);
        for (&i, RoutedExample { example, route }) in which.iter().zip(group) {
            let i = i as usize;
            if self.is_stream {
                self.preparation.observe(rows, i, &mut self.scratch);
            }
            example.x.read(self.preparation, rows, i);
            let n_labels = self.label_index.labels().len();
            example.y = self.label_index.insert(labels[i]);
            if self.is_stream && example.y.at() == n_labels {
                self.tree.arena.age(n_labels + 1);
            }
            example.weight = self.batch.weight(i);
            example.clock = self.clock;
            self.clock += 1;
            self.tree.routers.prepare(&mut example.x, example.weight);
            self.tree.learn(example, route);
        }
    }
}

/// The second stage: predicts each routed example, then its candidates' scorers learn.
struct ScorerTrainer<'a> {
    scorers: &'a mut Scorers,
    progress: &'a mut Mistakes,
    missed: &'a mut Mistakes,
    /// Share of a pass that an example is.
    share: f64,
    /// One for each example of a mini-batch.
    workspaces: Vec<ScorerWorkspace>,
}

impl ScorerTrainer<'_> {
    /// All examples of a mini-batch are scored and their steps decided before the first
    /// step is taken; then the steps are taken in order.
    fn learn(&mut self, group: &[RoutedExample], batch_size: usize, parallel: bool) {
        let n_workspaces = batch_size.min(group.len());
        self.workspaces.resize_with(n_workspaces, Default::default);
        for batch in group.chunks(batch_size) {
            let scorers = &*self.scorers;
            let decide = |(routed, workspace): (&RoutedExample, &mut ScorerWorkspace)| {
                routed.predict(scorers, workspace);
                routed.decide_update(scorers, workspace);
            };
            if parallel && batch_size > 1 {
                let workspaces = self.workspaces.par_iter_mut().take(batch.len());
                batch.par_iter().zip(workspaces).for_each(decide);
            } else {
                batch.iter().zip(&mut self.workspaces).for_each(decide);
            }
            for (routed, workspace) in batch.iter().zip(&mut self.workspaces) {
                routed.update_predictors(self.scorers, workspace);
                let Example { y, weight, .. } = routed.example;
                self.progress.count(workspace.predicted != Some(y), weight);
                let is_missed = !routed.route.candidates.contains(&y);
                self.missed.count(is_missed, weight);
                self.scorers.pass(self.share);
            }
        }
    }
}

impl OnlineRecallTree {
    /// Figure 2a for example after example.
    pub(super) fn learn_batch(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        // Adaptive scorers and their routers share what they clamp to.
        let n_threads = match self.scorers {
            Scorers::Plain(_) => learning.n_threads,
            Scorers::Adaptive(_) => 1,
        };
        with_threads(n_threads, |parallel| self.learn_groups(learning, parallel))?
    }

    /// Routes each group while the one before is scored.
    fn learn_groups(&mut self, learning: &mut Learning<'_>, parallel: bool) -> Result<()> {
        let (batch, control) = (learning.batch, learning.control);
        let batch_size = self.tree.arena.params.batch_size as usize;
        // One example at a time stays in the nearest cache; several threads need
        // more at a time.
        let group_size = match (batch_size, parallel) {
            (1, false) => 1,
            (1, true) => Control::CHUNK,
            _ => batch_size,
        };
        let mut groups = learning.order.chunks(group_size);
        let (mut current, mut next) = (Vec::new(), Vec::new());
        let mut router = ExampleRouter {
            batch,
            is_stream: learning.is_stream(),
            clock: learning.progress.examples,
            tree: &mut self.tree,
            preparation: learning.preparation,
            label_index: &mut self.label_index,
            scratch: RowBuffer::default(),
        };
        self.missed.repeats = learning.progress.repeats;
        let mut trainer = ScorerTrainer {
            scorers: &mut self.scorers,
            progress: learning.progress,
            missed: &mut self.missed,
            share: learning.clock,
            workspaces: Vec::new(),
        };
        router.route(groups.next().unwrap_or_default(), &mut current);
        let mut unreported = 0;
        while !current.is_empty() {
            let which = groups.next().unwrap_or_default();
            if parallel {
                rayon::join(
                    || trainer.learn(&current, batch_size, true),
                    || router.route(which, &mut next),
                );
            } else {
                trainer.learn(&current, batch_size, false);
                if let Scorers::Adaptive(scorers) = &mut *trainer.scorers {
                    // The authors' program clamps all its regressors alike.
                    scorers.regressors.widen(router.tree.routers.span());
                    router.tree.routers.widen(scorers.regressors.span());
                }
                router.route(which, &mut next);
            }
            unreported += current.len();
            std::mem::swap(&mut current, &mut next);
            if unreported >= Control::CHUNK || current.is_empty() {
                if let Some(loss) = trainer.progress.loss() {
                    control.set_loss(loss);
                    control.set_recall(1.0 - trainer.missed.loss().unwrap_or(f64::NAN));
                }
                control.tick(std::mem::take(&mut unreported))?;
            }
        }
        Ok(())
    }
}
