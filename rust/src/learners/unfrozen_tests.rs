//! Predictions between updates, by members that are not frozen, equal those of the frozen model to
//! the bit. A loaded model freezes at its first prediction.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{find, load};
use crate::control::Control;
use crate::data::{Batch, Labels, Rows, Targets, Values};
use crate::file::Element;
use crate::model::{Classifier, Query};

pub(super) const N: usize = 240;

/// Rows of `width` columns, with a share `filled` of values that are not 0, and labels that depend on
/// them.
pub(super) struct Stream {
    width: usize,
    values: Vec<f32>,
    labels: Vec<u32>,
    weights: Vec<f64>,
}

impl Stream {
    pub(super) fn new(seed: u64, (width, filled): (usize, f64), n_classes: u32) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut values = vec![0.0f32; N * width];
        let mut labels = Vec::new();
        for row in values.chunks_mut(width) {
            // Few labels are frequent, and each has its own columns.
            let label = (f64::from(n_classes) * random.random_range(0.0f64..1.0).powi(3)) as u32;
            labels.push(label);
            for (column, value) in row.iter_mut().enumerate() {
                let own = (column as u32).is_multiple_of(label + 2);
                if random.random_range(0.0..1.0) < filled * if own { 1.5 } else { 0.5 } {
                    *value = random.random_range(-1.0..2.0);
                }
            }
        }
        let weight = |_| {
            if seed.is_multiple_of(2) {
                random.random_range(0.1..3.0)
            } else {
                1.0
            }
        };
        Self {
            width,
            values,
            labels,
            weights: (0..N).map(weight).collect(),
        }
    }

    fn rows(&self, from: usize, to: usize) -> Rows<'_> {
        let values = Values::F32(&self.values[from * self.width..to * self.width]);
        Rows::dense(values, to - from, self.width, false).unwrap()
    }

    pub(super) fn batch(&self, from: usize, to: usize, n_classes: usize) -> Batch<'_> {
        let labels = Labels::new(&self.labels[from..to], n_classes).unwrap();
        let weights = Values::F64(&self.weights[from..to]);
        Batch::new(self.rows(from, to), Targets::One(labels), Some(weights)).unwrap()
    }
}

/// Labels and the bits of their scores.
type Scored = (Vec<i32>, Vec<u32>);

/// Returns the best labels, and the 3 best, the 70 best and all scores.
fn answers(model: &dyn Classifier, rows: &Rows<'_>) -> (Vec<i32>, Vec<Scored>) {
    let control = Control::new(0);
    let query = Query::new(rows, 1, &control);
    let bits = |scores: Vec<f32>| scores.into_iter().map(f32::to_bits).collect();
    let mut found: Vec<Scored> = [3, 70]
        .map(|k| model.predict_topk(&query, k).unwrap())
        .map(|(labels, scores)| (labels, bits(scores)))
        .into();
    if let Ok(scores) = model.predict_scores(&query) {
        found.push((Vec::new(), bits(f32::from_array(scores).unwrap().to_vec())));
    }
    (model.predict(&query).unwrap(), found)
}

/// Alternates between training and prediction, a few rows at a time.
fn check(learner: &str, json: &str, seed: u64) -> Result<(), TestCaseError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let shapes = [(6, 0.9), (40, 0.7), (70, 0.1), (100, 0.5), (300, 0.03)];
    let shape = shapes[random.random_range(0..shapes.len())];
    let n_classes = [2, 7, 90][random.random_range(0..3)];
    let stream = Stream::new(seed, shape, n_classes);
    let n_classes = n_classes as usize;
    let mut model = find(learner)
        .unwrap()
        .create(json, n_classes, false)
        .unwrap();
    let mut from = 0;
    while from < N {
        let to = N.min(from + random.random_range(1..60));
        let batch = stream.batch(from, to, n_classes);
        model.partial_fit(&batch, 1, &Control::new(0)).unwrap();
        from = to;
        let at = random.random_range(0..N - 5);
        let rows = stream.rows(at, at + 5);
        let expected = answers(&*load(model.to_bundle()).unwrap(), &rows);
        // After enough predictions the model freezes.
        for _ in 0..random.random_range(1..4) {
            prop_assert_eq!(&answers(&*model, &rows), &expected, "{} {}", learner, json);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn unfrozen_models_predict_like_frozen_ones(seed in any::<u64>()) {
        for (learner, json) in [
            ("lomtree", "{}"),
            ("lomtree", r#"{"optimizer": "nag", "n_estimators": 3}"#),
            ("lomtree", r#"{"paper_tree": true, "split_threshold": 1.0, "n_bits": 6}"#),
            ("lomtree", r#"{"n_estimators": 10, "nodes_per_class": 0.3}"#),
            ("filter-tree", "{}"),
            ("filter-tree", r#"{"optimizer": "nag"}"#),
            ("random-tree", r#"{"n_bits": 7}"#),
            ("recall-tree", "{}"),
            ("recall-tree", r#"{"beam_size": 1, "bern_hyper": 0.0, "n_bits": 6}"#),
            ("recall-tree", r#"{"loss": "hinge", "max_depth": 9, "max_candidates": 3}"#),
            ("oaa", "{}"),
            ("oaa", r#"{"optimizer": "nag"}"#),
            ("oaa", r#"{"loss": "softmax", "n_bits": 6}"#),
        ] {
            check(learner, json, seed)?;
        }
    }
}
