//! Training on data in parts.

use super::unfrozen_tests::{Stream, N};
use super::{find, load};
use crate::control::Control;
use crate::data::Batch;
use crate::error::Result;
use crate::file::Bundle;
use crate::model::{Classifier, FitOptions, PartStep};

const SEED: u64 = 5;
const N_CLASSES: usize = 12;

fn new_model(learner: &str, more: &str) -> Box<dyn Classifier> {
    let json = format!(r#"{{"n_passes": 1, "seed": {SEED}{more}}}"#);
    find(learner)
        .unwrap()
        .create(&json, N_CLASSES, false)
        .unwrap()
}

fn take(model: &mut dyn Classifier, batch: &Batch<'_>, step: PartStep) -> Result<()> {
    model.learn_part(batch, step, 1, &Control::new(0))
}

fn learn(seed: u64) -> PartStep {
    PartStep::Learn {
        n_rows: N as u64,
        seed,
        repeats: false,
    }
}

fn bytes(model: &dyn Classifier) -> Vec<u8> {
    model.to_bundle().to_bytes().unwrap()
}

#[test]
fn one_part_is_learned_as_by_fit() {
    let data = Stream::new(3, (9, 0.9), N_CLASSES as u32);
    let batch = data.batch(0, N, N_CLASSES);
    // The entropy of labels, which the paper's tree does not use, is corrected for a part.
    let paper = r#", "paper_tree": true"#;
    for (learner, more) in [("oaa", ""), ("lomtree", ""), ("recall-tree", paper)] {
        let (mut fitted, mut model) = (new_model(learner, more), new_model(learner, more));
        let options = FitOptions::threads(1);
        fitted.fit(&batch, options, &Control::new(0)).unwrap();
        take(&mut *model, &batch, PartStep::Observe).unwrap();
        // The model is sent to the part.
        model = load(Bundle::from_bytes(&bytes(&*model)).unwrap()).unwrap();
        take(&mut *model, &batch, learn(SEED)).unwrap();
        assert!(bytes(&*model) == bytes(&*fitted), "{learner}");
    }
}

#[test]
fn parts_are_observed_as_all_rows() {
    let data = Stream::new(2, (9, 0.9), N_CLASSES as u32);
    let standard = r#", "scaling": "standard""#;
    let (mut whole, mut model) = (new_model("oaa", standard), new_model("oaa", standard));
    take(&mut *whole, &data.batch(0, N, N_CLASSES), PartStep::Observe).unwrap();
    for (from, to) in [(0, 100), (100, N)] {
        take(
            &mut *model,
            &data.batch(from, to, N_CLASSES),
            PartStep::Observe,
        )
        .unwrap();
    }
    assert!(bytes(&*model) == bytes(&*whole));
}

#[test]
fn members_are_joined_to_an_ensemble() {
    let data = Stream::new(2, (9, 0.9), N_CLASSES as u32);
    let batch = data.batch(0, N, N_CLASSES);
    let member = |seed| {
        let mut model = new_model("lomtree", "");
        take(&mut *model, &batch, PartStep::Observe).unwrap();
        take(&mut *model, &batch, learn(seed)).unwrap();
        model.to_bundle()
    };
    let join = |seeds: &[u64]| {
        let parts = seeds.iter().map(|&seed| member(seed)).collect();
        let json = format!(r#"{{"n_passes": 1, "seed": {SEED}, "n_estimators": 2}}"#);
        find("lomtree")
            .unwrap()
            .join(&json, N_CLASSES, false, parts)
    };
    let mut fitted = new_model("lomtree", r#", "n_estimators": 2"#);
    let options = FitOptions::threads(1);
    fitted.fit(&batch, options, &Control::new(0)).unwrap();
    let seeds = [SEED, crate::model::seed_of(SEED, 1)];
    assert!(bytes(&*join(&seeds).unwrap()) == bytes(&*fitted));
    let error = join(&seeds[..1]).unwrap_err().to_string();
    assert_eq!(error, "1 members were joined to a model of 2");
}

#[test]
fn parts_that_cannot_be_learned_are_refused() {
    let data = Stream::new(2, (9, 0.9), N_CLASSES as u32);
    let batch = data.batch(0, N, N_CLASSES);
    let mut model = new_model("lomtree", "");
    assert!(take(&mut *model, &batch, learn(0)).is_err());
    take(&mut *model, &batch, PartStep::Observe).unwrap();
    let before = bytes(&*model);
    let wide = Stream::new(2, (10, 0.9), N_CLASSES as u32);
    for step in [PartStep::Observe, learn(0)] {
        assert!(take(&mut *model, &wide.batch(0, N, N_CLASSES), step).is_err());
    }
    assert!(bytes(&*model) == before);
    let mut trees = find("ldsm")
        .unwrap()
        .create("{}", N_CLASSES, false)
        .unwrap();
    assert!(take(&mut *trees, &batch, PartStep::Observe).is_err());
}
