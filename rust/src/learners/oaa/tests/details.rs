//! Single numbers: learning rates, initial weights, ties, samples, damaged files.

use super::super::chunk::NegativeSampler;
use super::*;

/// A batch of equal dense rows.
fn rows(values: &[f32], n: usize) -> Rows<'_> {
    Rows::dense(Values::F32(values), n, values.len() / n, false).unwrap()
}

fn one_label(labels: &[u32], n_classes: usize) -> Targets<'_> {
    Targets::One(Labels::new(labels, n_classes).unwrap())
}

#[test]
fn learning_rates_fall_with_the_passes_of_fit() {
    // The score of class 1 after each pass over one example. The hinge loss stays large, so each
    // step moves the score by the learning rate.
    for n_passes in 1..=3u32 {
        let params = Params {
            learning_rate: Some(0.01),
            scaling: Scaling::None,
            n_passes,
            ..params(OaaLoss::Hinge, Optimizer::Pn)
        };
        let mut oaa = Model::create(params, 2, false).unwrap();
        let batch = Batch::new(rows(&[1.0], 1), one_label(&[1], 2), None).unwrap();
        oaa.fit(&batch, FitOptions::threads(1), &control()).unwrap();
        let score = last_scores(&oaa, &batch.rows)[1];
        let moved: f32 = (1..=n_passes)
            .map(|pass| (pass as f32).sqrt().recip())
            .sum();
        assert!(
            (score - (0.01 * moved - 1.0)).abs() < 1e-6,
            "{n_passes}: {score}"
        );
    }
}

#[test]
fn hinge_losses_start_at_zero_for_other_classes() {
    for (loss, optimizer, expected) in [
        (OaaLoss::SquaredHinge, Optimizer::Pn, -1.0),
        (OaaLoss::Hinge, Optimizer::Pn, -1.0),
        (OaaLoss::Hinge, Optimizer::Nag, 0.0),
        (OaaLoss::Logistic, Optimizer::Pn, 0.0),
    ] {
        assert_eq!(params(loss, optimizer).initial_bias(), expected);
    }
}

#[test]
fn lowest_of_equal_classes_is_predicted() {
    // Equal classes are neighbors in one tile, in the same lane, and in different tiles.
    let labels = [3, 5, 19, 70, 3, 5, 19, 70, 3];
    let sets = LabelSets::new(Indices::I32(&[0, 4, 8, 9]), Indices::I32(&labels), 150);
    let batch = Batch::new(rows(&[1.0; 3], 3), Targets::Sets(sets.unwrap()), None).unwrap();
    for loss in [OaaLoss::SquaredHinge, OaaLoss::Softmax] {
        let mut oaa = Model::create(params(loss, Optimizer::Pn), 150, true).unwrap();
        oaa.partial_fit(&batch, 1, &control()).unwrap();
        // Nothing is predicted before a class has been seen.
        assert_eq!(oaa.progressive_loss(), Some(1.0 / 3.0), "{loss:?}");
    }
}

#[test]
fn sampled_negatives_cycle_through_all_other_classes() {
    let mut sampler = NegativeSampler::new(Some(3), 12, 5);
    let (mut drawn, mut counts) = (Vec::new(), [0; 12]);
    for i in 0..1200 {
        let label = i % 12;
        sampler.draw(&[label], &mut drawn);
        assert!(drawn.len() == 3 && !drawn.contains(&label));
        drawn.iter().for_each(|&class| counts[class as usize] += 1);
    }
    assert!(
        counts.iter().all(|&n| (250..=350).contains(&n)),
        "{counts:?}"
    );
    assert_eq!(sampler.weight(), Some(4.0));
    // Nothing is sampled if no class is left, or if all classes are learned.
    sampler.draw(&(0..12).collect::<Vec<u32>>(), &mut drawn);
    assert!(drawn.is_empty());
    for n in [None, Some(12), Some(13)] {
        let mut sampler = NegativeSampler::new(n, 12, 5);
        sampler.draw(&[1], &mut drawn);
        assert!(drawn.is_empty() && sampler.weight().is_none());
    }
}

#[test]
fn sampled_negative_counts_for_all_negatives() {
    // One of the 2 wrong classes is learned, with weight 3. The example has only the constant.
    let params = Params {
        learning_rate: Some(1e-4),
        n_negatives: Some(1),
        scaling: Scaling::None,
        ..params(OaaLoss::Squared, Optimizer::Pn)
    };
    let mut oaa = Model::create(params, 3, false).unwrap();
    let batch = Batch::new(rows(&[0.0], 1), one_label(&[0], 3), None).unwrap();
    oaa.partial_fit(&batch, 1, &control()).unwrap();
    let negatives: f32 = learner(&oaa).tiles[0].weights[1..3].iter().sum();
    assert!((negatives + 6e-4).abs() < 1e-6, "{negatives}");
}

#[test]
fn nag_clamps_scores_and_scores_unseen_classes() {
    let params = Params {
        scale_weights: false,
        ..params(OaaLoss::Squared, Optimizer::Nag)
    };
    let mut oaa = Model::create(params, 3, false).unwrap();
    let x = [1.0, 0.0, 0.0, 1.0];
    let batch = Batch::new(
        rows(&x, 2),
        one_label(&[1, 1], 3),
        Some(Values::F64(&[1e3, 1e3])),
    )
    .unwrap();
    oaa.partial_fit(&batch, 1, &control()).unwrap();
    let both = rows(&[1.0, 1.0], 1);
    let tile = learner(&oaa).tiles[0].clone();
    let raw: f32 = (0..3)
        .map(|slot| tile.weights[slot * tile.width() + 1])
        .sum();
    assert!(raw > 1.2, "{raw}");
    assert_eq!(all_scores(&oaa, &both, 1), [-1.0, 1.0, -1.0]);
    let best = oaa
        .predict_topk(&Query::new(&both, 1, &control()), 3)
        .unwrap();
    assert_eq!(best, (vec![1, 0, 2], vec![1.0, -1.0, -1.0]));
    // The clamped score equals the target, so there is nothing to learn.
    let batch = Batch::new(both, one_label(&[1], 3), None).unwrap();
    oaa.partial_fit(&batch, 1, &control()).unwrap();
    assert_eq!(learner(&oaa).tiles[0].weights, tile.weights);
}

#[test]
fn examples_of_any_importance_do_not_overshoot() {
    for loss in [OaaLoss::Softmax, OaaLoss::SquaredHinge, OaaLoss::Hinge] {
        let params = Params {
            scaling: Scaling::None,
            scale_weights: false,
            ..params(loss, Optimizer::Pn)
        };
        for weight in [1e-30, 1e3, 1e9, 1e30] {
            let mut oaa = Model::create(params.clone(), 3, false).unwrap();
            let (x, weights) = ([1.0, 2.0, 2.0, 1.0], [weight; 2]);
            let batch = Batch::new(
                rows(&x, 2),
                one_label(&[1, 0], 3),
                Some(Values::F64(&weights)),
            )
            .unwrap();
            oaa.partial_fit(&batch, 1, &control()).unwrap();
            let mut scores = all_scores(&oaa, &batch.rows, 1);
            scores.retain(|&score| score > f32::NEG_INFINITY);
            assert_eq!(scores.len(), 4);
            scores.extend(last_scores(&oaa, &batch.rows));
            assert!(scores.iter().all(|s| s.abs() < 40.0), "{scores:?}");
        }
    }
}

#[test]
fn span_of_nag_contains_only_seen_labels() {
    for (starts, labels, low, high) in [
        ([0, 0], &[][..], -1.0, 0.0),
        ([0, 1], &[1][..], -1.0, 1.0),
        ([0, 2], &[0, 1][..], 0.0, 1.0),
    ] {
        let mut oaa = Model::create(params(OaaLoss::Hinge, Optimizer::Nag), 2, true).unwrap();
        let sets = LabelSets::new(Indices::I32(&starts), Indices::I32(labels), 2).unwrap();
        let batch = Batch::new(rows(&[1.0], 1), Targets::Sets(sets), None).unwrap();
        oaa.partial_fit(&batch, 1, &control()).unwrap();
        let span = learner(&oaa).preparer.span.unwrap();
        assert_eq!((span.low, span.high), (low, high));
    }
}

#[test]
fn state_of_another_optimizer_or_width_is_refused() {
    let data = Data::new(50, 24, 70, 3);
    for optimizer in [Optimizer::Pn, Optimizer::Nag] {
        let mut oaa = Model::create(params(OaaLoss::Hinge, optimizer), 70, false).unwrap();
        oaa.fit(&data.batch(), FitOptions::threads(1), &control())
            .unwrap();
        let load = |change: &dyn Fn(&mut Bundle)| {
            let mut bundle = oaa.to_bundle();
            let mut member = bundle.unnest("member0").unwrap();
            change(&mut member);
            bundle.nest("member0", member);
            Model::from_bundle(bundle)
        };
        assert!(load(&|_| ()).is_ok());
        for at in [0, 3] {
            for column in [5, 24, 999] {
                let change = |member: &mut Bundle| {
                    let mut columns = member.take::<u32>("columns").unwrap();
                    columns[at] = if columns[at] == column { 6 } else { column };
                    member.put("columns", columns);
                };
                assert!(load(&change).is_err(), "{optimizer:?} {at} {column}");
            }
        }
        let no_columns = |member: &mut Bundle| {
            member.take::<u32>("columns").unwrap();
            member.put("columns", Vec::<u32>::new());
        };
        assert!(load(&no_columns).is_err());
        let more_squares = |member: &mut Bundle| {
            let mut squares = member.take::<f32>("column_squares").unwrap();
            squares.push(1.0);
            member.put("column_squares", squares);
        };
        assert!(load(&more_squares).is_err());
        let with_span = |span: Option<[f32; 2]>| {
            load(&|member: &mut Bundle| {
                member.take_meta::<serde_json::Value>("span").unwrap();
                let span = span.map(|[low, high]| serde_json::json!({"low": low, "high": high}));
                member.put_meta("span", &span);
            })
        };
        let is_nag = optimizer == Optimizer::Nag;
        assert_eq!(with_span(Some([-1.0, 1.0])).is_ok(), is_nag);
        assert_eq!(with_span(None).is_ok(), !is_nag);
        assert!(with_span(Some([1.0, -1.0])).is_err());
        // Positions beyond the number of classes wrap around.
        let far_on = |member: &mut Bundle| {
            member.take_meta::<u64>("sampler_position").unwrap();
            member.put_meta("sampler_position", &u64::MAX);
        };
        let batch = data.batch();
        load(&far_on)
            .unwrap()
            .partial_fit(&batch, 1, &control())
            .unwrap();
    }
}
