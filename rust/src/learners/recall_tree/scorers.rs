//! One-against-some: a scorer per class, shared by the whole tree. With the softmax and margin
//! losses candidates learn [jointly](JointScorers); with those of the paper each by itself.

use super::joint_scorers::JointScorers;
pub use super::joint_scorers::{ScorerInput, ScorerWorkspace};
use super::labels::LocalId;
use super::params::{Params, PathFeatures};
use crate::error::Result;
use crate::file::{Bundle, Persist, LARGEST};
use crate::linear::{bounded_score, Block, Loss, PathExample, Regressors, Weights};
use crate::persist;
use crate::tree::NodeId;

/// All classes' scorers.
#[derive(Debug, Clone)]
pub enum Scorers {
    Joint(JointScorers),
    Single(SingleScorers),
}

impl Scorers {
    /// Weights of 0; for examples of `width` columns, of which about `n_filled` are
    /// not 0.
    pub fn new(params: &Params, n_classes: usize, width: usize, n_filled: usize) -> Self {
        match params.loss.single() {
            None => Self::Joint(JointScorers::new(params, n_classes, width, n_filled)),
            Some(loss) => Self::Single(SingleScorers::new(params, loss, n_classes, width)),
        }
    }

    /// Adds scorers of weights of 0, so that there are `n_classes`.
    pub fn grow(&mut self, n_classes: usize) {
        match self {
            Self::Joint(scorers) => scorers.grow(n_classes),
            Self::Single(scorers) => scorers.grow(n_classes),
        }
    }

    /// Writes the scores of the candidates to `workspace.scores`.
    pub fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        match self {
            Self::Joint(scorers) => scorers.score(input, workspace),
            Self::Single(scorers) => scorers.score(input, workspace),
        }
    }

    /// Writes the scores of the candidates at the end of `path` for row `i` of a block to
    /// `workspace.scores`, to the bit those by weights that a frozen tree has copied.
    pub fn score_row(
        &self,
        (block, i): (&Block, usize),
        candidates: &[LocalId],
        path: &[NodeId],
        workspace: &mut ScorerWorkspace,
    ) {
        let (by_class, _) = self.by_class();
        if !by_class.is_empty() && block.is_for_lanes(i) {
            let weights = candidates.iter().map(|label| &by_class[label.at()]);
            let scores = weights.map(|weights| bounded_score(block.dot_as_lane(i, weights)));
            workspace.scores.clear();
            workspace.scores.extend(scores);
            return;
        }
        let mut example = std::mem::take(&mut workspace.row);
        example.take(block, i);
        let input = ScorerInput {
            example: &example,
            candidates,
            path,
        };
        self.score(&input, workspace);
        workspace.row = example;
    }

    /// The weights of each class, and for how many columns, where they are kept so; else none.
    pub fn by_class(&self) -> (&[Weights<f32>], usize) {
        match self {
            Self::Joint(scorers) => (&scorers.by_class, scorers.width),
            Self::Single(_) => (&[], 0),
        }
    }

    /// After [`score`](Self::score): the scorer of the candidate at `correct` learns +1, those of
    /// the others -1. `clock`: number of the example, by which random numbers are drawn.
    pub fn learn(
        &mut self,
        input: &ScorerInput<'_>,
        correct: usize,
        weight: f32,
        clock: u64,
        workspace: &mut ScorerWorkspace,
    ) {
        match self {
            Self::Joint(scorers) => scorers.learn(input, correct, weight, clock, workspace),
            Self::Single(scorers) => scorers.learn(input, correct, weight, workspace),
        }
    }

    /// Another share of a pass is done.
    pub fn pass(&mut self, share: f64) {
        if let Self::Joint(scorers) = self {
            scorers.passes += share;
        }
    }

    /// Clamps scores to one span with the routers, as the authors' program does.
    pub fn share_span(&mut self, routers: &mut Regressors) {
        if let Self::Single(scorers) = self {
            scorers.regressors.widen(routers.span());
            routers.widen(scorers.regressors.span());
        }
    }

    /// Drops what optimizers keep beside the weights.
    pub fn drop_state(&mut self) {
        if let Self::Single(scorers) = self {
            scorers.regressors = scorers.regressors.for_prediction();
        }
    }
}

impl Persist for Scorers {
    fn put(&self, bundle: &mut Bundle) {
        match self {
            Self::Joint(scorers) => scorers.put(bundle),
            Self::Single(scorers) => scorers.put(bundle),
        }
    }

    fn fill(&mut self, bundle: &mut Bundle) -> Result<()> {
        match self {
            Self::Joint(scorers) => scorers.fill(bundle),
            Self::Single(scorers) => scorers.fill(bundle),
        }
    }
}

/// Columns for nodes' indicators; more nodes than this share them.
const NODE_COLUMNS: u32 = 1 << 20;

/// Scorers that learn one after the other, as in the paper and its authors' program. Section 3.2:
/// with an indicator per node of the path, a linear scorer can be as good as the tree itself.
#[derive(Debug, Clone)]
pub struct SingleScorers {
    features: PathFeatures,
    rate: f32,
    /// The column of node 0's indicator.
    first_node: u32,
    regressors: Regressors,
}

persist!(SingleScorers {
    Nest regressors;
});

impl SingleScorers {
    fn new(params: &Params, loss: Loss, n_classes: usize, width: usize) -> Self {
        let nodes = match params.path_features {
            PathFeatures::None => 0,
            PathFeatures::All | PathFeatures::NodeOnly => NODE_COLUMNS as usize,
        };
        let mut scorers = Self {
            features: params.path_features,
            rate: params.scorer_rate().min(LARGEST.into()) as f32,
            first_node: width as u32,
            regressors: Regressors::new(params.optimizer(), loss, width + nodes),
        };
        scorers.grow(n_classes);
        scorers
    }

    fn grow(&mut self, n_classes: usize) {
        for _ in self.regressors.len()..n_classes {
            self.regressors.push();
        }
    }

    fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        self.widen(input, &mut workspace.widened);
        let (scores, example) = (&mut workspace.scores, &workspace.widened);
        let regressors = &self.regressors;
        let of_label = |label: &LocalId| bounded_score(regressors.score(label.0, example));
        scores.clear();
        scores.extend(input.candidates.iter().map(of_label));
    }

    /// The label learns +1, then each other candidate -1.
    fn learn(
        &mut self,
        input: &ScorerInput<'_>,
        correct: usize,
        weight: f32,
        workspace: &mut ScorerWorkspace,
    ) {
        let example = &mut workspace.widened;
        self.widen(input, example);
        self.regressors.prepare(example, weight);
        let step = weight * self.rate;
        let mut learn = |label: LocalId, y| {
            self.regressors
                .learn(label.0, example, y, step, weight, |_| None)
        };
        learn(input.candidates[correct], 1.0);
        for (place, &other) in input.candidates.iter().enumerate() {
            if place != correct {
                learn(other, -1.0);
            }
        }
    }

    /// Makes the example with the indicators of its nodes, the deepest first, as further columns.
    fn widen(&self, input: &ScorerInput<'_>, widened: &mut PathExample) {
        let nodes = match self.features {
            PathFeatures::None => &[],
            PathFeatures::All => &input.path[1..],
            PathFeatures::NodeOnly => &input.path[input.path.len().saturating_sub(1)..],
        };
        let column = |node: &NodeId| self.first_node + node.0 % NODE_COLUMNS;
        widened.widened(input.example, nodes.iter().rev().map(column));
    }
}
