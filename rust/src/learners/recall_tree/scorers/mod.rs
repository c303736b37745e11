//! One-against-some: a regressor per class, shared by the whole tree.
//!
//! | file | what it holds |
//! |---|---|
//! | `plain` | weights without sums of their own: the step direction is the example's |
//! | `columns` | such weights by column, for sparse rows |
//! | `tail` | what a column knows of its rarer labels |
//! | `of_path` | what the scorers learn of the way through the tree |
//! | `steps` | how far each candidate goes, by loss |
//! | `adaptive` | weights with sums of their own ("nag", "adagrad") |

mod adaptive;
mod columns;
mod of_path;
mod plain;
mod steps;
mod tail;

pub use adaptive::Adaptive;
pub use columns::{Column, Columns, Places};
pub use of_path::OfPath;
pub use plain::{Plain, Store};

use super::Params;
use crate::linear::PathExample;
use crate::tree::NodeId;

/// All classes' regressors.
#[derive(Debug, Clone)]
pub enum Scorers {
    /// Optimisers "pn" and "sgd".
    Plain(Plain),
    /// Optimisers "nag" and "adagrad".
    Adaptive(Adaptive),
}

/// What scoring works in; the scores are what it is for.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// One per candidate.
    pub scores: Vec<f32>,
    /// How far to go along the example's direction, one per candidate.
    pub(super) steps: Vec<f32>,
    flow: steps::Flow,
    places: Places,
    nodes: Vec<u32>,
    ones: Vec<f32>,
    wide: PathExample,
}

/// An example at its final node, as scorers see it.
#[derive(Debug, Clone, Copy)]
pub struct AtNode<'a> {
    /// The example.
    pub example: &'a PathExample,
    /// Who competes, the most frequent first.
    pub candidates: &'a [u32],
    /// From the root to the final node.
    pub path: &'a [NodeId],
    /// Number of the example, from which chance is drawn in learning.
    pub clock: u64,
}

impl Scorers {
    /// Nothing learned yet; for examples of `width` columns, of which about
    /// `filled` are not 0.
    pub fn new(params: &Params, n_classes: usize, width: usize, filled: usize) -> Self {
        if params.is_adaptive() {
            Self::Adaptive(Adaptive::new(params, n_classes, width))
        } else {
            Self::Plain(Plain::new(params, n_classes, width, filled))
        }
    }

    /// Scores of the candidates, into `work.scores`.
    pub fn score(&self, at: &AtNode<'_>, work: &mut Work) {
        match self {
            Self::Plain(scorers) => scorers.score(at, work),
            Self::Adaptive(scorers) => scorers.score(at, work),
        }
    }

    /// The candidates learn that `label`, one of them, is right. `work` has
    /// their scores.
    pub fn learn(&mut self, at: &AtNode<'_>, label: u32, importance: f32, work: &mut Work) {
        match self {
            Self::Plain(scorers) => {
                scorers.decide(at, label, importance, work);
                scorers.apply(at, label, importance, work);
            }
            Self::Adaptive(scorers) => scorers.learn(at, label, importance, work),
        }
    }

    /// Another share of a pass is done.
    pub fn pass(&mut self, share: f64) {
        if let Self::Plain(scorers) = self {
            scorers.passes += share;
        }
    }
}
