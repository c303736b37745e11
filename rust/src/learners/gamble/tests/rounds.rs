//! Rounds: what stops them, how they weigh rows and trees, and what they tell of the trees.

use rand::RngExt;

use super::super::boost::{boost, reweigh};
use super::super::grow::{Grower, TrainingSet};
use super::super::sampling::{generator, Weights};
use super::super::tree::{push_votes, samme_vote, Leaves};
use super::traversal::{self, leaf_of};
use super::*;

/// Rows of one column whose values are `values`, all of weight 1.
fn table(values: &[f32], labels: &[u32], n_classes: usize) -> Table {
    Table {
        values: values.to_vec(),
        width: 1,
        labels: labels.to_vec(),
        weights: vec![1.0; labels.len()],
        n_classes,
    }
}

/// Noisy rows, some of them alike.
fn noisy(n: usize, n_classes: usize) -> Table {
    let mut random = generator(n as u64, n_classes as u64, 0);
    let labels: Vec<u32> = (0..n)
        .map(|_| random.random_range(0..n_classes as u32))
        .collect();
    let values = labels.iter().map(|&label| match random.random_range(0..3) {
        0 => random.random_range(0..n_classes as u32) as f32,
        _ => label as f32,
    });
    table(&values.collect::<Vec<f32>>(), &labels, n_classes)
}

/// Numbers of rounds run and kept, by the errors of the rounds.
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
fn early_stopping_follows_the_error_of_the_rows_held_out() {
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
        let examples = table.examples(&columns, &which, n_learned);
        let all = boost(&params, Vec::new(), &examples, &Control::new(0)).unwrap();
        let mut scores = vec![vec![0.0f32; table.n_classes]; n_rows - n_learned];
        let mut errors = Vec::new();
        for tree in &all {
            let (mut wrong, mut weight_of_all) = (0.0, 0.0);
            for (row, scores) in (n_learned..).zip(&mut scores) {
                let leaf = leaf_of(tree, &table.values[row..=row]);
                let (classes, votes) = tree.leaves.listed(leaf);
                for (&class, vote) in classes.iter().zip(votes) {
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
            let kept = boost(&params, Vec::new(), &examples, &control).unwrap();
            let (n_run, n_kept) = stop(&errors[..n_estimators.min(errors.len())], patience);
            assert_eq!(control.progress().done, n_run as u64);
            let error = control.progress().loss.unwrap();
            assert!((error - errors[n_run - 1]).abs() < 1e-9);
            assert_eq!(kept, all[..n_kept]);
        }
    }
}

#[test]
fn a_sample_of_no_row_is_all_rows() {
    let params = Params {
        subsample: 1e-9,
        ..paper()
    };
    for tree in table(&[0.0, 1.0], &[0, 1], 2).learn(params, 1).trees {
        assert_eq!(tree.statistics[0].n_rows, 2);
    }
}

/// K = 3, a leaf of class 0 alone: r is 3 for it and -6 for the others, their mean -3, so f is
/// 6 and -3, and f / (K - 1) is 3 and -1.5.
#[test]
fn rows_that_the_tree_was_not_grown_from_gain_little_weight() {
    let table = table(&[0.0, 1.0, 0.0, 0.0], &[0, 1, 0, 2], 3);
    let columns = table.columns(&paper());
    let mut weights = Weights::new(table.weights.iter().copied());
    let mut grower = Grower::new(&paper(), 1, 3);
    let training_set = TrainingSet {
        columns: &columns,
        labels: &table.labels,
        weights: &weights.plain.clone(),
        seed: (0, 0),
        control: &Control::new(0),
    };
    grower.grow(&training_set, &[0, 1]).unwrap();
    let mut leaves = Leaves::new();
    for class in [0, 1] {
        push_votes(&mut leaves, &[(class, 1.0)], 3, false, 1.0);
    }
    reweigh(&mut weights, &leaves, grower.leaves(), &table.labels, 3);
    weights.refresh();
    // The logarithms are -3, -3, -3 and 1 instead of 1.5.
    for (row, expected) in [4.0, 4.0, 4.0, 0.0].into_iter().enumerate() {
        assert!((weights.below(row) - expected).abs() < 1e-6, "row {row}");
    }
}

#[test]
fn samme_weighs_a_tree_by_its_error_on_all_rows() {
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
    let model = table(&[0.0, 1.0, 2.0], &[0, 1, 2], 3).learn(params, 1);
    assert_eq!(model.trees.len(), 1);
}

#[test]
fn of_leaves_of_equal_gain_the_oldest_is_split() {
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

/// Nodes that have no chance to be split are not searched. How many these are depends on the number of
/// leaves, the splits do not.
#[test]
fn a_tree_of_few_leaves_is_the_beginning_of_one_of_many() {
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
fn reports_and_summary_are_in_shares_of_the_weight() {
    // Two rows of each class to the left, one to the right.
    let mut table = table(&[0.0, 0.0, 0.0, 1.0], &[0, 0, 1, 2], 3);
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
    // Of shares of 4, 4 and 8 the sum of squares is 6 / 16 of the weight; split it is 12 / 16.
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
fn missing_values_go_to_the_heavier_side_where_none_was_missing() {
    let missing_left = |values: &[f32]| {
        let params = Params {
            n_estimators: 1,
            max_leaves: 2,
            ..paper()
        };
        table(values, &[0, 0, 0, 1], 2).learn(params, 1).trees[0].nodes[0].missing_left
    };
    assert!(missing_left(&[0.0, 0.0, 0.0, 1.0]));
    assert!(!missing_left(&[1.0, 1.0, 1.0, 0.0]));
}

#[test]
fn a_column_that_no_split_divides_evenly_makes_no_path_as_long_as_the_tree_has_leaves() {
    let values: Vec<f32> = (0..3000).map(|i| i as f32).collect();
    let labels: Vec<u32> = (0..3000).map(|i| i % 2).collect();
    let params = Params {
        n_estimators: 1,
        max_leaves: 3000,
        splits: Splits::Exact,
        subsample: 1.0,
        ..Params::default()
    };
    let model = table(&values, &labels, 2).learn(params, 1);
    let depths: Vec<u32> = model.reports()[0].get("depth").unwrap();
    assert!(depths.len() > 1000);
    assert!(depths.iter().all(|&depth| depth <= 512));
}

/// Noisy rows of four columns, one of them sparse and one of categories.
fn noisy_rows(seed: u64, n_rows: usize) -> Table {
    let mut random = generator(seed, 0, 0);
    let mut table = Table {
        values: Vec::new(),
        width: 4,
        labels: Vec::new(),
        weights: Vec::new(),
        n_classes: 5,
    };
    for row in 0..n_rows {
        let label = random.random_range(0..5u32);
        let noise: [f32; 3] = std::array::from_fn(|_| random.random::<f32>() * 4.0);
        let is_rare = random.random_range(0..20) == 0;
        table.values.push(label as f32 + noise[0]);
        table
            .values
            .push(if row % 7 == 0 { f32::NAN } else { noise[1] });
        table.values.push(f32::from(u8::from(is_rare)) * noise[2]);
        table.values.push((label as f32 + noise[2]).floor());
        table.labels.push(label);
        table
            .weights
            .push([0.0, 0.5, 1.0, 2.0][random.random_range(0..4)]);
    }
    table
}

fn settings() -> [Params; 5] {
    let sampled = Params {
        max_features: 0.5,
        subsample: 0.6,
        trim: 0.1,
        clip: true,
        learning_rate: 0.3,
        splits: Splits::Binned,
        categorical_features: vec![3],
        ..paper()
    };
    let samme = Params {
        algorithm: Algorithm::Samme,
        ..paper()
    };
    let stopping = Params {
        early_stopping: true,
        patience: 3,
        ..sampled.clone()
    };
    // A tree without errors, after which there are no more rounds.
    let samme_until_right = Params {
        max_leaves: 1000,
        ..samme.clone()
    };
    [paper(), sampled, samme, stopping, samme_until_right]
}

/// `n_before` rounds and then, of a model from the file of these, those up to `n`.
fn in_two_parts(table: &Table, params: &Params, n_before: u32, n: u32) -> Gamble {
    let rounds = |n_estimators| Params {
        n_estimators,
        ..params.clone()
    };
    let bytes = table.learn(rounds(n_before), 1).to_bytes().unwrap();
    let mut model = Gamble::from_bytes(&bytes).unwrap();
    model
        .set_params(&crate::params::to_json(&rounds(n)).unwrap())
        .unwrap();
    let options = FitOptions {
        n_threads: 2,
        warm_start: true,
    };
    model
        .fit(&table.batch(), options, &Control::new(0))
        .unwrap();
    model
}

#[test]
fn rounds_in_two_parts_are_those_at_once() {
    for seed in 0..4 {
        let table = noisy_rows(seed, 150);
        for params in settings() {
            let at_once = Params {
                n_estimators: 30,
                ..params.clone()
            };
            let at_once = table.learn(at_once, 1);
            for n_before in [1, 7, 29] {
                let parts = in_two_parts(&table, &params, n_before, 30);
                assert_eq!(parts.trees, at_once.trees, "{params:?} {n_before}");
            }
        }
    }
}

#[test]
fn only_the_number_of_rounds_may_change() {
    let mut model = noisy_rows(0, 50).learn(paper(), 1);
    let other = Params {
        max_leaves: 3,
        ..paper()
    };
    let other = crate::params::to_json(&other).unwrap();
    let error = model.set_params(&other).unwrap_err();
    assert!(error.to_string().contains("only n_estimators may change"));
}

#[test]
fn the_best_round_is_that_of_the_validation_rows() {
    for params in settings() {
        let (table, other) = (noisy_rows(0, 150), noisy_rows(1, 60));
        let params = Params {
            n_estimators: 30,
            early_stopping: false,
            ..params
        };
        let all = table.learn(params.clone(), 1);
        let stages = all.staged_predict(&Query::new(&other.rows(), 1, &Control::new(0)));
        let (stages, n) = (stages.unwrap(), all.trees.len());
        let wrong = |stage: usize| -> f32 {
            let rows = other.labels.iter().zip(&other.weights).enumerate();
            let missed = rows.filter(|(row, (&label, _))| stages[row * n + stage] != label as i32);
            missed.map(|(_, (_, weight))| weight).sum()
        };
        let best = (0..n)
            .min_by(|&a, &b| wrong(a).total_cmp(&wrong(b)))
            .unwrap();
        let params = Params {
            early_stopping: true,
            patience: 100,
            ..params
        };
        let mut model = Gamble::create(params, 5, false).unwrap();
        let control = Control::new(0);
        let options = FitOptions::threads(1);
        model
            .fit_validated(&table.batch(), &other.batch(), options, &control)
            .unwrap();
        assert_eq!(model.trees, all.trees[..=best]);
    }
    let mut weightless = noisy_rows(1, 60);
    weightless.weights.fill(0.0);
    let mut model = Gamble::create(settings()[3].clone(), 5, false).unwrap();
    let error = model
        .fit_validated(
            &noisy_rows(0, 150).batch(),
            &weightless.batch(),
            FitOptions::threads(1),
            &Control::new(0),
        )
        .unwrap_err();
    assert!(error.to_string().contains("no validation row"));
}
