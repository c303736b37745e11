//! The algorithm of the paper (Figures 1 and 2), example by example.

use super::numbering::Numbering;
use super::routing::Change;
use super::scorers::{AtNode, Work};
use super::{Params, Scorers, Tree, Visit};
use crate::control::Control;
use crate::data::{Preparation, RowBuffer};
use crate::error::Result;
use crate::passes::{Batch, Online};
use crate::progressive::Mistakes;
use crate::tree::PathExample;

/// A tree, its scorers, and all they need to go on learning.
#[derive(Debug, Clone)]
pub struct Learner {
    pub(super) params: Params,
    pub(super) preparation: Preparation,
    /// Whether means and deviations follow the stream.
    pub(super) streaming: bool,
    /// Labels by number: tree and scorers know but numbers.
    pub(super) numbering: Numbering,
    pub(super) tree: Tree,
    pub(super) scorers: Scorers,
    /// Wrong answers.
    pub(super) progress: Mistakes,
    /// Labels that were not among the candidates.
    pub(super) missed: Mistakes,
    /// Threads of the call at work; the model does not depend on it.
    pub(super) n_threads: usize,
}

/// An example that was sent down the tree and is still to be scored.
#[derive(Debug, Clone, Default)]
struct Routed {
    example: PathExample,
    visit: Visit,
    label: u32,
    importance: f32,
    /// Number of the example.
    clock: u64,
}

impl Learner {
    /// A tree for `n_classes` that has seen nothing; rows have about `filled`
    /// values.
    pub fn new(params: &Params, preparation: Preparation, n_classes: usize, filled: usize) -> Self {
        let width = preparation.width();
        Self {
            tree: Tree::new(params, n_classes, width),
            numbering: Numbering::new(n_classes),
            scorers: Scorers::new(params, n_classes, width, filled),
            preparation,
            streaming: false,
            progress: Mistakes::default(),
            missed: Mistakes::default(),
            n_threads: 1,
            params: params.clone(),
        }
    }

    /// Sends row `i` down; every node on its way learns from it.
    fn route(
        tree: &mut Tree,
        preparation: &mut Preparation,
        streaming: bool,
        batch: &Batch<'_>,
        (i, label, clock): (usize, u32, u64),
        scratch: &mut RowBuffer,
        routed: &mut Routed,
    ) {
        if streaming {
            preparation.observe(&batch.rows, i, scratch);
        }
        routed.example.read(preparation, &batch.rows, i);
        routed.label = label;
        routed.importance = batch.weight(i);
        routed.clock = clock;
        tree.routers.prepare(&mut routed.example, routed.importance);
        let Routed {
            example,
            visit,
            importance,
            ..
        } = routed;
        tree.learn(example, label, *importance, clock, visit);
    }

    /// Answers for an example as the tree stood before it, and lets the
    /// candidates learn.
    fn score(&mut self, routed: &Routed, work: &mut Work) {
        let Routed {
            example,
            visit,
            label,
            importance,
            clock,
        } = routed;
        let clock = *clock;
        let asked = AtNode {
            example,
            candidates: &visit.answer,
            path: &visit.old.path,
            clock,
        };
        self.scorers.score(&asked, work);
        let best = best(&work.scores).map(|place| visit.answer[place]);
        self.progress.count(best != Some(*label), *importance);
        let missed = !visit.answer.contains(label);
        self.missed.count(missed, *importance);
        let kept = if visit.change == Change::All {
            &visit.new
        } else {
            &visit.old
        };
        let learning = AtNode {
            example,
            candidates: &visit.candidates,
            path: &kept.path,
            clock,
        };
        if learning.candidates.contains(label) {
            if visit.change != Change::None {
                self.scorers.score(&learning, work);
            }
            self.scorers.learn(&learning, *label, *importance, work);
        }
    }
}

impl Learner {
    /// The authors' program clamps all its regressors alike, routers and scorers.
    fn share_span(&mut self) {
        if let Scorers::Adaptive(scorers) = &mut self.scorers {
            scorers.meet(self.tree.routers.span());
            self.tree.routers.widen(scorers.span());
        }
    }
}

/// The first of the highest scores.
fn best(scores: &[f32]) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (place, &score) in scores.iter().enumerate() {
        if best.is_none_or(|(_, highest)| score > highest) {
            best = Some((place, score));
        }
    }
    best.map(|(place, _)| place)
}

impl Online for Learner {
    fn learn(
        &mut self,
        batch: &Batch<'_>,
        order: &[u32],
        clock: f64,
        control: &Control,
    ) -> Result<()> {
        let labels = batch.one_label_each(super::NAME)?.as_slice();
        let (mut routed, mut work) = (Routed::default(), Work::default());
        let mut scratch = RowBuffer::default();
        for chunk in order.chunks(Control::CHUNK) {
            for &i in chunk {
                let i = i as usize;
                let label = self.numbering.take(labels[i]);
                let which = (i, label, self.progress.examples);
                Self::route(
                    &mut self.tree,
                    &mut self.preparation,
                    self.streaming,
                    batch,
                    which,
                    &mut scratch,
                    &mut routed,
                );
                self.score(&routed, &mut work);
                self.scorers.pass(clock);
                self.share_span();
            }
            if let Some(loss) = self.progress.loss() {
                control.set_loss(loss);
                control.set_recall(1.0 - self.missed.loss().unwrap_or(f64::NAN));
            }
            control.tick(chunk.len())?;
        }
        Ok(())
    }

    fn error(&self, batch: &Batch<'_>, held_out: &[u32], control: &Control) -> Result<f64> {
        self.error_on(batch, held_out, control)
    }
}
