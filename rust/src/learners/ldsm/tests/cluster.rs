//! Trees that are grown one by one and sent as bytes, compared with a fit.

use std::num::NonZeroUsize;

use super::super::TrainingSet;
use super::*;
use crate::error::Result;
use crate::file::Bundle;
use crate::learners::one_against_some::{GroupScorers, Groups, Piece};

/// Joins trees of these `numbers` that are grown one by one.
fn joined(data: &Data, params: &Params, numbers: &[usize]) -> Result<Ldsm> {
    let control = control();
    let read = TrainingSet::read(params, &data.batch(), None, 1, &control)?;
    let bytes = read.to_bundle().to_bytes()?;
    let training = TrainingSet::from_bundle(Bundle::from_bytes(&bytes)?)?;
    let trees = numbers.iter().map(|&number| {
        let bytes = Ldsm::with_trees(&training, &[number], 1, &control)?.to_bytes()?;
        Ldsm::from_bytes(&bytes)
    });
    Ldsm::of_trees(trees)?.complete(&training, None, 2, &control)
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

/// Each label with rows has a scorer, whatever its group, and no group may be missing.
#[test]
fn scorers_of_groups_are_joined() {
    let (data, params) = (fixed(120, false), with_scorers());
    let control = control();
    let training = TrainingSet::read(&params, &data.batch(), None, 1, &control).unwrap();
    let numbers: Vec<usize> = (0..params.n_estimators as usize).collect();
    let trees = Ldsm::with_trees(&training, &numbers, 1, &control).unwrap();
    let fit = training.fit_rows();
    let examples = &training.examples;
    for n_groups in [1, 3] {
        let facts = training.complete(facts_in_turn(examples, n_groups));
        let read = || Groups::new(sent(&facts).unwrap());
        let groups = read();
        let n_parts = NonZeroUsize::new(2).unwrap();
        let divide = |part| trees.divide_sample(examples, (part, n_parts), &groups, &control);
        let divided: Vec<Vec<Piece>> = (0..3).map(|part| divide(part).unwrap()).collect();
        assert!(divide(3).is_err());
        let mine = |group: usize| {
            let pieces = divided.iter().map(|pieces| sent(&pieces[group]));
            groups.mine(group, pieces, &control).unwrap()
        };
        let (mined, gains): (Vec<Piece>, Vec<_>) = (0..n_groups as usize).map(mine).unzip();
        let settings = groups.choose(&gains).unwrap();
        assert_eq!(settings.1, params.cost.unwrap());
        let train = |(group, mined)| {
            let trained = groups.train(group, mined, settings, &control);
            trained.unwrap()
        };
        let parts: Vec<GroupScorers> = mined.into_iter().enumerate().map(train).collect();
        let join = |parts: &[GroupScorers]| {
            // Scorers travel as bytes.
            let parts = parts.iter().map(sent).collect::<Result<Vec<_>>>()?;
            let trees = trees.clone();
            trees.complete(&fit, Some((read(), parts, settings)), 1, &control)
        };
        let model = join(&parts).unwrap();
        let biases = &model.scorers.as_ref().unwrap().weights.biases;
        for (label, &n) in facts.counts.iter().enumerate() {
            assert_eq!(biases[label].is_finite(), n > 0);
        }
        let again = Ldsm::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert!(again.to_bytes().unwrap() == model.to_bytes().unwrap());
        let error = join(&parts[1..]).unwrap_err().to_string();
        assert_eq!(error, "the scorers of a group are missing");
    }
}
