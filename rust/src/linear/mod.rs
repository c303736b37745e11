//! Online linear regressors: what every learner with routers or scorers is made of.
//!
//! A loss says how far to step, an optimiser in which direction. The step of
//! [`Loss::step`] never overshoots, whatever the importance of the example.
//! [`Regressors`] keeps the weights of many regressors of which an example needs few;
//! one-against-all, where an example needs all, has a layout of its own.

// Kernels have to become part of the function whose instruction set they are compiled for.
#![allow(clippy::inline_always)]

mod example;
pub(crate) mod loss;
pub(crate) mod nag;
mod pn;
mod regressors;
#[cfg(test)]
mod tests;
mod weights;

pub use example::{padded, Block, PathExample};
pub use loss::Loss;
pub use nag::{NagSlot, NagTotals, Span};
pub(crate) use pn::{bounded_change, bounded_score, bounded_sum};
pub use pn::{Power, Preconditioner, Scores, StepLimit};
pub use regressors::{Optimizer, Rate, Regressors};
pub use weights::{lookup, prefetch_slot, AlignedRow, Slot, Table, Weights};
