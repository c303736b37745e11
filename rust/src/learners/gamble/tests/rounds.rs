//! Tests of rounds: when they stop, the weights of rows and trees, and the reports.

use std::slice::from_ref;

use rand::RngExt;

use super::super::boost::{boost, reweight, Validation};
use super::super::frozen::FrozenTrees;
use super::super::grow::Grower;
use super::super::predict::calibrate;
use super::super::sampling::{generator, RowSampler, Weights};
use super::super::search::TrainingSet;
use super::super::tree::{push_votes, response, samme_vote, Leaves};
use super::traversal::{self, leaf_of};
use super::*;
use crate::error::Error;
use crate::metrics::{softmax_slope, Outcome};

/// Returns noisy rows, some of which are equal.
fn noisy(n: usize, n_classes: usize) -> Table {
    let mut random = generator(n as u64, n_classes as u64, 0);
    let labels: Vec<u32> = (0..n)
        .map(|_| random.random_range(0..n_classes as u32))
        .collect();
    let values = labels.iter().map(|&label| match random.random_range(0..3) {
        0 => random.random_range(0..n_classes as u32) as f32,
        _ => label as f32,
    });
    Table::from_column(&values.collect::<Vec<f32>>(), &labels, n_classes)
}

/// Returns the numbers of rounds run and kept for the errors of the rounds.
fn stop(errors: &[f64], patience: usize) -> (usize, usize) {
    let (mut lowest, mut best) = (f64::INFINITY, 0);
    for (at, &error) in errors.iter().enumerate() {
        if error < lowest {
            (lowest, best) = (error, at + 1);
        }
        if at + 1 - best >= patience {
            return (at + 1, best);
        }
    }
    (errors.len(), best)
}

#[test]
fn early_stopping_follows_the_error_of_held_out_rows() {
    for (algorithm, n_rows, n_classes, weights) in [
        (Algorithm::Gamble, 60, 4, [1.0; 3]),
        (Algorithm::Gamble, 80, 8, [1.0; 3]),
        (Algorithm::Gamble, 80, 8, [0.1, 1.0, 5.0]),
        (Algorithm::Samme, 80, 4, [1.0; 3]),
        (Algorithm::Samme, 80, 4, [0.1, 1.0, 5.0]),
    ] {
        let mut table = noisy(n_rows, n_classes);
        for (at, weight) in table.weights.iter_mut().enumerate() {
            *weight = weights[at % 3];
        }
        let n_learned = n_rows / 2;
        let params = Params {
            algorithm,
            n_estimators: 60,
            max_leaves: 4,
            learning_rate: 0.3,
            ..paper()
        };
        let columns = table.columns(&params);
        let which = table.all_rows();
        let batch = table.batch();
        let examples = table.examples(&columns, &batch, &which, n_learned);
        let (all, _) = boost(&params, Vec::new(), &examples, &Control::new(0)).unwrap();
        let mut scores = vec![vec![0.0f32; table.n_classes]; n_rows - n_learned];
        let mut errors = Vec::new();
        for tree in &all {
            let (mut wrong, mut weight_of_all) = (0.0, 0.0);
            for (row, scores) in (n_learned..).zip(&mut scores) {
                let leaf = leaf_of(tree, &table.values[row..=row]);
                for (class, vote) in tree.leaves.listed(leaf) {
                    scores[class as usize] += vote - tree.leaves.others[leaf];
                }
                let mut best = 0;
                for class in 0..scores.len() {
                    if scores[class] > scores[best] {
                        best = class;
                    }
                }
                let weight = f64::from(table.weights[row]);
                weight_of_all += weight;
                wrong += weight * f64::from(u8::from(best as u32 != table.labels[row]));
            }
            errors.push(wrong / weight_of_all);
        }
        for (n_estimators, patience) in [(1, 1), (2, 9), (60, 1), (60, 3), (60, 9)] {
            let params = Params {
                early_stopping: true,
                n_estimators: n_estimators as u32,
                patience: patience as u32,
                ..params.clone()
            };
            let control = Control::new(0);
            let (kept, _) = boost(&params, Vec::new(), &examples, &control).unwrap();
            let (n_run, n_kept) = stop(&errors[..n_estimators.min(errors.len())], patience);
            assert_eq!(control.progress().done, n_run as u64);
            let error = control.progress().loss.unwrap();
            assert!((error - errors[n_run - 1]).abs() < 1e-9);
            assert_eq!(kept, all[..n_kept]);
        }
    }
}

#[test]
fn an_empty_sample_is_replaced_by_all_rows() {
    let params = Params {
        subsample: 1e-9,
        ..paper()
    };
    for tree in Table::from_column(&[0.0, 1.0], &[0, 1], 2)
        .learn(params, 1)
        .trees
    {
        assert_eq!(tree.statistics[0].n_rows, 2);
    }
}

/// With K = 3 and a leaf of class 0 alone, r is 3 for class 0 and -6 for the others. Their mean is
/// -3, so f is 6 and -3, and f / (K - 1) is 3 and -1.5.
#[test]
fn rows_outside_the_sample_gain_limited_weight() {
    let table = Table::from_column(&[0.0, 1.0, 0.0, 0.0], &[0, 1, 0, 2], 3);
    let columns = table.columns(&paper());
    let mut weights = Weights::new(table.weights.iter().map(|&weight| weight.into()));
    let mut grower = Grower::new(&paper(), 1, 3);
    let training_set = TrainingSet {
        columns: &columns,
        labels: &table.labels,
        weights: &weights.plain.clone(),
        seed: (0, 0),
        threads: false,
        takes_all: false,
        control: &Control::new(0),
    };
    grower.grow(&training_set, &[0, 1]).unwrap();
    let mut leaves = Leaves::new();
    for class in [0, 1] {
        push_votes(
            &mut leaves,
            &[(class, 1.0)],
            3,
            |share| response(share, 3.0, false),
            1.0,
        );
    }
    let leaf_rows: Vec<_> = grower.leaves().collect();
    reweight(&mut weights, &leaves, &leaf_rows, &table.labels, 3);
    weights.refresh(false);
    // The logarithms are -3, -3, -3 and 1 instead of 1.5.
    for (row, expected) in [4.0, 4.0, 4.0, 0.0].into_iter().enumerate() {
        assert!((weights.below(row) - expected).abs() < 1e-6, "row {row}");
    }
}

/// A node far below all other rows has the shares and the split that it has at any other weight, and
/// its statistics stay in the unit of the heaviest row.
#[test]
fn rows_far_below_all_others_keep_their_ratios() {
    let table = Table::from_column(&[0.0, 1.0, 2.0, 3.0], &[0, 0, 1, 2], 3);
    let columns = table.columns(&paper());
    let grown = |below: f64| {
        let mut weights = Weights::new([1.0; 4].into_iter());
        for (row, by) in [(1, -1.0 - below), (2, -below), (3, -2.0 - below)] {
            weights.scale(row, by);
        }
        weights.refresh(false);
        let training_set = TrainingSet {
            columns: &columns,
            labels: &table.labels,
            weights: &weights.plain,
            seed: (0, 0),
            threads: false,
            takes_all: false,
            control: &Control::new(0),
        };
        let mut grower = Grower::new(&paper(), 1, 3);
        grower.grow(&training_set, &[1, 2, 3]).unwrap();
        let mut node = Node::new(3, 1);
        node.read(&[1, 2, 3], &table.labels, &weights.plain, false);
        let root = grower.nodes[0].split.clone().unwrap();
        (root, node.totals, node.weight * node.unit)
    };
    let (expected, totals, weight) = grown(1.0);
    for below in [38.0, 40.0, 100.0, 600.0] {
        let (split, other_totals, other_weight) = grown(below);
        assert_eq!(split.rule, expected.rule, "{below}");
        for (total, other) in totals.iter().zip(&other_totals) {
            let share = |total: f64, all: &[f64]| total / all.iter().sum::<f64>();
            let (share, other) = (share(*total, &totals), share(*other, &other_totals));
            assert!((share - other).abs() < 1e-6, "{below}: {share} {other}");
        }
        let factor = (1.0 - below).exp();
        assert!((split.gain / (expected.gain * factor) - 1.0).abs() < 1e-6);
        assert!((other_weight / (weight * factor) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn samme_weights_a_tree_by_its_error_on_all_rows() {
    let params = Params {
        algorithm: Algorithm::Samme,
        n_estimators: 1,
        subsample: 0.5,
        learning_rate: 0.5,
        ..paper()
    };
    let table = noisy(80, 4);
    let model = table.learn(params, 1);
    let control = Control::new(0);
    let answers = model.predict_topk(&Query::new(&table.rows(), 1, &control), 1);
    let answers = answers.unwrap().0.into_iter().zip(&table.labels);
    let n_wrong = answers.filter(|&(a, &b)| a != b as i32).count();
    assert!(n_wrong > 0);
    let expected = 0.5 * samme_vote(n_wrong as f64 / 80.0, 4).unwrap();
    for vote in &model.trees[0].leaves.votes {
        assert!(
            (f64::from(*vote) - expected).abs() < 1e-5,
            "{vote} {expected}"
        );
    }
}

#[test]
fn samme_stops_after_a_tree_without_errors() {
    let params = Params {
        algorithm: Algorithm::Samme,
        ..paper()
    };
    let model = Table::from_column(&[0.0, 1.0, 2.0], &[0, 1, 2], 3).learn(params, 1);
    assert_eq!(model.trees.len(), 1);
}

#[test]
fn the_oldest_of_leaves_with_equal_gain_is_split() {
    let values = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
    let table = Table {
        values: values.to_vec(),
        width: 2,
        labels: vec![0, 1, 2, 3],
        weights: vec![1.0; 4],
        n_classes: 4,
    };
    let params = Params {
        n_estimators: 1,
        max_leaves: 3,
        ..paper()
    };
    let nodes = &table.learn(params, 1).trees[0].nodes;
    assert!(!nodes[1].is_leaf() && nodes[2].is_leaf());
}

/// Children of the last split are not searched, which must not change the splits.
#[test]
fn a_small_tree_is_the_beginning_of_a_large_one() {
    let table = traversal::table(400, true);
    let grow = |max_leaves| {
        let params = Params {
            max_leaves,
            n_estimators: 1,
            ..paper()
        };
        table.learn(params, 1).trees.remove(0)
    };
    let all = grow(100);
    assert_eq!(all.leaves.count(), 100);
    for n_leaves in 2..60 {
        let tree = grow(n_leaves);
        assert_eq!(tree.leaves.count(), n_leaves as usize);
        for (node, same) in tree.nodes.iter().zip(&all.nodes) {
            assert!(node.is_leaf() || node == same, "{n_leaves} leaves");
        }
    }
}

#[test]
fn reports_and_importances_are_shares_of_the_weight() {
    // Rows of weight 4 of classes 0 and 1 go left, a row of weight 8 goes right.
    let mut table = Table::from_column(&[0.0, 0.0, 0.0, 1.0], &[0, 0, 1, 2], 3);
    table.weights = vec![2.0, 2.0, 4.0, 8.0];
    let params = Params {
        n_estimators: 2,
        max_leaves: 2,
        learning_rate: 1e-9,
        ..paper()
    };
    let model = table.learn(params, 1);
    let close = |column: Vec<f64>, expected: &[f64]| {
        assert_eq!(column.len(), expected.len());
        let pairs = column.iter().zip(expected);
        assert!(
            pairs.clone().all(|(a, b)| (a - b).abs() < 1e-6),
            "{column:?}"
        );
    };
    // The squared weights 4, 4 and 8 over the weight 16 sum to 6; after the split the sum is 4 + 8.
    let ln_2 = std::f64::consts::LN_2;
    for report in model.reports() {
        close(report.get("weight").unwrap(), &[1.0, 0.5, 0.5]);
        close(report.get("gain").unwrap(), &[0.375, 0.0, 0.0]);
        close(
            report.get("label_entropy").unwrap(),
            &[1.5 * ln_2, ln_2, 0.0],
        );
        assert_eq!(report.get::<u32>("n_examples").unwrap(), [4, 3, 1]);
    }
    close(model.importances().get("gain").unwrap(), &[0.75]);
}

#[test]
fn uneven_splits_do_not_exceed_the_largest_depth() {
    let values: Vec<f32> = (0..3000).map(|i| i as f32).collect();
    let labels: Vec<u32> = (0..3000).map(|i| i % 2).collect();
    let params = Params {
        n_estimators: 1,
        max_leaves: 3000,
        splits: Splits::Exact,
        subsample: 1.0,
        ..Params::default()
    };
    let model = Table::from_column(&values, &labels, 2).learn(params, 1);
    let depths: Vec<u32> = model.reports()[0].get("depth").unwrap();
    assert!(depths.len() > 1000);
    assert!(depths.iter().all(|&depth| depth <= 512));
}

/// The slope lies between the slopes of the scores of all trees and of the trees that were grown
/// without the row.
#[test]
fn the_slope_is_fitted_to_rows_with_and_without_their_trees() {
    let mut table = traversal::table(300, false);
    for (row, weight) in table.weights.iter_mut().enumerate() {
        *weight = [0.5, 1.0, 2.0][row % 3];
    }
    let params = Params {
        n_estimators: 7,
        max_leaves: 60,
        subsample: 0.7,
        ..paper()
    };
    let trees = table.learn(params.clone(), 1).trees;
    let votes = trees
        .iter()
        .map(|tree| traversal::scores(from_ref(tree), &table));
    let votes: Vec<Vec<f64>> = votes.collect();
    let k = table.n_classes;
    let sampler = RowSampler::new(&table.labels, k, params.subsample, params.trim);
    let samples: Vec<Vec<bool>> = (0..trees.len() as u64)
        .map(|round| sampler.random_rows(params.seed, round).take(300).collect())
        .collect();
    let outcome = |row: usize, which: &[usize]| {
        let sum = |class| which.iter().map(|&tree| votes[tree][row * k + class]).sum();
        let share = which.len() as f64 / trees.len() as f64;
        let scaled = |sum: f64| (sum / share / (k as f64 - 1.0)) as f32;
        let scores: Vec<f32> = (0..k).map(sum).map(scaled).collect();
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let best = scores.iter().position(|&score| score == highest);
        Outcome {
            is_right: best == Some(table.labels[row] as usize),
            row: scores,
            weight: table.weights[row].into(),
        }
    };
    let all: Vec<usize> = (0..trees.len()).collect();
    let outcomes = (0..300).filter_map(|row| {
        let others = all.iter().copied().filter(|&tree| !samples[tree][row]);
        let others: Vec<usize> = others.collect();
        (!others.is_empty()).then(|| (outcome(row, &all), outcome(row, &others)))
    });
    let (own, left_out): (Vec<_>, Vec<_>) = outcomes.unzip();
    assert!(own.len() < 300);
    let wrong = |outcomes: &[Outcome<Vec<f32>>]| -> f64 {
        let wrong = outcomes.iter().filter(|outcome| !outcome.is_right);
        wrong.map(|outcome| outcome.weight).sum()
    };
    let overfitting = 1.0 - 3.0 * wrong(&own) / wrong(&left_out);
    assert!(overfitting > 0.1 && overfitting < 0.9, "{overfitting}");
    let [own, left_out] = [&own, &left_out].map(|rows| softmax_slope(rows).unwrap());
    assert!(own > 1.1 * left_out);
    let expected = left_out.powf(overfitting) * own.powf(1.0 - overfitting);
    let (batch, which) = (table.batch(), table.all_rows());
    let learned = LabeledRows {
        batch: &batch,
        which: &which,
    };
    let (trees, control) = (FrozenTrees::new(&trees), Control::new(0));
    let (found, _) = calibrate(&params, &trees, &learned, k, &control).unwrap();
    let found = found.unwrap();
    assert!((found / expected - 1.0).abs() < 1e-4, "{found}, {expected}");
}

#[test]
fn only_a_new_fit_may_change_the_number_of_columns() {
    let wide = traversal::table(40, false);
    let narrow = Table::from_column(&wide.values[..40], &wide.labels, wide.n_classes);
    let (plain, control) = (FitOptions::threads(1), Control::new(0));
    let warm = FitOptions {
        warm_start: true,
        ..plain
    };
    let mut model = wide.learn(paper(), 1);
    assert!(model.fit(&narrow.batch(), warm, &control).is_err());
    let validated = model.fit_validated(&wide.batch(), &narrow.batch(), plain, &control);
    assert!(validated.is_err());
    assert!(model.fit(&narrow.batch(), plain, &control).is_ok());
}

#[test]
fn the_log_loss_of_a_round_can_be_interrupted() {
    let table = noisy(60, 4);
    let (batch, which) = (table.batch(), table.all_rows());
    let rows = LabeledRows {
        batch: &batch,
        which: &which,
    };
    let model = table.learn(paper(), 1);
    let control = Control::new(0);
    let mut validation = Validation::new(rows, 4, EvalMetric::LogLoss).unwrap();
    assert!(validation.add(&model.trees[0], &control).is_ok());
    control.stop();
    let stopped = validation.add(&model.trees[1], &control);
    assert!(matches!(stopped, Err(Error::Stopped)));
}
