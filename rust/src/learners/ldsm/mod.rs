//! LdSM: ensembles of M-ary trees for label sets (Majzoubi & Choromanska, "LdSM:
//! Logarithm-depth Streaming Multi-label Decision Trees", AISTATS 2020).
//!
//! An internal node has M linear regressors and sends an example to each child whose regressor's
//! margin is at least 1/2. Its training (Algorithms 3, 4) finds for each example the set of children
//! that lowers the node's objective most, and trains the regressors towards it. A tree (Algorithm 1)
//! splits the leaf of highest priority until it has enough nodes. Leaves have label histograms,
//! which a prediction averages over the leaves that a row reaches and over the trees.
//!
//! Cost per example and level: M sparse products, and in each epoch of the training
//! O(|y| M^2 + 2^M) for the objective. Depth is about log_M of the number of labels.
//!
//! ```text
//!  Batch -> train: Examples -> grow: queue of leaves -> train_node: objective (which children),
//!                                                       regressors, the children's examples
//!  Rows  -> predict: traversal (leaves of each row) -> LabelScores
//!             -> centroids, rank of one_against_some
//! ```

/// Evaluates `$call` with `$m` as a constant of the value of `$arity`.
macro_rules! with_arity {
    ($arity:expr, $m:ident => $call:expr) => {
        with_arity!(@ $arity, $m => $call; 2 3 4 5 6 7; 8)
    };
    (@ $arity:expr, $m:ident => $call:expr; $($n:literal)*; $last:literal) => {
        match $arity {
            $($n => {
                const $m: usize = $n;
                $call
            })*
            // Parameters and files with another arity are refused.
            _ => {
                const $m: usize = $last;
                $call
            }
        }
    };
}

mod by_group;
mod centroids;
mod grow;
mod model;
mod objective;
mod params;
mod parts;
mod predict;
mod regressors;
mod top_splits;
mod train;
mod train_node;
mod tree;

#[cfg(test)]
pub(super) mod tests;

pub use model::Ldsm;
pub use params::{Params, Scorers};
pub use regressors::NodeLoss;
pub use train::TrainingSet;
