//! Options of the trees over a fixed order of labels.

use serde::{Deserialize, Serialize};

use crate::classifier::Schedule;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::linear::{Loss, Optimizer};

/// Which examples a router learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Those whose label won all its matches below: the filter tree.
    Filter,
    /// All whose label lies below it: the random tree.
    Random,
}

impl Policy {
    /// Name of the learner, for messages.
    pub fn learner(self) -> &'static str {
        match self {
            Self::Filter => "the filter tree",
            Self::Random => "the random tree",
        }
    }
}

/// In which order the labels stand at the leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelOrder {
    /// A permutation fixed by the seed.
    Random,
    /// The order of the classes.
    Given,
    /// The most frequent first; of equals the lower class.
    Frequency,
}

/// Every option; [`Params::check`] refuses what cannot be. The Python classes
/// document them for users and say where the defaults come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Filter tree or random tree.
    pub policy: Policy,
    /// Loss of the routers.
    pub loss: Loss,
    /// Step direction of the routers.
    pub optimizer: Optimizer,
    /// Scaling of the examples.
    pub scaling: Scaling,
    /// Columns are hashed into 2^`n_bits`, if given.
    pub n_bits: Option<u32>,
    /// Step size of a router that has seen nothing yet.
    pub learning_rate: f64,
    /// How fast a router's steps shrink; see [`crate::linear::Rate`].
    pub decay: f64,
    /// Order of the labels at the leaves.
    pub label_order: LabelOrder,
    /// Passes of `fit`.
    #[serde(flatten)]
    pub schedule: Schedule,
}

impl Params {
    /// Refuses what cannot be.
    pub fn check(self) -> Result<Self> {
        self.schedule.check()?;
        // Steps are single precision, where larger numbers are infinite.
        if !(self.learning_rate > 0.0 && (self.learning_rate as f32).is_finite()) {
            let allowed = "a number above 0, below 3e38";
            return Err(Error::parameter(
                "learning_rate",
                self.learning_rate,
                allowed,
            ));
        }
        if !(self.decay >= 0.0 && (self.decay as f32).is_finite()) {
            return Err(Error::parameter("decay", self.decay, "from 0 to 3e38"));
        }
        Ok(self)
    }
}
