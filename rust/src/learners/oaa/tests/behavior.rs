//! Behavior that users rely on: weights of examples, memory, averages, refused input, stopping.

use crate::params::Params as _;

use super::*;

#[test]
fn rows_of_weight_zero_are_ignored() {
    let (x, y) = ([1.0, -0.5, 3.0, 9.0, -1.0, 0.5, 0.3, 2.0], [0, 1, 2, 1]);
    let rows = Rows::dense(Values::F32(&x), 4, 2, false).unwrap();
    let targets = Targets::One(Labels::new(&y, 3).unwrap());
    let with = Batch::new(rows, targets, Some(Values::F32(&[1.0, 1.0, 1.0, 0.0]))).unwrap();
    let fewer = Rows::dense(Values::F32(&x[..6]), 3, 2, false).unwrap();
    let targets = Targets::One(Labels::new(&y[..3], 3).unwrap());
    let without = Batch::new(fewer, targets, None).unwrap();
    for partial in [false, true] {
        let [a, b] = [&with, &without].map(|batch| {
            let mut oaa = Model::create(Params::default(), 3, false).unwrap();
            if partial {
                oaa.partial_fit(batch, 1, &control()).unwrap();
            } else {
                oaa.fit(batch, FitOptions::threads(1), &control()).unwrap();
            }
            oaa.to_bytes().unwrap()
        });
        assert_eq!(a, b);
    }
}

#[test]
fn memory_grows_with_the_features_seen() {
    let data = Data::new(40, 24, 70, 5);
    let columns: Vec<i32> = data.columns.iter().map(|c| c * 100_000).collect();
    let starts = Indices::I32(&data.starts);
    let rows = Rows::csr(
        starts,
        Indices::I32(&columns),
        Values::F32(&data.values),
        2_400_000,
        false,
    );
    let rows = rows.unwrap();
    let mut oaa = Model::create(Params::default(), 70, false).unwrap();
    let batch = Batch::new(rows, data.labels(), None).unwrap();
    oaa.partial_fit(&batch, 1, &control()).unwrap();
    let learner = learner(&oaa);
    // All columns but number 7, and the constant.
    assert_eq!(learner.preparer.slots.len(), 24);
    assert_eq!(
        learner.tiles.iter().map(|t| t.weights.len()).sum::<usize>(),
        24 * (64 + 16)
    );
    // Columns that were not learned are ignored.
    let (starts, columns) = (Indices::I32(&[0, 1, 1]), Indices::I32(&[700_001]));
    let rows = Rows::csr(starts, columns, Values::F32(&[3.0]), 2_400_000, false).unwrap();
    let scores = all_scores(&oaa, &rows, 1);
    assert_eq!(scores[..70], scores[70..]);
}

#[test]
fn averages_of_long_streams_agree_with_the_definition() {
    let mut random = Pcg64Mcg::seed_from_u64(6);
    let (mut counts, mut w, mut u, mut slow) =
        (PolynomialAverage::default(), 0.0f32, 0.0f32, 0.0f64);
    for t in 1..=200_000 {
        if let Some(factor) = counts.rescale() {
            u *= factor;
        }
        let delta = random.random::<f32>() - 0.5;
        w += delta;
        u += counts.total as f32 * delta;
        counts.advance();
        slow += (AVERAGING_POWER + 1.0) / (f64::from(t) + AVERAGING_POWER) * (f64::from(w) - slow);
        if t % 1000 == 0 {
            let fast = f64::from(w) - f64::from(u) / counts.total;
            assert!(
                (fast - slow).abs() < 1e-3 * slow.abs().max(1.0),
                "{t}: {fast} {slow}"
            );
        }
    }
    assert!(counts.total < 1e19);
}

#[test]
fn unseen_classes_are_never_predicted() {
    let data = Data::new(100, 24, 70, 7);
    let mut oaa = Model::create(Params::default(), 70, false).unwrap();
    oaa.fit(&data.batch(), FitOptions::threads(1), &control())
        .unwrap();
    let rows = data.rows();
    let (labels, scores) = oaa
        .predict_topk(&Query::new(&rows, 1, &control()), 70)
        .unwrap();
    let seen: std::collections::BTreeSet<u32> = data.labels.iter().copied().collect();
    for (labels, scores) in labels.chunks(70).zip(scores.chunks(70)) {
        let ranked = &labels[..seen.len()];
        assert!(ranked.iter().all(|&l| seen.contains(&(l as u32))));
        assert!(labels[seen.len()..].iter().all(|&l| l == -1));
        assert!(scores[seen.len()..].iter().all(|&s| s == f32::NEG_INFINITY));
    }
    let scores = all_scores(&oaa, &rows, 1);
    assert!(scores[69] == f32::NEG_INFINITY && scores[data.labels[0] as usize].is_finite());
    for (row, &best) in scores.chunks(70).zip(labels.iter().step_by(70)) {
        let top = row.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
        assert_eq!(row.iter().position(|&s| s >= top), Some(best as usize));
    }
}

#[test]
fn refused_input_changes_nothing_and_a_stop_keeps_the_model() {
    let data = Data::new(600, 24, 40, 11);
    let mut oaa = Model::create(Params::default(), 40, false).unwrap();
    let rows = data.rows();
    assert!(oaa
        .predict_topk(&Query::new(&rows, 1, &control()), 1)
        .is_err());
    oaa.fit(&data.batch(), FitOptions::threads(1), &control())
        .unwrap();
    let before = oaa.to_bytes().unwrap();
    let narrow = Data::new(5, 20, 40, 12);
    let sets = Batch::new(rows, data.sets(), None).unwrap();
    for batch in [narrow.batch(), sets] {
        assert!(matches!(
            oaa.partial_fit(&batch, 1, &control()),
            Err(Error::Data(_))
        ));
    }
    assert!(matches!(
        oaa.fit(&sets, FitOptions::threads(1), &control()),
        Err(Error::Data(_))
    ));
    // fit may start again with other columns.
    let mut other = oaa.clone();
    other
        .fit(&narrow.batch(), FitOptions::threads(1), &control())
        .unwrap();
    assert_eq!(other.n_features(), 20);
    let none = vec![0.0; 600];
    let weightless = Batch::new(rows, data.labels(), Some(Values::F32(&none))).unwrap();
    assert!(oaa
        .fit(&weightless, FitOptions::threads(1), &control())
        .is_err());
    assert!(oaa
        .predict_topk(&Query::new(&rows, 1, &control()), 0)
        .is_err());
    let message = oaa
        .predict_topk(&Query::new(&narrow.rows(), 1, &control()), 1)
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "X has 20 features, but the model was trained with 24"
    );
    assert_eq!(before, oaa.to_bytes().unwrap());

    let stopped = control();
    stopped.stop();
    assert!(matches!(
        oaa.fit(&data.batch(), FitOptions::threads(1), &stopped),
        Err(Error::Stopped)
    ));
    // The first chunk and the one that was prepared while the first was learned.
    assert_eq!(oaa.n_examples_seen(), 600);
    assert!(oaa
        .predict_topk(&Query::new(&rows, 1, &control()), 1)
        .is_ok());
    oaa.partial_fit(&data.batch(), 1, &control()).unwrap();
}

#[test]
fn parameters_are_checked_and_stored() {
    for json in [
        "{\"loss\": \"cubic\"}",
        "{\"lost\": \"hinge\"}",
        "{\"n_passes\": 0}",
        "{\"learning_rate\": 0}",
        "{\"learning_rate\": 1e999}",
        "{\"n_negatives\": 0}",
        "{\"loss\": \"softmax\", \"optimizer\": \"nag\"}",
        "{\"loss\": \"softmax\", \"n_negatives\": 3}",
        "{\"n_bits\": 32}",
        "{\"n_passes\": 0}",
    ] {
        assert!(Params::from_json(json).is_err(), "{json}");
    }
    let params = Params::from_json("{\"n_bits\": 9, \"prune\": 0.25}").unwrap();
    assert_eq!(
        Params::from_json(&serde_json::to_string(&params).unwrap()).unwrap(),
        params
    );
    assert!(Model::create(params, 0, false).is_err());
}

#[test]
fn early_stopping_returns_to_the_best_pass() {
    let data = Data::new(400, 24, 30, 13);
    for multilabel in [false, true] {
        let params = Params {
            early_stopping: true,
            n_passes: 50,
            ..Params::default()
        };
        let targets = if multilabel {
            data.sets()
        } else {
            data.labels()
        };
        let batch = Batch::new(data.rows(), targets, None).unwrap();
        let mut oaa = Model::create(params, 30, multilabel).unwrap();
        oaa.fit(&batch, FitOptions::threads(1), &control()).unwrap();
        assert!(oaa.n_examples_seen() < 49 * 360);
        assert_eq!(oaa.n_examples_seen() % 360, 0);
    }
}
