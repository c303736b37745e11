//! One-against-all: a linear regressor per class, the highest score wins.
//!
//! Cost per example: O(K * non-zeros), most of it multiplications of what is
//! in the cache; memory K floats (two while averaging) per feature seen.
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | parameters and their ranges |
//! | `chunk` | a chunk of examples, ready to be learned |
//! | `preparer` | rows -> chunks: scaled rows, step directions, learning rates |
//! | `slots` | the row of the weights of each column |
//! | `sampling` | negative classes drawn at random |
//! | `average` | the average of the weights that predicts |
//! | `tile` | the weights, cut into tiles of classes |
//! | `scoring` | scores of a tile's classes |
//! | `shared_direction` | steps of a tile: "pn", "sgd" |
//! | `adaptive` | steps of a tile: "nag", "adagrad" |
//! | `softmax` | steps of all tiles together |
//! | `training` | learning, chunk by chunk |
//! | `learner` | the learner as others see it, and its file |
//! | `class_blocks` | training by blocks of classes, on many machines |
//! | `growth` | new classes for a model that has learned |
//! | `pruned` | weights held sparsely, for prediction |
//! | `pruned_fit` | learning some tiles after others, each of which is pruned when it is done |
//! | `predict` | answers for a block of rows |

// Kernels have to become part of the function whose instruction set they are compiled for.
#![allow(clippy::inline_always)]

mod adaptive;
mod average;
mod chunk;
mod class_blocks;
mod growth;
mod learner;
mod params;
mod predict;
mod preparer;
mod pruned;
mod pruned_fit;
mod sampling;
mod scoring;
mod shared_direction;
mod slots;
mod softmax;
#[cfg(test)]
mod tests;
mod tile;
mod training;

pub use class_blocks::ClassBlock;
pub use learner::Oaa;
pub use params::{AutoWord, Average, OaaLoss, Params};
pub use predict::TilePredictor;
