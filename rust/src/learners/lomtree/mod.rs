//! `LOMtree`: an online binary tree over labels that nobody arranged beforehand.
//!
//! Choromanska & Langford, "Logarithmic Time Online Multiclass prediction"
//! (NIPS 2015), Algorithm 1. Each internal node's regressor learns to send a
//! label to the side it already leans to more than the average label does,
//! which maximises the purity and balance of the split (Eq. 1); a leaf splits
//! while the budget of internal nodes lasts, afterwards by taking the nodes of
//! the smallest leaf (Swap). Cost per example: O(depth * (non-zeros + 1)),
//! whatever the number of labels.
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | the options and what they may be |
//! | `arena` | structure alone: split, Swap, UpdateC |
//! | `learner` | Algorithm 1 |
//! | `frozen` | the tree as prediction walks it |
//! | `forest` | several trees, their leaf distributions averaged |
//! | `report` | J, balance, purity, entropy per node |
//! | `persist` | to and from named arrays |

mod arena;
mod forest;
mod frozen;
mod learner;
mod params;
mod persist;
mod report;
#[cfg(test)]
mod tests;

pub use arena::{Arena, Node};
pub use forest::Forest;
pub use frozen::FrozenTree;
pub use learner::Tree;
pub use params::Params;
pub use report::Report;

/// The learner's name in messages.
const NAME: &str = "LOMtree";
