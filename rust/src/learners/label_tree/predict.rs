//! Predictions for a block of rows at a time.

use super::LabelTree;
use crate::control::Control;
use crate::data::Rows;
use crate::error::Result;
use crate::model::{Member, Predictor};
use crate::threads::Lent;
use crate::tree::{BestFirst, FrozenRouters, Routers, RoutingMemory};

/// What one thread predicts with.
#[derive(Debug)]
pub struct BlockPredictor<'a> {
    member: &'a Member<LabelTree>,
    routers: Routers<'a, LabelTree>,
    memory: Lent<'a, RoutingMemory>,
    terminals: Vec<u32>,
    search: BestFirst,
}

impl<'a> BlockPredictor<'a> {
    /// For predictions of `member`, by its frozen form if there is one.
    pub(super) fn new(
        member: &'a Member<LabelTree>,
        frozen: Option<&'a FrozenRouters>,
        memory: Lent<'a, RoutingMemory>,
    ) -> Self {
        Self {
            member,
            routers: Routers::new(frozen, &member.learner),
            memory,
            terminals: Vec::new(),
            search: BestFirst::default(),
        }
    }

    fn route(&mut self) {
        let RoutingMemory { block, groups } = &mut *self.memory;
        self.terminals.resize(block.len(), 0);
        self.routers.route(block, groups, &mut self.terminals);
    }
}

impl Predictor for BlockPredictor<'_> {
    fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        _control: &Control,
    ) -> Result<()> {
        let width = self.routers.width();
        self.memory
            .block
            .fill(&self.member.preparation, rows, which, width);
        Ok(())
    }

    /// The label that the routers lead each row to.
    fn best(&mut self, labels: &mut [i32], _control: &Control) -> Result<()> {
        self.route();
        for (label, &terminal) in labels.iter_mut().zip(&self.terminals) {
            *label = terminal as i32;
        }
        Ok(())
    }

    /// A terminal is a label's leaf.
    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        self.route();
        for (row, &label) in self.terminals.iter().enumerate() {
            visit(row, 0, label);
        }
    }

    /// Scores are log-probabilities. The first label is that of [`best`](Self::best), whatever
    /// the probabilities; its score is then just above the second's.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()> {
        let n_classes = self.member.learner.examples.len();
        let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
        for (row, (labels, scores)) in rows.enumerate() {
            if row % Control::CHUNK == 0 {
                control.check()?;
            }
            let (k, block) = (k.min(n_classes), &self.memory.block);
            let (root, look) = (self.routers.root(), self.routers.look(block, row));
            let best = self.search.best_labels(root, &look, k, n_classes);
            for (&(cost, label), (l, s)) in best.iter().zip(labels.iter_mut().zip(scores)) {
                *l = label as i32;
                // Not -0.
                *s = 0.0 - cost;
            }
        }
        Ok(())
    }
}
