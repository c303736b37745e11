//! Writes the seeds of the fuzz targets, small valid inputs, for `make check SELECT=seeds`.

use std::fs;
use std::io::Write;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use xmtree::data::{Batch, Indices, LabelSets, Labels, Rows, Targets, Values};
use xmtree::file::Bundle;
use xmtree::learners::{find, LEARNERS};
use xmtree::model::{Classifier, FitOptions};
use xmtree::Control;

use super::targets::TARGETS;
use super::SEEDS;

const N_ROWS: usize = 40;
const N_COLUMNS: usize = 6;
const N_CLASSES: usize = 5;

/// The models: kind, variant, learner, parameters, and true if rows have label sets.
const MODELS: &[(&str, &str, &str, &str, bool)] = &[
    ("oaa", "plain", "oaa", r#"{"n_passes": 2}"#, false),
    (
        "oaa",
        "softmax",
        "oaa",
        r#"{"loss": "softmax", "n_passes": 2}"#,
        false,
    ),
    (
        "oaa",
        "sets",
        "oaa",
        r#"{"loss": "logistic", "optimizer": "nag", "n_passes": 2}"#,
        true,
    ),
    (
        "oaa",
        "hashed",
        "oaa",
        r#"{"n_bits": 3, "n_passes": 1, "n_negatives": 2}"#,
        false,
    ),
    ("lomtree", "plain", "lomtree", r#"{"n_passes": 2}"#, false),
    (
        "lomtree",
        "three",
        "lomtree",
        r#"{"n_passes": 1, "n_estimators": 3, "nodes_per_class": 0.5, "split_threshold": 1.0}"#,
        false,
    ),
    (
        "recall-tree",
        "plain",
        "recall-tree",
        r#"{"n_passes": 2}"#,
        false,
    ),
    (
        "recall-tree",
        "deep",
        "recall-tree",
        r#"{"n_passes": 2, "max_depth": 4, "max_candidates": 3}"#,
        false,
    ),
    (
        "recall-tree",
        "paths",
        "recall-tree",
        r#"{"n_passes": 2, "loss": "hinge", "path_features": "all", "paper_tree": true}"#,
        false,
    ),
    (
        "label-tree",
        "filter",
        "filter-tree",
        r#"{"n_passes": 2}"#,
        false,
    ),
    (
        "label-tree",
        "random",
        "random-tree",
        r#"{"n_passes": 1, "optimizer": "nag"}"#,
        false,
    ),
    (
        "ldsm",
        "plain",
        "ldsm",
        r#"{"n_estimators": 2, "max_nodes": 9, "min_priority": 0.0}"#,
        false,
    ),
    (
        "ldsm",
        "three",
        "ldsm",
        r#"{"n_estimators": 1, "max_nodes": 13, "arity": 3, "scorers": "none", "beta": 0.5, "slim_trees": false, "keep_statistics": true, "min_priority": 0.0}"#,
        true,
    ),
    (
        "gamble",
        "plain",
        "gamble",
        r#"{"n_estimators": 3, "max_leaves": 8, "categorical_features": [1]}"#,
        false,
    ),
    (
        "gamble",
        "samme",
        "samme",
        r#"{"n_estimators": 2, "max_leaves": 4}"#,
        false,
    ),
];

/// Rows of classes that their columns reveal.
struct Set {
    starts: Vec<i64>,
    columns: Vec<i32>,
    values: Vec<f32>,
    labels: Vec<u32>,
}

impl Set {
    fn new() -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut set = Self {
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            labels: Vec::new(),
        };
        for row in 0..N_ROWS {
            let label = row % N_CLASSES;
            for column in 0..N_COLUMNS {
                if column == label || random.random_bool(0.3) {
                    set.columns.push(column as i32);
                    set.values.push(f32::from(random.random_range(1..4_u8)));
                }
            }
            set.starts.push(set.columns.len() as i64);
            set.labels.push(label as u32);
        }
        set
    }

    fn model(&self, learner: &str, params: &str, label_sets: bool) -> Box<dyn Classifier> {
        let mut model = find(learner)
            .unwrap()
            .create(params, N_CLASSES, label_sets)
            .unwrap();
        let (starts, columns) = (Indices::I64(&self.starts), Indices::I32(&self.columns));
        let rows = Rows::csr(starts, columns, Values::F32(&self.values), N_COLUMNS, false).unwrap();
        let sets: Vec<i32> = self.labels.iter().map(|&label| label as i32).collect();
        let set_starts: Vec<i64> = (0..=N_ROWS as i64).collect();
        let targets = if label_sets {
            let (starts, sets) = (Indices::I64(&set_starts), Indices::I32(&sets));
            Targets::Sets(LabelSets::new(starts, sets, N_CLASSES).unwrap())
        } else {
            Targets::One(Labels::new(&self.labels, N_CLASSES).unwrap())
        };
        let batch = Batch::new(rows, targets, None).unwrap();
        let control = Control::new(0);
        model.fit(&batch, FitOptions::threads(1), &control).unwrap();
        model
    }
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(SEEDS).join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
}

#[test]
#[ignore = "writes fuzz/seeds; run by make check SELECT=seeds"]
fn write_seeds() {
    let set = Set::new();
    let control = Control::new(0);
    for &(kind, variant, learner, params, label_sets) in MODELS {
        let model = set.model(learner, params, label_sets);
        let name = |form: &str| format!("{kind}.{variant}{form}.xmt");
        write(
            "container",
            &name(""),
            &model.to_bundle().to_bytes().unwrap(),
        );
        let compact = model.to_prediction_bundle(true, &control).unwrap();
        if compact != model.to_bundle() {
            write("container", &name(".compact"), &compact.to_bytes().unwrap());
        }
    }
    for (text, name) in [
        ("\x001 1:0.5 2:-1e3 # comment\n-1 qid:3 1:1\n", "plain"),
        ("\x081,2 1:1 7:0.25\n 3:1\n0 \n", "sets"),
        ("\x12+1 0:1 1:2\r\n\n0.5 3:4", "based"),
    ] {
        write("svmlight", name, text.as_bytes());
    }
    for (text, name) in [
        ("\x002 3 4\n0,3 0:1 2:0.5\n1 1:1\n", "sets"),
        ("\x011 3 4\n2 2:1e-3 0:7\n\n", "single"),
        ("\x003 2 2\n 0:1\n0,1 \n1 1:.5\n", "empty"),
    ] {
        write("xmc", name, text.as_bytes());
    }
    for (how, name) in [(1, "gzip"), (2, "xz"), (3, "zstd"), (0, "plain")] {
        let mut bytes = vec![how, 0, 0, 0];
        bytes.extend(b"2 3 4\n0,3 0:1 2:0.5\n1 1:1\n");
        write("packed", name, &bytes);
    }
    let mut gzip = flate2::write::GzEncoder::new(vec![0], flate2::Compression::fast());
    gzip.write_all(b"1 1 1\n0 0:1\n").unwrap();
    write("packed", "gzip-file", &gzip.finish().unwrap());
    for (number, learner) in LEARNERS.iter().enumerate() {
        let defaults = learner.parameters().unwrap();
        let defaults = defaults
            .into_iter()
            .map(|parameter| (parameter.name.into(), parameter.default));
        let json = Value::Object(defaults.collect()).to_string();
        let bytes = [&[number as u8], json.as_bytes()].concat();
        write("parameters", learner.name, &bytes);
    }
}

#[test]
fn seeds_are_small_and_load() {
    let mut size = 0;
    for entry in fs::read_dir(Path::new(SEEDS).join("container")).unwrap() {
        let path = entry.unwrap().path();
        let model = Bundle::read(&path).and_then(xmtree::learners::load);
        assert!(model.is_ok(), "run make check SELECT=seeds: {model:?}");
    }
    for (target, _) in TARGETS {
        let Ok(folder) = fs::read_dir(Path::new(SEEDS).join(target)) else {
            continue;
        };
        size += folder
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum::<u64>();
    }
    assert!(size < 200_000, "seeds have {size} bytes");
}
