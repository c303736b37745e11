//! The way of the data: borrowed memory, checked once, then read row by row.
//!
//! `Rows` (numpy or scipy memory, or text just parsed) -> `Preparation` (hash,
//! scale, append the constant) -> `RowBuffer`, the example -> learner.

mod batch;
mod preparation;
mod ragged;
mod rows;

pub use batch::{Batch, LabelSets, Labels, Targets};
pub(crate) use batch::{MeanWeight, MOST_EXAMPLES};
pub use preparation::{Preparation, Scaling, LARGEST_VALUE};
pub use ragged::{Ragged, RaggedRows};
pub(crate) use rows::check_structure;
pub use rows::{Indices, RowBuffer, Rows, Values};
