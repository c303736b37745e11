//! `LOMtree`: an online binary tree over labels that nobody arranged beforehand.
//!
//! Choromanska & Langford, "Logarithmic Time Online Multiclass prediction" (NIPS 2015),
//! Algorithm 1. Each internal node's regressor learns to send a label to the side it already
//! leans to more than the average label does, which maximises the purity and balance of the
//! split (Section 2, Eq. 1). A leaf splits while the budget of internal nodes lasts, afterwards
//! by taking over the smallest leaf and its parent (Section 3.1, Swap). With several trees the
//! label distributions of their leaves are averaged.
//!
//! Cost per example: O(depth * (non-zeros + 1)), whatever the number of labels.
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | the parameters |
//! | `node` | what a node knows: counts and scores per label |
//! | `arena` | the structure: split, Swap, UpdateC |
//! | `frozen` | the tree as prediction uses it |
//! | `online` | what the model around it asks of it |
//! | `predict` | predictions for a block of rows, averaged over the trees |
//! | `report` | J, balance, purity, entropy per node |
//! | `learner` | Algorithm 1 |

mod arena;
mod frozen;
mod learner;
mod node;
mod online;
mod params;
mod predict;
mod report;
#[cfg(test)]
mod tests;

pub use learner::LomTree;
pub use params::Params;
