//! Classes added to a tree that has learned.

use super::*;
use crate::linear::Optimizer;

/// Batches of 40 examples, with 4 more classes each.
fn batches() -> Vec<(Vec<f32>, Vec<u32>)> {
    let batch = |at: u32| {
        let labels: Vec<u32> = (0..40).map(|i| (i * 7 + i / 5) % (4 * at + 4)).collect();
        let value = |label: u32, f: usize, i: usize| {
            let noise = (i * 37 + f * 11) % 17;
            (if label >> f & 1 == 1 { 2.0 } else { -2.0 }) + noise as f32 / 8.0 - 1.0
        };
        let rows = labels.iter().enumerate();
        let values = rows.flat_map(|(i, &label)| (0..WIDTH).map(move |f| value(label, f, i)));
        (values.collect(), labels)
    };
    (0..4).map(batch).collect()
}

fn learned(params: &Params, n_classes: Option<usize>, between: impl Fn(Model) -> Model) -> Model {
    let mut model = Model::create(params.clone(), n_classes.unwrap_or(4), false).unwrap();
    let control = Control::new(0);
    for (at, (values, labels)) in batches().iter().enumerate() {
        let batch = batch(values, labels, n_classes.unwrap_or(4 * at + 4));
        model.add_classes(&batch).unwrap();
        model.partial_fit(&batch, 1, None, &control).unwrap();
        model = between(model);
    }
    model
}

/// Where nothing depends on their number it makes no difference when labels become known.
#[test]
fn a_grown_tree_is_the_tree_that_knew_all_labels() {
    for (n_estimators, optimizer) in [(1, Optimizer::Pn), (3, Optimizer::Nag)] {
        let params = Params {
            nodes_per_class: 64.0,
            paper_tree: true,
            n_estimators,
            optimizer,
            ..params()
        };
        let (grown, known) = (
            learned(&params, None, |m| m),
            learned(&params, Some(16), |m| m),
        );
        assert_eq!(grown.to_bytes().unwrap(), known.to_bytes().unwrap());
        assert!(grown.members()[0].learner.arena.n_internal > 9);
    }
}

#[test]
fn what_depends_on_the_number_of_classes_follows_it() {
    let params = Params {
        nodes_per_class: 2.0,
        ..params()
    };
    let reload = |model: Model| Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let (straight, loaded) = (
        learned(&params, None, |m| m),
        learned(&params, None, reload),
    );
    assert_eq!(straight.to_bytes().unwrap(), loaded.to_bytes().unwrap());
    let tree = &straight.members()[0].learner;
    assert_eq!((tree.n_classes, tree.budget), (16, 30));
}
