//! One-against-all: a linear regressor per class, the highest score wins.
//!
//! Cost per example: O(K * non-zeros), most of it multiplications of what is
//! in the cache; memory K floats (two while averaging) per feature seen.
//!
//! | file | what it holds |
//! |---|---|
//! | `params` | parameters and their ranges |
//! | `chunk` | a chunk of examples, ready to be learned; slots, negatives, the average |
//! | `preparer` | rows -> chunks: scaled rows, step directions, learning rates |
//! | `tile` | the weights, cut into tiles of classes |
//! | `kernels` | scores of a tile's classes; steps of "pn" and the softmax |
//! | `adaptive` | steps of "nag" |
//! | `training` | the learner, chunk by chunk; new classes |
//! | `learner` | what it adds to the model around it, and its file |
//! | `pruned` | weights held sparsely, for prediction |
//! | `class_blocks` | training by blocks of classes: on many machines, or one after the other to be pruned |
//! | `predict` | answers for a block of rows |

// Kernels have to become part of the function whose instruction set they are compiled for.
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

pub use class_blocks::ClassBlock;
pub use params::{OaaLoss, Params};
pub use predict::TilePredictor;
pub use training::Oaa;
