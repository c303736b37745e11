//! The interface of all classifiers, and the parts that learners share: the model around online
//! learners, the passes of `fit`, prediction in blocks of rows.

mod interface;
mod linear_scorers;
mod online;
mod online_file;
mod online_model;
mod parts;
mod predict;
mod schedule;

pub(crate) use interface::checks;
pub use interface::{
    Classifier, FitOptions, LabelSelection, Learner, PredictOptions, Query, ReachedLeaf, Task,
    TopKArrays,
};
pub(crate) use linear_scorers::CONTRIBUTION_BYTES;
pub use linear_scorers::{Contributions, LinearScorers, PreparedScorers};
pub use online::{First, Learning, Member, OnlineLearner, OnlineParams, Predictor, Start};
pub use online_model::OnlineModel;
pub(crate) use predict::{block_rows, row_values, Blocks};
pub use predict::{first_best, keep_best, TopK};
pub use schedule::{seed_of, Mistakes, PartStep, Schedule};
