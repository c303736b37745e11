//! The linear part of the scores.

use rand::RngExt;

use super::super::linear::LinearScores;
use super::super::sampling::generator;
use super::*;
use crate::file::Bundle;

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

fn error(model: &Gamble, table: &Table) -> f64 {
    let wrong = table
        .scores(model)
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
    let coefficients = model.linear.by_column();
    assert!(coefficients[10].is_nan());
    for (column, of_column) in coefficients[..10].chunks(2).enumerate() {
        assert!((of_column[0] + of_column[1]).abs() < 1e-9);
        assert_eq!(of_column[1] == 0.0, column > 3);
        assert_eq!(of_column[1] > 0.0, column < 2);
    }
    // Probabilities are as confident as they are right.
    let found = new.scores(&model);
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
    assert!(model.linear.is_empty());
    let alone = learned.learn(
        Params {
            linear: false,
            ..params()
        },
        1,
    );
    assert_eq!(learned.scores(&model), learned.scores(&alone));
}

/// Validation rows measure the trees, and must measure the model.
#[test]
fn trees_vote_alone_with_validation_rows() {
    let stopping = Params {
        early_stopping: true,
        ..params()
    };
    let model = table(300, true, 1).learn(stopping, 1);
    assert!(model.linear.is_empty());
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
    let coefficient = model.linear.by_column()[3];
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
        rows.scores(&model)
    });
    assert_eq!(ends[0], ends[1]);
    rows.values[0] = 50.0;
    assert_ne!(rows.scores(&model), ends[0]);
}

#[test]
fn files_keep_the_linear_part() {
    let learned = table(300, true, 1);
    let model = learned.learn(params(), 1);
    let bytes = model.to_bundle().to_bytes().unwrap();
    let read = || Bundle::from_bytes(&bytes).unwrap();
    let again = Gamble::from_bundle(read()).unwrap();
    assert_eq!(learned.scores(&again), learned.scores(&model));
    let damage = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = read();
        let mut part = bundle.unnest("linear").unwrap();
        change(&mut part);
        bundle.nest("linear", part);
        let error = Gamble::from_bundle(bundle).unwrap_err().to_string();
        let is_clear = error.contains("the linear scores do not match");
        assert!(is_clear || error.contains("out of range"), "{error}");
    };
    for name in ["coefficients", "at_zeros", "columns.mean", "columns.high"] {
        damage(&|part| {
            let n = part.take::<f64>(name).unwrap().len();
            part.put(name, vec![f64::NAN; n]);
        });
    }
    for name in ["coefficients", "at_zeros"] {
        damage(&|part| {
            let mut numbers = part.take::<f64>(name).unwrap();
            numbers.pop();
            part.put(name, numbers);
        });
    }
    damage(&|part| {
        let mut firsts = part.take::<u32>("columns.first").unwrap();
        firsts[5] += 1;
        part.put("columns.first", firsts);
    });
    damage(&|part| {
        let mut categories = part.take_any::<f32>("columns.categories").unwrap();
        categories.reverse();
        part.put("columns.categories", categories);
    });
}

/// Returns rows of categories, whose class is the sign of a sum of a number for each. Missing values
/// are a category.
fn categories(n_rows: usize, seed: u64) -> Table {
    let (mut random, width) = (generator(seed, 0, 0), 40);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..n_rows {
        let mut sum = 0.0;
        for column in 0..width {
            let category = random.random_range(0..4);
            sum += [-2.0, -1.0, 1.0, 2.0][(category + column) % 4];
            values.push([0.0, 7.0, 2.0, f32::NAN][category]);
        }
        labels.push(u32::from(sum > 0.0));
    }
    Table {
        values,
        width,
        weights: vec![1.0; n_rows],
        labels,
        n_classes: 2,
    }
}

#[test]
fn sums_of_categories_are_learned() {
    let (learned, mut new) = (categories(600, 1), categories(1000, 2));
    let params = Params {
        categorical_features: (0..40).collect(),
        ..params()
    };
    let model = learned.learn(params.clone(), 1);
    let alone = learned.learn(
        Params {
            linear: false,
            ..params
        },
        1,
    );
    assert!(error(&alone, &new) > 1.5 * error(&model, &new));
    // Contributions sum to scores, also of categories that no row had.
    new.values[..5].fill(5.0);
    let found = new.scores(&model);
    let (rows, control) = (new.rows(), Control::new(0));
    let query = Query::new(&rows, 1, &control);
    for class in 0..2 {
        let contributions = model.contributions(&query, &[class; 1000]).unwrap();
        for (row, contributions) in contributions.iter().enumerate() {
            let sum: f64 = contributions.iter().map(|(_, part)| part).sum();
            assert!((sum - found[2 * row + class as usize]).abs() < 1e-6);
        }
    }
}
