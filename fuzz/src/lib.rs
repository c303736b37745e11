//! The fuzz targets, which the test `fuzz` of the main package runs too.

#[path = "../../rust/tests/fuzz/targets/mod.rs"]
pub mod targets;

/// Folder of the seeds, with a folder for each target.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds");

/// Runs the target of this name on `data`.
pub fn run(name: &str, data: &[u8]) {
    let target = targets::TARGETS.iter().find(|(other, _)| *other == name);
    target.expect("a target").1(data);
}
