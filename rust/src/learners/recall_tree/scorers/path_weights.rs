//! Path features: the scorers' weights of the nodes on an example's path.
//!
//! Section 3.2 of the paper: with an indicator per node of the path, a linear
//! scorer can be as good as the tree itself.

use super::column_weights::ColumnWeights;
use super::{ScorerInput, ScorerWorkspace};
use crate::learners::recall_tree::params::PathFeatures;
use crate::tree::NodeId;

/// How far a node's indicator goes for each unit that the example goes.
const SHARE: f32 = 0.1;

/// Weights of the nodes' indicators, by node and label.
#[derive(Debug, Clone)]
pub struct PathWeights {
    pub features: PathFeatures,
    /// A column per node; none without path features.
    pub columns: ColumnWeights,
}

impl PathWeights {
    /// By how much the indicators move a score for each unit that the example does.
    pub fn share(&self, path: &[NodeId]) -> f32 {
        SHARE * self.features.nodes(path).len() as f32
    }

    /// Adds the indicators' part to the scores in `workspace`.
    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        if !self.set_indicators(input.path, 1.0, workspace) {
            return;
        }
        let ScorerWorkspace {
            scores,
            candidates,
            indicator_columns,
            indicator_values,
            ..
        } = workspace;
        candidates.set(input.candidates);
        self.columns
            .score(indicator_columns, indicator_values, candidates, scores);
    }

    /// Goes as far as `workspace.steps` say.
    pub fn add(&mut self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        if !self.set_indicators(input.path, SHARE * input.example.ppu(), workspace) {
            return;
        }
        let nodes = &workspace.indicator_columns;
        let highest = nodes.iter().copied().max().unwrap_or_default();
        self.columns.reserve_columns(highest as usize + 1);
        let values = &workspace.indicator_values;
        self.columns
            .add(nodes, values, input.candidates, &workspace.steps);
    }

    /// Writes the nodes' indicators, the deepest first, all with the same value. Returns
    /// whether there are any.
    fn set_indicators(&self, path: &[NodeId], value: f32, workspace: &mut ScorerWorkspace) -> bool {
        let nodes = self.features.nodes(path);
        let columns = &mut workspace.indicator_columns;
        columns.clear();
        columns.extend(nodes.iter().rev().map(|node| node.0));
        workspace.indicator_values.clear();
        workspace.indicator_values.resize(nodes.len(), value);
        !nodes.is_empty()
    }
}
