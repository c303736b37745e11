//! Online linear regressors: what every learner here is made of.
//!
//! A loss says how far to step, an optimiser in which direction. The step of
//! [`Loss::step`] never overshoots, whatever the importance of the example.
//! How weights are stored is each learner's own affair.

mod loss;
mod nag;
mod optimizer;
mod precondition;
pub(crate) mod softmax;

pub use loss::Loss;
pub(crate) use nag::TINIEST;
pub use nag::{NagSlot, NagTotals, Span};
pub use optimizer::Optimizer;
pub use precondition::{Power, Preconditioner};
