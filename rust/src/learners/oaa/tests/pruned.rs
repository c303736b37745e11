//! Pruning, which drops exactly the weights below the threshold, and training by blocks of classes.

use std::ops::Range;

use super::*;
use crate::learners::oaa::class_blocks;
use crate::model::{First, Member, Mistakes, OnlineParams, PartStep, Start};

/// A threshold below all weights that are not zero.
const TINY: f64 = 1e-37;

pub(super) fn fitted(params: &Params, batch: &Batch<'_>, n_threads: usize) -> Model {
    let is_sets = matches!(batch.targets, Targets::Sets(_));
    let n_classes = batch.targets.n_classes();
    let mut model = Model::create(params.clone(), n_classes, is_sets).unwrap();
    let options = FitOptions::threads(n_threads);
    model.fit(batch, options, &control()).unwrap();
    model
}

pub(super) fn with_prune(params: &Params, prune: f64) -> Params {
    Params {
        prune: Some(prune),
        ..params.clone()
    }
}

pub(super) fn all_params() -> Vec<Params> {
    vec![
        params(OaaLoss::SquaredHinge, Optimizer::Pn),
        params(OaaLoss::Squared, Optimizer::Nag),
        params(OaaLoss::Logistic, Optimizer::Pn),
        params(OaaLoss::Hinge, Optimizer::Pn),
        Params {
            n_negatives: Some(5),
            ..params(OaaLoss::SquaredHinge, Optimizer::Pn)
        },
    ]
}

#[test]
fn tiny_threshold_changes_nothing() {
    let data = Data::new(150, 24, 150, 3);
    let weights = Some(Values::F32(&data.weights));
    let weighted = Batch::new(data.rows(), data.labels(), weights).unwrap();
    let sets = Batch::new(data.rows(), data.sets(), None).unwrap();
    for params in all_params() {
        for (batch, n_threads) in [(&data.batch(), 1), (&weighted, 3), (&sets, 2)] {
            let dense = fitted(&params, batch, 1);
            let pruned = fitted(&with_prune(&params, TINY), batch, n_threads);
            assert_eq!(pruned.progressive_loss(), dense.progressive_loss());
            assert_eq!(pruned.n_examples_seen(), dense.n_examples_seen());
            let rows = data.rows();
            assert_eq!(all_scores(&pruned, &rows, 2), all_scores(&dense, &rows, 1));
            let control = control();
            let query = Query::new(&rows, 1, &control);
            let best = |model: &Model| model.predict_topk(&query, 7).unwrap();
            assert_eq!(best(&pruned), best(&dense));
        }
    }
}

#[test]
fn number_of_tiles_in_memory_does_not_change_the_model() {
    let data = Data::new(200, 24, 150, 4);
    let batch = data.batch();
    for params in all_params() {
        let params = with_prune(&params, 0.01);
        let model = fitted(&params, &batch, 1);
        let mut preparation = params.preparation(&batch).unwrap();
        let present = batch.present();
        preparation
            .observe_all(&batch.rows, &present, &control())
            .unwrap();
        let start = Start {
            n_classes: 150,
            preparation: &preparation,
            batch: &batch,
            first: First::All,
        };
        let mut member = Member {
            learner: Oaa::new(&params, &start).unwrap(),
            preparation: preparation.clone(),
            progress: Mistakes::default(),
        };
        assert_eq!(member.learner.tiles.len(), 3);
        let schedule = params.schedule();
        class_blocks::fit(&mut member, &schedule, &batch, 1, 0, &control()).unwrap();
        assert_eq!(member.learner.pruned, learner(&model).pruned);
        assert_eq!(member.learner.preparer, learner(&model).preparer);
        assert_eq!(member.progress, model.members[0].progress);
    }
}

#[test]
fn weights_below_the_threshold_are_dropped() {
    let data = Data::new(300, 24, 40, 5);
    let params = params(OaaLoss::SquaredHinge, Optimizer::Pn);
    let arrays = |prune| {
        let model = fitted(&with_prune(&params, prune), &data.batch(), 1);
        let mut bundle = model
            .to_bundle()
            .unnest("member0")
            .unwrap()
            .unnest("pruned")
            .unwrap();
        let biases = bundle.take_any::<f32>("biases").unwrap();
        (biases, bundle.take::<f32>("weights").unwrap())
    };
    let ((biases, all), (same, most)) = (arrays(TINY), arrays(0.05));
    assert_eq!(biases, same);
    assert_eq!(
        biases.iter().filter(|&&b| b == f32::NEG_INFINITY).count(),
        1
    );
    let kept = all.into_iter().filter(|w| w.abs() >= 0.05);
    assert_eq!(kept.collect::<Vec<_>>(), most);
    assert!(!most.is_empty());
}

#[test]
fn pruned_models_can_be_stored_but_not_trained_further() {
    let data = Data::new(300, 24, 70, 6);
    let params = with_prune(&params(OaaLoss::SquaredHinge, Optimizer::Pn), 0.02);
    let mut model = fitted(&params, &data.batch(), 1);
    let rows = data.rows();
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(all_scores(&again, &rows, 1), all_scores(&model, &rows, 1));
    assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
    let message = |result: crate::Result<()>| result.unwrap_err().to_string();
    let refused = message(model.partial_fit(&data.batch(), 1, &control()));
    assert!(
        refused.contains("prune") && refused.contains("partial_fit"),
        "{refused}"
    );
    assert_eq!(all_scores(&again, &rows, 1), all_scores(&model, &rows, 1));

    let damaged = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = model.to_bundle();
        let mut member = bundle.unnest("member0").unwrap();
        let mut pruned = member.unnest("pruned").unwrap();
        change(&mut pruned);
        member.nest("pruned", pruned);
        bundle.nest("member0", member);
        matches!(Model::from_bundle(bundle), Err(Error::ModelFile(_)))
    };
    assert!(!damaged(&|_| ()));
    assert!(damaged(&|pruned| {
        let mut classes = pruned.unnest("classes").unwrap();
        let mut list = classes.take::<u32>("list").unwrap();
        list[3] = 70;
        classes.put("list", list);
        pruned.nest("classes", classes);
    }));
    for name in ["biases", "weights"] {
        assert!(damaged(&|pruned| {
            let mut values = pruned.take_any::<f32>(name).unwrap();
            values.pop();
            pruned.put(name, values);
        }));
    }
}

#[test]
fn parameters_that_exclude_pruning_are_refused() {
    let base = with_prune(&params(OaaLoss::SquaredHinge, Optimizer::Pn), 0.1);
    let softmax = Params {
        loss: OaaLoss::Softmax,
        ..base.clone()
    };
    let early = Params {
        early_stopping: true,
        ..base.clone()
    };
    for (params, reason) in [(softmax, "softmax"), (early, "early_stopping")] {
        let message = Model::create(params, 3, false).unwrap_err().to_string();
        assert!(
            message.contains("prune") && message.contains(reason),
            "{message}"
        );
    }
    assert!(Model::create(with_prune(&base, 0.0), 3, false).is_err());
}

/// Trains the classes of `block` in steps over two parts of the label sets.
fn in_steps(params: &Params, data: &Data, block: Range<usize>) -> Model {
    let (mut starts, mut sets) = (vec![0], vec![]);
    for bounds in data.set_starts.windows(2) {
        let labels = &data.sets[bounds[0] as usize..bounds[1] as usize];
        let own = labels
            .iter()
            .filter(|&&label| block.contains(&(label as usize)));
        sets.extend(own.map(|&label| label - block.start as i32));
        starts.push(sets.len() as i32);
    }
    let targets = LabelSets::new(Indices::I32(&starts), Indices::I32(&sets), block.len());
    let targets = Targets::Sets(targets.unwrap());
    let batch = Batch::new(data.rows(), targets, Some(Values::F32(&data.weights))).unwrap();
    let mut model = Model::create(params.clone(), block.len(), true).unwrap();
    let mut take = |step| model.learn_part(&batch, step, 1, &control()).unwrap();
    take(PartStep::Observe);
    for seed in 0..3 {
        take(PartStep::Learn {
            n_rows: 300,
            seed,
            repeats: seed > 0,
        });
    }
    model
}

fn joined(params: &Params, n_classes: usize, blocks: &[&Model]) -> crate::error::Result<Model> {
    let parts = blocks.iter().map(|block| block.to_bundle()).collect();
    Model::join(params.clone(), n_classes, true, parts)
}

#[test]
fn blocks_join_to_the_model_of_all_classes() {
    let data = Data::new(150, 24, 150, 3);
    for loss in [OaaLoss::SquaredHinge, OaaLoss::Logistic] {
        let params = params(loss, Optimizer::Pn);
        let whole = in_steps(&params, &data, 0..150);
        let blocks = [0..64, 64..128, 128..150].map(|block| in_steps(&params, &data, block));
        for params in [params.clone(), with_prune(&params, 0.01)] {
            let mut wanted = joined(&params, 150, &[&whole]).unwrap();
            let found = joined(&params, 150, &blocks.each_ref()).unwrap();
            assert!(wanted.progressive_loss().is_some() && found.progressive_loss().is_none());
            wanted.members[0].progress = found.members[0].progress;
            assert_eq!(found.to_bytes().unwrap(), wanted.to_bytes().unwrap());
            // Each block can be pruned before they are joined.
            let pruned = blocks
                .each_ref()
                .map(|block| joined(&params, block.n_classes, &[block]).unwrap());
            let found = joined(&params, 150, &pruned.each_ref()).unwrap();
            assert_eq!(found.to_bytes().unwrap(), wanted.to_bytes().unwrap());
        }
    }
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let params = params(OaaLoss::SquaredHinge, Optimizer::Pn);
    let data = Data::new(300, 24, 150, 3);
    let [first, second, rest] = [0..64, 64..128, 128..150].map(|b| in_steps(&params, &data, b));
    let other = in_steps(&params, &Data::new(300, 30, 150, 4), 64..128);
    for params in [params.clone(), with_prune(&params, 0.01)] {
        for blocks in [vec![], vec![&first, &second], vec![&first, &other, &rest]] {
            assert!(joined(&params, 150, &blocks).is_err());
        }
    }
    assert!(joined(&params, 150, &[&rest, &first, &second]).is_err());
}
