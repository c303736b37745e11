//! LdSM: ensembles of M-ary trees for label sets (Majzoubi & Choromanska, AISTATS
//! 2020).
//!
//! ```text
//!  Batch -> Examples -> growth: queue of leaves -> split: View -> epochs of
//!                                                    objective (which children)
//!                                                    nag / dense (regressors)
//!  Rows  -> RowBlock -> walk: leaves of each row -> predict: labels' scores
//!                                                   + centroids, scorers
//! ```

mod centroids;
mod dense;
mod examples;
mod forest;
mod growth;
mod nag;
mod objective;
mod params;
mod persist;
mod predict;
mod purity;
mod report;
mod score;
mod scorers;
mod split;
mod tree;
mod view;
mod walk;

#[cfg(test)]
mod tests;

pub use examples::Examples;
pub use forest::Ldsm;
pub use objective::Terms;
pub use params::{NodeLoss, NodeOptimizer, Params, ScorerLoss, Scorers};
pub use predict::{SparseScores, Wanted};
pub use purity::NodeStats;
pub use report::Report;
pub use tree::{Ragged, Tree};

use view::View;
