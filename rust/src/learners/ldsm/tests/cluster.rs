//! Trees that are grown one by one and sent as bytes, compared with a fit.

use super::super::TrainingSet;
use super::*;
use crate::error::Result;
use crate::file::Bundle;

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
    Ldsm::join(&training, trees, 2, &control)
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
