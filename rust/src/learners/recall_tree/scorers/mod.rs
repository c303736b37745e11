//! One-against-some: a regressor per class, shared by the whole tree.

mod adaptive;
mod column_weights;
mod filtered_map;
mod plain;
mod steps;

use self::adaptive::AdaptiveScorers;
pub use self::column_weights::ColumnWeights;
use self::plain::PlainScorers;
use super::candidate_blocks::CandidateBlocks;
use super::candidate_tables::CandidateTables;
use super::label_index::LocalId;
use super::params::Params;
use crate::alloc::extend;
use crate::control::Control;
use crate::data::Ragged;
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::linear::{Block, PathExample};
use crate::tree::NodeId;

/// An example at its final node.
#[derive(Debug, Clone, Copy)]
pub struct ScorerInput<'a> {
    pub example: &'a PathExample,
    /// The labels to score, the most frequent first.
    pub candidates: &'a [LocalId],
    /// From the root to the final node.
    pub path: &'a [NodeId],
}

/// What scorers learn: which of the candidates is right.
#[derive(Debug, Clone, Copy)]
pub struct ScorerUpdate<'a> {
    pub input: ScorerInput<'a>,
    /// The position of the example's label.
    pub correct: usize,
    pub weight: f32,
    /// Number of the example, by which random numbers are drawn.
    pub clock: u64,
}

/// Scratch space of one thread, in cache lines of its own; the scores are its result.
#[derive(Debug, Clone, Default)]
#[repr(align(128))]
pub struct ScorerWorkspace {
    /// One per candidate.
    pub scores: Vec<f32>,
    /// The candidate of the highest score; set by the learner.
    pub predicted: Option<LocalId>,
    /// How far to go along the example's direction, one per candidate.
    steps: Vec<f32>,
    /// What the softmax reads and writes, padded to whole registers.
    softmax_scores: Vec<f32>,
    gradients: Vec<f32>,
    /// The hashes of the candidates.
    hashes: Vec<u32>,
    /// The path's nodes that have an indicator, as columns, with its values.
    indicators: (Vec<u32>, Vec<f32>),
    /// The example with the indicators as further columns.
    widened: PathExample,
}

/// All classes' regressors.
#[derive(Debug, Clone)]
pub enum Scorers {
    Plain(PlainScorers),
    Adaptive(AdaptiveScorers),
}

impl Scorers {
    /// Weights of 0; for examples of `width` columns, of which about `n_filled` are
    /// not 0.
    pub fn new(params: &Params, n_classes: usize, width: usize, n_filled: usize) -> Self {
        if params.is_adaptive() {
            Self::Adaptive(AdaptiveScorers::new(params, n_classes, width))
        } else {
            Self::Plain(PlainScorers::new(params, n_classes, width, n_filled))
        }
    }

    /// Adds scorers of weights of 0, so that there are `n_classes`.
    pub fn grow(&mut self, n_classes: usize) {
        match self {
            Self::Plain(scorers) => scorers.grow(n_classes),
            Self::Adaptive(scorers) => scorers.grow(n_classes),
        }
    }

    /// Writes the scores of the candidates to `workspace.scores`.
    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        match self {
            Self::Plain(scorers) => scorers.score(input, workspace),
            Self::Adaptive(scorers) => scorers.score(input, workspace),
        }
    }

    /// Whether to fetch candidates' weights once for several rows is worth the trouble of putting
    /// rows together.
    pub fn come_from_afar(&self) -> bool {
        match self {
            Self::Plain(scorers) => scorers.come_from_afar(),
            Self::Adaptive(_) => false,
        }
    }

    /// The weights of the candidates at each final node side by side; none where scorers do not
    /// have them in rows.
    pub fn candidate_blocks(
        &self,
        candidates: &Ragged<LocalId>,
        control: &Control,
    ) -> Result<CandidateBlocks> {
        match self {
            Self::Plain(scorers) if scorers.is_by_class() => {
                scorers.candidate_blocks(candidates, control)
            }
            _ => Ok(CandidateBlocks::default()),
        }
    }

    /// The weights of the candidates at each final node by column; none where scorers do not have
    /// them so.
    pub fn candidate_tables(
        &self,
        candidates: &Ragged<LocalId>,
        control: &Control,
    ) -> Result<CandidateTables> {
        match self {
            Self::Plain(scorers) if scorers.is_by_column() => {
                scorers.candidate_tables(candidates, control)
            }
            _ => Ok(CandidateTables::default()),
        }
    }

    /// About how many weights [`Self::candidate_blocks`] or [`Self::candidate_tables`] copies.
    pub fn candidate_weights(&self, n_nodes: usize, n_candidates: usize) -> usize {
        match self {
            Self::Plain(scorers) => scorers.candidate_weights(n_nodes, n_candidates),
            Self::Adaptive(_) => 0,
        }
    }

    /// Whether scores depend on the path to the final node, too.
    pub fn need_path(&self) -> bool {
        match self {
            Self::Plain(scorers) => !scorers.is_by_class() && !scorers.is_by_column(),
            Self::Adaptive(_) => true,
        }
    }

    /// Whether row `i` of a block is scored by [`Self::score_rows`], or from a block of candidates.
    pub fn is_for_lanes(&self, block: &Block, i: usize) -> bool {
        matches!(self, Self::Plain(scorers) if scorers.is_by_class()) && block.is_for_lanes(i)
    }

    /// Appends to `scores` those of the candidates for each of the rows, which are
    /// [for lanes](Self::is_for_lanes).
    pub fn score_rows(
        &self,
        block: &Block,
        rows: &(impl ExactSizeIterator<Item = usize> + Clone),
        candidates: &[LocalId],
        scores: &mut Vec<f32>,
    ) {
        if let Self::Plain(scorers) = self {
            scorers.score_rows(block, rows, candidates, scores);
        }
    }

    /// Whether a candidate has the same score at the end of every path, by weights that are looked
    /// up: to score it once for a row is worth while.
    pub fn is_by_column(&self) -> bool {
        matches!(self, Self::Plain(scorers) if scorers.is_by_column())
    }

    /// Appends to `scores` those of the candidates for each of the examples, which are all at
    /// the final node of `input`; its own example does not matter.
    pub fn score_together(
        &self,
        examples: &[PathExample],
        input: &ScorerInput<'_>,
        workspace: &mut ScorerWorkspace,
        scores: &mut Vec<f32>,
    ) {
        match self {
            Self::Plain(scorers) if scorers.is_by_class() => {
                scorers.score_together(examples, input.candidates, scores);
            }
            _ => {
                for example in examples {
                    self.score(&ScorerInput { example, ..*input }, workspace);
                    extend(scores, workspace.scores.iter().copied());
                }
            }
        }
    }

    /// Decides on the steps, from the scores in `workspace`. Adaptive scorers decide on
    /// each as they take it.
    pub fn decide(&self, update: &ScorerUpdate<'_>, workspace: &mut ScorerWorkspace) {
        if let Self::Plain(scorers) = self {
            scorers.decide(update, workspace);
        }
    }

    /// Takes the steps that were decided on.
    pub fn apply(&mut self, update: &ScorerUpdate<'_>, workspace: &mut ScorerWorkspace) {
        match self {
            Self::Plain(scorers) => scorers.apply(update, workspace),
            Self::Adaptive(scorers) => scorers.learn(update, workspace),
        }
    }

    /// Another share of a pass is done.
    pub fn pass(&mut self, share: f64) {
        if let Self::Plain(scorers) = self {
            scorers.passes += share;
        }
    }
}

impl Persist for Scorers {
    fn put(&self, bundle: &mut Bundle) {
        match self {
            Self::Plain(scorers) => scorers.put(bundle),
            Self::Adaptive(scorers) => scorers.put(bundle),
        }
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        match self {
            Self::Plain(scorers) => scorers.fill(bundle),
            Self::Adaptive(scorers) => scorers.fill(bundle),
        }
    }
}
