//! Options and their defaults.

use super::*;

#[test]
fn default_candidates_and_depth() {
    let sizes = |paper_tree, n_classes| {
        let params = Params {
            max_candidates: None,
            max_depth: None,
            paper_tree,
            ..params()
        };
        let bits = uniform_bits(n_classes);
        (params.candidates(n_classes, bits), params.depth(bits))
    };
    assert_eq!(sizes(false, 1), (1, 0));
    assert_eq!(sizes(false, 2), (2, 1));
    assert_eq!(sizes(false, 1000), (40, 8));
    assert_eq!(sizes(true, 1000), (40, 10));
}

#[test]
fn the_loss_determines_step_sizes_and_path_features() {
    for (loss, rate, router_rate, router_loss) in [
        (ScorerLoss::Softmax, 9.0, (1.0, 1.0), Loss::Hinge),
        (ScorerLoss::Margin, 1.0, (1.0, 1.0), Loss::Hinge),
        (ScorerLoss::Logistic, 0.5, (0.5, 0.0), Loss::Logistic),
    ] {
        let params = Params {
            loss,
            ..Params::default()
        };
        let found = (
            params.scorer_rate(),
            params.router_rate(),
            params.router_loss(),
        );
        assert_eq!(found, (rate, router_rate, router_loss));
    }
    let params = Params {
        path_features: PathFeatures::NodeOnly,
        ..params()
    };
    let error = RecallTree::create(params, 3, false).unwrap_err();
    assert!(error.to_string().starts_with("path_features"), "{error}");
}

#[test]
fn rare_classes_add_little_entropy() {
    // Half the examples have one label, the rest are spread over seven.
    let labels: Vec<u32> = (0..28)
        .map(|i| if i < 14 { 0 } else { i % 7 + 1 })
        .collect();
    let x = vec![1.0f32; labels.len()];
    let rows = Rows::dense(Values::F32(&x), labels.len(), 1, false).unwrap();
    let targets = Targets::One(Labels::new(&labels, 8).unwrap());
    let bits_of = |paper_tree, weights: Option<&[f32]>, is_part| {
        let batch = Batch::new(rows, targets, weights.map(Values::F32)).unwrap();
        let params = Params {
            paper_tree,
            ..params()
        };
        params.label_bits(&batch, 8, is_part)
    };
    let bits = |paper_tree, weights| bits_of(paper_tree, weights, false);
    let expected = 1.0 + 0.5 * 7f64.log2();
    assert!((bits(false, None) - expected).abs() < 1e-12);
    assert_eq!(bits(true, None), 3.0);
    // A part of the rows has fewer labels than all.
    let more = 7.0 / (2.0 * 28.0 * std::f64::consts::LN_2);
    assert!((bits_of(false, None, true) - expected - more).abs() < 1e-12);
    let weights: Vec<f32> = (0..28).map(|i| if i < 14 { 0.0 } else { 2.0 }).collect();
    assert!((bits(false, Some(&weights)) - 7f64.log2()).abs() < 1e-12);
}
