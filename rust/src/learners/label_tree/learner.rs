//! How the routers learn, example by example.

use super::{Layout, Params, Policy, Up};
use crate::classifier::Mistakes;
use crate::classifier::Online;
use crate::control::Control;
use crate::data::Batch;
use crate::data::{Preparation, RowBuffer};
use crate::error::Result;
use crate::linear::Span;
use crate::linear::{Block, PathExample, Rate, Regressors};
use crate::tree::{FrozenRouters, Groups};

/// The tree and all it needs to go on learning.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(super) policy: Policy,
    rate: Rate,
    pub(super) preparation: Preparation,
    /// Whether means and deviations follow the stream.
    pub(super) streaming: bool,
    pub(super) layout: Layout,
    /// By router.
    pub(super) records: Vec<Record>,
    /// Importance of the examples learned, by label.
    pub(super) examples: Vec<f64>,
    /// As many as routers, with their numbers.
    pub(super) regressors: Regressors,
    pub(super) progress: Mistakes,
}

/// What a router has been through, in importance of examples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Record {
    /// Examples learned from.
    pub trained: f64,
    /// Those of them that it then sent towards their label.
    pub won: f64,
}

impl Tree {
    /// A tree over the labels of `layout` that has seen nothing.
    pub fn new(params: &Params, preparation: Preparation, layout: Layout) -> Self {
        let n_routers = layout.n_routers();
        let mut regressors = Regressors::new(params.optimizer, params.loss, preparation.width());
        regressors.reserve(n_routers);
        for _ in 0..n_routers {
            regressors.push();
        }
        Self {
            policy: params.policy,
            rate: Rate::new(params.learning_rate, params.decay),
            preparation,
            streaming: false,
            records: vec![Record::default(); n_routers],
            examples: vec![0.0; layout.order().len()],
            layout,
            regressors,
            progress: Mistakes::default(),
        }
    }

    /// Learns one example that `regressors.prepare` has been given, from the
    /// label's leaf up. Returns whether the answer was right before: it was if
    /// every router on the way sent the example towards the label.
    fn learn_one(&mut self, example: &PathExample, label: u32, importance: f32) -> bool {
        let span = self.regressors.span();
        let weight = f64::from(importance);
        self.examples[label as usize] += weight;
        let mut was_right = true;
        let mut up = self.layout.from_label(label);
        while let Some((router, side)) = up.step() {
            up = self.layout.from_router(router);
            let record = &mut self.records[router as usize];
            let step = self.rate.step(importance, record.trained, example);
            let ahead = |_| up.step().map(|(above, _)| above);
            let scores =
                self.regressors
                    .learn(router, example, side.target(), step, importance, ahead);
            was_right &= side.is_chosen_by(span.clamp(scores.before));
            record.trained += weight;
            // After the step: what the router will do with the next such example
            // is what the routers above have to get along with.
            if side.is_chosen_by(scores.after) {
                record.won += weight;
            } else if self.policy == Policy::Filter {
                return was_right && self.leads_down(up, example, span);
            }
        }
        was_right
    }

    /// Whether the routers from the step `up` on send the example down to where
    /// the step comes from.
    fn leads_down(&self, mut up: Up, example: &PathExample, span: Span) -> bool {
        while let Some((router, side)) = up.step() {
            if !side.is_chosen_by(span.clamp(self.regressors.score(router, example))) {
                return false;
            }
            up = self.layout.from_router(router);
        }
        true
    }

    /// Makes the routers that prediction walks, whose terminals are labels.
    /// Costs as much as the tree is large.
    pub fn freeze(&self, control: &Control) -> Result<FrozenRouters> {
        let mut frozen = FrozenRouters::new(&self.regressors);
        let mut router = 0;
        for (at, node) in self.layout.nodes().enumerate() {
            if at % Control::CHUNK == 0 {
                control.check()?;
            }
            if node.places.len() == 1 {
                frozen.push_terminal(self.layout.order()[node.places.start]);
            } else {
                frozen.push_router(self.regressors.plain(router));
                router += 1;
            }
        }
        Ok(frozen)
    }

    /// From now on examples come as a stream: means and deviations follow it.
    pub fn stream(&mut self) {
        self.streaming = true;
    }

    /// Where the labels are.
    pub fn layout(&self) -> &Layout {
        &self.layout
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
        let labels = batch.one_label_each(self.policy.learner())?.as_slice();
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
                let was_right = self.learn_one(&example, labels[i], importance);
                self.progress.count(!was_right, importance);
            }
            if let Some(loss) = self.progress.loss() {
                control.set_loss(loss);
            }
            control.tick(chunk.len())?;
        }
        Ok(())
    }

    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        let labels = batch.one_label_each(self.policy.learner())?.as_slice();
        let routers = self.freeze(control)?;
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
            },
        )
    }
}
