//! Values and weights at the ends of what is allowed: no model gets a number that is none, and no
//! answer has one.

use proptest::prelude::*;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::find;
use crate::classifier::{Classifier, FitOptions, Query};
use crate::control::Control;
use crate::data::{Batch, Indices, LabelSets, Labels, Rows, Targets, Values};

const N_ROWS: usize = 60;
const N_COLUMNS: usize = 7;
const N_CLASSES: usize = 5;

/// Learner, parameters, and whether rows have sets of labels.
const MODELS: &[(&str, &str, bool)] = &[
    ("oaa", "{}", false),
    ("oaa", r#"{"loss": "softmax"}"#, false),
    (
        "oaa",
        r#"{"loss": "softmax", "average": true, "scaling": "none"}"#,
        false,
    ),
    ("oaa", r#"{"loss": "logistic", "optimizer": "nag"}"#, true),
    (
        "oaa",
        r#"{"loss": "squared", "optimizer": "sgd", "scaling": "none"}"#,
        false,
    ),
    (
        "oaa",
        r#"{"n_negatives": 2, "l1": 1e-3, "scale_weights": false}"#,
        false,
    ),
    ("lomtree", "{}", false),
    (
        "lomtree",
        r#"{"scale_weights": false, "scaling": "none", "max_internal": 3}"#,
        false,
    ),
    (
        "lomtree",
        r#"{"optimizer": "nag", "n_estimators": 2}"#,
        false,
    ),
    ("recall-tree", "{}", false),
    (
        "recall-tree",
        r#"{"scaling": "none", "loss": "margin"}"#,
        false,
    ),
    (
        "recall-tree",
        r#"{"optimizer": "nag", "loss": "hinge", "max_depth": 9}"#,
        false,
    ),
    ("filter-tree", "{}", false),
    (
        "random-tree",
        r#"{"optimizer": "nag", "scaling": "none", "scale_weights": false}"#,
        false,
    ),
    (
        "ldsm",
        r#"{"n_estimators": 2, "max_nodes": 9, "min_priority": 0.0}"#,
        true,
    ),
    (
        "ldsm",
        r#"{"n_estimators": 1, "scorers": "none", "scaling": "none", "beta": 0.5, "optimizer": "sgd", "min_priority": 0.0}"#,
        true,
    ),
    (
        "ldsm",
        r#"{"n_estimators": 1, "scorers": "none", "scaling": "standard", "quantize": false, "optimizer": "nag", "min_priority": 0.0}"#,
        false,
    ),
    ("gamble", r#"{"n_estimators": 5}"#, false),
    (
        "gamble",
        r#"{"n_estimators": 5, "splits": "exact", "clip": false, "learning_rate": 100.0}"#,
        false,
    ),
    ("samme", r#"{"n_estimators": 5}"#, false),
];

/// Sizes of values, and of weights beside 0.
const SIZES: &[f32] = &[1e-45, 1e-38, 1e-30, 1e-6, 1.0, 3.0, 1e6, 1e18, 1e30, 3.4e38];
const WEIGHTS: &[f64] = &[1e-36, 1e-20, 1e-3, 1.0, 1e3, 1e20, 1e36];

/// Random rows, whose values and weights are each of a few sizes.
struct Extremes {
    values: Vec<f32>,
    labels: Vec<u32>,
    weights: Vec<f64>,
    set_starts: Vec<i64>,
    sets: Vec<i32>,
}

impl Extremes {
    fn new(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let pick = |random: &mut Pcg64Mcg, n: usize| -> Vec<usize> {
            (0..random.random_range(1..4))
                .map(|_| random.random_range(0..n))
                .collect()
        };
        let sizes = pick(&mut random, SIZES.len());
        let weights = pick(&mut random, WEIGHTS.len());
        let mut value = |_| {
            let size = SIZES[*sizes.choose(&mut random).unwrap()];
            size * [-1.0, 0.0, 0.5, 1.0].choose(&mut random).unwrap()
        };
        let values = (0..N_ROWS * N_COLUMNS).map(&mut value).collect();
        let labels: Vec<u32> = (0..N_ROWS)
            .map(|_| random.random_range(0..N_CLASSES as u32))
            .collect();
        let weight = |random: &mut Pcg64Mcg| {
            let is_there = random.random_bool(0.9);
            f64::from(u8::from(is_there)) * WEIGHTS[*weights.choose(random).unwrap()]
        };
        let mut all_weights: Vec<f64> = (0..N_ROWS).map(|_| weight(&mut random)).collect();
        all_weights[0] = 1.0;
        Self {
            values,
            sets: labels.iter().map(|&label| label as i32).collect(),
            set_starts: (0..=N_ROWS as i64).collect(),
            labels,
            weights: all_weights,
        }
    }

    fn rows(&self) -> Rows<'_> {
        Rows::dense(Values::F32(&self.values), N_ROWS, N_COLUMNS).unwrap()
    }

    fn batch(&self, label_sets: bool) -> Batch<'_> {
        let targets = if label_sets {
            let (starts, sets) = (Indices::I64(&self.set_starts), Indices::I32(&self.sets));
            Targets::Sets(LabelSets::new(starts, sets, N_CLASSES).unwrap())
        } else {
            Targets::One(Labels::new(&self.labels, N_CLASSES).unwrap())
        };
        Batch::new(self.rows(), targets, Some(Values::F64(&self.weights))).unwrap()
    }
}

/// The array of the model that holds NaN, or that scores do.
fn broken(model: &dyn Classifier, rows: &Rows<'_>) -> Option<String> {
    let control = Control::new(0);
    let (_, scores) = model
        .predict_topk(&Query::new(rows, 1, &control), 3)
        .unwrap();
    let in_scores = || {
        scores
            .iter()
            .any(|score| score.is_nan())
            .then(|| "scores".into())
    };
    model.to_bundle().array_with(f64::is_nan).or_else(in_scores)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn extremes_leave_numbers(seed in any::<u64>()) {
        let (data, control) = (Extremes::new(seed), Control::new(0));
        let mut all_broken = Vec::new();
        for &(learner, params, label_sets) in MODELS {
            let create = || find(learner).unwrap().create(params, N_CLASSES, label_sets).unwrap();
            let batch = data.batch(label_sets);
            let mut model = create();
            if model.fit(&batch, FitOptions::threads(1), &control).is_ok() {
                let broken = broken(&*model, &batch.rows);
                all_broken.extend(broken.map(|what| (learner, params, "fit", what)));
            }
            for mut model in [model, create()] {
                if model.partial_fit(&batch, 1, None, &control).is_ok() {
                    let broken = broken(&*model, &batch.rows);
                    all_broken.extend(broken.map(|what| (learner, params, "partial_fit", what)));
                }
            }
        }
        prop_assert!(all_broken.is_empty(), "{:?}", all_broken);
    }
}
