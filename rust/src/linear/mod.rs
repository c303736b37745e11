//! Online linear regressors: what every learner here is made of.
//!
//! A loss says how far to step, an optimiser in which direction. The step of
//! [`Loss::step`] never overshoots, whatever the importance of the example.
//! How weights are stored is each learner's own affair.

mod loss;
mod precondition;

pub use loss::Loss;
pub use precondition::Preconditioner;
