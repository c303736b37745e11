//! Recall Tree: an online tree that finds a small set of candidates for the label of a row, and
//! scorers that choose among them.
//!
//! Daumé, Karampatziakis, Langford & Mineiro, "Logarithmic Time One-Against-Some" (ICML 2017).
//! Routers send an example where its label raises the entropy of the labels least. The F most
//! frequent labels of a node are its candidates. A path ends where a lower bound on their recall
//! would fall. An example costs O(depth * (non-zeros + log F)) for its path and O(F * non-zeros) for
//! the scores, whatever the number of classes.
//!
//! | file | contents |
//! |---|---|
//! | `params` | the parameters and their ranges |
//! | `labels` | label ids, the histogram of a node, its entropy and its recall bound |
//! | `router` | nodes and routers, the path of an example, the candidates at its end |
//! | `learner` | the algorithm: Figures 1 and 2 of the paper |
//! | `scorers` | one-against-some: scores and training of the candidates |
//! | `column_weights` | weights of scorers by column, for sparse rows of many columns |
//! | `predict` | the frozen tree, the most probable paths, the scores at their ends |
//! | `candidate_weights` | copies of the weights of candidates in a frozen tree |
//! | `online` | creation, files and the report of the nodes |

mod candidate_weights;
mod column_weights;
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
pub use params::{Params, PathFeatures, RecallBound, RouterImportance, ScorerLoss};
