//! One-against-some scorers: a sparse linear scorer for each label, trained on the rows that
//! have the label and on the rows that are mistaken for such.
//!
//! One-against-all trains every label's scorer on every row, O(K) per value. Nearly all of
//! these rows are easy: no tree would take them to have the label. Here a row is a negative
//! example of few labels only: of those that trees which did not train on it find most likely
//! (hard negatives), and of some drawn by their frequency (random negatives). For this each
//! tree leaves a share of the rows out. Labels that the scorers themselves then mistake a row
//! for are added, twice (mined negatives), and the solution goes on from where it is. How the
//! margins are then joined to the trees' scores is fitted on the same rows; a row's own part in its margins is taken out first. A map from
//! these scores to probabilities is fitted there, too.
//!
//! Training takes O(values x (candidates + labels of a row)) per round, and memory of
//! rows x candidates; nothing is O(K) per row. A prediction takes a row's margins from an
//! inverted index, in time proportional to the weights of all labels for the row's features;
//! where these are too many, the index has the largest weights alone, and the margins are those of
//! the best labels by them and by the trees.
//!
//! ```text
//!  HeldOut: rows that a tree leaves out -> the trees' growth
//!  trees, held-out rows -> out_of_sample (scores of a row by trees that do not know it)
//!                            -> negatives (labels of a row) -> regrouped: rows of a label
//!                                 -> svm: each label's weights -> mining -> negatives, svm ...
//!                                                  -> sparse_weights -> scorers
//!                            -> join_fit, calibration <-'
//!  rows -> margins: by the feature_index, or label by label
//! ```

pub(super) mod calibration;
pub(super) mod feature_index;
mod fit_rows;
pub(super) mod held_out;
pub(super) mod join_fit;
pub(super) mod label_problems;
mod lengths;
mod margins;
pub(super) mod mining;
pub(super) mod negatives;
mod out_of_sample;
pub(super) mod scorer_rows;
pub(super) mod scorers;
pub(super) mod sparse_weights;
pub(super) mod svm;
pub(super) mod training;

pub use calibration::Calibration;
pub use feature_index::BLOCK;
pub use held_out::HeldOut;
#[cfg(test)]
pub use label_problems::positive_weights;
pub use margins::{IndexMargins, MarginMemory, PartialMargins, RowMargins};
pub use out_of_sample::OutOfSample;
pub use scorers::OneAgainstSome;
pub use training::{train, N_ROUNDS};
