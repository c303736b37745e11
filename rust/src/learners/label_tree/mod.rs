//! Filter tree and random tree: a fixed balanced binary tree over the labels, one
//! label per leaf, with a router at each internal node.
//!
//! Both answer top down: each router says on which side the label lies. They
//! differ in what a router learns from. In the *random tree* every router on the
//! way from an example's label to the root learns from the example. The *filter tree*
//! (Beygelzimer, Langford & Ravikumar, "Error-Correcting Tournaments", 2009) is
//! a single-elimination tournament, played from the leaves up: a router learns from
//! those examples alone whose label has won all its matches below. So each router
//! learns to choose between the two labels that reach it rather than between all
//! labels of its sides, which is what makes the multiclass regret at most log2 K
//! times the routers' mean regret.
//!
//! Cost per example: at most ceil(log2 K) routers, learning and predicting.

mod layout; // the balanced tree and the order of its leaves
mod learner; // both ways of learning
mod online; // what the model around them asks of them
mod params;
mod predict; // answers for a block of rows
mod report; // the tree's nodes as columns
#[cfg(test)]
mod tests;

pub use learner::LabelTree;
pub use params::{LabelOrder, Params, Policy};
