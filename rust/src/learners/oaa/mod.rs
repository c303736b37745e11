//! One-against-all: a linear regressor per class; the class with the highest score is predicted.
//!
//! An example costs O(K * non-zeros), most of it multiplications of weights that are in the cache.
//! Memory: K floats per feature seen, and K more while weights are averaged.
//!
//! | file | contents |
//! |---|---|
//! | `params` | parameters and their ranges |
//! | `chunk` | a chunk of prepared examples; feature slots, sampled negatives, the average |
//! | `preparer` | rows -> chunks: scaled rows, step directions, learning rates |
//! | `tile` | the weights, cut into tiles of classes |
//! | `kernels` | scores of a tile's classes; steps of "pn" and of the softmax |
//! | `adaptive` | steps of "nag" |
//! | `training` | the learner, which learns chunk by chunk; new classes |
//! | `learner` | the learner's side of the online model, and its file |
//! | `pruned` | sparse weights for prediction |
//! | `class_blocks` | training some classes at a time: in parts of the data, or for pruning |
//! | `predict` | predictions for a block of rows |

// Kernels must be inlined into the function that is compiled for an instruction set.
#![allow(clippy::inline_always)]

mod adaptive;
mod chunk;
mod class_blocks;
mod kernels;
mod learner;
mod params;
mod predict;
mod preparer;
mod pruned;
#[cfg(test)]
mod tests;
mod tile;
mod training;

pub use params::{OaaLoss, Params};
pub use predict::TilePredictor;
pub use training::Oaa;
