//! Names of the optimisers.

use serde::{Deserialize, Serialize};

/// In which direction a regressor steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Preconditioned, normalised: [`super::Preconditioner`]. No state per weight.
    Pn,
    /// Normalised adaptive gradient: Vowpal Wabbit's default.
    Nag,
    /// Each weight's rate falls with its own sum of squared gradients.
    Adagrad,
    /// The plain gradient.
    Sgd,
}
