//! GAMBLE: multiclass boosting with one tree a round, whatever the number of classes.
//!
//! Huang, Ertekin, Song, Zha & Giles, "Efficient Multiclass Boosting Classification with
//! Active Learning", SDM 2007. A class c of K is encoded as y, 1 at c and -1/(K-1)
//! elsewhere; the loss is exp(-(1/K) y.F). Each round (Algorithm 2) fits a regression tree g
//! to y by weighted least squares, turns its leaves' means into
//! r = K (K-1) g / ((K-2) g + 1), centres them, f = r - mean r, adds f to the committee
//! F and multiplies the weights by exp(-(1/K) y.f). Algorithm 1 fits a second tree, to
//! the squares of y; it is the same tree (Theorem 3.2), so there is none here.
//!
//! A tree for such labels is one that lowers the weighted Gini impurity, and that takes
//! O(1) per row and feature whatever the number of classes (`runs`). Leaves list the
//! classes of their rows and one number for all others. So a round costs O(rows x
//! features x depth). Where libraries for gradient boosting grow K trees a round, this
//! grows one.
//!
//! SAMME.Discrete, the baseline, differs in the leaves' votes alone (`samme`).
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | the options and their ranges |
//! | `columns` | the examples: values as codes, dense and sparse columns |
//! | `sampling` | log weights; samples of rows and features |
//! | `node` | a node's rows, and its splits |
//! | `small_feature`, `run_scan`, `sparse_splitter` | five strategies to find a split |
//! | `grow` | a tree, best first; the choice among the strategies |
//! | `tree` | the learned tree, the votes of its leaves, its report |
//! | `boost` | the rounds: Algorithm 2; warm starts, early stopping |
//! | `frozen` | learned trees as rows traverse them |
//! | `predict` | scores of blocks of rows; the slope of the probabilities |
//! | `model` | the classifier |

mod boost;
mod columns;
mod frozen;
mod grow;
mod model;
mod node;
mod params;
mod predict;
mod run_scan;
mod sampling;
mod small_feature;
mod sparse_splitter;
#[cfg(test)]
mod tests;
mod tree;

pub use model::Gamble;
pub use params::{Algorithm, Params, Splits};
