//! One-against-some scorers: a sparse linear scorer for each label, trained on the rows that
//! have the label and on the rows that are mistaken for such. They rank and complete the candidates of
//! another model.
//!
//! One-against-all trains every label's scorer on every row, O(K) per value. Nearly all of
//! these rows are easy. Here a row is a negative example of few labels only: of those that a model
//! which has not learned the row finds most likely ([`Candidates`]: hard negatives), and of some
//! drawn by their frequency (random negatives). Labels that the scorers themselves then mistake a row
//! for are added, twice (mined negatives), and the solution goes on from where it is. How the
//! margins are joined to the other model's scores is fitted on rows that neither has learned, and so
//! is a map from joined scores to probabilities.
//!
//! Training takes O(values x (candidates + labels of a row)) per round, and memory of
//! rows x candidates; nothing is O(K) per row. A prediction takes a row's margins from an
//! inverted index, in time proportional to the weights of all labels for the row's features;
//! where these are too many, the index has the largest weights alone, and the margins are those of
//! the best labels by them and by the other model.
//!
//! ```text
//!  candidates -> train: rounds of  negatives (rows of a label) -> svm (weights of a label) -> mining
//!                       candidates -> join, calibration
//!  row -> margins (by the index, or label by label) -> rank <- LabelScores of the other model
//! ```

mod candidates;
mod join;
pub(super) mod margins;
mod negatives;
mod rank;
mod rows;
mod svm;
mod train;
mod weights;

#[cfg(test)]
mod tests;

pub use candidates::{row_candidates, Candidates};
pub use join::Calibration;
#[cfg(test)]
pub use join::Join;
pub use rank::{LabelScores, Ranker, RankerMemory};
pub use train::{train, ScorerParams, N_ROUNDS};
pub use weights::OneAgainstSome;
