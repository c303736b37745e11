//! Model files: the format that `save`, `load` and pickle use for every learner.
//!
//! A learner converts itself to a [`Bundle`] (flat named arrays, JSON metadata, its kind) and back;
//! see [`Persist`]. Nothing in a file is ever executed, and reading a file allocates no more than
//! its size.
//!
//! # Bytes
//!
//! All numbers are little-endian.
//!
//! | offset | length | contents |
//! |---|---|---|
//! | 0 | 8 | `89 58 4D 54 52 45 45 0A`, that is `\x89XMTREE\n` |
//! | 8 | 4 | format version, now 3 |
//! | 12 | 4 | zero, so that the body begins at a multiple of 8 |
//! | 16 | 8 | n, the length of the body |
//! | 24 | n | the body: a complete [safetensors] file |
//! | 24 + n | 4 | CRC-32 (IEEE) of everything before it |
//!
//! The body's `__metadata__` has one entry, `xmtree`: a JSON object of `kind` (the learner) and
//! `meta` (its parameters and counters). Every array has one dimension and one of the types of
//! [`Array`]. Wider elements come first, so that each array is aligned. A nested model, such as a
//! tree of a forest, has its arrays under `prefix/name`, and its own `kind` and `meta` under the
//! key `prefix/` of the outer `meta`.
//!
//! Single precision floats may be stored in 16 bits ([`Bundle::narrow`]): an array of I16 under
//! their name, and an array of F32 under `name.scale`. Each scale multiplies 64 of the former.
//!
//! A model always gives the same bytes. A reader refuses other versions than its own. Raise
//! [`VERSION`] for an incompatible change of the layout or of the arrays of a learner.
//!
//! # Cost
//!
//! Reading and writing are streamed: besides the arrays, they hold a buffer of some kilobytes and
//! the safetensors header. [`Bundle::map`] opens a file in constant time: arrays that a learner
//! takes as [`Flat`] stay in the file, and neither they nor the checksum are read. The learner
//! checks everything that memory safety and termination depend on, such as links between nodes.
//! It skips checks that would read all of a large array only to find damage
//! ([`Flat::is_mapped`]), because accesses by index are checked anyway.
//!
//! [safetensors]: https://github.com/huggingface/safetensors

mod array;
mod bundle;
mod container;
mod record;
mod replace;
mod report;
#[cfg(test)]
mod tests;

pub use array::{Array, Element, Flat, LARGEST};
pub use bundle::Bundle;
pub use container::VERSION;
pub use record::{
    bounded_count, check_column, is_count, is_score, is_statistic, is_sum, put_lengths,
    take_lengths, Columns, Nest, Persist, Record, Scores,
};
pub(crate) use replace::Replacement;
pub use report::{Column, Report, Shape};
