//! Calls every method of a loaded model.

use serde_json::Value;
use xmtree::data::{Batch, Indices, LabelSets, Labels, Rows, Targets, Values};
use xmtree::file::Bundle;
use xmtree::model::{
    Classifier, FitOptions, LabelSelection, PredictOptions, Query, Task, TopKArrays,
};
use xmtree::{learners, Control};

/// Largest numbers of columns and classes of models that are used; larger tables would only fill
/// memory.
const MOST_COLUMNS: usize = 1 << 20;
const MOST_CLASSES: usize = 10_000;
/// Largest parameter of models that are trained: a file may ask for any number of trees.
const MOST_WORK: f64 = 100.0;

/// A few rows in CSR form.
struct Examples {
    starts: Vec<i64>,
    columns: Vec<i32>,
    values: Vec<f32>,
    labels: Vec<u32>,
    label_starts: Vec<i64>,
    sets: Vec<i32>,
    weights: Vec<f64>,
}

impl Examples {
    /// Examples for a model of this many columns and classes.
    fn new(n_columns: usize, n_classes: usize) -> Self {
        let mut new = Self {
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            labels: Vec::new(),
            label_starts: vec![0],
            sets: Vec::new(),
            weights: vec![1.0, 0.0, 3.0, 1e-36, 1.0, 1e6],
        };
        let last = n_columns.saturating_sub(1) as i32;
        let rows: [&[(i32, f32)]; 6] = [
            &[(0, 1.0), (last / 2, -2.5), (last, 1.0)],
            &[],
            &[(1, 1.0), (3, 0.5)],
            &[(last, 1e6)],
            &[(0, -1e-6), (2, 1.0), (5, 3.0)],
            &[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (5, 1.0)],
        ];
        for (number, row) in rows.iter().enumerate() {
            let mut from = -1;
            for &(column, value) in *row {
                if column > from && column <= last {
                    new.columns.push(column);
                    new.values.push(value);
                    from = column;
                }
            }
            new.starts.push(new.columns.len() as i64);
            let label = number * 7 % n_classes.max(1);
            new.labels.push(label as u32);
            new.sets.push(label as i32);
            new.label_starts.push(new.sets.len() as i64);
        }
        new
    }

    fn rows(&self, n_columns: usize) -> xmtree::Result<Rows<'_>> {
        let (starts, columns) = (Indices::I64(&self.starts), Indices::I32(&self.columns));
        Rows::csr(starts, columns, Values::F32(&self.values), n_columns, false)
    }

    fn batch(&self, n_columns: usize, n_classes: usize, sets: bool) -> xmtree::Result<Batch<'_>> {
        let targets = if sets {
            let starts = Indices::I64(&self.label_starts);
            Targets::Sets(LabelSets::new(starts, Indices::I32(&self.sets), n_classes)?)
        } else {
            Targets::One(Labels::new(&self.labels, n_classes)?)
        };
        let weights = Some(Values::F64(&self.weights));
        Batch::new(self.rows(n_columns)?, targets, weights)
    }
}

/// Predicts, reports, saves, loads, trains and predicts again. Any predictions are correct, but they
/// must be finite and the same after saving.
pub fn exercise(mut model: Box<dyn Classifier>) {
    if model.n_features() > MOST_COLUMNS || model.n_classes() > MOST_CLASSES {
        return;
    }
    inspect(&*model);
    let before = predict(&*model);
    assert_finite(&before);
    let again = reloaded(&model.to_bundle());
    assert_same(&before, &predict(&*again));
    let control = Control::new(0);
    let slim = model.to_prediction_bundle(false, &control);
    assert_same(&before, &predict(&*reloaded(&slim.unwrap())));
    let compact = model.to_prediction_bundle(true, &control).unwrap();
    predict(&*reloaded(&compact));
    if learn(&mut *model) {
        inspect(&*model);
        let after = predict(&*model);
        assert_finite(&after);
        assert_same(&after, &predict(&*reloaded(&model.to_bundle())));
    }
}

/// Saves and loads a model. Every model that is saved must load, or work would be lost.
fn reloaded(bundle: &Bundle) -> Box<dyn Classifier> {
    let bytes = bundle.to_bytes().expect("a loaded model can be saved");
    let model = Bundle::from_bytes(&bytes).and_then(learners::load);
    model.expect("a saved model can be loaded")
}

fn inspect(model: &dyn Classifier) {
    model.summary();
    model.importances();
    model.reports();
    model.n_examples_seen();
    let json = model.params_json().unwrap();
    let mut copy = model.boxed_clone();
    let _ = copy.set_params(&json);
}

type Answers = Vec<Option<TopKArrays>>;

/// Calls every method of prediction and returns the results. `None` is an error.
fn predict(model: &dyn Classifier) -> Answers {
    let examples = Examples::new(model.n_features(), model.n_classes());
    let Ok(rows) = examples.rows(model.n_features()) else {
        return Vec::new();
    };
    let control = Control::new(0);
    let query = Query::new(&rows, 1, &control);
    let mut answers: Answers = [1, 3]
        .map(|k| model.predict_topk(&query, k).ok())
        .into_iter()
        .collect();
    let beam = PredictOptions {
        beam_size: Some(3),
        path_weight: Some(0.5),
        ..PredictOptions::default()
    };
    let some_trees = PredictOptions {
        first_tree: Some(0),
        last_tree: Some(1),
        ..PredictOptions::default()
    };
    for options in [beam, some_trees] {
        answers.push(model.predict_topk(&query.with(&options), 2).ok());
    }
    let _ = model.predict(&query);
    let _ = model.staged_predict(&query);
    let _ = model.leaves(&query);
    let _ = model.predict_scores(&query);
    for selection in [
        LabelSelection::Above(0.0, 1),
        LabelSelection::Best(2),
        LabelSelection::Likely(1),
    ] {
        let _ = model.select_labels(&query, selection);
    }
    let task = Task::Predict {
        k: 5,
        options: &PredictOptions::default(),
    };
    model.effort(&rows, task);
    answers
}

/// Asserts that all scores of labels are finite.
fn assert_finite(answers: &Answers) {
    for (labels, scores) in answers.iter().flatten() {
        let mut scored = labels.iter().zip(scores);
        assert!(scored.all(|(&label, score)| label < 0 || score.is_finite()));
    }
}

/// Trains the model further by every method. Returns true if one of them succeeded.
fn learn(model: &mut dyn Classifier) -> bool {
    let (n_columns, n_classes) = (model.n_features(), model.n_classes());
    if n_columns == 0 || asks_for_much(model) {
        return false;
    }
    let control = Control::new(0);
    let examples = Examples::new(n_columns, n_classes);
    let mut has_learned = false;
    for sets in [false, true] {
        if let Ok(batch) = examples.batch(n_columns, n_classes, sets) {
            has_learned |= model.partial_fit(&batch, 1, &control).is_ok();
            let options = FitOptions {
                warm_start: true,
                ..FitOptions::threads(1)
            };
            has_learned |= model.fit(&batch, options, &control).is_ok();
        }
        let grown = examples.batch(n_columns, n_classes + 1, sets);
        if let Ok(batch) = grown {
            if model.add_classes(&batch).is_ok() {
                has_learned |= model.partial_fit(&batch, 1, &control).is_ok();
            }
        }
    }
    has_learned
}

/// True if training with the model's parameters would take long.
fn asks_for_much(model: &dyn Classifier) -> bool {
    let params: Value = serde_json::from_str(&model.params_json().unwrap()).unwrap();
    let works = [
        "n_estimators",
        "n_passes",
        "n_epochs",
        "max_updates",
        "n_bits",
    ];
    let most = works.map(|name| params[name].as_f64().unwrap_or(0.0));
    most.into_iter().fold(0.0, f64::max) > MOST_WORK
}

fn assert_same(one: &Answers, other: &Answers) {
    let bits = |answers: &Answers| -> Vec<Option<(Vec<i32>, Vec<u32>)>> {
        let to_bits = |(labels, scores): &TopKArrays| {
            let scores = scores.iter().map(|score| score.to_bits()).collect();
            (labels.clone(), scores)
        };
        answers
            .iter()
            .map(|answer| answer.as_ref().map(to_bits))
            .collect()
    };
    assert_eq!(bits(one), bits(other), "predictions differ after saving");
}
