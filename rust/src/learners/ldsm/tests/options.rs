//! Options, and examples without weight or labels.

use super::super::regressors::DenseRegressors;
use super::super::train_node::NodeExamples;
use super::*;

#[test]
fn a_refused_fit_changes_nothing() {
    let data = fixed(60, false);
    let mut ldsm = data.fit(&params());
    let before = format!("{ldsm:?}");
    let mut nothing = Data::empty(true);
    nothing.push(&[(1, 1.0)], &[], 1.0);
    nothing.push(&[(1, 1.0)], &[3], 0.0);
    let labels = vec![0; data.len()];
    let labels = Labels::new(&labels, N_CLASSES + 1).unwrap();
    let other = Batch::new(data.rows(), Targets::One(labels), None).unwrap();
    for adds in [false, true] {
        assert!(ldsm
            .fit(&nothing.batch(), with(1, adds), &control())
            .is_err());
        assert!(ldsm.fit(&other, with(1, adds), &control()).is_err());
    }
    let gaps = Rows::dense(Values::F32(&[f32::NAN; WIDTH]), 1, WIDTH, true).unwrap();
    let targets = Targets::One(Labels::new(&[0], N_CLASSES).unwrap());
    let gappy = Batch::new(gaps, targets, None).unwrap();
    assert!(ldsm.fit(&gappy, with(1, false), &control()).is_err());
    let options = PredictOptions::default();
    assert!(ldsm
        .predict_topk(&Query::new(&gaps, 1, &control()).with(&options), 1)
        .is_err());
    // Added trees need the columns of the existing ones.
    ldsm.params.n_estimators = 3;
    let narrow = Rows::dense(Values::F32(&[1.0; 4]), 2, 2, false).unwrap();
    let targets = Targets::One(Labels::new(&[0, 1], N_CLASSES).unwrap());
    let narrow = Batch::new(narrow, targets, None).unwrap();
    assert!(ldsm.fit(&narrow, with(1, true), &control()).is_err());
    ldsm.params.n_estimators = 2;
    assert_eq!(format!("{ldsm:?}"), before);
}

#[test]
fn the_constant_is_not_counted_as_filled() {
    let mut data = Data::empty(false);
    data.push(&[(0, 1.0), (3, 2.0)], &[1], 1.0);
    data.push(&[(1, 1.0)], &[2], 1.0);
    let examples = data.examples();
    assert!(is_near(
        examples.filled(),
        3.0 / (2.0 * WIDTH as f64),
        1e-12
    ));
}

#[test]
fn parameters_that_trees_share_cannot_be_changed() {
    let mut ldsm = fixed(60, false).fit(&params());
    let json = |params: &Params| serde_json::to_string(params).unwrap();
    let refused: [fn(&mut Params); 7] = [
        |p| p.arity = 3,
        |p| p.scaling = Scaling::Row,
        |p| p.n_bits = Some(4),
        |p| p.n_negatives = Some(7),
        |p| p.tail_weight = 0.5,
        |p| p.cost = Some(0.5),
        |p| p.weight_threshold = 0.5,
    ];
    for change in refused {
        let mut other = params();
        change(&mut other);
        let message = ldsm.set_params(&json(&other)).unwrap_err().to_string();
        let named = message.starts_with("arity, scaling, n_bits, scorers");
        assert!(
            named && message.contains("must stay as they are"),
            "{message}"
        );
        assert_eq!(ldsm.params, params());
    }
    let more = Params {
        n_estimators: 5,
        lambda1: 1.0,
        ..params()
    };
    ldsm.set_params(&json(&more)).unwrap();
    assert_eq!(ldsm.params, more);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rows_without_weight_or_labels_are_ignored(
        data in data(50),
        scaling in prop::sample::select(vec![Scaling::None, Scaling::Row, Scaling::Standard]),
    ) {
        let params = Params { scaling, beta: 0.5, ..params() };
        let (whole, kept) = (data.fit(&params), data.select(data.present()).fit(&params));
        prop_assert_eq!(format!("{whole:?}"), format!("{kept:?}"));
    }

    /// This holds for histograms, centroids, predictions of a leaf, and the moments of dense nodes.
    #[test]
    fn integer_weights_count_as_repetitions(examples in prop::collection::vec((0u32..9, 0u32..5000, 0u8..4), 1..30)) {
        let mut data = Data::new(&examples, true, true);
        data.weights.iter_mut().flatten().for_each(|weight| *weight *= 4.0);
        prop_assume!(!data.present().is_empty());
        let repeated = (0..data.len()).flat_map(|i| std::iter::repeat_n(i, data.weight(i) as usize));
        let mut repeated = data.select(repeated);
        repeated.weights = None;
        let root = |data: &Data| {
            let examples = data.examples();
            let all: Vec<u32> = (0..examples.len() as u32).collect();
            let root = NodeExamples::new(&examples, all);
            (root.weight, root.labels)
        };
        prop_assert_eq!(root(&data), root(&repeated));
        let params = Params { max_nodes: 1, beta: 0.5, ..params() };
        let (ldsm, wanted) = (data.fit(&params), repeated.fit(&params));
        let all = LabelSelection::Above(f32::NEG_INFINITY, 0);
        let all = |ldsm: &Ldsm| ldsm.select_labels(&Query::new(&data.rows(), 1, &control()), all).unwrap();
        let (found, wanted) = (all(&ldsm), all(&wanted));
        prop_assert_eq!(found.starts(), wanted.starts());
        for (&(label, found), &(expected, wanted)) in found.entries().iter().zip(wanted.entries().iter()) {
            prop_assert_eq!(label, expected);
            prop_assert!(is_near(found.into(), wanted.into(), 1e-5), "{found} {wanted}");
        }
        let dense = |data: &Data| {
            let examples = data.examples();
            let ids: Vec<u32> = (0..examples.len() as u32).collect();
            let node = node_data(&examples, &ids);
            let ones = vec![[1.0]; node.columns.len()];
            let dense = DenseRegressors::<1>::new(&node.examples, ones.into_iter(), 0.5);
            let constant = node.columns.keys().iter().position(|&column| column as usize == WIDTH);
            dense.weights(constant.unwrap(), 0.0)
        };
        for (found, wanted) in dense(&data).iter().flatten().zip(dense(&repeated).iter().flatten()) {
            prop_assert!(is_near((*found).into(), (*wanted).into(), 1e-3), "{found} {wanted}");
        }
    }

    #[test]
    fn one_label_is_a_set_of_one(data in data(50), arity in 2u32..5) {
        let mut sets = Data::empty(data.weights.is_some());
        for i in data.present() {
            sets.push(&data.row(i), &data.labels_of(i)[..1], data.weight(i));
        }
        let params = Params { arity, beta: 0.8, ..params() };
        let labels: Vec<u32> = sets.labels.iter().map(|&label| label as u32).collect();
        let targets = Targets::One(Labels::new(&labels, N_CLASSES).unwrap());
        let batch = Batch::new(sets.rows(), targets, sets.weights.as_deref().map(Values::F32)).unwrap();
        let mut ldsm = Ldsm::create(params.clone(), N_CLASSES, true).unwrap();
        ldsm.fit(&batch, with(1, false), &control()).unwrap();
        prop_assert_eq!(format!("{ldsm:?}"), format!("{:?}", sets.fit(&params)));
    }
}
