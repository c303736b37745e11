//! Prediction: rows go down together, and those at one end are scored together.

use super::frozen::{Beam, FrozenTree};
use super::scorers::{AtNode, Work};
use super::{Learner, Params, NAME};
use crate::classifier::TopK;
use crate::control::Control;
use crate::data::Batch;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::linear::{Block, PathExample};
use crate::tree::{FrozenRouters, Groups, NodeId};

/// How far a prediction looks around.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BeamOptions {
    /// Ends whose candidates compete; 1: those of the greedy way.
    pub size: u32,
    /// What the logarithm of a way's probability counts in a score.
    pub path_weight: f32,
}

impl BeamOptions {
    /// Refuses what cannot be.
    pub(super) fn check(self) -> Result<()> {
        if self.size == 0 {
            return Err(Error::parameter("beam_size", self.size, "at least 1"));
        }
        if !(self.path_weight >= 0.0 && self.path_weight.is_finite()) {
            let allowed = "from 0 to 3e38";
            return Err(Error::parameter("path_weight", self.path_weight, allowed));
        }
        Ok(())
    }

    /// Those of the model.
    pub fn of(params: &Params) -> Self {
        Self {
            size: params.beam_size,
            path_weight: params.path_weight as f32,
        }
    }
}

/// One thread's way through the tree.
pub(super) struct Walker<'a> {
    learner: &'a Learner,
    frozen: &'a FrozenTree,
    options: BeamOptions,
    block: Block,
    groups: Groups,
    beam: Beam,
    /// Of each row of the block, the end of its way.
    ends: Vec<u32>,
    /// The rows, by end.
    order: Vec<u32>,
    work: Work,
    example: PathExample,
    path: Vec<NodeId>,
    /// Best score so far of a row's labels, where several ends name them.
    found: Vec<(u32, f32)>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(learner: &'a Learner, frozen: &'a FrozenTree, options: BeamOptions) -> Self {
        Self {
            learner,
            frozen,
            options,
            block: Block::default(),
            groups: Groups::default(),
            beam: Beam::default(),
            ends: Vec::new(),
            order: Vec::new(),
            work: Work::default(),
            example: PathExample::default(),
            path: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Takes in some rows.
    pub(super) fn read(&mut self, rows: &Rows<'_>, which: impl Iterator<Item = usize>) {
        let (preparation, routers) = (&self.learner.preparation, &self.frozen.routers);
        self.block.fill(preparation, rows, which, routers.width());
    }

    /// Finds the end of each row.
    fn route(&mut self) {
        self.ends.resize(self.block.len(), 0);
        self.frozen
            .routers
            .route(&self.block, &mut self.groups, &mut self.ends);
    }

    /// Calls `visit(row, candidates, scores)` for each row taken in, in any order.
    fn scores(&mut self, mut visit: impl FnMut(usize, &[u32], &[f32])) {
        self.route();
        let arena = &self.learner.tree.arena;
        self.order.clear();
        self.order.extend(0..self.block.len() as u32);
        let ends = &self.ends;
        self.order
            .sort_unstable_by_key(|&row| (ends[row as usize], row));
        let mut last = u32::MAX;
        for &row in &self.order {
            let row = row as usize;
            let end = self.ends[row];
            let candidates = self.frozen.ends.candidates(end);
            if end != last {
                arena.path_to(self.frozen.ends.node(end), &mut self.path);
                last = end;
            }
            self.example.take(&self.block, row);
            let at = AtNode {
                example: &self.example,
                candidates,
                path: &self.path,
                clock: 0,
            };
            self.learner.scorers.score(&at, &mut self.work);
            visit(row, candidates, &self.work.scores);
        }
    }

    /// As [`Self::scores`], with the candidates of the most probable ends, the
    /// ways' log-probabilities added to their scores.
    fn beam_scores(&mut self, mut visit: impl FnMut(usize, &[(u32, f32)])) {
        let arena = &self.learner.tree.arena;
        let weight = self.options.path_weight;
        for row in 0..self.block.len() {
            let n = self.options.size as usize;
            self.frozen.beam(&self.block, row, n, &mut self.beam);
            self.example.take(&self.block, row);
            self.found.clear();
            for &(log_p, end) in &self.beam.ends {
                let candidates = self.frozen.ends.candidates(end);
                arena.path_to(self.frozen.ends.node(end), &mut self.path);
                let at = AtNode {
                    example: &self.example,
                    candidates,
                    path: &self.path,
                    clock: 0,
                };
                self.learner.scorers.score(&at, &mut self.work);
                let scores = self.work.scores.iter().map(|score| score + weight * log_p);
                self.found.extend(candidates.iter().copied().zip(scores));
            }
            // Of a label that several ends name, the best.
            self.found
                .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            self.found.dedup_by_key(|&mut (label, _)| label);
            visit(row, &self.found);
        }
    }

    /// Writes the best labels and scores of each row taken in.
    pub(super) fn best(
        &mut self,
        top: &mut TopK,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
    ) {
        let numbering = &self.learner.numbering;
        let span = |row: usize| row * k..(row + 1) * k;
        if self.options.size == 1 {
            self.scores(|row, candidates, values| {
                top.clear();
                // By place: of equal scores the more frequent label's comes first.
                for (place, &score) in (0..).zip(values) {
                    top.push(place, score);
                }
                let labels = &mut labels[span(row)];
                top.write(labels, &mut scores[span(row)]);
                for place in labels.iter_mut().take_while(|place| **place >= 0) {
                    *place = numbering.label(candidates[*place as usize]) as i32;
                }
            });
        } else {
            self.beam_scores(|row, found| {
                top.clear();
                for &(number, score) in found {
                    top.push(numbering.label(number), score);
                }
                top.write(&mut labels[span(row)], &mut scores[span(row)]);
            });
        }
    }
}

impl Learner {
    /// Weighted share of the rows of `which` that are answered wrongly.
    pub(super) fn error_on(
        &self,
        batch: &Batch<'_>,
        which: &[u32],
        control: &Control,
    ) -> Result<f64> {
        let labels = batch.one_label_each(NAME)?.as_slice();
        let frozen = self.tree.freeze(control)?;
        let mut walker = Walker::new(self, &frozen, BeamOptions::of(&self.params));
        let mut top = TopK::new(1);
        let (mut best, mut scores) = (Vec::new(), Vec::new());
        batch.share_wrong(
            labels,
            which,
            FrozenRouters::BLOCK,
            control,
            |rows, answers| {
                walker.read(&batch.rows, rows.iter().map(|&i| i as usize));
                best.resize(rows.len(), TopK::NO_LABEL);
                scores.resize(rows.len(), 0.0);
                walker.best(&mut top, 1, &mut best, &mut scores);
                for (answer, &best) in answers.iter_mut().zip(&best) {
                    // No label is a number that no label has.
                    *answer = best as u32;
                }
            },
        )
    }
}
