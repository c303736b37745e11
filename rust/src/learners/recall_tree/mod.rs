//! Recall Tree: an online tree that finds a small set of candidates which holds
//! the label, and scorers that choose among them.
//!
//! Daumé, Karampatziakis, Langford & Mineiro, "Logarithmic Time
//! One-Against-Some" (ICML 2017). Routers send an example where its label
//! raises the entropy of labels least; each node's F most frequent labels are
//! its candidates; descent ends where a lower bound on their recall would fall.
//! Cost per example: O(depth * (non-zeros + log F)) for the way and
//! O(F * non-zeros) for the scores, whatever the number of classes.
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | the options and what they may be |
//! | `bound` | entropy and recall bound of a histogram |
//! | `counts` | a node's labels, the most frequent known at any time |
//! | `numbering` | labels by numbers, the frequent ones first |
//! | `arena` | the nodes, which grow on demand |
//! | `routing` | the way down: routers, entropies, the stop rule |
//! | `scorers/` | one-against-some |
//! | `learner` | routing and scoring together, on one thread or several |
//! | `frozen` | the tree as prediction walks it |
//! | `predict` | rows together, with or without a beam |
//! | `model` | what the outside sees |
//! | `report` | what there is to know of each node |
//! | `persist` | to and from named arrays |

mod arena;
mod bound;
mod counts;
mod frozen;
mod learner;
mod model;
mod numbering;
mod params;
mod persist;
mod predict;
mod report;
mod routing;
mod scorers;
#[cfg(test)]
mod tests;

pub use arena::{Arena, Node};
pub use counts::Counts;
pub use learner::Learner;
pub use model::RecallTree;
pub use params::{ClassCount, Params, PathFeatures, RouterImportance, ScorerLoss};
pub use predict::BeamOptions;
pub use report::Report;
pub use routing::{Tree, Visit};
pub use scorers::{Scorers, Work};

/// The learner's name in messages.
const NAME: &str = "Recall Tree";
