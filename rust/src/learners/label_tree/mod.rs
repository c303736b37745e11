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

mod learner; // the balanced tree, both ways of learning
mod predict; // predictions for a block of rows
#[cfg(test)]
mod tests;

pub use learner::LabelTree;

use crate::linear::{Loss, Optimizer};
use crate::params::Range;
use crate::{choices, params};

choices! {
    /// Which examples a router learns from.
    pub enum Policy {
        /// Those whose label won all its matches below: the filter tree.
        Filter = "filter",
        /// All whose label lies below it: the random tree.
        Random = "random",
    }
}

impl Policy {
    /// Name of the learner, for messages.
    pub fn learner(self) -> &'static str {
        match self {
            Self::Filter => "the filter tree",
            Self::Random => "the random tree",
        }
    }
}

choices! {
    /// In which order the labels stand at the leaves.
    pub enum LabelOrder {
        /// A permutation fixed by the seed.
        Random = "random",
        /// The order of the classes.
        Given = "given",
        /// The most frequent first; of equals the lower class.
        Frequency = "frequency",
    }
}

params! {
    /// Every parameter. The Python classes document them for users.
    pub struct Params online(5) {
        /// Filter tree or random tree.
        policy: Policy = Policy::Filter;
        /// Loss of the routers.
        loss: Loss = Loss::Hinge;
        /// Step direction of the routers.
        optimizer: Optimizer = Optimizer::Pn;
        /// Step size of a router that has seen nothing yet.
        learning_rate: f64 = 1.0, Range::POSITIVE;
        /// How fast a router's steps shrink; see [`crate::linear::Rate`].
        decay: f64 = 0.3, Range::NOT_NEGATIVE;
        /// Order of the labels at the leaves.
        label_order: LabelOrder = LabelOrder::Given;
    }
}
