//! Predictions of members as they learn are those of their frozen forms, to the bit.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::label_tree::LabelTree;
use super::lomtree::LomTree;
use super::oaa::Oaa;
use super::recall_tree::OnlineRecallTree;
use crate::classifier::{
    Classifier, Learner, OnlineLearner, OnlineModel, PredictOptions, Predictor, Query, TopK,
};
use crate::control::Control;
use crate::data::{Batch, Labels, Rows, Targets, Values};
use crate::params::Params;
use crate::pool::Lent;

/// Rows of `width` columns, of which about a share `filled` is not 0, and labels that hang on them.
struct Stream {
    width: usize,
    values: Vec<f32>,
    labels: Vec<u32>,
    weights: Option<Vec<f64>>,
}

impl Stream {
    fn new(
        seed: u64,
        n: usize,
        (width, filled): (usize, f64),
        n_classes: u32,
        weighted: bool,
    ) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut values = vec![0.0f32; n * width];
        let mut labels = Vec::new();
        for row in values.chunks_mut(width) {
            // Few labels are frequent; each has columns of its own.
            let label = (f64::from(n_classes) * random.random_range(0.0f64..1.0).powi(3)) as u32;
            labels.push(label);
            for (column, value) in row.iter_mut().enumerate() {
                let own = (column as u32).is_multiple_of(label + 2);
                if random.random_range(0.0..1.0) < filled * if own { 1.5 } else { 0.5 } {
                    *value = random.random_range(-1.0..2.0);
                }
            }
        }
        let weights = weighted.then(|| (0..n).map(|_| random.random_range(0.1..3.0)).collect());
        Self {
            width,
            values,
            labels,
            weights,
        }
    }

    fn part(&self, from: usize, to: usize, n_classes: usize) -> Batch<'_> {
        let rows = self.rows(from, to);
        let labels = Labels::new(&self.labels[from..to], n_classes).unwrap();
        let weights = self
            .weights
            .as_ref()
            .map(|weights| Values::F64(&weights[from..to]));
        Batch::new(rows, Targets::One(labels), weights).unwrap()
    }

    fn rows(&self, from: usize, to: usize) -> Rows<'_> {
        let values = Values::F32(&self.values[from * self.width..to * self.width]);
        Rows::dense(values, to - from, self.width).unwrap()
    }
}

/// Best labels, the 3 best and 70 best with the bits of their scores, all scores' bits.
type Answers = (Vec<i32>, Vec<(Vec<i32>, Vec<u32>)>, Vec<u32>);

fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

fn answers<L: OnlineLearner>(
    model: &OnlineModel<L>,
    frozen: Option<&[L::Frozen]>,
    rows: &Rows<'_>,
) -> Answers {
    let (control, n) = (Control::new(0), rows.n_rows());
    let mut predictor = L::predictor(
        model.members(),
        frozen,
        &PredictOptions::NONE,
        Lent::default(),
    );
    predictor.read(rows, 0..n, &control).unwrap();
    let mut best = vec![TopK::NO_LABEL; n];
    predictor.best(&mut best, &control).unwrap();
    let mut top = Vec::new();
    for k in [3, 70] {
        let (mut labels, mut scores) =
            (vec![TopK::NO_LABEL; n * k], vec![f32::NEG_INFINITY; n * k]);
        predictor
            .top_k(k, &mut labels, &mut scores, &control)
            .unwrap();
        top.push((labels, bits(&scores)));
    }
    let mut all = vec![0.0; n * model.n_classes()];
    predictor.all_scores(&mut all, &control).unwrap();
    (best, top, bits(&all))
}

const N: usize = 400;

/// Learns and predicts by turns, a few rows at a time.
fn check<L: OnlineLearner>(json: &str, seed: u64) -> std::result::Result<(), TestCaseError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let shapes = [(6, 0.9), (40, 0.7), (70, 0.1), (100, 0.5), (300, 0.03)];
    let shape = shapes[random.random_range(0..shapes.len())];
    let n_classes = [2, 7, 90][random.random_range(0..3)];
    let stream = Stream::new(seed, N, shape, n_classes, seed.is_multiple_of(2));
    let control = Control::new(0);
    let params = L::Params::from_json(json).unwrap();
    let mut model = OnlineModel::<L>::create(params, n_classes as usize, false).unwrap();
    let mut from = 0;
    while from < N {
        let to = N.min(from + random.random_range(1..60));
        let batch = stream.part(from, to, n_classes as usize);
        model.partial_fit(&batch, 1, None, &control).unwrap();
        from = to;
        let asked = random.random_range(0..N - 5);
        let rows = stream.rows(asked, asked + 5);
        let members = model.members().iter();
        let frozen: Vec<L::Frozen> = members
            .map(|member| member.learner.freeze(&control).unwrap())
            .collect();
        let expected = answers(&model, Some(&frozen), &rows);
        prop_assert_eq!(
            &answers(&model, None, &rows),
            &expected,
            "{} after {}",
            json,
            to
        );
        // By itself it does one or the other, the more it is asked.
        for _ in 0..random.random_range(0..4) {
            let labels = model.predict(&Query::new(&rows, 1, &control)).unwrap();
            prop_assert_eq!(&labels, &expected.0);
        }
    }
    Ok(())
}

fn check_all<L: OnlineLearner>(
    params: &[&str],
    seed: u64,
) -> std::result::Result<(), TestCaseError> {
    params.iter().try_for_each(|json| check::<L>(json, seed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn lomtrees(seed in any::<u64>()) {
        check_all::<LomTree>(&[
            "{}",
            r#"{"optimizer": "nag", "n_estimators": 3}"#,
            r#"{"optimizer": "sgd", "leaf_smoothing": 0.0, "split_threshold": 1.0}"#,
            r#"{"optimizer": "adagrad", "leaf_smoothing": 5.0, "n_bits": 6}"#,
            r#"{"n_estimators": 10, "max_internal": 3}"#,
            r#"{"nodes_per_class": 0.3, "weighted_counts": false}"#,
        ], seed)?;
    }

    #[test]
    fn label_trees(seed in any::<u64>()) {
        check_all::<LabelTree>(&[
            r#"{"policy": "filter"}"#,
            r#"{"policy": "random", "label_order": "random", "n_bits": 7}"#,
            r#"{"policy": "filter", "optimizer": "nag"}"#,
            r#"{"policy": "random", "optimizer": "adagrad"}"#,
        ], seed)?;
    }

    #[test]
    fn recall_trees(seed in any::<u64>()) {
        check_all::<OnlineRecallTree>(&[
            "{}",
            r#"{"beam_size": 1, "bern_hyper": 0.1}"#,
            r#"{"arity": 5, "honest": false, "bern_hyper": 0.0, "n_bits": 6}"#,
            r#"{"optimizer": "nag", "loss": "hinge", "max_depth": 9}"#,
            r#"{"path_features": "all", "back_off": false, "max_candidates": 3}"#,
        ], seed)?;
    }

    #[test]
    fn one_against_all(seed in any::<u64>()) {
        check_all::<Oaa>(&[
            "{}",
            r#"{"average": true, "l1": 1e-3, "l2": 1e-3}"#,
            r#"{"average": false, "l1": 1e-2}"#,
            r#"{"average": false}"#,
            r#"{"optimizer": "nag"}"#,
            r#"{"average": true, "loss": "softmax", "n_bits": 6}"#,
        ], seed)?;
    }
}
