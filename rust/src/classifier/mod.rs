//! What every classifier is, as callers see it, and what the learners share: the model around
//! online learners, the passes of `fit`, blocks of rows in prediction and top-k.

mod blocks;
pub(crate) mod checks;
mod freezing;
mod interface;
mod learning;
mod members;
mod online;
mod online_file;
mod online_model;
mod progressive;
mod registry;
mod schedule;
mod topk;

pub(crate) use blocks::{block_rows, each_block, row_values, Blocks};
pub use interface::{
    Accepts, Classifier, FitOptions, LabelSelection, Learner, PredictOptions, Query, ReachedLeaf,
    SelectedLabels, Task, TopKArrays,
};
pub use learning::Learning;
pub use members::seed_of;
pub use online::{Member, OnlineLearner, OnlineParams, Predictor, Start};
pub use online_model::OnlineModel;
pub use progressive::Mistakes;
pub use registry::Registration;
pub use schedule::Schedule;
pub use topk::{keep_best, TopK};
