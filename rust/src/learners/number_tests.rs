//! Extreme values and weights, and files with extreme numbers: models and predictions stay finite,
//! and every saved model can be loaded.

use std::panic::{catch_unwind, AssertUnwindSafe};

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

use super::{find, load};
use crate::control::Control;
use crate::data::{Batch, Indices, LabelSets, Labels, Rows, Targets, Values};
use crate::error::Error;
use crate::file::{Array, Bundle, Flat};
use crate::model::{Classifier, FitOptions, Query};

const N_ROWS: usize = 36;
const N_COLUMNS: usize = 7;
const N_CLASSES: usize = 5;

/// Learner, single labels or label sets, and parameters.
const MODELS: &str = r#"
    oaa labels {}
    oaa labels {"loss": "softmax"}
    oaa labels {"loss": "softmax", "scaling": "none"}
    oaa sets {"loss": "logistic", "optimizer": "nag"}
    oaa labels {"n_negatives": 2, "scale_weights": false}
    oaa labels {"loss": "squared", "scaling": "none", "scale_weights": false}
    oaa sets {"loss": "hinge", "optimizer": "nag", "scale_weights": false}
    lomtree labels {}
    lomtree labels {"scale_weights": false, "scaling": "none", "nodes_per_class": 0.75}
    lomtree labels {"optimizer": "nag", "n_estimators": 2}
    recall-tree labels {}
    recall-tree labels {"scaling": "none", "loss": "margin"}
    recall-tree labels {"loss": "hinge", "max_depth": 9}
    recall-tree labels {"scaling": "none", "loss": "margin", "scale_weights": false}
    recall-tree labels {"loss": "squared", "scaling": "none", "scale_weights": false}
    filter-tree labels {}
    filter-tree labels {"optimizer": "nag", "scaling": "none", "scale_weights": false}
    random-tree labels {"optimizer": "nag", "scaling": "none", "scale_weights": false}
    ldsm sets {"n_estimators": 2, "max_nodes": 9, "min_priority": 0.0}
    ldsm sets {"n_estimators": 1, "scorers": "none", "scaling": "none", "beta": 0.5, "min_priority": 0.0}
    ldsm labels {"n_estimators": 1, "scorers": "none", "scaling": "standard", "slim_trees": false, "min_priority": 0.0}
    gamble labels {"n_estimators": 5}
    gamble labels {"n_estimators": 5, "splits": "exact", "clip": false, "learning_rate": 100.0}
    samme labels {"n_estimators": 5}
"#;

fn models() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    MODELS.trim().lines().map(|line| {
        let mut words = line.trim().splitn(3, ' ');
        let mut word = || words.next().unwrap();
        let (learner, label_sets) = (word(), word() == "sets");
        (learner, word(), label_sets)
    })
}

/// Magnitudes of values, and weights other than 0.
const SIZES: &[f32] = &[1e-45, 1e-38, 1e-30, 1e-6, 1.0, 3.0, 1e6, 1e18, 1e30, 3.4e38];
const WEIGHTS: &[f64] = &[1e-36, 1e-20, 1e-3, 1.0, 1e3, 1e20, 1e36];

/// Random rows, with a few magnitudes of values and of weights.
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
        Rows::dense(Values::F32(&self.values), N_ROWS, N_COLUMNS, false).unwrap()
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

/// Returns the part of a model that is wrong: scores that are not finite, or a file that does not
/// load.
fn broken(model: &dyn Classifier, rows: &Rows<'_>) -> Option<String> {
    let control = Control::new(0);
    let query = Query::new(rows, 1, &control);
    let is_wrong = |&score: &f32| score.is_nan() || score == f32::INFINITY;
    let (labels, scores) = model.predict_topk(&query, 3).unwrap();
    let missing = labels
        .iter()
        .zip(&scores)
        .any(|(&label, score)| label >= 0 && !score.is_finite());
    if missing || scores.iter().any(is_wrong) {
        return Some("scores".into());
    }
    if let Ok(Array::F32(scores)) = model.predict_scores(&query) {
        if scores.iter().any(is_wrong) {
            return Some("scores of all classes".into());
        }
    }
    let bytes = model.to_bundle().to_bytes().unwrap();
    let again = Bundle::from_bytes(&bytes).and_then(load);
    again.err().map(|error| error.to_string())
}

/// Trains with `partial_fit` and with `fit`, and returns the part of a model that is wrong.
fn learn_on(model: &mut dyn Classifier, batch: &Batch<'_>) -> Option<String> {
    let (control, n_threads) = (Control::new(0), 1);
    let options = FitOptions {
        warm_start: true,
        ..FitOptions::threads(n_threads)
    };
    let mut stream = model.boxed_clone();
    let learned = [
        (stream.partial_fit(batch, n_threads, &control), stream),
        (model.fit(batch, options, &control), model.boxed_clone()),
    ];
    let trained = learned.iter().filter(|(result, _)| result.is_ok());
    let mut found = trained.map(|(_, model)| broken(&**model, &batch.rows));
    found.find_map(|broken| broken)
}

/// Returns the number of cases of a test: `few`, or `XMTREE_FUZZ_CASES` for a long search.
fn cases(few: u64) -> u64 {
    let asked = std::env::var("XMTREE_FUZZ_CASES").ok();
    asked.map_or(few, |n| n.parse().unwrap())
}

#[test]
fn extreme_numbers_leave_finite_models() {
    for seed in 0..cases(16) {
        let (data, control) = (Extremes::new(seed), Control::new(0));
        for (learner, params, label_sets) in models() {
            let registration = find(learner).unwrap();
            let create = || registration.create(params, N_CLASSES, label_sets).unwrap();
            let batch = data.batch(label_sets);
            let mut model = create();
            let is_fitted = model.fit(&batch, FitOptions::threads(1), &control).is_ok();
            let fit_error = is_fitted.then(|| broken(&*model, &batch.rows)).flatten();
            let stream_errors = [model, create()].map(|mut model| learn_on(&mut *model, &batch));
            let found = fit_error.or(stream_errors.into_iter().flatten().next());
            assert_eq!(found, None, "{learner} {params}, seed {seed}");
        }
    }
}

/// Returns rows of ordinary values, for training before and after a file is damaged.
fn ordinary() -> Extremes {
    let mut data = Extremes::new(0);
    for (i, value) in data.values.iter_mut().enumerate() {
        *value = ((i * 37) % 11) as f32 / 5.0 - 1.0;
    }
    data.weights.fill(1.0);
    data
}

const FLOATS: &[f64] = &[
    0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 1e-38, 1e-18, 1e18, -1e18, 1e36, 9.9e37, -9.9e37, 3.4e38,
    -3.4e38, 1e99, -1e99, 1e300, -1e300,
];
const COUNTS: &[u64] = &[0, 1, 2, 100, 1 << 32, (1 << 53) - 1, 1 << 53, u64::MAX];

/// Metadata that is not damaged: parameters may request any amount of work, and a model may have
/// fewer columns.
const KEPT: &[&str] = &["params", "n_features", "n_classes", "n_members", "n_trees"];

/// Replaces some floats of a model and some numbers of its metadata by extreme ones.
fn damage(bundle: &mut Bundle, random: &mut Pcg64Mcg) {
    fn numbers<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
        match value {
            Value::Object(map) => {
                let inner = map
                    .iter_mut()
                    .filter(|(key, _)| !KEPT.contains(&key.as_str()));
                inner.for_each(|(_, value)| numbers(value, found));
            }
            Value::Number(_) => found.push(value),
            _ => {}
        }
    }
    fn change<T: Copy>(values: &mut Flat<T>, extremes: &[T], random: &mut Pcg64Mcg) {
        let all = random.random_bool(0.3);
        let values = values.to_mut();
        let extreme = *extremes.choose(random).unwrap();
        if all {
            values.fill(extreme);
        } else if let Some(at) = values.len().checked_sub(1) {
            values[random.random_range(0..=at)] = extreme;
        }
    }
    let doubles = FLOATS;
    let floats: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
    let (meta, arrays) = bundle.parts_mut();
    let is_float = |array: &&mut Array| matches!(array, Array::F32(_) | Array::F64(_));
    let mut arrays: Vec<&mut Array> = arrays.values_mut().filter(is_float).collect();
    let mut found = Vec::new();
    meta.iter_mut()
        .filter(|(key, _)| !KEPT.contains(&key.as_str()))
        .for_each(|(_, value)| numbers(value, &mut found));
    for _ in 0..random.random_range(1..4) {
        if random.random_bool(0.2) {
            let number = random.random_range(0..found.len());
            *found[number] = if found[number].is_u64() {
                (*COUNTS.choose(random).unwrap()).into()
            } else {
                (*doubles.choose(random).unwrap()).into()
            };
        } else if !arrays.is_empty() {
            let number = random.random_range(0..arrays.len());
            match &mut *arrays[number] {
                Array::F32(values) => change(values, &floats, random),
                Array::F64(values) => change(values, doubles, random),
                _ => unreachable!("only floats were chosen"),
            }
        }
    }
}

/// A file with any numbers is refused, or its model predicts finite scores, can be trained further,
/// and can be saved and loaded again.
#[test]
fn files_of_extreme_numbers_are_refused_or_work() {
    let ordinary = ordinary();
    let control = Control::new(0);
    let trained = models().map(|(learner, params, label_sets)| {
        let registration = find(learner).unwrap();
        let mut model = registration.create(params, N_CLASSES, label_sets).unwrap();
        let batch = ordinary.batch(label_sets);
        model.fit(&batch, FitOptions::threads(1), &control).unwrap();
        model.to_bundle()
    });
    let trained: Vec<Bundle> = trained.collect();
    let (mut n_taken, mut failed, n_cases) = (0, Vec::new(), cases(40));
    for seed in 0..n_cases {
        let extremes = Extremes::new(seed);
        for ((learner, params, label_sets), bundle) in models().zip(&trained) {
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let mut bundle = bundle.clone();
            damage(&mut bundle, &mut random);
            let bytes = bundle.to_bytes().unwrap();
            let mut model = match Bundle::from_bytes(&bytes).and_then(load) {
                Ok(model) => model,
                Err(Error::ModelFile(_)) => continue,
                Err(error) => panic!("{learner} {params}, seed {seed}: {error}"),
            };
            n_taken += 1;
            let data = if random.random_bool(0.5) {
                &ordinary
            } else {
                &extremes
            };
            let batch = data.batch(label_sets);
            let work = || {
                let file_error = broken(&*model, &batch.rows);
                file_error.or_else(|| learn_on(&mut *model, &batch))
            };
            let found = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Some("panic".into()));
            failed.extend(found.map(|what| format!("{learner} {params}, seed {seed}: {what}")));
        }
    }
    println!(
        "{n_taken} of {} damaged files were taken",
        n_cases * trained.len() as u64
    );
    assert!(n_taken > 0 && failed.is_empty(), "{failed:#?}");
}

/// A file for prediction only lacks the training state, even if its metadata says otherwise.
#[test]
fn files_for_prediction_cannot_be_loaded_for_training() {
    let (data, control) = (ordinary(), Control::new(0));
    for (learner, params) in [
        ("lomtree", r#"{"n_bits": 6}"#),
        ("recall-tree", r#"{"n_bits": 6}"#),
        ("recall-tree", r#"{"n_bits": 6, "loss": "hinge"}"#),
        ("filter-tree", r#"{"n_bits": 6}"#),
        ("oaa", r#"{"n_bits": 6}"#),
    ] {
        let registration = find(learner).unwrap();
        let mut model = registration.create(params, N_CLASSES, false).unwrap();
        let options = FitOptions::threads(1);
        model.fit(&data.batch(false), options, &control).unwrap();
        for (whole, for_prediction) in [
            (model.to_prediction_bundle(true, &control).unwrap(), false),
            (model.to_bundle(), true),
        ] {
            let mut bundle = whole;
            let (meta, _) = bundle.parts_mut();
            meta["for_prediction"] = for_prediction.into();
            let result = load(bundle);
            assert!(
                matches!(result, Err(Error::ModelFile(_))),
                "{learner} {for_prediction}"
            );
        }
    }
}
