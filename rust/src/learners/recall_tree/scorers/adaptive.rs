//! Scorers whose weights carry sums of their own, for the optimisers "nag" and
//! "adagrad": they learn one after the other, as in the authors' program.

use super::{ScorerInput, ScorerUpdate, ScorerWorkspace};
use crate::alloc::extend;
use crate::file::LARGEST;
use crate::learners::recall_tree::label_index::LocalId;
use crate::learners::recall_tree::params::{Params, PathFeatures};
use crate::linear::{Loss, Regressors};
use crate::persist;
use crate::tree::NodeId;

/// Columns for nodes' indicators; more nodes than this share them.
const NODE_COLUMNS: u32 = 1 << 20;

/// All classes' regressors. Nodes are further columns of the example.
#[derive(Debug, Clone)]
pub struct AdaptiveScorers {
    features: PathFeatures,
    rate: f32,
    /// The column of node 0's indicator.
    first_node: u32,
    pub regressors: Regressors,
}

persist!(AdaptiveScorers {
    Nest regressors;
});

impl AdaptiveScorers {
    pub fn new(params: &Params, n_classes: usize, width: usize) -> Self {
        let nodes = match params.path_features {
            PathFeatures::None => 0,
            PathFeatures::All | PathFeatures::NodeOnly => NODE_COLUMNS as usize,
        };
        let loss = params.loss.single().unwrap_or(Loss::Hinge);
        let mut scorers = Self {
            features: params.path_features,
            rate: params.scorer_rate().min(LARGEST.into()) as f32,
            first_node: width as u32,
            regressors: Regressors::new(params.optimizer, loss, width + nodes),
        };
        scorers.grow(n_classes);
        scorers
    }

    /// See [`Scorers::grow`](super::Scorers::grow).
    pub fn grow(&mut self, n_classes: usize) {
        for _ in self.regressors.len()..n_classes {
            self.regressors.push();
        }
    }

    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        self.widen(input, workspace);
        let (scores, widened) = (&mut workspace.scores, &workspace.widened);
        let candidates = input.candidates.iter();
        scores.clear();
        extend(
            scores,
            candidates.map(|&label| self.regressors.score(label.0, widened)),
        );
    }

    /// The label learns +1, then each other candidate -1.
    pub fn learn(&mut self, update: &ScorerUpdate<'_>, workspace: &mut ScorerWorkspace) {
        self.widen(&update.input, workspace);
        let example = &mut workspace.widened;
        let (candidates, weight) = (update.input.candidates, update.weight);
        self.regressors.prepare(example, weight);
        let a = weight * self.rate;
        let mut learn = |label: LocalId, y| {
            self.regressors
                .learn(label.0, example, y, a, weight, |_| None)
        };
        learn(candidates[update.correct], 1.0);
        for (place, &other) in candidates.iter().enumerate() {
            if place != update.correct {
                learn(other, -1.0);
            }
        }
    }

    /// Makes the example with the indicators of its nodes, the deepest first.
    fn widen(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        let column = |node: &NodeId| self.first_node + node.0 % NODE_COLUMNS;
        let nodes = self.features.nodes(input.path).iter().rev();
        workspace.widened.widened(input.example, nodes.map(column));
    }
}
