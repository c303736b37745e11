//! Prediction: the frozen tree, the paths of a row through it, and the scores of the candidates at
//! their ends.

use std::ops::Range;

use super::candidate_weights::CandidateWeights;
use super::labels::{LabelSet, LocalId};
use super::learner::OnlineRecallTree;
use super::router::RoutingTree;
use super::scorers::ScorerWorkspace;
use crate::control::Control;
use crate::data::{Preparation, Ragged, Rows};
use crate::error::Result;
use crate::linear::{bounded_score, Block};
use crate::model::{Member, PredictOptions, Predictor, TopK};
use crate::threads::Lent;
use crate::tree::{BestFirst, FrozenRouters, Groups, Junction, NodeId, Routers};

/// The tree as prediction uses it: routers whose terminals are positions among the final nodes.
#[derive(Debug, Clone)]
pub struct FrozenTree {
    pub(super) routers: FrozenRouters,
    /// The nodes that paths end at. The path to a child whose bound is no better ends at
    /// the parent, so that several terminals may share a node.
    pub(super) final_nodes: Vec<NodeId>,
    /// The candidates of each, most frequent first.
    pub(super) candidates: Ragged<LocalId>,
    /// Copies of their weights.
    weights: CandidateWeights,
}

impl OnlineRecallTree {
    /// Makes the tree that prediction uses, in time and memory of the model's size.
    pub(super) fn frozen(&self, control: &Control) -> Result<FrozenTree> {
        let tree = &self.tree;
        let (mut final_nodes, mut all_candidates) = (Vec::new(), Ragged::default());
        let mut terminal_of = vec![u32::MAX; tree.nodes.len()];
        let (mut path, mut candidates) = (Vec::new(), Vec::new());
        let mut seen = LabelSet::default();
        let routers = FrozenRouters::new(tree, control, |number| {
            let terminal = &mut terminal_of[number as usize];
            if *terminal == u32::MAX {
                let id = NodeId(number);
                tree.path_to(id, &mut path);
                tree.candidates_at_end(&path, &mut seen, &mut candidates);
                *terminal = final_nodes.len() as u32;
                final_nodes.push(id);
                all_candidates.push(candidates.iter().copied());
            }
            *terminal
        })?;
        let n_labels = self.label_index.n_classes();
        let weights = CandidateWeights::new(&all_candidates, &self.scorers, n_labels, control)?;
        Ok(FrozenTree {
            routers,
            final_nodes,
            candidates: all_candidates,
            weights,
        })
    }
}

/// Routers opened per path and level, at most: where all paths are equally
/// probable, the search would look at most of the tree.
const EXPANSIONS_PER_LEVEL: usize = 2;

/// Paths less than a tenth as probable as the best are left out: they change next to
/// nothing and cost as much as any.
const MIN_LOG_PROBABILITY_RATIO: f32 = -std::f32::consts::LN_10;

/// A score of 1, the target that a router learned, is a log-odds of this.
const LOG_ODDS_PER_SCORE: f32 = 2.0;

/// Bytes of weights that stay in the cache of a core in any case.
const MAX_CACHED_BYTES: usize = 1 << 18;

/// The end of a path of a row.
#[derive(Debug, Clone, Default)]
struct PathEnd {
    row: usize,
    terminal: u32,
    /// Logarithm of the path's probability.
    log_p: f32,
    /// Its candidates, where the tree is not frozen.
    candidates: Range<usize>,
    /// Where the scores of the candidates begin.
    scores: usize,
}

/// What a predictor works in.
#[derive(Debug, Clone, Default)]
pub struct PredictMemory {
    block: Block,
    groups: Groups,
    search: BestFirst,
    /// The terminal of each row, with a single path.
    terminals: Vec<u32>,
    /// The paths of all rows, row by row.
    ends: Vec<PathEnd>,
    /// Their numbers, in the order in which they are scored.
    order: Vec<u32>,
    candidates: Vec<LocalId>,
    scores: Vec<f32>,
    /// The path to an end, its candidates, and which labels they are.
    path: Vec<NodeId>,
    at_end: Vec<LocalId>,
    seen: LabelSet,
    found: Vec<(u32, f32)>,
    workspace: ScorerWorkspace,
}

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
    memory: Lent<'a, PredictMemory>,
}

impl<'a> BlockPredictor<'a> {
    pub(super) fn new(
        member: &'a Member<OnlineRecallTree>,
        frozen: Option<&'a FrozenTree>,
        options: &PredictOptions,
        memory: Lent<'a, PredictMemory>,
    ) -> Self {
        let params = member.learner.tree.params.with_beam(options);
        Self {
            preparation: &member.preparation,
            model: &member.learner,
            frozen,
            routers: Routers::new(frozen.map(|frozen| &frozen.routers), &member.learner.tree),
            beam_size: params.beam_size as usize,
            path_weight: params.path_weight as f32,
            memory,
        }
    }

    /// Finds the paths of all rows: the one that the routers lead to or, with a beam, the most
    /// probable ones, the most probable first.
    fn find_paths(&mut self) {
        let memory = &mut *self.memory;
        memory.ends.clear();
        let n_rows = memory.block.len();
        if self.beam_size > 1 {
            (0..n_rows).for_each(|row| self.search_paths(row));
            return;
        }
        memory.terminals.resize(n_rows, 0);
        self.routers
            .route(&memory.block, &mut memory.groups, &mut memory.terminals);
        let ends = memory.terminals.iter().enumerate();
        let ends = ends.map(|(row, &terminal)| PathEnd {
            row,
            terminal,
            ..PathEnd::default()
        });
        memory.ends.extend(ends);
    }

    /// Adds the most probable paths of a row; of several to one terminal the most probable.
    ///
    /// The first is not always where the greedy path ends: a path of many near
    /// decisions may be less probable than another.
    fn search_paths(&mut self, row: usize) {
        let PredictMemory {
            block,
            search,
            ends,
            ..
        } = &mut *self.memory;
        let look = self.routers.look(block, row);
        let look = |node| match look(node) {
            Junction::Router {
                router: score,
                children,
            } => Junction::Router {
                router: LOG_ODDS_PER_SCORE * score,
                children,
            },
            terminal @ Junction::Terminal(_) => terminal,
        };
        let levels = self.model.tree.max_depth as usize + 1;
        search.start(
            self.routers.root(),
            EXPANSIONS_PER_LEVEL * self.beam_size * levels,
        );
        let from = ends.len();
        let mut most = f32::INFINITY;
        while let Some((cost, terminal)) = search.next(most, &look) {
            if ends.len() == from {
                most = cost - MIN_LOG_PROBABILITY_RATIO;
            }
            if ends[from..].iter().all(|end| end.terminal != terminal) {
                let end = PathEnd {
                    row,
                    terminal,
                    // Not -0.
                    log_p: 0.0 - cost,
                    ..PathEnd::default()
                };
                ends.push(end);
            }
            if ends.len() - from == self.beam_size || search.is_spent() {
                break;
            }
        }
    }

    /// Scores the candidates at the ends of all paths: by the copies of their weights, where a
    /// frozen tree has them, else by the scorers' own.
    fn score_ends(&mut self) {
        let memory = &mut *self.memory;
        let (tree, scorers) = (&self.model.tree, &self.model.scorers);
        memory.order.clear();
        memory.order.extend(0..memory.ends.len() as u32);
        let (classes, width) = scorers.by_class();
        // Rows at one end share its weights while they are near.
        if classes.len() * width * size_of::<f32>() > MAX_CACHED_BYTES {
            let ends = &memory.ends;
            let terminal = |&at: &u32| (ends[at as usize].terminal, at);
            memory.order.sort_unstable_by_key(terminal);
        }
        memory.candidates.clear();
        memory.scores.clear();
        let scores = &mut memory.scores;
        for &at in &memory.order {
            let end = &mut memory.ends[at as usize];
            end.scores = scores.len();
            let mut candidates = &memory.at_end[..];
            let mut node = NodeId(end.terminal);
            if let Some(frozen) = self.frozen {
                candidates = frozen.candidates.get(end.terminal as usize);
                let ends_at = (end.terminal, candidates.len());
                let row = (&memory.block, end.row);
                if frozen
                    .weights
                    .score(ends_at, row, &mut memory.found, scores)
                {
                    continue;
                }
                node = frozen.final_nodes[end.terminal as usize];
            }
            tree.path_to(node, &mut memory.path);
            if self.frozen.is_none() {
                tree.candidates_at_end(&memory.path, &mut memory.seen, &mut memory.at_end);
                candidates = &memory.at_end;
                let from = memory.candidates.len();
                memory.candidates.extend(candidates.iter().copied());
                end.candidates = from..memory.candidates.len();
            }
            let row = (&memory.block, end.row);
            scorers.score_row(row, candidates, &memory.path, &mut memory.workspace);
            scores.extend(memory.workspace.scores.iter().copied());
        }
        scores
            .iter_mut()
            .for_each(|score| *score = bounded_score(*score));
    }

    /// The candidates at the end of a path, and their scores.
    fn scored(&self, end: &PathEnd) -> (&[LocalId], &[f32]) {
        let candidates = match self.frozen {
            Some(frozen) => frozen.candidates.get(end.terminal as usize),
            None => &self.memory.candidates[end.candidates.clone()],
        };
        let scores = &self.memory.scores[end.scores..][..candidates.len()];
        (candidates, scores)
    }
}

impl Predictor for BlockPredictor<'_> {
    fn read(
        &mut self,
        rows: &Rows<'_>,
        which: impl ExactSizeIterator<Item = usize> + Clone,
        _control: &Control,
    ) -> Result<()> {
        let (width, block) = (self.routers.width(), &mut self.memory.block);
        block.fill(self.preparation, rows, which, width);
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
        self.find_paths();
        self.score_ends();
        let label_index = &self.model.label_index;
        let mut top = TopK::new(k.min(label_index.n_classes()));
        for paths in self.memory.ends.chunk_by(|a, b| a.row == b.row) {
            top.clear();
            let span = paths[0].row * k..(paths[0].row + 1) * k;
            let (labels, scores) = (&mut labels[span.clone()], &mut scores[span]);
            if self.beam_size == 1 {
                let (candidates, values) = self.scored(&paths[0]);
                // Positions: of equal scores the more frequent label's comes first.
                for (position, &score) in (0..).zip(values) {
                    top.push(position, score);
                }
                top.write(labels, scores);
                for label in labels.iter_mut().take_while(|position| **position >= 0) {
                    *label = label_index.label(candidates[*label as usize]) as i32;
                }
                continue;
            }
            for end in paths {
                let (candidates, values) = self.scored(end);
                let more = bounded_score(self.path_weight * end.log_p);
                for (&label, score) in candidates.iter().zip(values) {
                    let score = score + more;
                    // Most are below: those need no look at the label. A label may be at the
                    // ends of several paths.
                    if score >= top.bar() {
                        top.push_again(label_index.label(label), score);
                    }
                }
            }
            top.write(labels, scores);
        }
        Ok(())
    }

    /// With a beam those of all paths whose candidates compete, the most probable first.
    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        self.find_paths();
        for end in &self.memory.ends {
            visit(end.row, 0, end.terminal);
        }
    }
}
