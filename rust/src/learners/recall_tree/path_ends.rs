//! Rows at the terminals that their paths lead to, scored terminal by terminal.
//!
//! Rows at one terminal have the same candidates, whose weights are then fetched once for
//! several rows.

use std::ops::Range;

use super::frozen::FrozenTree;
use super::label_index::LocalId;
use super::learner::OnlineRecallTree;
use super::routing_tree::RoutingTree;
use super::scorers::{ScorerInput, ScorerWorkspace};
use crate::linear::{Block, PathExample, Table};
use crate::tree::NodeId;

/// Rows that each candidate scores in turn: so many stay in the nearest cache beside its
/// weights.
const TOGETHER: usize = 16;

/// Where a path of a row ends.
#[derive(Debug, Clone, Copy)]
pub struct PathEnd {
    pub row: u32,
    pub terminal: u32,
    /// Logarithm of the path's probability.
    pub log_p: f32,
}

/// What a row finds at a terminal.
#[derive(Debug, Default)]
struct AtTerminal {
    candidates: Vec<LocalId>,
    /// The nodes from the root to it.
    path: Vec<NodeId>,
    seen: Table<()>,
}

impl AtTerminal {
    /// Goes to another terminal: that of the frozen tree, or without one a node.
    fn go_to(&mut self, terminal: u32, tree: &RoutingTree, frozen: Option<&FrozenTree>) {
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

/// The paths of a block of rows, and the scores at their ends.
#[derive(Debug, Default)]
pub struct PathEnds {
    /// Row by row.
    ends: Vec<PathEnd>,
    /// Their numbers, terminal by terminal.
    order: Vec<u32>,
    /// The candidates at the end of each, and where their scores begin.
    found: Vec<(Range<usize>, usize)>,
    candidates: Vec<LocalId>,
    scores: Vec<f32>,
    /// The rows that are scored together.
    examples: Vec<PathExample>,
    workspace: ScorerWorkspace,
    at: AtTerminal,
}

impl PathEnds {
    pub fn clear(&mut self) {
        self.ends.clear();
    }

    /// Adds a path; rows come in order.
    pub fn push(&mut self, end: PathEnd) {
        self.ends.push(end);
    }

    /// Scores the candidates at the end of each path, `by_terminal` or row by row.
    pub fn score(
        &mut self,
        model: &OnlineRecallTree,
        frozen: Option<&FrozenTree>,
        block: &Block,
        by_terminal: bool,
    ) {
        let ends = &self.ends;
        self.order.clear();
        self.order.extend(0..ends.len() as u32);
        if by_terminal {
            self.order
                .sort_unstable_by_key(|&at| (ends[at as usize].terminal, at));
        }
        // The row of the first example.
        let mut held = None;
        self.found.clear();
        self.found.resize(ends.len(), (0..0, 0));
        self.candidates.clear();
        self.scores.clear();
        let terminal_of = |at: &u32| ends[*at as usize].terminal;
        for group in self.order.chunk_by(|a, b| terminal_of(a) == terminal_of(b)) {
            self.at.go_to(terminal_of(&group[0]), &model.tree, frozen);
            let AtTerminal {
                candidates, path, ..
            } = &self.at;
            let from = self.candidates.len();
            self.candidates.extend_from_slice(candidates);
            for group in group.chunks(TOGETHER) {
                if self.examples.len() < group.len() {
                    self.examples.resize_with(group.len(), PathExample::default);
                }
                let examples = &mut self.examples[..group.len()];
                for (at, &number) in group.iter().enumerate() {
                    let row = ends[number as usize].row;
                    if at > 0 || held != Some(row) {
                        examples[at].take(block, row as usize);
                    }
                    let scores = self.scores.len() + at * candidates.len();
                    self.found[number as usize] = (from..self.candidates.len(), scores);
                }
                held = Some(ends[group[0] as usize].row);
                let input = ScorerInput {
                    example: &examples[0],
                    candidates,
                    path,
                };
                let (scores, workspace) = (&mut self.scores, &mut self.workspace);
                model
                    .scorers
                    .score_together(examples, &input, workspace, scores);
            }
        }
    }

    /// Calls `visit` with the paths of each row, by their numbers.
    pub fn by_row(&self, mut visit: impl FnMut(usize, Range<usize>)) {
        let mut from = 0;
        for paths in self.ends.chunk_by(|a, b| a.row == b.row) {
            visit(paths[0].row as usize, from..from + paths.len());
            from += paths.len();
        }
    }

    /// Path number `at`, the candidates at its end and their scores.
    pub fn get(&self, at: usize) -> (PathEnd, &[LocalId], &[f32]) {
        let (candidates, from) = self.found[at].clone();
        let scores = &self.scores[from..from + candidates.len()];
        (self.ends[at], &self.candidates[candidates], scores)
    }
}
