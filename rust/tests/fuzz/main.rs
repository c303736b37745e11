//! Runs the fuzz targets as ordinary tests, on the seeds in `fuzz/seeds` and random changes of them.
//! `make check SELECT=fuzz` runs the same targets with libFuzzer.

mod seeds;
mod targets;

use std::fs;
use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use targets::{Target, TARGETS};

/// Folder of the seeds, with a folder for each target.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds");

/// Number of changed inputs for each target. `XMTREE_FUZZ_CASES` sets another number.
const CASES: u64 = 300;

/// Returns the seeds of a target, in the order of their names.
fn inputs(name: &str) -> Vec<Vec<u8>> {
    let Ok(folder) = fs::read_dir(Path::new(SEEDS).join(name)) else {
        return Vec::new();
    };
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Changes `data` at random: sets, removes, inserts or swaps bytes, truncates it or repeats a part.
fn change(data: &mut Vec<u8>, random: &mut impl Rng) {
    for _ in 0..random.random_range(1..6) {
        let n = data.len().max(1);
        let (at, other) = (random.random_range(0..n), random.random_range(0..n));
        let (from, to) = (at.min(other), at.max(other));
        match random.random_range(0..8) {
            _ if data.is_empty() => data.push(random.random()),
            0 => data[at] ^= 1 << random.random_range(0..8),
            1 => data[at] = random.random(),
            2 => data[at] = *b"0 :,\n-.9".get(other % 8).unwrap(),
            3 => data.truncate(at.max(1)),
            4 => drop(data.drain(from..to.min(from + 8))),
            5 => data.insert(at, random.random()),
            6 => data.extend_from_within(from..to.min(from + 64)),
            _ => data.swap(at, other),
        }
    }
}

/// Runs a target on its seeds and on changes of them, or on random bytes if it has no seeds.
fn run((name, body): Target, cases: u64) {
    let seeds = inputs(name);
    for seed in &seeds {
        body(seed);
    }
    for number in 0..cases {
        let mut random = Pcg64Mcg::seed_from_u64(number);
        let data = if seeds.is_empty() {
            let mut bytes = vec![0; 1 + 12 * random.random_range(1..4)];
            random.fill_bytes(&mut bytes);
            bytes
        } else {
            let mut data = seeds[number as usize % seeds.len()].clone();
            change(&mut data, &mut random);
            data
        };
        // The number of the case reproduces its input.
        let outcome = std::panic::catch_unwind(|| body(&data));
        assert!(outcome.is_ok(), "target {name}, case {number}: {data:?}");
    }
}

macro_rules! tests {
    ($($test:ident: $name:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let cases = std::env::var("XMTREE_FUZZ_CASES");
                let cases = cases.map_or(CASES, |cases| cases.parse().unwrap());
                let target = TARGETS.iter().find(|(name, _)| *name == $name);
                run(*target.unwrap(), cases);
            }
        )*

        #[test]
        fn every_target_is_tested() {
            assert_eq!(TARGETS.map(|(name, _)| name), [$($name),*]);
        }
    };
}

tests! {
    oaa: "oaa";
    lomtree: "lomtree";
    recall_tree: "recall-tree";
    label_tree: "label-tree";
    ldsm: "ldsm";
    gamble: "gamble";
    container: "container";
    svmlight: "svmlight";
    xmc: "xmc";
    packed: "packed";
    parameters: "parameters";
}
