//! Prediction: rows are routed together, and those at one final node are scored in
//! a row.

use super::beam::Beam;
use super::frozen::FrozenTree;
use super::label_index::LocalId;
use super::learner::OnlineRecallTree;
use super::paths::Place;
use super::routing_tree::RoutingTree;
use super::scorers::{ScorerInput, ScorerWorkspace};
use crate::classifier::{Member, PredictOptions, Predictor, TopK};
use crate::control::Control;
use crate::data::{Preparation, Rows};
use crate::error::Result;
use crate::linear::{Block, PathExample, Table};
use crate::tree::{Groups, NodeId, Numbered, Routers};

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
    /// The rows, by terminal.
    order: Vec<u32>,
    workspace: ScorerWorkspace,
    example: PathExample,
    at_terminal: AtTerminal,
    /// A row's candidates of several final nodes, each with its best score.
    merged: Vec<(LocalId, f32)>,
}

/// What a row finds at a terminal.
#[derive(Debug, Default)]
struct AtTerminal {
    /// Which one.
    terminal: Option<u32>,
    candidates: Vec<LocalId>,
    /// The nodes from the root to it.
    path: Vec<NodeId>,
    seen: Table<()>,
}

impl AtTerminal {
    /// Goes to another terminal.
    fn go_to(&mut self, terminal: u32, tree: &RoutingTree, frozen: Option<&FrozenTree>) {
        if self.terminal.replace(terminal) == Some(terminal) {
            return;
        }
        let arena = &tree.arena;
        if let Some(frozen) = frozen {
            let terminal = terminal as usize;
            arena.path_to(frozen.final_nodes[terminal], &mut self.path);
            self.candidates.clear();
            self.candidates
                .extend_from_slice(frozen.candidates.get(terminal));
        } else {
            arena.path_to(NodeId(terminal), &mut self.path);
            arena.candidates_at_end(&self.path, &mut self.seen, &mut self.candidates);
        }
    }
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
            order: Vec::new(),
            workspace: ScorerWorkspace::default(),
            example: PathExample::default(),
            at_terminal: AtTerminal::default(),
            merged: Vec::new(),
        }
    }

    /// Scores the example with the candidates at a terminal, into the workspace.
    fn score_at(&mut self, terminal: u32) {
        let at = &mut self.at_terminal;
        at.go_to(terminal, &self.model.tree, self.frozen);
        let input = ScorerInput {
            example: &self.example,
            candidates: &at.candidates,
            path: &at.path,
        };
        self.model.scorers.score(&input, &mut self.workspace);
    }

    fn route(&mut self) {
        self.terminals.resize(self.block.len(), 0);
        self.routers
            .route(&self.block, &mut self.groups, &mut self.terminals);
    }

    /// Routes all rows, then calls `emit(row, candidates, scores)` for each, in any
    /// order.
    fn score_greedy(&mut self, mut emit: impl FnMut(usize, &[LocalId], &[f32])) {
        self.route();
        let terminals = &self.terminals;
        self.order.clear();
        self.order.extend(0..self.block.len() as u32);
        self.order
            .sort_unstable_by_key(|&row| (terminals[row as usize], row));
        for at in 0..self.order.len() {
            let row = self.order[at] as usize;
            self.example.take(&self.block, row);
            self.score_at(self.terminals[row]);
            emit(row, &self.at_terminal.candidates, &self.workspace.scores);
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

    /// As [`Self::score_greedy`], with the candidates of the most probable paths,
    /// whose weighted log-probabilities are added to the scores.
    fn score_beam(&mut self, mut emit: impl FnMut(usize, &[(LocalId, f32)])) {
        let path_weight = self.path_weight;
        for row in 0..self.block.len() {
            self.find_paths(row);
            self.example.take(&self.block, row);
            self.merged.clear();
            for at in 0..self.paths.len() {
                let (log_p, terminal) = self.paths[at];
                self.score_at(terminal);
                let candidates = self.at_terminal.candidates.iter().copied();
                let scores = self.workspace.scores.iter();
                let scores = scores.map(|score| score + path_weight * log_p);
                self.merged.extend(candidates.zip(scores));
            }
            self.merged
                .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            self.merged.dedup_by_key(|&mut (label, _)| label);
            emit(row, &self.merged);
        }
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
            self.score_beam(|row, merged| {
                top.clear();
                for &(label, score) in merged {
                    top.push(label_index.label(label), score);
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
