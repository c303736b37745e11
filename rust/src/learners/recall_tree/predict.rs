//! Prediction: the frozen tree, the paths of a row, and the scores of the candidates at their ends.

use std::ops::Range;

use super::candidate_weights::{CandidateWeights, List};
use super::labels::LocalId;
use super::learner::OnlineRecallTree;
use super::router::RoutingTree;
use super::scorers::ScorerWorkspace;
use crate::control::Control;
use crate::data::{Preparation, Ragged, Rows};
use crate::error::Result;
use crate::linear::{bounded_score, Block};
use crate::model::{Member, PredictOptions, Predictor, TopK};
use crate::threads::Lent;
use crate::tree::{BestFirst, FrozenRouters, Groups, NodeId, Routers};

/// The tree as predictions use it. Terminals are node ids, as in the learning tree: a path towards a
/// blocked child ends at the parent.
#[derive(Debug, Clone)]
pub struct FrozenTree {
    pub(super) routers: FrozenRouters,
    /// The candidates of each node where paths end, the most frequent first. Other nodes have none.
    pub(super) candidates: Ragged<LocalId>,
    weights: CandidateWeights,
}

impl OnlineRecallTree {
    /// Returns the tree that predictions use, in time and memory proportional to the model.
    pub(super) fn frozen(&self, control: &Control) -> Result<FrozenTree> {
        let tree = &self.tree;
        let mut is_final = vec![false; tree.nodes.len()];
        let routers = FrozenRouters::new(tree, control, |node| {
            is_final[node as usize] = true;
            node
        })?;
        let mut candidates = Ragged::default();
        let (mut at_end, mut is_known) = (Vec::new(), Vec::new());
        for (id, is_final) in (0..).map(NodeId).zip(is_final) {
            at_end.clear();
            if is_final {
                tree.candidates_at_end(id, &mut is_known, &mut at_end);
            }
            candidates.push(at_end.iter().copied());
        }
        let weights = CandidateWeights::new(&candidates, &self.scorers, control)?;
        Ok(FrozenTree {
            routers,
            candidates,
            weights,
        })
    }
}

/// Routers that the search opens per path and level, at most. Without a bound, it would visit most
/// of the tree where all paths are equally probable.
const EXPANSIONS_PER_LEVEL: usize = 2;

/// Paths less than a tenth as probable as the best are left out: they hardly change a prediction and
/// cost as much as any other.
const MIN_LOG_PROBABILITY_RATIO: f32 = -std::f32::consts::LN_10;

/// Log-odds of a score of 1, the target of a router.
const LOG_ODDS_PER_SCORE: f32 = 2.0;

/// Bytes of weights that always stay in the cache of a core.
const MAX_CACHED_BYTES: usize = 1 << 18;

/// The end of a path of a row.
#[derive(Debug, Clone, Default)]
struct PathEnd {
    row: usize,
    node: u32,
    /// The logarithm of the probability of the path.
    log_p: f32,
    /// The candidates and their scores among those of all ends.
    candidates: Range<usize>,
}

/// Scratch space of a predictor.
#[derive(Debug, Clone, Default)]
pub struct PredictMemory {
    block: Block,
    groups: Groups,
    search: BestFirst,
    /// The node where the path of each row ends, if there is one path per row.
    terminals: Vec<u32>,
    /// The ends of the paths of all rows, row by row.
    ends: Vec<PathEnd>,
    /// Positions of the ends, in the order in which they are scored.
    order: Vec<u32>,
    candidates: Vec<LocalId>,
    scores: Vec<f32>,
    path: Vec<NodeId>,
    is_known: Vec<bool>,
    found: Vec<(List, f32)>,
    workspace: ScorerWorkspace,
}

/// A predictor of blocks of rows, for one thread.
#[derive(Debug)]
pub struct BlockPredictor<'a> {
    preparation: &'a Preparation,
    model: &'a OnlineRecallTree,
    frozen: Option<&'a FrozenTree>,
    routers: Routers<'a, RoutingTree>,
    beam_size: usize,
    /// Weight of the log-probability of a path in a score.
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

    /// Finds the paths of all rows: with a beam the most probable ones, the most probable first,
    /// else the path that the routers choose.
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
        memory.ends.extend(ends.map(|(row, &node)| PathEnd {
            row,
            node,
            ..PathEnd::default()
        }));
    }

    /// Adds the most probable paths of a row. Of several paths to one node, only the most probable
    /// is added.
    ///
    /// The first path may differ from the path that the routers choose: after many close decisions,
    /// that one may be less probable.
    fn search_paths(&mut self, row: usize) {
        let PredictMemory {
            block,
            search,
            ends,
            ..
        } = &mut *self.memory;
        let look = self.routers.look(block, row, LOG_ODDS_PER_SCORE);
        let levels = self.model.tree.max_depth as usize + 1;
        search.start(
            self.routers.root(),
            EXPANSIONS_PER_LEVEL * self.beam_size * levels,
        );
        let from = ends.len();
        let mut most = f32::INFINITY;
        while let Some((cost, node)) = search.next(most, &look) {
            if ends.len() == from {
                most = cost - MIN_LOG_PROBABILITY_RATIO;
            }
            if ends[from..].iter().all(|end| end.node != node) {
                ends.push(PathEnd {
                    row,
                    node,
                    // Subtracting from 0 gives 0 where negation would give -0.
                    log_p: 0.0 - cost,
                    ..PathEnd::default()
                });
            }
            if ends.len() - from == self.beam_size || search.is_spent() {
                break;
            }
        }
    }

    /// Scores the candidates at the ends of all paths, by copies of their weights if there are any,
    /// else by the scorers' own weights.
    fn score_ends(&mut self) {
        let memory = &mut *self.memory;
        let (tree, scorers) = (&self.model.tree, &self.model.scorers);
        memory.order.clear();
        memory.order.extend(0..memory.ends.len() as u32);
        // Rows that end at the same node share its weights while these are in the cache.
        if scorers.row_bytes() > MAX_CACHED_BYTES {
            let ends = &memory.ends;
            let order = &mut memory.order;
            order.sort_unstable_by_key(|&at| (ends[at as usize].node, at));
        }
        memory.candidates.clear();
        memory.scores.clear();
        for &at in &memory.order {
            let end = &mut memory.ends[at as usize];
            let (node, row) = (NodeId(end.node), (&memory.block, end.row));
            let from = memory.candidates.len();
            match self.frozen {
                Some(frozen) => {
                    let candidates = frozen.candidates.get(node.at());
                    memory.candidates.extend_from_slice(candidates);
                }
                None => {
                    tree.candidates_at_end(node, &mut memory.is_known, &mut memory.candidates);
                }
            }
            end.candidates = from..memory.candidates.len();
            let candidates = &memory.candidates[from..];
            let (found, scores) = (&mut memory.found, &mut memory.scores);
            let is_scored = self.frozen.is_some_and(|frozen| {
                let node = (node, candidates.len());
                frozen.weights.score(node, row, found, scores)
            });
            if !is_scored {
                tree.path_to(node, &mut memory.path);
                let candidates = (candidates, &memory.path[..]);
                scorers.score_row(row, candidates, &mut memory.workspace, scores);
            }
        }
        memory
            .scores
            .iter_mut()
            .for_each(|score| *score = bounded_score(*score));
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

    /// Scores are those of the scorers, with a beam plus the weighted log-probability of the path.
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
        let mut top = TopK::new(k.min(label_index.n_keys()));
        let memory = &self.memory;
        for paths in memory.ends.chunk_by(|a, b| a.row == b.row) {
            top.clear();
            let span = paths[0].row * k..(paths[0].row + 1) * k;
            let (labels, scores) = (&mut labels[span.clone()], &mut scores[span]);
            for end in paths {
                let range = end.candidates.clone();
                let candidates = &memory.candidates[range.clone()];
                let more = bounded_score(self.path_weight * end.log_p);
                for (position, score) in (0..).zip(&memory.scores[range]) {
                    let score = score + more;
                    // Most scores are below the bar, which saves reading the label. A label may be
                    // a candidate at several ends.
                    if score >= top.bar() {
                        let label = candidates[position as usize];
                        let is_greedy = self.beam_size == 1;
                        let label = if is_greedy {
                            position
                        } else {
                            label_index.keys()[label.at()]
                        };
                        top.push_again(label, score);
                    }
                }
            }
            top.write(labels, scores);
            if self.beam_size == 1 {
                // Positions took the place of labels, so that of two labels with equal scores the
                // more frequent one comes first.
                let candidates = &memory.candidates[paths[0].candidates.clone()];
                for label in labels.iter_mut().take_while(|position| **position >= 0) {
                    *label = label_index.keys()[candidates[*label as usize].at()] as i32;
                }
            }
        }
        Ok(())
    }

    /// With a beam, visits the ends of all paths whose candidates compete, the most probable first.
    fn terminals(&mut self, visit: &mut dyn FnMut(usize, usize, u32)) {
        self.find_paths();
        for end in &self.memory.ends {
            visit(end.row, 0, end.node);
        }
    }
}
