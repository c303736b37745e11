//! Path features: the scorers' weights of the nodes on an example's path.
//!
//! Section 3.2 of the paper: with an indicator per node of the path, a linear
//! scorer can be as good as the tree itself.

use super::column_weights::ColumnWeights;
use super::workspace::{ScorerInput, ScorerWorkspace};
use crate::learners::recall_tree::params::PathFeatures;
use crate::tree::NodeId;

/// How far a node's indicator goes for each unit that the example goes.
const SHARE: f32 = 0.1;

/// Weights of the nodes' indicators, by node and label.
#[derive(Debug, Clone)]
pub struct PathWeights {
    features: PathFeatures,
    /// A column per node; none without path features.
    pub(super) columns: ColumnWeights,
}

impl PathWeights {
    /// Weights of 0.
    pub fn new(features: PathFeatures) -> Self {
        Self {
            features,
            columns: ColumnWeights::new(0),
        }
    }

    /// Whether the scorers see the path at all.
    fn is_used(&self) -> bool {
        self.features != PathFeatures::None
    }

    /// By how much the indicators move a score for each unit that the example does.
    pub fn share(&self, path: &[NodeId]) -> f32 {
        SHARE * self.nodes(path).len() as f32
    }

    /// Adds the indicators' part to the scores in `workspace`.
    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        if !self.is_used() {
            return;
        }
        self.set_indicators(input.path, 1.0, workspace);
        workspace.candidates.set(input.candidates);
        self.columns.score(
            &workspace.indicator_columns,
            &workspace.indicator_values,
            &workspace.candidates,
            &mut workspace.scores,
        );
    }

    /// Goes as far as `workspace.steps` say.
    pub fn add(&mut self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        if !self.is_used() {
            return;
        }
        self.set_indicators(input.path, SHARE * input.example.ppu(), workspace);
        let nodes = &workspace.indicator_columns;
        let highest = nodes.iter().max();
        self.columns
            .reserve_columns(highest.map_or(0, |&node| node as usize + 1));
        self.columns.add(
            nodes,
            &workspace.indicator_values,
            input.candidates,
            &workspace.steps,
        );
    }

    /// The nodes of a path that have an indicator. The root has none.
    fn nodes<'a>(&self, path: &'a [NodeId]) -> &'a [NodeId] {
        match self.features {
            PathFeatures::None => &[],
            PathFeatures::All => &path[1..],
            PathFeatures::NodeOnly => &path[path.len().saturating_sub(1)..],
        }
    }

    /// Writes the nodes' indicators, the deepest first, all with the same value.
    fn set_indicators(&self, path: &[NodeId], value: f32, workspace: &mut ScorerWorkspace) {
        let nodes = self.nodes(path);
        let columns = &mut workspace.indicator_columns;
        columns.clear();
        columns.extend(nodes.iter().rev().map(|node| node.0));
        workspace.indicator_values.clear();
        workspace.indicator_values.resize(nodes.len(), value);
    }
}
