//! Logarithmic-time classifiers for very many labels: the core of `xmtree`.
//!
//! The crate builds and tests without Python; the feature `python` adds the
//! binding, which converts, detaches and maps errors, and holds no algorithm.

pub mod control;
pub mod data;
pub mod error;
pub mod gamble;
pub mod label_tree;
pub mod ldsm;
pub mod linear;
pub mod lomtree;
pub mod metrics;
pub mod model;
pub mod oaa;
pub mod passes;
pub mod progressive;
pub mod recall_tree;
mod room;
mod shape;
mod simd;
pub mod text;
mod threads;
pub mod topk;
pub mod tree;

#[cfg(feature = "python")]
mod python;

pub use control::Control;
pub use error::{Error, Result};
