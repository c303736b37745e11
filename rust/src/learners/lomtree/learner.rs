//! Algorithm 1 of the paper: one tree learns, example by example.

use super::{Arena, Params, NAME};
use crate::classifier::Mistakes;
use crate::classifier::Online;
use crate::control::Control;
use crate::data::Batch;
use crate::data::{Preparation, RowBuffer};
use crate::error::Result;
use crate::linear::Span;
use crate::linear::{Block, PathExample, Rate, Regressors};
use crate::tree::{FrozenRouters, Groups, NodeId};

/// One tree and all it needs to go on learning.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(super) params: Params,
    /// T: internal nodes it may have.
    pub(super) budget: u32,
    pub(super) preparation: Preparation,
    rate: Rate,
    soft_depth: f64,
    /// Whether means and deviations follow the stream.
    pub(super) streaming: bool,
    pub(super) arena: Arena,
    pub(super) regressors: Regressors,
    pub(super) progress: Mistakes,
}

impl Tree {
    /// A tree for `n_classes` that has seen nothing.
    pub fn new(params: &Params, preparation: Preparation, n_classes: usize) -> Self {
        Self {
            budget: params.budget(n_classes),
            regressors: Regressors::new(params.optimizer, params.loss, preparation.width()),
            preparation,
            rate: Rate::new(params.learning_rate, params.decay),
            soft_depth: params.soft_depth(n_classes),
            streaming: false,
            arena: Arena::new(),
            progress: Mistakes::default(),
            params: params.clone(),
        }
    }

    /// Learns one example that `regressors.prepare` has been given. Returns
    /// what the tree would have answered before.
    fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> u32 {
        let weight = if self.params.weighted_counts {
            f64::from(importance)
        } else {
            1.0
        };
        // What the answer must be judged by is the tree as it was before this
        // example: as soon as learning changes the way, the old way is walked
        // to its end.
        let span = self.regressors.span();
        let mut answer = None;
        let mut j = self.arena.root;
        let mut depth = 0;
        loop {
            let node = self.arena.node_mut(j);
            if node.is_leaf() {
                answer = answer.or(Some(node.top));
                node.count(label, weight);
                if !self.may_split(j, depth) || !self.split(j) {
                    let node = self.arena.node_mut(j);
                    node.size += weight;
                    self.arena.update_sizes(j);
                    break;
                }
                self.arena.node_mut(j).uncount(label, weight);
            }
            let node = self.arena.node_mut(j);
            let place = node.labels.place_of(label);
            let lean = node.labels.at_mut(place).mean();
            let target = if node.mean() > lean { -1.0 } else { 1.0 };
            let step = self.rate.step(importance, node.count, example);
            let (regressor, left, right) = (node.regressor, node.left, node.right);
            let arena = &self.arena;
            arena.prefetch(left);
            arena.prefetch(right);
            let ahead = |after: f32| {
                let child = arena.node(if after < 0.0 { left } else { right });
                child.labels.prefetch(label);
                (!child.is_leaf()).then_some(child.regressor)
            };
            let scores = self
                .regressors
                .learn(regressor, example, target, step, importance, ahead);
            let node = self.arena.node_mut(j);
            node.fold(place, self.params.clamped(scores.raw), weight);
            let next = if scores.after < 0.0 { left } else { right };
            if answer.is_none() {
                let old_way = node.child(span.clamp(scores.before));
                if old_way != next {
                    answer = Some(self.answer_from(old_way, example, span));
                }
            }
            j = next;
            depth += 1;
        }
        answer.unwrap_or_default()
    }

    /// Whether leaf `j` is impure enough to split, the more so the deeper it
    /// lies, and either the budget or the paper's Eq. 2 allows it.
    fn may_split(&self, j: NodeId, depth: u32) -> bool {
        let node = self.arena.node(j);
        let excess = (f64::from(depth) - self.soft_depth).max(0.0);
        let impurity = node.count - node.top_arrivals;
        if impurity < self.params.split_threshold * (0.5 * excess).exp2() {
            return false;
        }
        self.arena.n_internal < self.budget
            || node.size - node.top_arrivals
                > self.params.swap_resistance * (self.arena.smallest() + 1.0)
    }

    /// Gives leaf `j` children; false if there are none to give.
    fn split(&mut self, j: NodeId) -> bool {
        if self.arena.n_internal < self.budget {
            let regressor = self.regressors.push();
            self.arena.split(j, regressor);
        } else if self.arena.n_internal > 0 {
            let regressor = self.arena.swap(j);
            if self.params.reset_recycled {
                self.regressors.reset(regressor);
            }
        } else {
            return false;
        }
        true
    }

    /// The answer of the leaf that the scores lead to from `j` on.
    fn answer_from(&self, mut j: NodeId, example: &PathExample, span: Span) -> u32 {
        loop {
            let node = self.arena.node(j);
            if node.is_leaf() {
                return node.top;
            }
            j = node.child(span.clamp(self.regressors.score(node.regressor, example)));
        }
    }

    /// From now on examples come as a stream: means and deviations follow it.
    pub fn stream(&mut self) {
        self.streaming = true;
    }

    /// The structure.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Examples learned and mistakes made on the way.
    pub fn progress(&self) -> Mistakes {
        self.progress
    }
}

impl Online for Tree {
    fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        _clock: f64,
        control: &Control,
    ) -> Result<()> {
        let labels = batch.one_label_each(NAME)?.as_slice();
        let mut example = PathExample::default();
        let mut scratch = RowBuffer::default();
        for chunk in order.chunks(Control::CHUNK) {
            for &i in chunk {
                let i = i as usize;
                if self.streaming {
                    self.preparation.observe(&batch.rows, i, &mut scratch);
                }
                example.read(&self.preparation, &batch.rows, i);
                let importance = batch.weight(i);
                self.regressors.prepare(&mut example, importance);
                let label = labels[i];
                let answer = self.learn_one(&example, label, importance);
                self.progress.count(answer != label, importance);
            }
            if let Some(loss) = self.progress.loss() {
                control.set_loss(loss);
            }
            control.tick(chunk.len())?;
        }
        Ok(())
    }

    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        let labels = batch.one_label_each(NAME)?.as_slice();
        let frozen = self.freeze(control)?;
        let routers = frozen.routers();
        let (mut block, mut groups) = (Block::default(), Groups::default());
        batch.share_wrong(
            labels,
            held_out,
            FrozenRouters::BLOCK,
            control,
            |rows, answers| {
                let which = rows.iter().map(|&i| i as usize);
                block.fill(&self.preparation, &batch.rows, which, routers.width());
                routers.route(&block, &mut groups, answers);
                for answer in answers {
                    *answer = frozen.answer(*answer);
                }
            },
        )
    }
}
