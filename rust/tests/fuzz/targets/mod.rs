//! The fuzz targets. cargo-fuzz runs them from `fuzz/`; `main.rs` runs them as ordinary tests.

mod edits;
mod exercise;
mod models;
mod parameters;
mod text;

/// Name and function of a fuzz target. A panic of the function is a finding.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. The input of a learner's target is a list of [edits] of a valid model; other targets
/// read the bytes themselves.
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
