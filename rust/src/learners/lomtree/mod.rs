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

mod arena; // the structure: split, Swap, UpdateC
mod frozen; // the tree as prediction uses it
mod learner; // Algorithm 1
mod node; // what a node knows: counts and scores per label
mod online; // what the model around it asks of it
mod params;
mod pipeline; // one tree on two threads
mod predict; // predictions for a block of rows, averaged over the trees
mod report; // J, balance, purity, entropy per node
mod shares; // the label distribution of a leaf
#[cfg(test)]
mod tests;

pub use learner::LomTree;
pub use params::Params;
