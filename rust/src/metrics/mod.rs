//! Ranking measures for very many labels, as the Extreme Classification Repository and its program
//! define them; calibration of scores.
//!
//! For a row with the true labels Y and the ranking l_1, l_2, ..., with d_r = 1 / log2(r + 1) and
//! I(k) = d_1 + ... + d_k:
//!
//! ```text
//! P@k      =  |hits among the first k| / k
//! recall@k =  |hits among the first k| / |Y|
//! nDCG@k   =  sum of d_r over the hits r <= k  /  I(min(k, |Y|))
//! ```
//!
//! Each is averaged over the rows. The propensity-scored measures weight a hit by the inverse
//! propensity of its label. They are divided by the gain of the ideal ranking, the true labels in
//! descending order of weight:
//!
//! ```text
//! PSP@k    =  sum over rows of gained  /  sum over rows of ideal,
//!             gained = sum of w over the hits, ideal = sum of the k largest w of Y
//! PSnDCG@k =  the same, each w times its d_r, each row divided by I(min(k, |Y|))
//! ```
//!
//! One pass over the rows computes all measures. A row costs k look-ups among |Y| labels, a pass
//! over its scores if it is ranked by score, and with propensities a sort of Y.

mod calibration;
mod ranking;
mod scores;
mod shares;
#[cfg(test)]
mod tests;

pub use calibration::{softmax_slope, Line, Outcome};
pub use ranking::Ranking;
pub use scores::{propensities, Measure, Scores, Weights};
pub use shares::{
    softmax, spread_over_labels, Bends, RankedScores, Scale, Shares, SharesParameters, Softmax,
    MOST_SHARING,
};
