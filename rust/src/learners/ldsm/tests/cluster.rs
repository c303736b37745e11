//! Trees that are grown one by one and sent as bytes, compared with a fit.

use super::super::train::leaves_out;
use super::super::TrainingSet;
use super::*;
use crate::error::Result;
use crate::file::Bundle;
use crate::learners::one_against_some::{FitSample, GroupScorers, Groups, Piece};
use crate::model::Query;

/// Joins trees of these `numbers` that are grown one by one.
fn joined(data: &Data, params: &Params, numbers: &[usize]) -> Result<Ldsm> {
    let control = control();
    let read = TrainingSet::read(params, &data.batch(), None, 1, &control)?;
    let bytes = read.to_bundle().to_bytes()?;
    let training = TrainingSet::from_bundle(Bundle::from_bytes(&bytes)?)?;
    let trees = numbers.iter().map(|&number| {
        let bytes = Ldsm::with_trees(&training, &[number], false, 1, &control)?.to_bytes()?;
        Ldsm::from_bytes(&bytes)
    });
    Ldsm::of_trees(trees)?.complete(&training, 2, &control)
}

#[test]
fn joined_trees_are_the_model_of_a_fit() {
    let data = fixed(120, false);
    let cases = [
        with_scorers(),
        Params {
            cost: None,
            ..with_scorers()
        },
        Params {
            beta: 0.5,
            ..params()
        },
    ];
    for params in cases {
        let numbers: Vec<usize> = (0..params.n_estimators as usize).collect();
        let made = joined(&data, &params, &numbers).unwrap();
        assert!(made.to_bytes().unwrap() == data.fit(&params).to_bytes().unwrap());
    }
}

#[test]
fn a_tree_may_learn_all_rows_of_a_set_of_its_own() {
    let (data, params) = (fixed(120, false), with_scorers());
    let read = |params: &Params| TrainingSet::read(params, &data.batch(), None, 1, &control());
    let first = read(&params).unwrap().first_row();
    assert_eq!(first.examples.len(), 1);
    let own = first.with_rows(&data.batch(), &control()).unwrap();
    let trees = |set: &TrainingSet, learn_all| {
        all_bits(&Ldsm::with_trees(set, &[1], learn_all, 1, &control()).unwrap())
    };
    let without_scorers = Params {
        scorers: Scorers::None,
        ..params.clone()
    };
    let wanted = trees(&read(&without_scorers).unwrap(), false);
    assert_eq!(trees(&own, true), wanted);
    assert_ne!(trees(&own, false), wanted);
    // Rows are prepared as those of the first set.
    let standard = Params {
        scaling: Scaling::Standard,
        ..params
    };
    let all = read(&standard).unwrap();
    let half = data.select(data.present().into_iter().step_by(2));
    let half = all
        .first_row()
        .with_rows(&half.batch(), &control())
        .unwrap();
    for row in 0..half.examples.len() as u32 {
        assert_eq!(half.examples.row(row), all.examples.row(2 * row));
    }
}

#[test]
fn missing_parts_are_refused() {
    let (data, params) = (fixed(60, false), with_scorers());
    let error = joined(&data, &params, &[0]).unwrap_err().to_string();
    let wanted = format!(
        "the parts must have {} trees together, got 1",
        params.n_estimators
    );
    assert_eq!(error, wanted);
    let training = TrainingSet::read(&params, &data.batch(), None, 1, &control()).unwrap();
    let mut bundle = training.to_bundle();
    bundle.unnest("examples").unwrap();
    assert!(TrainingSet::from_bundle(bundle).is_err());
}

#[test]
fn scorers_of_groups_are_joined() {
    check_groups(&with_scorers());
}

#[test]
fn scorers_of_groups_are_joined_with_centroids() {
    check_groups(&Params {
        beta: 0.3,
        ..with_scorers()
    });
}

/// Each label with rows has a scorer, whatever its group, no group may be missing, and predictions
/// are the same group by group.
fn check_groups(params: &Params) {
    let (data, control) = (fixed(120, false), control());
    let training = TrainingSet::read(params, &data.batch(), None, 1, &control).unwrap();
    let numbers: Vec<usize> = (0..params.n_estimators as usize).collect();
    let trees = Ldsm::with_trees(&training, &numbers, false, 1, &control).unwrap();
    let examples = &training.examples;
    // The trees leave rows out by their number among those with labels.
    let kept = data.present();
    let at = |row: usize| kept.binary_search(&row).unwrap() as u32;
    let fit_sample = FitSample::new(kept.len());
    let place_of = |row| {
        if fit_sample.contains(at(row)) {
            0
        } else {
            1 + row % 2
        }
    };
    for n_groups in [1, 3] {
        let facts = training.complete(facts_in_turn(examples, n_groups));
        let read = || Groups::new(sent(&facts).unwrap());
        let groups = read();
        let divide = |number: usize| {
            let rows = kept.iter().copied().filter(|row| place_of(*row) == number);
            let rows: Vec<usize> = rows.collect();
            let part = data.select(rows.iter().copied());
            let out = |row, tree| leaves_out(params.seed, kept.len(), tree, row);
            let learned = (rows.iter())
                .flat_map(|row| numbers.iter().map(|&tree| !out(at(*row), tree)))
                .collect::<Vec<bool>>();
            let learned = (number > 0).then_some(&learned[..]);
            trees.divide(&part.batch(), number as u64, learned, &groups, &control)
        };
        let divided: Vec<Vec<Piece>> = (0..3).map(|part| divide(part).unwrap()).collect();
        // The fit has rows that no tree has learned, so its scores are of all trees.
        let n_fit = divided[0][n_groups as usize].examples.len();
        assert_eq!(n_fit, kept.len().div_ceil(5));
        let batch = data.batch();
        let found = trees.divide(&batch, 1, Some(&[true]), &groups, &control);
        let error = "rows, trees and groups do not match";
        assert_eq!(found.unwrap_err().to_string(), error);
        let mine = |group: usize| {
            let pieces = divided.iter().map(|pieces| sent(&pieces[group]));
            groups.mine(group, pieces, &control).unwrap()
        };
        let (mined, gains): (Vec<Piece>, Vec<_>) = (0..n_groups as usize).map(mine).unzip();
        let settings = groups.choose(&gains).unwrap();
        assert_eq!(settings.1, params.cost.unwrap());
        let fit = &divided[0][n_groups as usize];
        let train = |(group, mined)| {
            let trained = groups.train(group, mined, settings, fit, &control);
            trained.unwrap()
        };
        let trained = mined.into_iter().enumerate().map(train);
        let (trained, counts): (Vec<GroupScorers>, Vec<_>) = trained.unzip();
        let layout = groups.layout(fit, &counts).unwrap();
        // An index of the largest weights gives other candidates.
        for layout in [layout, (Some(0.5), layout.1)] {
            // Scorers travel as bytes.
            let measure = |(group, part)| {
                let part = sent(part).unwrap();
                groups.margins(group, part, layout, fit).unwrap()
            };
            let measured = trained.iter().enumerate().map(measure);
            let (parts, margins): (Vec<_>, Vec<_>) = measured.unzip();
            let join = groups.join(fit, &margins, settings).unwrap();
            let complete = |parts: &[GroupScorers]| {
                let parts = parts.iter().map(sent).collect::<Result<Vec<_>>>()?;
                let trees = trees.clone();
                trees.joined(sent(&join)?, &parts)
            };
            let model = complete(&parts).unwrap();
            let biases = &model.scorers.as_ref().unwrap().weights.biases;
            for (label, &n) in facts.counts.iter().enumerate() {
                assert_eq!(biases[label].is_finite(), n > 0);
            }
            let again = Ldsm::from_bytes(&model.to_bytes().unwrap()).unwrap();
            assert!(again.to_bytes().unwrap() == model.to_bytes().unwrap());
            // Without weights, it predicts with one part after the other.
            let main = Ldsm::from_bytes(&complete(&[]).unwrap().to_bytes().unwrap()).unwrap();
            let rows = data.batch().rows;
            for (k, n_threads) in [(1, 1), (4, 3), (50, 2)] {
                let query = Query::new(&rows, n_threads, &control);
                let found = main.predict_topk_by_group(&query, k, parts.iter().map(sent));
                assert_eq!(found.unwrap(), model.predict_topk(&query, k).unwrap());
            }
            let query = Query::new(&rows, 1, &control);
            let error = "the scorers of a group are missing";
            for numbers in [1..n_groups as usize, 0..n_groups as usize + 1] {
                let parts = numbers.map(|i| sent(&parts[i % n_groups as usize]));
                let found = main.predict_topk_by_group(&query, 3, parts);
                assert_eq!(found.unwrap_err().to_string(), error);
            }
            if n_groups > 1 {
                assert_eq!(complete(&parts[1..]).unwrap_err().to_string(), error);
            }
            let found = model.predict_topk_by_group(&query, 3, parts.iter().map(sent));
            let error = "the scorers of this model are not in parts";
            assert_eq!(found.unwrap_err().to_string(), error);
        }
    }
}
