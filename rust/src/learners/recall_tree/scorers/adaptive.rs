//! Scorers whose weights carry sums of their own, for the optimisers "nag" and
//! "adagrad": they learn one after the other, as in the authors' program.

use super::{AtNode, Work};
use crate::learners::recall_tree::{Params, PathFeatures};
use crate::linear::Regressors;
use crate::linear::{Loss, Span};
use crate::tree::NodeId;

/// Columns that there are for nodes; beyond so many, nodes share them.
const NODES: u32 = 1 << 20;

/// All classes' regressors. Nodes are further columns of the example.
#[derive(Debug, Clone)]
pub struct Adaptive {
    features: PathFeatures,
    rate: f32,
    /// The first column that stands for a node.
    first_node: u32,
    pub(in crate::learners::recall_tree) regressors: Regressors,
}

impl Adaptive {
    /// Nothing learned yet.
    pub fn new(params: &Params, n_classes: usize, width: usize) -> Self {
        let nodes = match params.path_features {
            PathFeatures::All | PathFeatures::NodeOnly => NODES as usize,
            _ => 0,
        };
        let loss = params.loss.single().unwrap_or(Loss::Hinge);
        let mut regressors = Regressors::new(params.optimizer, loss, width + nodes);
        for _ in 0..n_classes {
            regressors.push();
        }
        Self {
            features: params.path_features,
            rate: params.scorer_rate() as f32,
            first_node: width as u32,
            regressors,
        }
    }

    /// Scores of the candidates, into `work.scores`.
    pub fn score(&self, at: &AtNode<'_>, work: &mut Work) {
        self.widen(at, work);
        let Work { scores, wide, .. } = work;
        scores.clear();
        scores.extend(
            at.candidates
                .iter()
                .map(|&label| self.regressors.score(label, wide)),
        );
    }

    /// The label learns +1, then each other candidate -1.
    pub fn learn(&mut self, at: &AtNode<'_>, label: u32, importance: f32, work: &mut Work) {
        self.widen(at, work);
        let wide = &mut work.wide;
        self.regressors.prepare(wide, importance);
        let a = importance * self.rate;
        let others = at.candidates.iter().filter(|&&other| other != label);
        self.regressors
            .learn(label, wide, 1.0, a, importance, |_| None);
        for &other in others {
            self.regressors
                .learn(other, wide, -1.0, a, importance, |_| None);
        }
    }

    /// Clamps as wide as those of `span` too.
    pub fn meet(&mut self, span: Span) {
        self.regressors.widen(span);
    }

    /// What predictions are clamped to while learning.
    pub fn span(&self) -> Span {
        self.regressors.span()
    }

    /// Makes the example with its nodes: the deepest first, without the root.
    fn widen(&self, at: &AtNode<'_>, work: &mut Work) {
        let column = |node: &NodeId| self.first_node + node.0 % NODES;
        let wide = &mut work.wide;
        match self.features {
            PathFeatures::All => {
                wide.widened(at.example, at.path[1..].iter().rev().map(column));
            }
            PathFeatures::NodeOnly => wide.widened(at.example, at.path.last().map(column)),
            _ => wide.widened(at.example, None),
        }
    }
}
