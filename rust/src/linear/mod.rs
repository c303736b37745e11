//! Online linear regressors, used as routers and scorers.
//!
//! A loss determines the length of a step, an optimizer its direction. The step of [`Loss::step`]
//! never overshoots, whatever the importance weight of the example. [`Regressors`] stores many
//! regressors, of which an example needs a few. One-against-all, where an example needs all of
//! them, has its own layout.

// Kernels must be inlined into the function that is compiled for their instruction set.
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
pub use weights::{lookup, prefetch_slot, read_entries, AlignedRow, Slot, Table, Weights};
