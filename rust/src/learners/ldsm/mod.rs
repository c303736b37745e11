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
//!  Batch -> Examples -> train -> grow: queue of leaves -> train_node on NodeData:
//!                                  objective (which children), regressors
//!                                  partition (the children's examples)
//!  Rows  -> predict: traverse (leaves of each row) -> LabelScores
//!             -> centroids, rank of one_against_some
//! ```

/// `$call`, in which `$m` is a constant of the value of `$arity`.
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
            // Parameters and files of another arity are refused.
            _ => {
                const $m: usize = $last;
                $call
            }
        }
    };
}

mod centroids;
mod grow;
mod model;
mod node_data;
mod objective;
mod params;
mod predict;
mod regressors;
mod train;
mod train_node;
mod traverse;
mod tree;

#[cfg(test)]
pub(super) mod tests;

pub use model::Ldsm;
pub use params::{NodeLoss, Params, Scorers};
pub use train::TrainingSet;
