//! The way of the data: borrowed memory, checked once, then read row by row.
//!
//! `Rows` (numpy or scipy memory, or text just parsed) -> `Preparation` (hash,
//! scale, append the constant) -> `RowBuffer`, the example -> learner.

mod batch;
mod csr_checks;
mod labels;
mod preparation;
mod ragged;
mod rows;
mod slices;

pub(crate) use batch::MeanWeight;
pub(crate) use batch::MOST_EXAMPLES;
pub use batch::{Batch, Targets};
pub(crate) use csr_checks::check_structure;
pub use labels::{LabelSets, Labels};
pub use preparation::{Preparation, Scaling, LARGEST_VALUE};
pub use ragged::{Ragged, RaggedRows};
pub use rows::{RowBuffer, Rows};
pub use slices::{Indices, Values};
