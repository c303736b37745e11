//! Input data: borrowed memory, checked once and then read row by row.
//!
//! `Rows` (memory of numpy or scipy, or parsed text) -> `Preparation` (hashes, scales, appends the
//! constant) -> `RowBuffer` (the prepared example) -> learner.

mod arrays;
mod batch;
mod examples;
mod local_ids;
mod packed;
mod preparation;
mod ragged;
mod rows;

pub(crate) use arrays::check_structure;
pub use arrays::{Indices, Values};
pub use batch::{Batch, LabelSets, Labels, Targets};
pub(crate) use batch::{MeanWeight, MAX_EXAMPLE_COUNT};
pub use examples::Examples;
pub use local_ids::LocalIds;
pub use packed::{bits_of_ids, PackedList, PackedLists, Precision};
pub use preparation::{Preparation, Scaling, LARGEST_VALUE};
pub use ragged::{Ragged, RaggedRows, SpreadRow};
pub use rows::{RowBuffer, Rows};
