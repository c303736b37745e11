//! Logarithmic-time classifiers for very many labels: the core of `xmtree`.
//!
//! The crate builds and tests without Python. The feature `python` adds the binding, which
//! converts arguments, releases the interpreter and maps errors; it holds no algorithm.

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
mod simd;
pub mod text;
mod threads;
pub mod tree;

#[cfg(feature = "python")]
mod python;

// The fuzz targets name the crate as libFuzzer's programs do. Tests of a crate of their own would
// need a second build of this one.
#[cfg(test)]
extern crate self as xmtree;
#[cfg(test)]
#[path = "../tests/fuzz/main.rs"]
mod fuzz;

pub use control::Control;
pub use error::{Error, Result};
