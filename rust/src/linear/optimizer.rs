//! Names of the optimisers.

use crate::choices;

choices! {
    /// In which direction a regressor steps.
    pub enum Optimizer {
        /// Preconditioned, normalised: [`super::Preconditioner`]. No state per weight.
        Pn = "pn",
        /// Normalised adaptive gradient: Vowpal Wabbit's default.
        Nag = "nag",
        /// Each weight's rate falls with its own sum of squared gradients.
        Adagrad = "adagrad",
        /// The plain gradient.
        Sgd = "sgd",
    }
}
