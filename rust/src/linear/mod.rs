//! Online linear regressors: what every learner with routers or scorers is made of.
//!
//! A loss says how far to step, an optimiser in which direction. The step of
//! [`Loss::step`] never overshoots, whatever the importance of the example.
//! [`Regressors`] keeps the weights of many regressors of which an example needs few;
//! one-against-all, where an example needs all, has a layout of its own.

// Kernels have to become part of the function whose instruction set they are compiled for.
#![allow(clippy::inline_always)]

mod adagrad;
mod aligned_row;
mod block;
mod example;
mod filled_chunks;
mod frozen_score;
mod loss;
pub(crate) mod nag;
mod precondition;
mod rate;
mod record;
mod regressors;
pub(crate) mod softmax;
mod step;
mod table;
#[cfg(test)]
mod tests;
mod weights;

pub use adagrad::AdaSlot;
pub use aligned_row::AlignedRow;
pub use block::Block;
pub use example::{padded, PathExample};
pub use loss::Loss;
pub use nag::{NagSlot, NagTotals, Span};
pub use precondition::{Power, Preconditioner};
pub use rate::Rate;
pub use regressors::{Optimizer, Regressors, RouterOptimizer};
pub(crate) use step::{bounded_by, bounded_change, bounded_score, bounded_sum};
pub use step::{Scores, StepLimit};
pub use table::{lookup, prefetch_slot, Slot, Table};
pub use weights::Weights;
