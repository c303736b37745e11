//! Classes added to a tree that has learned.

use super::*;

/// Returns a model that has learned examples of more and more labels, which are added as they
/// arrive. `between` is applied after each batch.
fn learned(params: &Params, between: impl Fn(RecallTree) -> RecallTree) -> RecallTree {
    let limits = [1, 2, 5, 9, N_CLASSES];
    let mut model = RecallTree::create(params.clone(), limits[0], false).unwrap();
    let control = Control::new(0);
    for (at, limit) in (0u32..).zip(limits) {
        let examples: Vec<(u32, u32, u8)> = (0..60)
            .map(|i| ((i * 7 + at) % 31, i * 13 + at, (i % 5) as u8))
            .collect();
        let mut stream = Stream::new(&examples, false, false);
        stream
            .labels
            .iter_mut()
            .for_each(|label| *label %= limit as u32);
        let rows = stream.rows();
        let targets = Targets::One(Labels::new(&stream.labels, limit).unwrap());
        let batch = Batch::new(rows, targets, None).unwrap();
        model.add_classes(&batch).unwrap();
        model.partial_fit(&batch, 1, &control).unwrap();
        model = between(model);
    }
    model
}

/// By default, F and D follow the number of labels, and nodes get more candidates.
#[test]
fn candidates_and_depth_grow_with_the_classes() {
    for loss in [ScorerLoss::Softmax, ScorerLoss::Squared] {
        let params = Params {
            max_candidates: None,
            max_depth: None,
            loss,
            ..params()
        };
        let reload =
            |model: RecallTree| RecallTree::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let check = |model: RecallTree| {
            let tree = &model.members[0].learner;
            let bits = uniform_bits(model.n_classes());
            assert_eq!(tree.tree.max_depth, params.depth(bits));
            let f = params.candidates(model.n_classes(), bits);
            assert_eq!(tree.tree.max_candidates, f);
            model
        };
        let straight = learned(&params, check);
        let loaded = learned(&params, reload);
        assert_eq!(straight.to_bytes().unwrap(), loaded.to_bytes().unwrap());
        let mut tree = straight.members[0].learner.clone();
        tree.add_classes(300).unwrap();
        let f = tree.tree.max_candidates;
        assert_eq!(f, 36);
        for node in &tree.tree.nodes {
            let counts = &node.counts;
            let top = counts.candidates();
            assert_eq!(top.len(), f.min(counts.n_labels()));
            let least = counts.top_counts.last().copied().unwrap_or_default();
            let mut others = counts.iter().filter(|(label, _)| !top.contains(label));
            assert!(others.all(|(_, count)| count <= least));
            assert!(counts.top_counts.is_sorted_by(|a, b| a >= b));
            let mass: f64 = counts.top_counts.iter().sum();
            assert!((counts.mass - mass).abs() < 1e-9);
        }
    }
}

#[test]
fn the_entropy_of_labels_grows_with_the_classes() {
    let examples: Vec<(u32, u32, u8)> = (0..300).map(|i| (i % 3, i, 1)).collect();
    let stream = Stream::new(&examples, false, false);
    let mut model = new_model(&params());
    fit(&mut model, &stream.batch(), 1).unwrap();
    let mut tree = model.members[0].learner.clone();
    let before = tree.label_bits;
    assert!(before < uniform_bits(N_CLASSES));
    tree.add_classes(2 * N_CLASSES).unwrap();
    assert!((tree.label_bits - before - 1.0).abs() < 1e-12);
}
