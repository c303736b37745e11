//! One-against-some: a regressor per class, shared by the whole tree.
//!
//! | file | what it holds |
//! |---|---|
//! | `workspace` | what scorers are given, and their scratch space |
//! | `plain` | optimisers "pn" and "sgd": the step direction is the example's |
//! | `column_weights` | such weights by column, for sparse rows |
//! | `filtered_map` | a column's weights of its rarer labels |
//! | `path_weights` | path features |
//! | `steps` | how far each candidate goes, by loss |
//! | `adaptive` | optimisers "nag" and "adagrad": weights with sums of their own |

mod adaptive;
mod column_weights;
mod filtered_map;
mod path_weights;
mod plain;
mod steps;
mod workspace;

pub use adaptive::AdaptiveScorers;
pub use plain::PlainScorers;
pub use workspace::{Score, ScorerInput, ScorerWorkspace};

use super::label_index::LocalId;
use super::params::Params;
use crate::error::{Error, Result};
use crate::file::{Bundle, Persist};

/// All classes' regressors.
#[derive(Debug, Clone)]
pub enum Scorers {
    /// Optimisers "pn" and "sgd".
    Plain(PlainScorers),
    /// Optimisers "nag" and "adagrad".
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

    /// Learns that `label`, one of the candidates, is right. `workspace` has their
    /// scores.
    pub fn learn(
        &mut self,
        input: &ScorerInput<'_>,
        label: LocalId,
        weight: f32,
        workspace: &mut ScorerWorkspace,
    ) {
        match self {
            Self::Plain(scorers) => {
                scorers.decide(input, label, weight, workspace);
                scorers.apply(input, label, weight, workspace);
            }
            Self::Adaptive(scorers) => scorers.learn(input, label, weight, workspace),
        }
    }

    /// What does not fit together in scorers that were restored.
    pub fn check_stored(&self, n_classes: usize) -> Result<()> {
        let fits = match self {
            Self::Plain(scorers) => scorers.fits(n_classes),
            Self::Adaptive(scorers) => scorers.n_classes() == n_classes,
        };
        if fits {
            return Ok(());
        }
        Err(Error::data(
            "the scorers do not fit the classes and columns",
        ))
    }

    /// Another share of a pass is done.
    pub fn pass(&mut self, share: f64) {
        if let Self::Plain(scorers) = self {
            scorers.passes += share;
        }
    }
}

impl Score for Scorers {
    fn score(&self, input: &ScorerInput<'_>, workspace: &mut ScorerWorkspace) {
        match self {
            Self::Plain(scorers) => scorers.score(input, workspace),
            Self::Adaptive(scorers) => scorers.score(input, workspace),
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
