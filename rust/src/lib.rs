//! Logarithmic-time classifiers for very many labels: the core of `xmtree`.
//!
//! The crate builds and tests without Python; the feature `python` adds the
//! binding, which converts, detaches and maps errors, and holds no algorithm.
//!
//! A learner that finds no memory for a large array unwinds with an [`Error::Memory`], which
//! [`catch_no_memory`] returns.

mod alloc;
pub mod control;
pub mod data;
pub mod error;
pub mod file;
pub mod learners;
pub mod linear;
mod memory;
pub mod metrics;
pub mod model;
pub mod params;
mod pool;
mod random;
mod simd;
pub mod text;
mod threads;
pub mod tree;

#[cfg(feature = "python")]
mod python;

pub use alloc::catch_no_memory;
pub use control::Control;
pub use error::{Error, Result};
