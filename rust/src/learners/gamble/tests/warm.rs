//! Rounds added to a committee, and validation rows from outside.

use super::super::sampling::generator;
use super::*;
use rand::RngExt;

/// Noisy rows of four columns, one of them sparse and one of categories.
fn table(seed: u64, n_rows: usize) -> Table {
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
        let table = table(seed, 150);
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
    let mut model = table(0, 50).learn(paper(), 1);
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
        let (table, other) = (table(0, 150), table(1, 60));
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
    let mut weightless = table(1, 60);
    weightless.weights.fill(0.0);
    let mut model = Gamble::create(settings()[3].clone(), 5, false).unwrap();
    let error = model
        .fit_validated(
            &table(0, 150).batch(),
            &weightless.batch(),
            FitOptions::threads(1),
            &Control::new(0),
        )
        .unwrap_err();
    assert!(error.to_string().contains("no validation row"));
}
