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
//! O(1) per row and feature whatever the number of classes (`scan`). Leaves name the
//! classes they have met and one number for all others. So a round costs O(rows x
//! features x depth). Where libraries for gradient boosting grow K trees a round, this
//! grows one.
//!
//! SAMME.Discrete, the baseline, differs in the leaves' votes alone (`samme`).
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | the options and what they may be |
//! | `boost` | the rounds: Algorithm 2 |
//! | `weights`, `draw` | log weights; rows and features drawn |
//! | `leaf`, `samme` | from a leaf's class weights to its votes |
//! | `binning`, `columns` | values as codes, codes in columns or entries |
//! | `grow` | a tree, best first |
//! | `node`, `split` | a node's rows; its best split over all features |
//! | `few`, `cells`, `sweep` | that of a feature of at most 256 codes: by cells, or the rows sorted |
//! | `scan`, `category`, `entries` | that of one of more codes, as subsets, of sparse columns |
//! | `tree` | the learned tree |
//! | `held_out` | early stopping |
//! | `model`, `predict` | what the outside sees |
//! | `report`, `persist` | trees as arrays; to and from files |

mod binning;
mod boost;
mod category;
mod cells;
mod columns;
mod draw;
mod entries;
mod few;
mod grow;
mod held_out;
mod leaf;
mod model;
mod node;
mod params;
mod persist;
mod predict;
mod report;
mod samme;
mod scan;
mod split;
mod sweep;
#[cfg(test)]
mod tests;
mod tree;
mod weights;

pub use leaf::Leaves;
pub use model::{Boosted, Lesson};
pub use params::{Algorithm, Params, Splits};
pub use report::Report;
pub use tree::{Statistics, Tree, TreeNode};
