//! Trees that are grown apart, each sent as bytes, against a fit in one place.

use super::super::TrainingSet;
use super::*;
use crate::error::Result;
use crate::file::Bundle;

/// The model of `data`, whose trees of these `numbers` are grown one by one.
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
fn trees_that_were_grown_apart_make_the_model_of_a_fit() {
    let data = fixed(120, false);
    let cases = [
        sparse(),
        Params {
            cost: None,
            ..sparse()
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
fn what_is_missing_is_an_error() {
    let (data, params) = (fixed(60, false), sparse());
    let error = joined(&data, &params, &[0]).unwrap_err().to_string();
    let wanted = format!("there are 1 trees of {}", params.n_estimators);
    assert_eq!(error, wanted);
    let training = TrainingSet::read(&params, &data.batch(), None, 1, &control()).unwrap();
    let mut bundle = training.to_bundle();
    bundle.unnest("examples").unwrap();
    assert!(TrainingSet::from_bundle(bundle).is_err());
}
