//! One-against-some scorers: a linear scorer for each label. They rank and complete the candidates
//! of another model.
//!
//! One-against-all trains the scorer of every label on every row, which is O(K) per value, although
//! nearly all of these rows are easy negatives. Here a row is a negative example of few labels only:
//! those that a model which has not learned the row finds most likely ([`Candidates`], hard
//! negatives), and some drawn by their frequency (random negatives). Twice, the labels that the
//! scorers themselves wrongly prefer are added (mined negatives), and the solutions continue from
//! where they are. The join of margins with the other model's scores, and the map from joined scores
//! to probabilities, are fitted on rows that neither has learned.
//!
//! Training takes O(values x (candidates + labels of a row)) per round, and memory of
//! rows x candidates; nothing is O(K) per row. A prediction takes a row's margins from an inverted
//! index, in time proportional to the weights of all labels for the row's features. If these are too
//! many, the index has the largest weights only, and margins are computed for the best labels by
//! these weights and by the other model.
//!
//! Weights of columns that most rows fill are not sparse, so they are kept as a matrix of bytes. It
//! is multiplied with blocks of rows, and the margins of all labels are computed.
//!
//! ```text
//!  candidates -> train: rounds of  negatives (rows of a label) -> svm (weights of a label) -> mining
//!                       candidates -> fit (join, calibration)
//!  row -> weights (margins by the index, or label by label) -> rank <- LabelScores of the other model
//! ```

mod choose;
mod dense;
mod fit;
mod groups;
mod layout;
mod negatives;
mod parts;
mod pieces;
mod rank;
mod rows;
mod svm;
mod train;
mod weights;

#[cfg(test)]
mod tests;

pub use dense::DenseColumns;
pub use fit::FitSample;
pub use groups::{GroupFacts, Groups};
pub use negatives::{row_candidates, Candidates};
pub use parts::GroupScorers;
pub use pieces::Piece;
#[cfg(test)]
pub use rank::{Calibration, Join};
pub use rank::{LabelScores, OneAgainstSome, Ranker, N_CANDIDATES};
pub use train::{train, ScorerParams, N_ROUNDS};
#[cfg(test)]
pub use weights::RowMargins;
#[cfg(feature = "python")] // only the binding names these two
pub use {choose::Settings, layout::Layout};
