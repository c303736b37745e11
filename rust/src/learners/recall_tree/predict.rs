//! Prediction: rows are routed together, and those at one final node are scored in
//! a row.

use super::beam::Beam;
use super::frozen::FrozenTree;
use super::label_index::LocalId;
use super::learner::OnlineRecallTree;
use super::params::{Params, NAME};
use super::scorers::{Score, ScorerInput, ScorerWorkspace};
use crate::classifier::TopK;
use crate::control::Control;
use crate::data::{Batch, Rows};
use crate::error::{Error, Result};
use crate::linear::{Block, PathExample};
use crate::tree::{FrozenRouters, Groups, NodeId};

/// How many paths a prediction follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BeamOptions {
    /// Final nodes whose candidates compete; 1: that of the greedy path.
    pub size: u32,
    /// Weight of a path's log-probability in a score.
    pub path_weight: f32,
}

impl BeamOptions {
    /// Refuses values out of range.
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

/// Predicts blocks of rows on one thread.
pub(super) struct BlockPredictor<'a> {
    model: &'a OnlineRecallTree,
    frozen: &'a FrozenTree,
    options: BeamOptions,
    block: Block,
    groups: Groups,
    beam: Beam,
    /// The terminal of each row of the block.
    terminals: Vec<u32>,
    /// The rows, by terminal.
    order: Vec<u32>,
    workspace: ScorerWorkspace,
    example: PathExample,
    path: Vec<NodeId>,
    /// A row's candidates of several final nodes, each with its best score.
    merged: Vec<(LocalId, f32)>,
}

impl<'a> BlockPredictor<'a> {
    pub(super) fn new(
        model: &'a OnlineRecallTree,
        frozen: &'a FrozenTree,
        options: BeamOptions,
    ) -> Self {
        Self {
            model,
            frozen,
            options,
            block: Block::default(),
            groups: Groups::default(),
            beam: Beam::default(),
            terminals: Vec::new(),
            order: Vec::new(),
            workspace: ScorerWorkspace::default(),
            example: PathExample::default(),
            path: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Replaces the block by the rows `which`.
    pub(super) fn read(&mut self, rows: &Rows<'_>, which: impl Iterator<Item = usize>) {
        let (preparation, routers) = (&self.model.preparation, &self.frozen.routers);
        self.block.fill(preparation, rows, which, routers.width());
    }

    /// Routes all rows, then calls `emit(row, candidates, scores)` for each, in any
    /// order.
    fn score_greedy(&mut self, mut emit: impl FnMut(usize, &[LocalId], &[f32])) {
        self.terminals.resize(self.block.len(), 0);
        self.frozen
            .routers
            .route(&self.block, &mut self.groups, &mut self.terminals);
        self.order.clear();
        self.order.extend(0..self.block.len() as u32);
        let terminals = &self.terminals;
        self.order
            .sort_unstable_by_key(|&row| (terminals[row as usize], row));
        let (arena, final_nodes) = (&self.model.tree.arena, &self.frozen.final_nodes);
        let mut last = u32::MAX;
        for &row in &self.order {
            let row = row as usize;
            let terminal = self.terminals[row];
            if terminal != last {
                arena.path_to(final_nodes.node(terminal), &mut self.path);
                last = terminal;
            }
            self.example.take(&self.block, row);
            let input = ScorerInput {
                example: &self.example,
                candidates: final_nodes.candidates(terminal),
                path: &self.path,
                clock: 0,
            };
            self.model.scorers.score(&input, &mut self.workspace);
            emit(row, input.candidates, &self.workspace.scores);
        }
    }

    /// As [`Self::score_greedy`], with the candidates of the most probable paths,
    /// whose weighted log-probabilities are added to the scores.
    fn score_beam(&mut self, mut emit: impl FnMut(usize, &[(LocalId, f32)])) {
        let (arena, final_nodes) = (&self.model.tree.arena, &self.frozen.final_nodes);
        let weight = self.options.path_weight;
        for row in 0..self.block.len() {
            let n = self.options.size as usize;
            self.frozen.beam(&self.block, row, n, &mut self.beam);
            self.example.take(&self.block, row);
            self.merged.clear();
            for &(log_p, terminal) in &self.beam.paths {
                arena.path_to(final_nodes.node(terminal), &mut self.path);
                let input = ScorerInput {
                    example: &self.example,
                    candidates: final_nodes.candidates(terminal),
                    path: &self.path,
                    clock: 0,
                };
                self.model.scorers.score(&input, &mut self.workspace);
                let scores = &self.workspace.scores;
                let scores = scores.iter().map(|score| score + weight * log_p);
                self.merged
                    .extend(input.candidates.iter().copied().zip(scores));
            }
            self.merged
                .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            self.merged.dedup_by_key(|&mut (label, _)| label);
            emit(row, &self.merged);
        }
    }

    /// Writes the `k` best labels and scores of each row of the block.
    pub(super) fn topk(
        &mut self,
        top: &mut TopK,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
    ) {
        let label_index = &self.model.label_index;
        let span = |row: usize| row * k..(row + 1) * k;
        if self.options.size == 1 {
            self.score_greedy(|row, candidates, values| {
                top.clear();
                // Positions: of equal scores the more frequent label's comes first.
                for (position, &score) in (0..).zip(values) {
                    top.push(position, score);
                }
                let labels = &mut labels[span(row)];
                top.write(labels, &mut scores[span(row)]);
                for label in labels.iter_mut().take_while(|position| **position >= 0) {
                    *label = label_index.label(candidates[*label as usize]) as i32;
                }
            });
        } else {
            self.score_beam(|row, merged| {
                top.clear();
                for &(label, score) in merged {
                    top.push(label_index.label(label), score);
                }
                top.write(&mut labels[span(row)], &mut scores[span(row)]);
            });
        }
    }
}

impl OnlineRecallTree {
    /// Weighted share of the rows of `which` that are predicted wrongly.
    pub(super) fn error_on(
        &self,
        batch: &Batch<'_>,
        which: &[u32],
        control: &Control,
    ) -> Result<f64> {
        let labels = batch.one_label_each(NAME)?.as_slice();
        let frozen = self.tree.freeze(control)?;
        let mut predictor = BlockPredictor::new(self, &frozen, BeamOptions::of(&self.params));
        let mut top = TopK::new(1);
        let (mut best, mut scores) = (Vec::new(), Vec::new());
        batch.share_wrong(
            labels,
            which,
            FrozenRouters::BLOCK,
            control,
            |rows, answers| {
                predictor.read(&batch.rows, rows.iter().map(|&i| i as usize));
                best.resize(rows.len(), TopK::NO_LABEL);
                scores.resize(rows.len(), 0.0);
                predictor.topk(&mut top, 1, &mut best, &mut scores);
                for (answer, &best) in answers.iter_mut().zip(&best) {
                    // NO_LABEL becomes a number that no label has.
                    *answer = best as u32;
                }
            },
        )
    }
}
