//! The way of the data: borrowed memory, checked once, then read row by row.
//!
//! `Rows` (numpy or scipy memory, or text just parsed) -> `Preparation` (hash,
//! scale, append the constant) -> `RowBuffer`, the example -> learner.

mod gaps;
mod labels;
mod rows;
mod scale;

pub use gaps::GappyRows;
pub use labels::{LabelSets, Labels};
pub(crate) use rows::check_structure;
pub use rows::{Indices, RowBuffer, Rows, Values};
pub use scale::{Preparation, Scaling};
