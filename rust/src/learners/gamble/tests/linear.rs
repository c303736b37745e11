//! The linear part of the scores.

use rand::RngExt;

use super::super::linear::LinearScores;
use super::super::sampling::generator;
use super::*;
use crate::file::{Array, Bundle};

/// Returns rows whose class is the sign of a sum of columns, if `is_sum`, or of a product. The last
/// columns are a constant and a category.
fn table(n_rows: usize, is_sum: bool, seed: u64) -> Table {
    let mut random = generator(seed, 0, 0);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for row in 0..n_rows {
        let x: [f32; 4] = std::array::from_fn(|_| random.random_range(-1.0..1.0));
        let score = if is_sum {
            x[0] + x[1] - x[2] - x[3]
        } else {
            x[0] * x[1]
        };
        labels.push(u32::from(score > 0.0));
        // Units do not matter.
        values.extend([100.0 * x[0] + 5.0, x[1], x[2], x[3], 7.0, (row % 3) as f32]);
    }
    Table {
        values,
        width: 6,
        weights: vec![1.0; n_rows],
        labels,
        n_classes: 2,
    }
}

fn params() -> Params {
    Params {
        n_estimators: 30,
        linear: true,
        categorical_features: vec![5],
        ..Params::default()
    }
}

fn scores(model: &Gamble, table: &Table) -> Vec<f64> {
    let (rows, control) = (table.rows(), Control::new(0));
    match model
        .predict_scores(&Query::new(&rows, 1, &control))
        .unwrap()
    {
        Array::F64(scores) => scores.to_vec(),
        _ => unreachable!(),
    }
}

fn error(model: &Gamble, table: &Table) -> f64 {
    let wrong = scores(model, table)
        .chunks(2)
        .zip(&table.labels)
        .filter(|(scores, label)| u32::from(scores[1] > scores[0]) != **label)
        .count();
    wrong as f64 / table.labels.len() as f64
}

#[test]
fn sums_of_columns_are_learned_with_few_rows() {
    let (learned, new) = (table(300, true, 1), table(1000, true, 2));
    let model = learned.learn(params(), 1);
    let alone = learned.learn(
        Params {
            linear: false,
            ..params()
        },
        1,
    );
    assert_eq!(model.trees, alone.trees);
    assert!(error(&alone, &new) > 2.0 * error(&model, &new));
    let coefficients = model.linear.coefficients.chunks(2);
    for (column, of_column) in coefficients.enumerate() {
        assert!((of_column[0] + of_column[1]).abs() < 1e-9);
        assert_eq!(of_column[1] == 0.0, column > 3);
        assert_eq!(of_column[1] > 0.0, column < 2);
    }
    // Probabilities are as confident as they are right.
    let found = scores(&model, &new);
    let sure = found
        .chunks(2)
        .map(|row| 1.0 / (1.0 + (-model.slope * (row[0] - row[1]).abs()).exp()));
    let mean = sure.sum::<f64>() / 1000.0;
    assert!((mean - (1.0 - error(&model, &new))).abs() < 0.04, "{mean}");
}

#[test]
fn trees_vote_alone_where_sums_say_nothing() {
    let learned = table(300, false, 1);
    let model = learned.learn(params(), 1);
    assert!(model.linear.coefficients.is_empty());
    let alone = learned.learn(
        Params {
            linear: false,
            ..params()
        },
        1,
    );
    assert_eq!(scores(&model, &learned), scores(&alone, &learned));
}

/// Validation rows measure the trees, and must measure the model.
#[test]
fn trees_vote_alone_with_validation_rows() {
    let stopping = Params {
        early_stopping: true,
        ..params()
    };
    let model = table(300, true, 1).learn(stopping, 1);
    assert!(model.linear.coefficients.is_empty());
}

#[test]
fn missing_values_count_as_means() {
    let mut learned = table(300, true, 1);
    learned
        .values
        .iter_mut()
        .step_by(11)
        .for_each(|value| *value = f32::NAN);
    let model = learned.learn(params(), 2);
    let mut rows = table(2, true, 3);
    let coefficient = model.linear.coefficients[3];
    assert!(coefficient > 0.0);
    let present: Vec<f64> = learned
        .values
        .chunks(6)
        .map(|row| f64::from(row[1]))
        .filter(|x| !x.is_nan())
        .collect();
    let mean = present.iter().sum::<f64>() / present.len() as f64;
    let mut linear = [rows.values[1], f32::NAN].map(|value| {
        rows.values[1] = value;
        let (rows, control) = (rows.rows(), Control::new(0));
        let found = model
            .contributions(&Query::new(&rows, 1, &control), &[1, 1])
            .unwrap();
        let mut alone = model.clone();
        alone.linear = LinearScores::default();
        let trees = alone
            .contributions(&Query::new(&rows, 1, &control), &[1, 1])
            .unwrap();
        let of_column = |found: &[(u32, f64)]| {
            found
                .iter()
                .find(|each| each.0 == 1)
                .map_or(0.0, |each| each.1)
        };
        of_column(&found[0]) - of_column(&trees[0])
    });
    let expected = coefficient * (f64::from(table(2, true, 3).values[1]) - mean);
    linear[0] -= expected;
    assert!(
        linear.iter().all(|rest| rest.abs() < 1e-6 * expected.abs()),
        "{linear:?}"
    );
}

/// Beyond the training rows scores are constant, as those of trees.
#[test]
fn scores_do_not_extrapolate() {
    let model = table(300, true, 1).learn(params(), 1);
    let mut rows = table(2, true, 3);
    let ends = [1e3, 1e30].map(|value| {
        rows.values[0] = value;
        scores(&model, &rows)
    });
    assert_eq!(ends[0], ends[1]);
    rows.values[0] = 50.0;
    assert_ne!(scores(&model, &rows), ends[0]);
}

#[test]
fn files_keep_the_linear_part() {
    let learned = table(300, true, 1);
    let model = learned.learn(params(), 1);
    let bytes = model.to_bundle().to_bytes().unwrap();
    let read = || Bundle::from_bytes(&bytes).unwrap();
    let again = Gamble::from_bundle(read()).unwrap();
    assert_eq!(scores(&again, &learned), scores(&model, &learned));
    for name in ["coefficients", "means", "lows", "highs", "at_means"] {
        for bad in [vec![], vec![f64::NAN; 12]] {
            let mut bundle = read();
            let mut part = bundle.unnest("linear").unwrap();
            part.take::<f64>(name).unwrap();
            part.put(name, bad);
            bundle.nest("linear", part);
            let error = Gamble::from_bundle(bundle).unwrap_err().to_string();
            let is_clear = error.contains("the linear scores do not match");
            assert!(is_clear || error.contains("out of range"), "{error}");
        }
    }
}
