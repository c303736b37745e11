//! One-against-all: a linear regressor per class, the highest score wins.
//!
//! Cost per example: O(K * non-zeros), most of it multiplications of what is
//! in the cache; memory K floats (two while averaging) per feature seen.
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | what a user can choose |
//! | `feed` | rows -> chunks of examples ready to learn: scaled, directed, timed |
//! | `chunk` | such a chunk |
//! | `tile` | the weights, cut into tiles of classes |
//! | `kernels` | scores and steps of a tile ("pn", "sgd") |
//! | `adaptive` | the same for "nag" and "adagrad" |
//! | `softmax` | the loss in which classes are not independent |
//! | `average` | which average of the weights predicts |
//! | `learner` | [`Oaa`]: learning |
//! | `predict` | [`Oaa`]: prediction in batches |
//! | `persist` | [`Oaa`] as named arrays |

mod adaptive;
mod average;
mod chunk;
mod feed;
mod kernels;
mod learner;
mod params;
mod persist;
mod predict;
mod softmax;
#[cfg(test)]
mod tests;
mod tile;

pub use learner::Oaa;
pub use params::{AutoWord, Average, OaaLoss, Params};
