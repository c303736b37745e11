//! Prediction: rows are routed together, and those at one final node are scored in
//! a row.

use std::ops::Range;

use super::beam::Beam;
use super::frozen::FrozenTree;
use super::label_index::LocalId;
use super::learner::OnlineRecallTree;
use super::path_ends::{PathEnd, PathEnds};
use super::paths::Place;
use super::routing_tree::RoutingTree;
use crate::classifier::{Member, PredictOptions, Predictor, TopK};
use crate::control::Control;
use crate::data::{Preparation, Rows};
use crate::error::Result;
use crate::linear::{bounded_score, Block};
use crate::tree::{Groups, Numbered, Routers};

/// Predicts blocks of rows on one thread.
#[derive(Debug)]
pub struct BlockPredictor<'a> {
    preparation: &'a Preparation,
    model: &'a OnlineRecallTree,
    frozen: Option<&'a FrozenTree>,
    routers: Routers<'a, RoutingTree>,
    beam_size: usize,
    /// Weight of a path's log-probability in a score.
    path_weight: f32,
    block: Block,
    groups: Groups,
    beam: Beam<u32>,
    beam_learning: Beam<Numbered<Place>>,
    /// The most probable paths: log-probability and terminal.
    paths: Vec<(f32, u32)>,
    /// The terminal of each row of the block.
    terminals: Vec<u32>,
    ends: PathEnds,
}

impl<'a> BlockPredictor<'a> {
    pub(super) fn new(
        member: &'a Member<OnlineRecallTree>,
        frozen: Option<&'a FrozenTree>,
        options: &PredictOptions,
    ) -> Self {
        let params = member.learner.tree.arena.params.with_beam(options);
        Self {
            preparation: &member.preparation,
            model: &member.learner,
            frozen,
            routers: Routers::new(frozen.map(|frozen| &frozen.routers), &member.learner.tree),
            beam_size: params.beam_size as usize,
            path_weight: params.path_weight as f32,
            block: Block::default(),
            groups: Groups::default(),
            beam: Beam::default(),
            beam_learning: Beam::default(),
            paths: Vec::new(),
            terminals: Vec::new(),
            ends: PathEnds::default(),
        }
    }

    fn route(&mut self) {
        self.terminals.resize(self.block.len(), 0);
        self.routers
            .route(&self.block, &mut self.groups, &mut self.terminals);
    }

    /// Routes all rows, then calls `emit(row, candidates, scores)` for each.
    fn score_greedy(&mut self, mut emit: impl FnMut(usize, &[LocalId], &[f32])) {
        self.route();
        self.ends.clear();
        for (row, &terminal) in (0..).zip(&self.terminals) {
            let log_p = 0.0;
            self.ends.push(PathEnd {
                row,
                terminal,
                log_p,
            });
        }
        self.ends.score(self.model, self.frozen, &self.block, true);
        for row in 0..self.block.len() {
            let (_, candidates, scores) = self.ends.get(row);
            emit(row, candidates, scores);
        }
    }

    /// Searches for the most probable paths of a row.
    fn find_paths(&mut self, row: usize) {
        let (most, paths) = ((self.beam_size, self.model.tree.depth()), &mut self.paths);
        match &self.routers {
            Routers::Frozen(routers) => {
                let walk = routers.walk(&self.block, row);
                self.beam.search(&walk, most, paths);
            }
            Routers::Learning(routers) => {
                let walk = routers.walk(&self.block, row);
                self.beam_learning.search(&walk, most, paths);
            }
        }
    }

    /// As [`Self::score_greedy`], with the candidates of each of the most probable paths of a row,
    /// to whose scores its weighted log-probability is to be added. A label may come several times.
    fn score_beam(&mut self, mut emit: impl FnMut(usize, &PathEnds, Range<usize>)) {
        self.ends.clear();
        for row in 0..self.block.len() {
            self.find_paths(row);
            for &(log_p, terminal) in &self.paths {
                let row = row as u32;
                self.ends.push(PathEnd {
                    row,
                    terminal,
                    log_p,
                });
            }
        }
        let by_terminal = self.model.scorers.come_from_afar();
        self.ends
            .score(self.model, self.frozen, &self.block, by_terminal);
        self.ends.by_row(|row, paths| emit(row, &self.ends, paths));
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
        self.block.fill(self.preparation, rows, which, width);
        Ok(())
    }

    /// Scores are the scorers', with a beam plus the path's weighted log-probability.
    fn top_k(
        &mut self,
        k: usize,
        labels: &mut [i32],
        scores: &mut [f32],
        _control: &Control,
    ) -> Result<()> {
        let label_index = &self.model.label_index;
        let mut top = TopK::new(k.min(label_index.n_classes()));
        let span = |row: usize| row * k..(row + 1) * k;
        if self.beam_size == 1 {
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
            let path_weight = self.path_weight;
            self.score_beam(|row, ends, paths| {
                top.clear();
                for path in paths {
                    let (end, candidates, scores) = ends.get(path);
                    let more = bounded_score(path_weight * end.log_p);
                    for (&label, score) in candidates.iter().zip(scores) {
                        let score = score + more;
                        // Most are below: those need no look at the label.
                        if score >= top.bar() {
                            top.push_again(label_index.label(label), score);
                        }
                    }
                }
                top.write(&mut labels[span(row)], &mut scores[span(row)]);
            });
        }
        Ok(())
    }

    /// With a beam those of all paths whose candidates compete, the most probable first.
    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        if self.beam_size == 1 {
            self.route();
            for (row, &terminal) in self.terminals.iter().enumerate() {
                visit(row, 0, terminal);
            }
            return;
        }
        for row in 0..self.block.len() {
            self.find_paths(row);
            for &(_, terminal) in &self.paths {
                visit(row, 0, terminal);
            }
        }
    }
}
