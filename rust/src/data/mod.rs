//! The way of the data: borrowed memory, checked once, then read row by row.
//!
//! `Rows` (numpy or scipy memory, or text just parsed) -> `Scaler` ->
//! `Example` (f32, bias appended, sparse or dense whichever is cheaper) ->
//! learner.

mod labels;
mod rows;

pub use labels::{LabelSets, Labels};
pub use rows::{Indices, RowBuffer, Rows, Values};
