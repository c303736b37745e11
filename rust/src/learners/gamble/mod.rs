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
//! | `boost` | the rounds: Algorithm 2 |
//! | `weights`, `sampling` | log weights; sampling of rows and features |
//! | `leaf`, `samme` | from a leaf's class weights to its votes |
//! | `examples` | the rows of a fit |
//! | `binning`, `columns` | values as codes; dense and sparse columns of codes |
//! | `grow` | a tree, best first |
//! | `node`, `split` | a node's rows; which of them go left, and the best such choice |
//! | `split_search` | a node's statistics and best split: the choice among five strategies |
//! | `histogram`, `sorted_scan` | the strategies for small features; `small_feature` is what they share |
//! | `run_scan`, `subset_search`, `sparse_splitter` | those for features of many codes, categorical and sparse ones |
//! | `tree` | the learned tree |
//! | `frozen` | learned trees as rows traverse them |
//! | `routing` | rows of X to the leaves of learned trees, block by block |
//! | `replay` | rounds that were learned before, for a warm start |
//! | `validation` | early stopping |
//! | `model`, `predict` | the classifier; scores of blocks of rows |
//! | `report` | trees as named columns |

mod binning;
mod boost;
mod columns;
mod examples;
mod frozen;
mod grow;
mod histogram;
mod leaf;
mod model;
mod node;
mod out_of_bag;
mod params;
mod predict;
mod replay;
mod report;
mod routing;
mod run_scan;
mod samme;
mod sampling;
mod small_feature;
mod sorted_scan;
mod sparse_splitter;
mod split;
mod split_search;
mod subset_search;
#[cfg(test)]
mod tests;
mod tree;
mod validation;
mod weights;

pub use model::Gamble;
pub use params::{Algorithm, Params, Splits};
