//! Steps of a training, each of them sent as bytes, against a fit in one place.

use super::super::parts::Part;
use super::one_against_some::sparse;
use super::*;
use crate::error::Result;
use crate::file::Bundle;

/// What comes out where it was sent.
fn sent(part: &Part) -> Part {
    let bytes = part.to_bundle().to_bytes().unwrap();
    Part::from_bundle(Bundle::from_bytes(&bytes).unwrap()).unwrap()
}

fn blocks(n_blocks: usize) -> impl Iterator<Item = Block> {
    (0..n_blocks).map(move |number| Block { number, n_blocks })
}

fn all(parts: &[Part]) -> Vec<&Part> {
    parts.iter().collect()
}

/// Scorers and dual variables of blocks, the latter beside the former.
type Solved = (Vec<Part>, Vec<Part>);

/// The model of `data` by steps, rows and labels in `n_blocks`.
fn by_steps(data: &Data, params: &Params, n_blocks: usize) -> Result<Ldsm> {
    let control = &control();
    let run = Run {
        n_threads: 1,
        control,
    };
    let read = TrainingSet::read(params, &data.batch(), None, 1, control)?;
    let bytes = read.to_bundle().to_bytes()?;
    let set = TrainingSet::from_bundle(Bundle::from_bytes(&bytes)?)?;
    let trees = (0..params.n_estimators as usize).map(|number| set.trees(&[number], run));
    let trees: Vec<Part> = trees
        .map(|part| part.map(|part| sent(&part)))
        .collect::<Result<_>>()?;
    let trees = sent(&set.join_trees(&all(&trees))?);
    let Some(plan) = Plan::of(params) else {
        return set.model(&trees, None, run);
    };
    let candidates = sent(&set.candidates(&trees, run)?);
    let join = |parts: Result<Vec<Part>>| -> Result<Part> {
        let parts: Vec<Part> = parts?.iter().map(sent).collect();
        Ok(sent(&set.join_negatives(&all(&parts))?))
    };
    let solve = |negatives: &[Part], before: &[Part], known: Option<&Solved>, choice: Choice| {
        let mut solved: Solved = Default::default();
        for block in blocks(n_blocks) {
            let known =
                known.map(|(scorers, duals)| (&scorers[block.number], &duals[block.number]));
            let duals = before.get(block.number);
            let found = set.solve(choice, &all(negatives), duals, known, block, run)?;
            solved.0.push(sent(&found.0));
            solved.1.push(sent(&found.1));
        }
        Ok::<Solved, Error>(solved)
    };
    let how = |power, cost, is_sample| Choice {
        power,
        cost,
        is_sample,
    };
    let first = blocks(n_blocks).map(|block| set.first_negatives(&trees, block, run));
    let mut negatives = vec![join(first.collect())?];
    let samples =
        (0..plan.n_powers).map(|power| solve(&negatives, &[], None, how(power, None, true)));
    let samples: Vec<Solved> = samples.collect::<Result<_>>()?;
    let scorers: Vec<Vec<&Part>> = samples.iter().map(|(scorers, _)| all(scorers)).collect();
    let power = if plan.n_powers > 1 {
        set.best_power(&scorers, &candidates, run)?
    } else {
        0
    };
    let known = (plan.n_powers > 1).then(|| &samples[power]);
    let mut solved = solve(&negatives, &[], known, how(power, None, false))?;
    for round in 1..=plan.n_mining_rounds {
        let index = sent(&set.index(&all(&solved.0))?);
        let rounds = all(&negatives);
        let mined = blocks(n_blocks).map(|block| set.mine(power, &index, &rounds, block, run));
        let mined = join(mined.collect())?;
        negatives.push(mined);
        if round < plan.n_mining_rounds {
            solved = solve(&negatives, &solved.1, None, how(power, None, false))?;
        }
    }
    let sample = |cost| solve(&negatives, &solved.1, None, how(power, Some(cost), true));
    let samples: Vec<Solved> = (0..plan.n_costs).map(sample).collect::<Result<_>>()?;
    let scorers: Vec<Vec<&Part>> = samples.iter().map(|(scorers, _)| all(scorers)).collect();
    let cost = if plan.n_costs > 1 {
        set.best_cost(power, &scorers, &candidates, run)?
    } else {
        0
    };
    let known = (plan.n_costs > 1).then(|| &samples[cost]);
    let solved = solve(&negatives, &solved.1, known, how(power, Some(cost), false))?;
    set.model(
        &trees,
        Some((&all(&solved.0), (power, cost), &candidates)),
        run,
    )
}

#[test]
fn steps_make_the_model_of_a_fit_to_the_bit() {
    let data = fixed(120, false);
    let cases = [
        sparse(),
        Params {
            idf_power: Some(1.0),
            cost: None,
            ..sparse()
        },
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
fn a_step_refuses_parts_that_it_does_not_work_on() {
    let (data, control) = (fixed(60, false), control());
    let run = Run {
        n_threads: 1,
        control: &control,
    };
    let set = TrainingSet::read(&sparse(), &data.batch(), None, 1, &control).unwrap();
    let trees = set.trees(&[0], run).unwrap();
    let block = Block {
        number: 0,
        n_blocks: 2,
    };
    let lists = set.first_negatives(&trees, block, run).unwrap();
    let message = |error: Error| error.to_string();
    let error = message(set.join_trees(&[&lists]).unwrap_err());
    assert_eq!(
        error,
        "ldsm_negatives_of_rows are not what this step works on"
    );
    let error = message(set.join_negatives(&[&lists]).unwrap_err());
    assert_eq!(error, "a part of the rows is missing");
    let bundle = Bundle::new("something else");
    assert!(matches!(
        Part::from_bundle(bundle),
        Err(Error::ModelFile(_))
    ));
    let mut bundle = set.to_bundle();
    bundle.unnest("examples").unwrap();
    assert!(TrainingSet::from_bundle(bundle).is_err());
}

#[test]
fn what_is_missing_is_an_error() {
    let (data, control) = (fixed(60, false), control());
    let run = Run {
        n_threads: 1,
        control: &control,
    };
    let params = Params {
        n_estimators: 2,
        ..sparse()
    };
    let set = TrainingSet::read(&params, &data.batch(), None, 1, &control).unwrap();
    let message = |error: Error| error.to_string();
    let (first, second) = (set.trees(&[0], run), set.trees(&[1], run));
    let (first, second) = (first.unwrap(), second.unwrap());
    let error = set.join_trees(&[&first]).unwrap_err();
    assert_eq!(message(error), "there are 1 trees of 2");
    let trees = set.join_trees(&[&first, &second]).unwrap();
    let error = set.model(&trees, None, run).unwrap_err();
    assert_eq!(
        message(error),
        "there are scorers, or none, against the parameters"
    );
    let lists = blocks(1).map(|block| set.first_negatives(&trees, block, run));
    let lists = lists.collect::<Result<Vec<_>>>().unwrap();
    let negatives = set.join_negatives(&all(&lists)).unwrap();
    let choice = Choice {
        power: 0,
        cost: Some(0),
        is_sample: false,
    };
    let solve = |block| set.solve(choice, &[&negatives], None, None, block, run);
    let parts = blocks(2).map(|block| Ok(solve(block)?.0));
    let parts = parts.collect::<Result<Vec<_>>>().unwrap();
    let error = set.index(&[&parts[0]]).unwrap_err();
    assert_eq!(message(error), "the block of label 1 is missing");
    let error = set.index(&[&parts[0], &parts[0]]).unwrap_err();
    assert_eq!(message(error), "label 0 is in two blocks");
    let candidates = set.candidates(&trees, run).unwrap();
    let model = |parts: &[Part]| set.model(&trees, Some((&all(parts), (0, 0), &candidates)), run);
    assert!(model(&parts).is_ok());
    let Part::Scorers(block, mut some) = sent(&parts[1]) else {
        unreachable!("solve makes them")
    };
    some.scorers[0] = None;
    let parts = [sent(&parts[0]), Part::Scorers(block, some)];
    let error = model(&parts).unwrap_err();
    assert_eq!(message(error), "the scorer of label 1 is missing");
}
