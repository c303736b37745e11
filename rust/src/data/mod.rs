//! The way of the data: borrowed memory, checked once, then read row by row.
//!
//! `Rows` (numpy or scipy memory, or text just parsed) -> `Preparation` (hash,
//! scale, append the constant) -> `RowBuffer`, the example -> learner.

mod arrays;
mod batch;
mod examples;
mod packed;
mod preparation;
mod ragged;
mod rows;

pub(crate) use arrays::check_structure;
pub use arrays::{Indices, Values};
pub use batch::{Batch, LabelSets, Labels, Targets};
pub(crate) use batch::{MeanWeight, MAX_EXAMPLE_COUNT};
pub use examples::Examples;
pub use packed::{Lookup, PackedList, PackedLists, Precision};
pub use preparation::{Preparation, Scaling, LARGEST_VALUE};
pub use ragged::{Ragged, RaggedRows, SpreadRow};
pub use rows::{RowBuffer, Rows};
