//! The paper's statements on the algorithm, and properties of every committee.

use proptest::prelude::*;

use super::super::tree::{push_votes, response, Leaves};
use super::*;
use crate::data::Indices;
use crate::file::Bundle;

/// Returns rows whose values depend on their labels.
fn tables() -> impl Strategy<Value = Table> {
    let row = (0u32..6, prop::array::uniform3(-9i8..9), 0u8..12);
    prop::collection::vec(row, 8..120).prop_map(|rows| {
        let mut table = Table {
            values: Vec::new(),
            width: 3,
            labels: Vec::new(),
            weights: Vec::new(),
            n_classes: 6,
        };
        for (label, noise, missing) in rows {
            for (feature, &noise) in noise.iter().enumerate() {
                let value = (label as f32 - feature as f32).abs() * 3.0 + f32::from(noise);
                let is_missing = usize::from(missing) == feature;
                table.values.push(if is_missing { f32::NAN } else { value });
            }
            table.labels.push(label);
            table.weights.push(1.0);
        }
        table
    })
}

fn sampled() -> Params {
    Params {
        max_features: 0.5,
        subsample: 0.6,
        trim: 0.1,
        clip: true,
        learning_rate: 0.3,
        n_estimators: 12,
        splits: Splits::Binned,
        ..paper()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Results 2 and 3, and Corollary 3.1: with h as the mean of z = y^2, r = K g / h.
    #[test]
    fn leaves_are_bounded_and_follow_the_corollary(
        weights in prop::collection::vec(1u16..1000, 1..9),
        absent in 0usize..9,
        clip in any::<bool>(),
    ) {
        let n_classes = weights.len() + absent;
        prop_assume!(n_classes > 1);
        let k = n_classes as f64;
        let by_class: Vec<(u32, f64)> =
            weights.iter().zip(0..).map(|(&w, c)| (c, f64::from(w))).collect();
        let all: f64 = by_class.iter().map(|(_, w)| w).sum();
        let share = |c: usize| by_class.get(c).map_or(0.0, |(_, w)| w / all);
        let mut sum_g = 0.0;
        for c in 0..n_classes {
            let (own, other) = (share(c), 1.0 - share(c));
            let g = own - other / (k - 1.0);
            let h = own + other / ((k - 1.0) * (k - 1.0));
            prop_assert!((h - ((k - 2.0) * g + 1.0) / (k - 1.0)).abs() < 1e-12);
            let r = response(own, k, false);
            prop_assert!((r - k * g / h).abs() < 1e-9 * k * k);
            prop_assert!((-1.0 / (k - 1.0) - 1e-12..=1.0 + 1e-12).contains(&g));
            prop_assert!((-k * (k - 1.0) * (1.0 + 1e-12)..=k * (1.0 + 1e-12)).contains(&r));
            sum_g += g;
        }
        prop_assert!(sum_g.abs() < 1e-12);
        let mut leaves = Leaves::new();
        push_votes(&mut leaves, &by_class, n_classes, |share| response(share, k, clip), 1.0);
        let votes: f64 = leaves.votes.iter().map(|&vote| f64::from(vote)).sum();
        let sum = votes + absent as f64 * f64::from(leaves.others[0]);
        prop_assert!(sum.abs() < 1e-5 * k * k, "{}", sum);
        let bound = (k * k - k) * (1.0 + 1e-6);
        prop_assert!(leaves.votes.iter().all(|&vote| f64::from(vote).abs() <= bound));
    }

    #[test]
    fn scores_sum_to_zero(table in tables(), sample in any::<bool>()) {
        let model = table.learn(if sample { sampled() } else { paper() }, 1);
        for scores in table.scores(&model).chunks_exact(table.n_classes) {
            let size: f64 = scores.iter().map(|score| score.abs()).sum();
            prop_assert!(scores.iter().sum::<f64>().abs() <= 1e-5 * (1.0 + size));
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_trees(table in tables(), sample in any::<bool>()) {
        let params = if sample { sampled() } else { paper() };
        let one = table.learn(params.clone(), 1);
        let three = table.learn(params, 3);
        prop_assert_eq!(one.trees, three.trees);
    }

    #[test]
    fn a_file_gives_the_same_committee(table in tables()) {
        let params = Params { categorical_features: vec![1], ..sampled() };
        let mut whole = table.clone();
        for value in whole.values.iter_mut().skip(1).step_by(3) {
            *value = (*value / 4.0).round();
        }
        let model = whole.learn(params, 1);
        let again = Gamble::from_bytes(&model.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(&again.trees, &model.trees);
        prop_assert_eq!(again.params_json().unwrap(), model.params_json().unwrap());
    }
}

#[test]
fn a_tree_with_a_cycle_is_refused() {
    let table = Table::from_column(
        &(0..8u8).map(f32::from).collect::<Vec<_>>(),
        &(0..8).collect::<Vec<_>>(),
        8,
    );
    let model = table.learn(paper(), 1);
    let name = "trees.nodes.left";
    let mut bundle = model.to_bundle();
    let mut left = bundle.take::<u32>(name).unwrap();
    let inner = (1..left.len()).find(|&at| left[at] > 0).unwrap();
    left[inner] = inner as u32;
    bundle.put(name, left);
    let forged = Bundle::from_bytes(&bundle.to_bytes().unwrap()).unwrap();
    let error = Gamble::from_bundle(forged).unwrap_err().to_string();
    assert!(error.contains("tree 0 is inconsistent"), "{error}");
}

#[test]
fn zero_is_a_value_like_any_other() {
    // Among equals the lowest threshold wins, also in a sparse column.
    let values: Vec<f32> = [0, 0, 0, 0, 0, 0, 0, 1, 2, 3].map(|v| v as f32).to_vec();
    let threshold = |shift: f32| {
        let table = Table::from_column(
            &values.iter().map(|value| value + shift).collect::<Vec<_>>(),
            &[1, 1, 1, 2, 1, 0, 2, 0, 1, 0],
            3,
        );
        let params = Params {
            n_estimators: 1,
            max_leaves: 2,
            ..paper()
        };
        table.learn(params, 1).trees[0].nodes[0].threshold - shift
    };
    assert_eq!(threshold(0.0), threshold(1.0));
}

#[test]
fn wide_sparse_rows_sample_among_the_columns_that_they_have() {
    // Every row has a column of its own, and one that its class shares.
    let n = 1200;
    let (mut starts, mut columns) = (vec![0i64], Vec::new());
    for row in 0..n {
        columns.extend([row % 4, 4 + row]);
        starts.push(columns.len() as i64);
    }
    let values = vec![1.0f32; columns.len()];
    let rows = Rows::csr(
        Indices::I64(&starts),
        Indices::I64(&columns),
        Values::F32(&values),
        4 + n as usize,
        true,
    )
    .unwrap();
    let labels: Vec<u32> = (0..n).map(|row| (row % 4) as u32).collect();
    let labels = Labels::new(&labels, 4).unwrap();
    let learn = |max_features: f64, n_threads: usize| {
        let params = Params {
            max_features,
            n_estimators: 1,
            max_leaves: 4,
            ..sampled()
        };
        let mut model = Gamble::create(params, 4, false).unwrap();
        let batch = Batch::new(rows, Targets::One(labels), None).unwrap();
        let options = FitOptions::threads(n_threads);
        model.fit(&batch, options, &Control::new(0)).unwrap();
        model.trees[0].clone()
    };
    let all = learn(1.0, 1);
    let inner = all.nodes.iter().filter(|node| node.left != 0);
    assert!(inner.clone().count() == 3 && inner.clone().all(|node| node.feature < 4));
    assert_ne!(learn(0.3, 1), all);
    assert_eq!(learn(0.3, 1), learn(0.3, 2));
}

/// With two classes GAMBLE is Gentle AdaBoost (regression stumps on y in {-1, 1}, w *= exp(-y f))
/// except for a factor of 2, r = 2 g. So half the rate gives the same scores.
#[test]
fn two_classes_give_gentle_adaboost() {
    let n = 40u16;
    let table = Table::from_column(
        &(0..n).map(|i| f32::from(i * 17 % 40)).collect::<Vec<_>>(),
        &(0..n)
            .map(|i| u32::from((i * 17 % 40) / 7 % 2))
            .collect::<Vec<_>>(),
        2,
    );
    let params = Params {
        max_leaves: 2,
        n_estimators: 30,
        learning_rate: 0.5,
        ..paper()
    };
    let model = table.learn(params, 1);
    let y: Vec<f64> = table
        .labels
        .iter()
        .map(|&c| if c == 1 { 1.0 } else { -1.0 })
        .collect();
    let mut weights = vec![1.0; y.len()];
    let mut committee = vec![0.0; y.len()];
    for tree in &model.trees {
        let threshold = tree.nodes[0].threshold;
        for left in [true, false] {
            let rows: Vec<usize> = (0..y.len())
                .filter(|&i| (table.values[i] <= threshold) == left)
                .collect();
            let all: f64 = rows.iter().map(|&i| weights[i]).sum();
            let mean = rows.iter().map(|&i| weights[i] * y[i]).sum::<f64>() / all;
            for i in rows {
                committee[i] += mean;
                weights[i] *= (-y[i] * mean).exp();
            }
        }
    }
    for (scores, expected) in table.scores(&model).chunks_exact(2).zip(committee) {
        assert!((scores[1] - expected).abs() < 1e-4, "{scores:?} {expected}");
    }
}

#[test]
fn ranges_of_trees_add_up_to_the_committee() {
    let table = Table::from_column(
        &(0..30u8).map(|i| f32::from(i * 7 % 30)).collect::<Vec<_>>(),
        &(0..30).map(|i| i * 7 % 30 / 10).collect::<Vec<_>>(),
        3,
    );
    let model = table.learn(paper(), 1);
    let control = Control::new(0);
    let scores = |first_tree, last_tree| -> crate::Result<Vec<f64>> {
        let options = PredictOptions {
            first_tree,
            last_tree,
            ..PredictOptions::default()
        };
        let scores =
            model.predict_scores(&Query::new(&table.rows(), 1, &control).with(&options))?;
        Ok(f64::from_array(scores).unwrap().into_vec())
    };
    let (first, rest) = (
        scores(None, Some(2)).unwrap(),
        scores(Some(2), None).unwrap(),
    );
    let sums = first.iter().zip(rest).map(|(a, b)| a + b);
    for (sum, all) in sums.zip(table.scores(&model)) {
        assert!((sum - all).abs() < 1e-6);
    }
    for (first, last) in [(3, 2), (0, 6)] {
        let error = scores(Some(first), Some(last)).unwrap_err().to_string();
        assert!(
            error.contains("trees must be a range within 0 to 5"),
            "{error}"
        );
    }
    let options = PredictOptions {
        beam_size: Some(3),
        ..PredictOptions::default()
    };
    assert!(model
        .predict_topk(&Query::new(&table.rows(), 1, &control).with(&options), 1)
        .is_err());
}
