//! Measures for rankings of very many labels, by the definitions of the Extreme
//! Classification Repository and the program it publishes.
//!
//! For a row with the true labels Y and the ranking l_1, l_2, ..., with
//! d_r = 1 / log2(r + 1) and I(k) = d_1 + ... + d_k:
//!
//! ```text
//! P@k      =  |hits among the first k| / k
//! recall@k =  |hits among the first k| / |Y|
//! nDCG@k   =  sum of d_r over the hits r <= k  /  I(min(k, |Y|))
//! ```
//!
//! each averaged over the rows. The propensity-scored measures weigh a hit by the
//! inverse propensity of its label and are divided by what the best ranking, true
//! labels by falling weight, would have gained over all rows:
//!
//! ```text
//! PSP@k    =  sum over rows of gained  /  sum over rows of ideal,
//!             gained = sum of w over the hits, ideal = sum of the k largest w of Y
//! PSnDCG@k =  the same, each w times its d_r, each row divided by I(min(k, |Y|))
//! ```
//!
//! One pass over the rows gives all of them. Cost per row: k look-ups among |Y|
//! labels; for rankings by score one look at each score; for propensities a sort of Y.

mod calibration;
mod ranking;
mod scores;
mod shares;
#[cfg(test)]
mod tests;

pub use calibration::{softmax_slope, Line, Outcome};
pub use ranking::Ranking;
pub use scores::{propensities, Measures, Scores, Weights};
pub use shares::{softmax, spread_over_labels, RankedScores, Scale, Shares, N_SHARING};
