//! Steps of a training, each of them sent as bytes, against a fit in one place.

use super::super::cluster::{step_names, Part, Run};
use super::super::TrainingSet;
use super::*;
use crate::error::Result;
use crate::file::Bundle;
use crate::learners::one_against_some::Block;

/// What comes out where it was sent.
fn sent(part: &Part) -> Part {
    let bytes = part.to_bundle().to_bytes().unwrap();
    Part::from_bundle(Bundle::from_bytes(&bytes).unwrap()).unwrap()
}

fn all(parts: &[Part]) -> Vec<&Part> {
    parts.iter().collect()
}

fn run(control: &Control) -> Run<'_> {
    Run {
        n_threads: 1,
        control,
    }
}

fn set(data: &Data, params: &Params) -> TrainingSet {
    TrainingSet::read(params, &data.batch(), None, 1, &control()).unwrap()
}

fn trees(set: &TrainingSet, n_trees: u32) -> Vec<Part> {
    let tree = |number| sent(&set.trees(&[number], run(&control())).unwrap());
    (0..n_trees as usize).map(tree).collect()
}

fn works(set: &TrainingSet, state: &Part, n_blocks: usize) -> Vec<Part> {
    let work = |number| set.work(state, Block { number, n_blocks }, run(&control()));
    (0..n_blocks)
        .map(|number| sent(&work(number).unwrap()))
        .collect()
}

/// The model of `data` by steps, rows and labels in `n_blocks`.
fn by_steps(data: &Data, params: &Params, n_blocks: usize) -> Result<Ldsm> {
    let control = control();
    let bytes = set(data, params).to_bundle().to_bytes()?;
    let set = TrainingSet::from_bundle(Bundle::from_bytes(&bytes)?)?;
    let trees = trees(&set, params.n_estimators);
    let mut state = None;
    for _ in step_names(params) {
        let before = match state.take() {
            None => sent(&set.start(&all(&trees), run(&control))?),
            Some(state) => state,
        };
        let works = works(&set, &before, n_blocks);
        state = Some(sent(&set.advance(&before, &all(&works), run(&control))?));
    }
    set.model(&all(&trees), state.as_ref(), run(&control))
}

#[test]
fn steps_make_the_model_of_a_fit() {
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
        let fitted = data.fit(&params).to_bytes().unwrap();
        // More blocks than labels, too.
        for n_blocks in [1, 3, 20] {
            let made = by_steps(&data, &params, n_blocks).unwrap();
            assert!(
                made.to_bytes().unwrap() == fitted,
                "{n_blocks} blocks, {params:?}"
            );
        }
    }
}

#[test]
fn what_is_missing_or_of_another_kind_is_an_error() {
    let (data, control) = (fixed(60, false), control());
    let params = Params {
        n_estimators: 2,
        ..sparse()
    };
    let (set, run) = (set(&data, &params), run(&control));
    let trees = trees(&set, 2);
    let message = |outcome: Result<Part>| outcome.unwrap_err().to_string();
    let model = |state| set.model(&all(&trees), state, run).unwrap_err().to_string();
    assert_eq!(
        message(set.start(&[&trees[0]], run)),
        "there are 1 trees of 2"
    );
    let state = set.start(&all(&trees), run).unwrap();
    let found = works(&set, &state, 2);
    let cases = [
        (
            model(None),
            "scorers are missing, or disabled (scorers=\"none\")",
        ),
        (model(Some(&state)), "the scorer of label 0 is missing"),
        (
            message(set.start(&[&state], run)),
            "expected a part ldsm, got ldsm_state",
        ),
        (
            message(set.work(&trees[0], Block::ALL, run)),
            "expected a part ldsm_state, got ldsm",
        ),
        (
            message(set.advance(&state, &[&state], run)),
            "expected a part ldsm_work, got ldsm_state",
        ),
        (
            message(set.advance(&state, &[&found[0]], run)),
            "the parts of a step are not all blocks",
        ),
        (
            message(set.advance(&state, &[&found[0], &found[0]], run)),
            "the parts of a step are not all blocks",
        ),
    ];
    for (found, wanted) in cases {
        assert_eq!(found, wanted);
    }
    let bundle = Bundle::new("something else");
    assert!(matches!(
        Part::from_bundle(bundle),
        Err(Error::ModelFile(_))
    ));
    let mut bundle = set.to_bundle();
    bundle.unnest("examples").unwrap();
    assert!(TrainingSet::from_bundle(bundle).is_err());
}
