//! The container of learned models: what `save`, `load` and pickle read and
//! write for every learner.
//!
//! A learner turns itself into a [`Bundle`] (flat named arrays, JSON
//! metadata, the name of its kind) and back; see [`Persist`]. Nothing in a file
//! is ever executed, and reading one allocates no more than its own size.
//!
//! # Bytes
//!
//! All numbers are little-endian.
//!
//! | offset | length | what |
//! |---|---|---|
//! | 0 | 8 | `89 58 4D 54 52 45 45 0A`, that is `\x89XMTREE\n` |
//! | 8 | 4 | format version, now 3 |
//! | 12 | 4 | zero, so that the body begins at a multiple of 8 |
//! | 16 | 8 | n, the length of the body |
//! | 24 | n | the body: a complete [safetensors] file |
//! | 24 + n | 4 | CRC-32 (IEEE) of everything before it |
//!
//! The body's `__metadata__` has one entry, `xmtree`: a JSON object of `kind`
//! (which learner) and `meta` (its parameters and counters). Every array has
//! one dimension and one of the types of [`Array`]; wider elements come first, so that each array
//! is aligned. A model inside a model, like a
//! tree of a forest, has its arrays under `prefix/name` and its own `kind` and
//! `meta` under the key `prefix/` of the outer `meta`.
//!
//! Floats of single precision may be stored in 16 bits ([`Bundle::narrow`]): an array of I16
//! under their name, and one of F32 under `name.scale`. They are the products of the former
//! and, for each 64 of them, one of the latter.
//!
//! The same model always gives the same bytes. A reader refuses versions above its
//! own; an incompatible change of the layout, or of what a learner stores,
//! raises [`VERSION`].
//!
//! # Cost
//!
//! Reading and writing stream: beside the arrays themselves they hold one
//! buffer of some kilobytes and the safetensors header. A file that is mapped
//! ([`Bundle::map`]) is opened in a time that does not depend on its size: arrays that a learner
//! takes as [`Flat`] stay where they lie, and neither they nor the checksum are read. Whoever
//! takes one checks as much as memory safety and termination rest on (links between nodes, say),
//! and leaves out what reads all of a large array only to find damage
//! ([`Flat::is_mapped`]); indices into other arrays stay checked where they are used.
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
    take_lengths, Columns, Meta, Nest, Persist, Record, Scores,
};
pub(crate) use replace::Replacement;
pub use report::{Column, Report, Shape};
