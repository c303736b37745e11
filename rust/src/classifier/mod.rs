//! What classifiers share: the passes of `fit`, blocks of rows in prediction, top-k.

mod blocks;
pub(crate) mod checks;
mod progressive;
mod schedule;
mod topk;

pub(crate) use blocks::{block_rows, in_blocks, row_values};
pub use progressive::Mistakes;
pub use schedule::{Online, Schedule};
pub use topk::TopK;
