//! What scorers are given, and where they work.

use super::column_weights::HashedCandidates;
use super::steps::SoftmaxScratch;
use crate::learners::recall_tree::label_index::LocalId;
use crate::linear::PathExample;
use crate::tree::NodeId;

/// An example at its final node.
#[derive(Debug, Clone, Copy)]
pub struct ScorerInput<'a> {
    /// The example.
    pub example: &'a PathExample,
    /// The labels to score, the most frequent first.
    pub candidates: &'a [LocalId],
    /// From the root to the final node.
    pub path: &'a [NodeId],
    /// Number of the example, by which random numbers are drawn in learning.
    pub clock: u64,
}

/// Scratch space of one thread; the scores are its result.
#[derive(Debug, Clone, Default)]
pub struct ScorerWorkspace {
    /// One per candidate.
    pub scores: Vec<f32>,
    /// How far to go along the example's direction, one per candidate.
    pub(super) steps: Vec<f32>,
    pub(super) softmax: SoftmaxScratch,
    pub(super) candidates: HashedCandidates,
    /// The path's nodes that have an indicator, as columns, with its values.
    pub(super) indicator_columns: Vec<u32>,
    pub(super) indicator_values: Vec<f32>,
    /// The example with the indicators as further columns.
    pub(super) widened: PathExample,
}

/// What can score candidates.
pub trait Score {
    /// Writes the scores of the candidates to `workspace.scores`.
    fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace);
}
