//! What is done with bytes that somebody made up: the bodies of the fuzz targets. cargo-fuzz runs
//! them in `fuzz/`, the test beside them runs them as ordinary Rust.

mod edits;
mod exercise;
mod models;
mod parameters;
mod text;

/// A fuzz target: its name, and what it does with its input. A panic is a finding.
pub type Target = (&'static str, fn(&[u8]));

/// Every target. Those of learners take a list of [edits] to a sound model, the others the bytes
/// themselves.
pub const TARGETS: [Target; 11] = [
    ("oaa", |data| models::edited("oaa", data)),
    ("lomtree", |data| models::edited("lomtree", data)),
    ("recall-tree", |data| models::edited("recall-tree", data)),
    ("label-tree", |data| models::edited("label-tree", data)),
    ("ldsm", |data| models::edited("ldsm", data)),
    ("gamble", |data| models::edited("gamble", data)),
    ("container", models::container),
    ("svmlight", text::svmlight),
    ("xmc", text::xmc),
    ("packed", text::packed),
    ("parameters", parameters::parameters),
];
