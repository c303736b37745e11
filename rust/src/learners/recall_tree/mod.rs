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
//! | `labels` | labels inside the tree, a node's histogram, its entropy and the bound on its recall |
//! | `router` | nodes and routers: the path of an example, the candidates at its end |
//! | `learner` | the algorithm: Figures 1 and 2 of the paper; many examples in order |
//! | `scorers` | one-against-some, each candidate by itself as in the paper |
//! | `joint_scorers` | candidates that learn together: softmax and margin |
//! | `column_weights` | their weights by column, for sparse rows of many columns |
//! | `predict` | the frozen tree, the most probable paths, the scores at their ends |
//! | `candidate_weights` | copies of the weights of the candidates where paths end |
//! | `online` | what it adds to the model around online learners; the nodes as columns |

mod candidate_weights;
mod column_weights;
mod joint_scorers;
mod labels;
mod learner;
mod online;
mod params;
mod predict;
mod router;
mod scorers;
#[cfg(test)]
mod tests;

pub use learner::OnlineRecallTree;
pub use params::{Params, PathFeatures, RouterImportance, ScorerLoss};
