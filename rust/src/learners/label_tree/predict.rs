//! Prediction: the end of a row's path, and best-first search.

use super::{LabelTree, Prediction};
use crate::control::Control;
use crate::data::Rows;
use crate::error::Result;
use crate::model::{Member, Predictor, TopK};
use crate::threads::Lent;
use crate::tree::{BestFirst, Branching, FrozenRouters, Routers, RoutingMemory};

/// A predictor of blocks of rows, for one thread.
#[derive(Debug)]
pub struct BlockPredictor<'a> {
    member: &'a Member<LabelTree>,
    routers: Routers<'a, LabelTree>,
    memory: Lent<'a, RoutingMemory>,
    terminals: Vec<u32>,
    search: BestFirst,
    /// Scores of the upper nodes for one row.
    upper: Vec<f32>,
}

impl<'a> BlockPredictor<'a> {
    /// Creates a predictor that uses the frozen form of `member` if there is one.
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
            search: BestFirst::new(if member.learner.label_sets {
                Branching::Gate
            } else {
                Branching::Choice
            }),
            upper: Vec::new(),
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

    /// Writes the label of the leaf where the path of each row ends, or the most probable label.
    fn best(&mut self, labels: &mut [i32], control: &Control) -> Result<()> {
        if self.member.learner.prediction == Prediction::MostProbable {
            let (root, n_classes) = (self.routers.root(), self.member.learner.examples.len());
            let sharpness = self.member.learner.sharpness();
            for (row, label) in labels.iter_mut().enumerate() {
                if row % Control::CHUNK == 0 {
                    control.check()?;
                }
                let look = self.routers.look(&self.memory.block, row, sharpness);
                let found = self.search.most_probable(root, &look, n_classes);
                *label = found.map_or(TopK::NO_LABEL, |(_, label)| label as i32);
            }
            return Ok(());
        }
        self.route();
        for (label, &terminal) in labels.iter_mut().zip(&self.terminals) {
            *label = terminal as i32;
        }
        Ok(())
    }

    /// A terminal is the leaf of a label.
    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        self.route();
        for (row, &label) in self.terminals.iter().enumerate() {
            visit(row, 0, label);
        }
    }

    /// Scores are log-probabilities, for label sets logits. With one label per row, the first label
    /// is always that of [`best`](Self::best). If the search finds a more probable one, its score is
    /// set just above that of the second label.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        control: &Control,
    ) -> Result<()> {
        let tree = &self.member.learner;
        let (n_classes, sharpness) = (tree.examples.len(), tree.sharpness());
        let (root, search) = (self.routers.root(), &mut self.search);
        let rows = labels.chunks_mut(k).zip(scores.chunks_mut(k));
        for (row, (labels, scores)) in rows.enumerate() {
            if row % Control::CHUNK == 0 {
                control.check()?;
            }
            let (k, block) = (k.min(n_classes), &self.memory.block);
            let upper = &mut self.upper;
            let look = self.routers.look_for(k, block, row, sharpness, upper);
            let first = match tree.prediction {
                Prediction::Path => Some(search.end_of_path(root, &look)),
                Prediction::MostProbable if tree.label_sets => None,
                Prediction::MostProbable => search.most_probable(root, &look, n_classes),
            };
            let best = search.best_labels(root, &look, k, n_classes, first);
            for (&(cost, label), (l, s)) in best.iter().zip(labels.iter_mut().zip(scores)) {
                *l = label as i32;
                // Subtracting from 0 gives 0 where negation would give -0.
                *s = if tree.label_sets {
                    logit(cost)
                } else {
                    0.0 - cost
                };
            }
        }
        Ok(())
    }
}

/// Returns the logit of the probability exp(-`cost`). It is finite, as the score of a label.
fn logit(cost: f32) -> f32 {
    let cost = f64::from(cost);
    let odds = cost.exp_m1().max(f64::from(f32::MIN_POSITIVE));
    // From there on, subtracting 1 changes nothing, and the exponential would overflow.
    (if cost > 40.0 { -cost } else { -odds.ln() }) as f32
}
