//! LdSM: ensembles of M-ary trees for label sets (Majzoubi & Choromanska, "LdSM:
//! Logarithm-depth Streaming Multi-label Decision Trees", AISTATS 2020).
//!
//! An internal node holds M linear regressors and sends an example to every child
//! whose regressor's margin is at least 1/2. Its training (Algorithms 3, 4) takes for each
//! example the set of children that lowers the node's objective most and trains the
//! regressors towards it. A tree (Algorithm 1) splits the leaf of highest priority
//! until it has enough nodes; leaves hold label histograms, which a prediction averages
//! over the leaves that a row reaches and over the trees.
//!
//! Cost per example and level: M sparse products, and in each epoch of the training
//! O(|y| M^2 + 2^M) for the objective. Depth is about log_M of the number of labels.
//!
//! ```text
//!  Batch -> examples -> growth: queue of leaves -> node_training on NodeData:
//!                                                    objective (which children)
//!                                                    nag or dense (regressors)
//!                                                    routing (the children's examples)
//!  Rows  -> predictor: traversal or row_traversal -> leaf_hits (leaves of each row) -> label_scores
//!                                   -> scoring: centroids, join with margins of one_against_some
//! ```

mod arity;
mod centroids;
mod dense;
mod ensemble;
mod examples;
mod growth;
mod join;
mod label_scores;
mod leaf_hits;
mod model;
mod nag;
mod node_stats;
mod node_training;
mod objective;
mod one_against_some;
mod packed;
mod params;
mod parts;
mod predictor;
mod pruning;
mod report;
mod routing;
mod row_traversal;
mod scoring;
mod scratch;
mod spread_row;
mod statistics;
mod steps;
mod top_splits;
mod training_set;
mod traversal;
mod tree;

#[cfg(test)]
mod tests;

pub use ensemble::Ldsm;
pub use params::{NodeLoss, NodeOptimizer, Params, Scorers};
pub use parts::Part;
pub use steps::{Block, Choice, Plan, Run};
pub use training_set::TrainingSet;
