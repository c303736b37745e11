//! Options: what they may be, and what they are by default.

use super::*;

#[test]
fn parameters_are_refused_by_name() {
    type Change = fn(&mut Params);
    let cases: [(&str, Change); 10] = [
        ("max_candidates", |p| p.max_candidates = Some(0)),
        ("candidates_per_level", |p| {
            p.candidates_per_level = f64::NAN;
        }),
        ("learning_rate", |p| p.learning_rate = Some(1e308)),
        ("router_rate", |p| p.router_rate = Some(0.0)),
        ("decay", |p| p.decay = 1e39),
        ("bern_hyper", |p| p.bern_hyper = f64::INFINITY),
        ("path_weight", |p| p.path_weight = f64::NAN),
        ("margin", |p| p.margin = -1.0),
        ("arity", |p| p.arity = 17),
        ("beam_size", |p| p.beam_size = 0),
    ];
    for (name, change) in cases {
        let mut params = params();
        change(&mut params);
        let message = RecallTree::create(params, 3, false)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with(name), "{message}");
    }
    let message = RecallTree::create(params(), 0, false)
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("n_classes"), "{message}");
}

#[test]
fn sizes_by_default() {
    let sizes = |arity, n_classes| {
        let params = Params {
            max_candidates: None,
            max_depth: None,
            arity,
            ..params()
        };
        let bits = uniform_bits(n_classes);
        (params.candidates(n_classes, bits), params.depth(bits))
    };
    assert_eq!(sizes(2, 1), (1, 0));
    assert_eq!(sizes(2, 2), (2, 1));
    assert_eq!(sizes(2, 1000).0, 40);
    assert_eq!(sizes(16, 1 << 16).0, 64);
    assert!(sizes(16, 1 << 16).1 * 3 < sizes(2, 1 << 16).1);
    assert_eq!(params().router_loss(), Loss::Hinge);
}

#[test]
fn rates_by_default() {
    let rates = |optimizer, loss| {
        let params = Params {
            loss,
            optimizer,
            ..Params::default()
        };
        (params.scorer_rate(), params.router_rate(), params.decay())
    };
    for loss in [ScorerLoss::Softmax, ScorerLoss::Logistic] {
        assert_eq!(rates(Optimizer::Pn, loss), (9.0, 1.0, 1.0));
    }
    for loss in [ScorerLoss::Margin, ScorerLoss::Hinge] {
        assert_eq!(rates(Optimizer::Sgd, loss), (1.0, 1.0, 1.0));
    }
    for optimizer in [Optimizer::Nag, Optimizer::Adagrad] {
        assert_eq!(rates(optimizer, ScorerLoss::Logistic), (0.5, 0.5, 0.0));
    }
}

#[test]
fn rare_classes_hardly_count() {
    // Half the examples have one label, the rest are spread over seven.
    let labels: Vec<u32> = (0..28)
        .map(|i| if i < 14 { 0 } else { i % 7 + 1 })
        .collect();
    let x = vec![1.0f32; labels.len()];
    let rows = Rows::dense(Values::F32(&x), labels.len(), 1).unwrap();
    let targets = Targets::One(Labels::new(&labels, 8).unwrap());
    let bits = |class_count, weights: Option<&[f32]>| {
        let batch = Batch::new(rows, targets, weights.map(Values::F32)).unwrap();
        let params = Params {
            class_count,
            ..params()
        };
        params.label_bits(&batch, 8)
    };
    let expected = 1.0 + 0.5 * 7f64.log2();
    assert!((bits(ClassCount::Effective, None) - expected).abs() < 1e-12);
    assert_eq!(bits(ClassCount::All, None), 3.0);
    let weights: Vec<f32> = (0..28).map(|i| if i < 14 { 0.0 } else { 2.0 }).collect();
    assert!((bits(ClassCount::Effective, Some(&weights)) - 7f64.log2()).abs() < 1e-12);
}
