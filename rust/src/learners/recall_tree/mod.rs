//! Recall Tree: an online tree that finds a small set of candidates which holds
//! the label, and scorers that choose among them.
//!
//! Daumé, Karampatziakis, Langford & Mineiro, "Logarithmic Time
//! One-Against-Some" (ICML 2017). Routers send an example where its label
//! raises the entropy of labels least; each node's F most frequent labels are
//! its candidates; descent ends where a lower bound on their recall would fall.
//! Cost per example: O(depth * (non-zeros + log F)) for the path and
//! O(F * non-zeros) for the scores, whatever the number of classes.
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | the parameters and their ranges |
//! | `label_index` | labels inside the tree, the frequent ones first |
//! | `bound` | entropy and recall bound of a histogram |
//! | `label_counts` | a node's histogram, its most frequent labels known at any time |
//! | `arena` | the nodes, which grow on demand |
//! | `scorers/` | one-against-some |
//! | `routing_tree` | which path an example takes, and the candidates at its end |
//! | `learner` | the algorithm: Figures 1 and 2 of the paper |
//! | `pipeline` | many examples in order, on one thread or several |
//! | `paths` | the tree as a row's way through its routers |
//! | `frozen` | the tree as prediction walks it |
//! | `candidate_blocks` | the weights of the candidates where paths end, side by side |
//! | `candidate_tables` | the same for rows of few of many columns, as lists by column |
//! | `beam` | the most probable paths |
//! | `path_ends` | rows scored at the ends of their paths, node by node |
//! | `predict` | rows together, with or without a beam |
//! | `report` | the nodes as columns |
//! | `online` | what it adds to the model around online learners |

mod arena;
mod beam;
mod bound;
mod candidate_blocks;
mod candidate_tables;
mod frozen;
mod label_counts;
mod label_index;
mod learner;
mod online;
mod params;
mod path_ends;
mod paths;
mod pipeline;
mod predict;
mod report;
mod routing_tree;
mod scorers;
#[cfg(test)]
mod tests;

pub use learner::OnlineRecallTree;
pub use params::{ClassCount, Params, PathFeatures, RouterImportance, ScorerLoss};
