//! Rows at the terminals that their paths lead to, scored terminal by terminal.
//!
//! Rows at one terminal have the same candidates, whose weights are then fetched once for
//! several rows: side by side where a frozen tree has them so, else one candidate after the other.
//! Where labels are looked up column by column instead, and the frozen tree has no table for the
//! terminal, each row scores a label once, at the end of its most probable path.

use std::ops::Range;

use super::frozen::FrozenTree;
use super::label_index::LocalId;
use super::learner::OnlineRecallTree;
use super::routing_tree::RoutingTree;
use super::scorers::{ScorerInput, ScorerWorkspace};
use crate::alloc::{extend, push, resize};
use crate::linear::{bounded_score, Block, PathExample, Table};
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
    known: KnownLabels,
}

/// Labels that a row has scored, but for a few that were forgotten: to score one of those again
/// changes nothing. Takes no time for a new row, whatever the number of labels.
#[derive(Debug)]
struct KnownLabels {
    /// A label in the low half, one more than its row in the high half.
    slots: [u64; Self::SLOTS],
}

impl KnownLabels {
    const SLOTS: usize = 512;

    /// Adds the label of a row; whether it was not known.
    #[inline]
    fn insert(&mut self, row: u32, label: LocalId) -> bool {
        let entry = (u64::from(row) + 1) << 32 | u64::from(label.0);
        // Labels of low ids, which are frequent, do not drive each other out.
        std::mem::replace(&mut self.slots[label.at() % Self::SLOTS], entry) != entry
    }
}

impl Default for KnownLabels {
    fn default() -> Self {
        Self {
            slots: [0; Self::SLOTS],
        }
    }
}

impl AtTerminal {
    /// Goes to another terminal: that of the frozen tree, or without one a node. The path to a
    /// frozen one is found if it is needed.
    fn go_to(
        &mut self,
        terminal: u32,
        tree: &RoutingTree,
        frozen: Option<&FrozenTree>,
        need_path: bool,
    ) {
        let arena = &tree.arena;
        if let Some(frozen) = frozen {
            let terminal = terminal as usize;
            if need_path {
                arena.path_to(frozen.final_nodes[terminal], &mut self.path);
            }
            self.candidates.clear();
            self.candidates
                .extend_from_slice(frozen.candidates.get(terminal));
        } else {
            arena.path_to(NodeId(terminal), &mut self.path);
            arena.candidates_at_end(&self.path, &mut self.seen, &mut self.candidates);
        }
    }

    /// Leaves out the candidates that `row` has found before.
    fn leave_out_known(&mut self, row: u32) {
        let Self {
            candidates, known, ..
        } = self;
        candidates.retain(|&label| known.insert(row, label));
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
    /// Of the paths to one terminal, those whose rows are for lanes, and the others.
    for_lanes: Vec<u32>,
    for_registers: Vec<u32>,
    /// The rows that are scored together.
    examples: Vec<PathExample>,
    workspace: ScorerWorkspace,
    /// Of a row, the columns that a terminal's table has.
    lists: Vec<(u32, f32)>,
    at: AtTerminal,
}

impl PathEnds {
    pub fn clear(&mut self) {
        self.ends.clear();
    }

    /// Adds a path; rows come in order.
    pub fn push(&mut self, end: PathEnd) {
        push(&mut self.ends, end);
    }

    /// Scores the candidates at the end of each path, `by_terminal` or row by row.
    pub fn score(
        &mut self,
        model: &OnlineRecallTree,
        frozen: Option<&FrozenTree>,
        block: &Block,
        by_terminal: bool,
    ) {
        let (ends, scorers) = (&self.ends, &model.scorers);
        self.order.clear();
        extend(&mut self.order, 0..ends.len() as u32);
        if by_terminal {
            self.order
                .sort_unstable_by_key(|&at| (ends[at as usize].terminal, at));
        }
        self.at.known = KnownLabels::default();
        let once = !by_terminal && scorers.is_by_column();
        let need_path = scorers.need_path();
        // The row of the first example.
        let mut held = None;
        self.found.clear();
        resize(&mut self.found, ends.len(), (0..0, 0));
        self.candidates.clear();
        self.scores.clear();
        let end = |at: &u32| ends[*at as usize];
        let is_together = |a: &u32, b: &u32| {
            end(a).terminal == end(b).terminal && (!once || end(a).row == end(b).row)
        };
        for group in self.order.chunk_by(is_together) {
            let PathEnd { row, terminal, .. } = end(&group[0]);
            if let Some(frozen) = frozen.filter(|frozen| frozen.tables.has(terminal)) {
                let candidates = frozen.candidates.get(terminal as usize);
                let from = self.candidates.len();
                extend(&mut self.candidates, candidates.iter().copied());
                let found = from..self.candidates.len();
                for number in group {
                    let row = block.row(end(number).row as usize);
                    self.found[*number as usize] = (found.clone(), self.scores.len());
                    let (lists, scores) = (&mut self.lists, &mut self.scores);
                    frozen
                        .tables
                        .score(terminal, found.len(), row, lists, scores);
                }
                continue;
            }
            self.at.go_to(terminal, &model.tree, frozen, need_path);
            if once {
                self.at.leave_out_known(row);
            }
            let candidates = &self.at.candidates;
            if candidates.is_empty() {
                continue;
            }
            let from = self.candidates.len();
            extend(&mut self.candidates, candidates.iter().copied());
            let found = from..self.candidates.len();
            self.for_lanes.clear();
            self.for_registers.clear();
            for number in group {
                if !scorers.is_for_lanes(block, end(number).row as usize) {
                    self.for_registers.push(*number);
                    continue;
                }
                let row = end(number).row as usize;
                let at = self.scores.len();
                let is_scored = frozen.is_some_and(|frozen| {
                    let blocks = &frozen.blocks;
                    blocks.score(terminal, candidates.len(), block, row, &mut self.scores)
                });
                if is_scored {
                    self.found[*number as usize] = (found.clone(), at);
                } else {
                    self.for_lanes.push(*number);
                }
            }
            for group in self.for_lanes.chunks(TOGETHER) {
                for (at, number) in group.iter().enumerate() {
                    let scores = self.scores.len() + at * candidates.len();
                    self.found[*number as usize] = (found.clone(), scores);
                }
                let rows = group.iter().map(|number| end(number).row as usize);
                scorers.score_rows(block, &rows, candidates, &mut self.scores);
            }
            for group in self.for_registers.chunks(TOGETHER) {
                if self.examples.len() < group.len() {
                    self.examples.resize_with(group.len(), PathExample::default);
                }
                let examples = &mut self.examples[..group.len()];
                for (at, number) in group.iter().enumerate() {
                    let row = end(number).row;
                    if at > 0 || held != Some(row) {
                        examples[at].take(block, row as usize);
                    }
                    let scores = self.scores.len() + at * candidates.len();
                    self.found[*number as usize] = (found.clone(), scores);
                }
                held = Some(end(&group[0]).row);
                let input = ScorerInput {
                    example: &examples[0],
                    candidates,
                    path: &self.at.path,
                };
                let (scores, workspace) = (&mut self.scores, &mut self.workspace);
                scorers.score_together(examples, &input, workspace, scores);
            }
        }
        let scores = self.scores.iter_mut();
        scores.for_each(|score| *score = bounded_score(*score));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_knows_what_it_has_scored_and_another_row_does_not() {
        let mut known = KnownLabels::default();
        let labels = [0, 7, u32::MAX - 1].map(LocalId);
        for row in [0, 1, u32::MAX] {
            assert!(labels.iter().all(|&label| known.insert(row, label)));
            assert!(labels.iter().all(|&label| !known.insert(row, label)));
        }
        // One of the same slot is forgotten, not mistaken for the other.
        let other = LocalId(7 + KnownLabels::SLOTS as u32);
        assert!(known.insert(1, other) && known.insert(1, LocalId(7)));
    }
}
