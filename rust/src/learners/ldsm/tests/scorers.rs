//! Models with scorers.

use super::prediction::{all, by_trees, change, inside, Change};
use super::*;
use crate::learners::one_against_some::{Calibration, Join, RowMargins};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// All labels with a score by a tree or a weight for a feature have joined scores.
    #[test]
    fn candidates_come_from_trees_and_scorers(data in data(60), unseen in data(20), is_hashed in any::<bool>()) {
        let params = Params { n_bits: is_hashed.then_some(3), ..with_scorers() };
        let ldsm = data.fit(&params);
        let scorers = ldsm.scorers.as_ref().unwrap();
        let (join, weights, mut margins) = (scorers.join, &scorers.weights, RowMargins::default());
        let (mut row, preparation) = (RowBuffer::default(), ldsm.preparation.as_ref().unwrap());
        for (i, found) in all(&ldsm, &unseen).iter().enumerate() {
            preparation.read(&unseen.rows(), i, &mut row);
            margins.read(weights, (&row.columns, &row.values));
            let (trees, _) = by_trees(&ldsm, &unseen, i);
            let mut named: BTreeSet<u32> = trees.keys().copied().collect();
            margins.for_each_found(weights, |label, _| { named.insert(label); });
            prop_assert!(found.keys().eq(named.iter()));
            for (&label, &score) in found {
                let tree_score = trees.get(&label).map_or(0.0, |&score| score as f32);
                let joined = join.score(tree_score, margins.margin(weights, label));
                let wanted = scorers.calibration.probability(joined);
                prop_assert!(is_near(score.into(), wanted.into(), 1e-5));
            }
        }
    }

    /// A model without a complete index scores candidates like one that scores all labels.
    #[test]
    fn candidates_are_scored_like_all_labels(data in data(60), unseen in data(20), is_hashed in any::<bool>(), beta in 0.5f64..1.5) {
        let params = Params { n_bits: is_hashed.then_some(3), beta: beta.min(1.0), ..with_scorers() };
        let ldsm = data.fit(&params);
        // With dense columns the index is complete.
        prop_assume!(ldsm.scorers.as_ref().unwrap().weights.dense.is_empty());
        let mut bundle = ldsm.to_bundle();
        inside(&mut bundle, "scorers", |scorers| {
            assert_eq!(scorers.take_meta::<Option<f32>>("index_threshold").unwrap(), None);
            scorers.put_meta("index_threshold", &Some(0.5f32));
        });
        let other = Ldsm::from_bundle(bundle).unwrap();
        let alone = Ldsm { scorers: None, ..ldsm.clone() };
        let query = |ldsm: &Ldsm, data: &Data| ldsm.predict_topk(&Query::new(&data.rows(), 1, &control()), 4).unwrap();
        let (wanted, found, named) = (all(&ldsm, &unseen), all(&other, &unseen), all(&alone, &unseen));
        let together = query(&other, &unseen);
        for i in 0..unseen.len() {
            prop_assert!(named[i].keys().all(|label| found[i].contains_key(label)));
            for (label, &score) in &found[i] {
                prop_assert!(is_near(score.into(), wanted[i][label].into(), 1e-4));
            }
            let (labels, scores) = query(&other, &unseen.select([i]));
            prop_assert_eq!(&labels[..], &together.0[4 * i..4 * i + 4]);
            prop_assert_eq!(&scores[..], &together.1[4 * i..4 * i + 4]);
            for (label, score) in labels.iter().zip(&scores).filter(|(label, _)| **label >= 0) {
                prop_assert_eq!(found[i][&(*label as u32)], *score);
            }
        }
    }

    /// Rows of weight 0 are ignored, and the unit of weights does not matter.
    #[test]
    fn weights_are_relative(data in data(50), factor in 1u32..50) {
        let params = with_scorers();
        let kept = data.select(data.present());
        let mut scaled = data.clone();
        for weight in scaled.weights.iter_mut().flatten() {
            *weight *= (1u32 << factor.min(20)) as f32;
        }
        let bytes = data.fit(&params).to_bytes().unwrap();
        prop_assert!(bytes == kept.fit(&params).to_bytes().unwrap());
        prop_assert!(bytes == scaled.fit(&params).to_bytes().unwrap());
    }
}

/// Trees that are added later know labels that have no scorer.
#[test]
fn labels_without_scorers_keep_their_scores() {
    let data = fixed(120, false);
    let known = data.select((0..data.len()).filter(|&i| !data.labels_of(i).contains(&8)));
    let mut ldsm = known.fit(&with_scorers());
    let scorers = ldsm.scorers.clone().unwrap();
    let floor = scorers.join.floor;
    ldsm.params.n_estimators = 8;
    ldsm.fit(&data.batch(), with(1, true), &control()).unwrap();
    assert_eq!(ldsm.trees.len(), 8);
    let mut n_found = 0;
    for (i, found) in all(&ldsm, &data).iter().enumerate() {
        if let Some(&score) = found.get(&8) {
            n_found += 1;
            let joined = by_trees(&ldsm, &data, i).0[&8] as f32 + floor;
            let wanted = scorers.calibration.probability(joined);
            assert!(
                is_near(score.into(), wanted.into(), 1e-5),
                "{score} {wanted}"
            );
        }
    }
    assert!(n_found > 0);
}

#[test]
fn tiny_data_can_be_learned() {
    let one = |labels: &[u32], n: usize| {
        let mut data = Data::empty(false);
        (0..n).for_each(|i| data.push(&[(i as u32 % 5, 1.0)], labels, 1.0));
        data
    };
    let mut bare = Data::empty(false);
    bare.push(&[], &[1, 4], 1.0);
    bare.push(&[], &[4], 1.0);
    for data in [one(&[3], 1), one(&[0, 8], 1), one(&[7], 20), bare] {
        for n_negatives in [0, 3] {
            let ldsm = data.fit(&Params {
                n_negatives: Some(n_negatives),
                ..with_scorers()
            });
            for (i, found) in all(&ldsm, &data).iter().enumerate() {
                let own = data.labels_of(i);
                assert!(own.iter().all(|label| found[label] > 0.0));
            }
        }
    }
}

#[test]
fn damaged_scorers_are_refused() {
    let ldsm = fixed(80, false).fit(&with_scorers());
    let changes: [Change; 6] = [
        |scorers| inside(scorers, "weights", |lists| change(lists, "starts", 0, 1u32)),
        |scorers| change(scorers, "biases", 0, f32::NAN),
        |scorers| change(scorers, "biases", 0, f32::INFINITY),
        |scorers| drop(scorers.take_any::<f32>("biases").unwrap()),
        |scorers| {
            let mut join: Join = scorers.take_meta("join").unwrap();
            join.floor = -1.0;
            scorers.put_meta("join", &join);
        },
        |scorers| {
            let mut calibration: Calibration = scorers.take_meta("calibration").unwrap();
            calibration.slope = 0.0;
            scorers.put_meta("calibration", &calibration);
        },
    ];
    for damage in changes {
        let mut bundle = ldsm.to_bundle();
        inside(&mut bundle, "scorers", damage);
        assert!(Ldsm::from_bundle(bundle).is_err());
    }
    assert!(Ldsm::from_bundle(ldsm.to_bundle()).is_ok());
}

#[test]
fn trees_leave_rows_out_only_for_scorers() {
    let data = fixed(80, false);
    let alone = data.fit(&params());
    let other = data.fit(&Params {
        n_negatives: Some(1),
        ..params()
    });
    assert!(all_bits(&alone) == all_bits(&other));
    let held = data.fit(&Params {
        n_estimators: 2,
        ..with_scorers()
    });
    assert!(all_bits(&alone) != all_bits(&held));
    assert!(statistics(&held.trees[0]).weights[0] < statistics(&alone.trees[0]).weights[0]);
}

#[test]
fn negatives_and_tail_weight_change_the_scorers_only() {
    let data = fixed(120, false);
    let with = data.fit(&with_scorers());
    let others = [
        Params {
            n_negatives: Some(1),
            ..with_scorers()
        },
        Params {
            tail_weight: 2.0,
            ..with_scorers()
        },
    ];
    for other in others {
        let other = data.fit(&other);
        assert!(all_bits(&with) == all_bits(&other));
        assert!(all(&with, &data) != all(&other, &data));
    }
}

#[test]
fn the_chosen_cost_gives_the_model_of_that_cost() {
    let data = fixed(120, false);
    let chosen = |ldsm: &Ldsm| ldsm.scorers.as_ref().unwrap().cost;
    let with_cost = |cost| {
        data.fit(&Params {
            cost,
            ..with_scorers()
        })
    };
    let auto = with_cost(None);
    let best = chosen(&auto);
    assert!([1.0, 0.25, 4.0].contains(&best));
    for cost in [1.0, 0.25, 0.01] {
        let fixed = with_cost(Some(cost));
        assert_eq!(chosen(&fixed), cost);
        assert_eq!(all(&fixed, &data) == all(&auto, &data), cost == best);
    }
}

/// Powers are compared on a sample of many labels, and then the other labels are solved, too.
#[test]
fn labels_outside_the_sample_get_scorers() {
    let mut data = Data::empty(false);
    for i in 0..1200 {
        let label = i * 7 % 600;
        data.push(&[(label % 5, 1.0), (5 + i % 3, 0.5)], &[label], 1.0);
    }
    let params = Params {
        max_nodes: 30,
        ..with_scorers()
    };
    let mut ldsm = Ldsm::create(params, 600, true).unwrap();
    let batch = data.batch_with(600);
    ldsm.fit(&batch, with(1, false), &control()).unwrap();
    let scorers = ldsm.scorers.unwrap();
    assert!(scorers.weights.biases.iter().all(|bias| bias.is_finite()));
    assert!([0.0, 1.0].contains(&scorers.idf_power));
}
