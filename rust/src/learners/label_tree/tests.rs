//! Properties on random streams. `tests/test_label_trees.py` has a slow reference.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::learner::router_above;
use super::*;
use crate::control::Control;
use crate::data::{Batch, Indices, LabelSets, Labels, Preparation, Rows, Scaling, Targets, Values};
use crate::file::Bundle;
use crate::linear::{Optimizer, PathExample};
use crate::model::{
    Classifier, FitOptions, Learner, OnlineLearner, OnlineModel, Predictor, Query, TopK,
};

type Model = OnlineModel<LabelTree>;

const WIDTH: usize = 4;
const K: usize = 11;

fn params(policy: Policy) -> Params {
    Params {
        policy,
        scaling: Scaling::None,
        label_order: Some(LabelOrder::Given),
        n_passes: 2,
        ..Params::default()
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![Just(Policy::Filter), Just(Policy::Random)]
}

fn optimizers() -> impl Strategy<Value = Optimizer> {
    prop_oneof![Just(Optimizer::Pn), Just(Optimizer::Nag)]
}

/// Generates examples of `WIDTH` features that are correlated with their labels. Their values make
/// products that are 0 up to rounding unlikely: the side of such a product would depend on the order
/// of its sum, which differs between learning and prediction.
fn streams() -> impl Strategy<Value = (Vec<f32>, Vec<u32>)> {
    let example = (0u32..K as u32, prop::array::uniform4(-8i8..8));
    prop::collection::vec(example, 1..200).prop_map(|examples| {
        let mut values = Vec::new();
        for (label, noise) in &examples {
            for (f, &noise) in noise.iter().enumerate() {
                let sign = if label >> f & 1 == 1 { 1.0 } else { -1.0 };
                let off_grid = 1.0 + 0.0917 * f as f32 + 0.001 * values.len() as f32;
                values.push((sign + f32::from(noise) / 8.0) * off_grid);
            }
        }
        (values, examples.iter().map(|&(label, _)| label).collect())
    })
}

fn batch<'a>(values: &'a [f32], labels: &'a [u32]) -> Batch<'a> {
    let rows = Rows::dense(Values::F32(values), labels.len(), WIDTH, false).unwrap();
    Batch::new(rows, Targets::One(Labels::new(labels, K).unwrap()), None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The progressive loss is that of predictions, and a loaded model continues exactly.
    #[test]
    fn progressive_loss_equals_predictions_before_learning(
        (values, labels) in streams(), policy in policies(), optimizer in optimizers()
    ) {
        let params = Params { optimizer, ..params(policy) };
        let mut tree = Model::create(params, K, false).unwrap();
        let control = Control::new(0);
        let mut wrong = 0;
        for (row, &label) in values.chunks(WIDTH).zip(&labels) {
            let one = batch(row, std::slice::from_ref(&label));
            if tree.n_examples_seen() == 0 {
                // Before the first example all scores are 0, and 0 goes right.
                wrong += u32::from(label as usize != K - 1);
            } else {
                let answer = tree.predict(&Query::new(&one.rows, 1, &control)).unwrap()[0];
                wrong += u32::from(answer != label as i32);
            }
            tree.partial_fit(&one, 1, &control).unwrap();
        }
        let n = labels.len() as f64;
        prop_assert_eq!(tree.progressive_loss(), Some(f64::from(wrong) / n));
        let mut again = Model::from_bytes(&tree.to_bytes().unwrap()).unwrap();
        tree.partial_fit(&batch(&values, &labels), 1, &control).unwrap();
        again.partial_fit(&batch(&values, &labels), 1, &control).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), tree.to_bytes().unwrap());
    }

    /// The k best labels are the first of all labels by probability.
    #[test]
    fn the_search_finds_the_most_probable_labels((values, labels) in streams(), policy in policies(), k in 1usize..13) {
        let mut tree = Model::create(params(policy), K, false).unwrap();
        let control = Control::new(0);
        let batch = batch(&values, &labels);
        tree.partial_fit(&batch, 1, &control).unwrap();
        let answers = tree.predict(&Query::new(&batch.rows, 1, &control)).unwrap();
        let (best, scores) = tree.predict_topk(&Query::new(&batch.rows, 1, &control), k).unwrap();
        let (all, all_scores) = tree.predict_topk(&Query::new(&batch.rows, 1, &control), K).unwrap();
        for (i, &answer) in answers.iter().enumerate() {
            let (best, scores) = (&best[i * k..(i + 1) * k], &scores[i * k..(i + 1) * k]);
            let (all, all_scores) = (&all[i * K..(i + 1) * K], &all_scores[i * K..(i + 1) * K]);
            prop_assert_eq!(best[0], answer);
            prop_assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]));
            let n = k.min(K);
            prop_assert_eq!((&best[..n], &scores[..n]), (&all[..n], &all_scores[..n]));
            prop_assert!(best[n..].iter().all(|&label| label == TopK::NO_LABEL));
            let sum: f32 = all_scores.iter().map(|score| score.exp()).sum();
            // The score of the first label may have been raised.
            prop_assert!(sum > 0.999 && sum < 1.5, "the probabilities sum to {sum}");
        }
    }

    /// Predictions of the most probable label are the first of all labels by probability.
    #[test]
    fn the_most_probable_label_comes_first((values, labels) in streams(), policy in policies()) {
        let params = Params { prediction: Some(Prediction::MostProbable), ..params(policy) };
        let mut tree = Model::create(params, K, false).unwrap();
        let control = Control::new(0);
        let batch = batch(&values, &labels);
        tree.partial_fit(&batch, 1, &control).unwrap();
        let query = Query::new(&batch.rows, 1, &control);
        let answers = tree.predict(&query).unwrap();
        let (all, scores) = tree.predict_topk(&query, K).unwrap();
        for (row, (&answer, scores)) in all.chunks(K).zip(answers.iter().zip(scores.chunks(K))) {
            prop_assert_eq!(answer, row[0]);
            let sum: f32 = scores.iter().map(|score| score.exp()).sum();
            prop_assert!((sum - 1.0).abs() < 1e-4, "the probabilities sum to {sum}");
        }
    }

    /// Trees for label sets that are learning predict like frozen ones, and loaded ones continue.
    #[test]
    fn label_sets_are_predicted_without_freezing((values, labels) in streams(), k in 1usize..13, optimizer in optimizers()) {
        let sets: Vec<Vec<i32>> = labels.iter().map(|&y| {
            let mut set = if y == 3 { vec![] } else { vec![y as i32, (y * 7 % K as u32) as i32] };
            set.sort_unstable();
            set.dedup();
            set
        }).collect();
        let starts: Vec<i32> = (0..=sets.len()).map(|n| sets[..n].concat().len() as i32).collect();
        let flat = sets.concat();
        let targets = LabelSets::new(Indices::I32(&starts), Indices::I32(&flat), K).unwrap();
        let rows = Rows::dense(Values::F32(&values), labels.len(), WIDTH, false).unwrap();
        let batch = Batch::new(rows, Targets::Sets(targets), None).unwrap();
        let params = Params { optimizer, ..params(Policy::Random) };
        let mut tree = Model::create(params, K, true).unwrap();
        let control = Control::new(0);
        tree.partial_fit(&batch, 1, &control).unwrap();
        let mut loaded = Model::from_bytes(&tree.to_bytes().unwrap()).unwrap();
        // K is too small for the members to stay unfrozen, so they are asked directly.
        let frozen = [tree.members[0].learner.freeze(&control).unwrap()];
        let (best, scores) = top_k(&tree, None, &rows, k);
        prop_assert_eq!((&best, &scores), (&top_k(&tree, Some(&frozen), &rows, k).0, &top_k(&tree, Some(&frozen), &rows, k).1));
        let (all, _) = top_k(&tree, None, &rows, K);
        for (few, all) in best.chunks(k).zip(all.chunks(K)) {
            prop_assert_eq!(&few[..k.min(K)], &all[..k.min(K)]);
        }
        prop_assert!(scores.iter().all(|score| score.is_finite()));
        tree.partial_fit(&batch, 1, &control).unwrap();
        loaded.partial_fit(&batch, 1, &control).unwrap();
        prop_assert_eq!(loaded.to_bytes().unwrap(), tree.to_bytes().unwrap());
    }
}

/// The learning rate and the decay refer to single examples. Scaled with the weights they give the
/// same tree, because nothing else depends on the scale of weights.
#[test]
fn only_rate_and_decay_depend_on_the_scale_of_weights() {
    let values: Vec<f32> = (0..4 * 600)
        .map(|i| ((i * 37) % 23) as f32 - 11.0)
        .collect();
    let rows = Rows::dense(Values::F32(&values), 600, WIDTH, false).unwrap();
    let mut preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
    for optimizer in [Optimizer::Pn, Optimizer::Nag] {
        for policy in [Policy::Filter, Policy::Random] {
            let mut learned = |scale: f64| {
                // "nag" divides its steps by the root of a sum.
                let is_nag = optimizer == Optimizer::Nag;
                let learning_rate = 0.5 / if is_nag { scale.sqrt() } else { scale };
                let decay = 0.5 / scale;
                let params = Params {
                    optimizer,
                    learning_rate,
                    decay,
                    ..params(policy)
                };
                let layout = Layout::new((0..K as u32).collect());
                let mut tree = LabelTree::from_layout(&params, layout, preparation.width(), false);
                let mut example = PathExample::default();
                let mut right = Vec::new();
                for i in 0..600 {
                    let weight = scale as f32 * [0.5, 2.0, 1.0, 3.25][i % 4];
                    example.read(&mut preparation, &rows, i, false);
                    tree.regressors.prepare(&mut example, weight);
                    right.push(tree.learn_one(&example, (i * i % K) as u32, weight));
                }
                let counts = tree
                    .records
                    .iter()
                    .flat_map(|record| [record.trained, record.won]);
                let counts: Vec<f64> = counts.chain(tree.examples).map(|n| n / scale).collect();
                (right, counts)
            };
            let plain = learned(1.0);
            for scale in [1.0 / 16.0, 4.0] {
                assert_eq!(learned(scale), plain, "{optimizer:?}");
            }
        }
    }
}

/// A router of the filter tree learns the examples that the routers below it sent towards their
/// label, and one of a random tree all examples of its labels.
#[test]
fn a_filter_passes_on_the_examples_that_a_router_won() {
    let values: Vec<f32> = (0..4 * 300).map(|i| (i * 37 % 23) as f32 - 11.0).collect();
    let labels: Vec<u32> = (0..300).map(|i| i * i % K as u32).collect();
    for policy in [Policy::Filter, Policy::Random] {
        let mut model = Model::create(params(policy), K, false).unwrap();
        let (all, control) = (batch(&values, &labels), Control::new(0));
        model.partial_fit(&all, 1, &control).unwrap();
        let tree = &model.members[0].learner;
        let sent = tree.records.iter().map(|record| match policy {
            Policy::Filter => record.won,
            Policy::Random => record.trained,
        });
        let routers = tree.layout.node_of.iter().zip(sent);
        let examples = tree.examples.iter().copied();
        let leaves = tree.layout.leaf_of.iter().zip(examples);
        let mut expected = vec![0.0; tree.records.len()];
        for (&node, sent) in routers.chain(leaves) {
            if let Some((router, _)) = router_above(node) {
                expected[router as usize] += sent;
            }
        }
        let trained: Vec<f64> = tree.records.iter().map(|record| record.trained).collect();
        assert_eq!(trained, expected);
        let won: f64 = tree.records.iter().map(|record| record.won).sum();
        assert!(won > 0.0 && won < trained.iter().sum());
        // The first step of each router sends its example towards the label.
        let mut first = Model::create(params(policy), K, false).unwrap();
        let one = batch(&values[..WIDTH], &labels[..1]);
        first.partial_fit(&one, 1, &control).unwrap();
        let records = &first.members[0].learner.records;
        assert!(records.iter().all(|record| record.won == record.trained));
        assert!(records.iter().filter(|record| record.won > 0.0).count() > 2);
    }
}

/// A frozen tree scores the upper nodes of many sparse rows together, with the results of the tree
/// itself to the bit.
#[test]
fn searches_through_frozen_and_learning_trees_agree() {
    const MANY: usize = 3000;
    const N_ROWS: usize = 300;
    let mut random = Pcg64Mcg::seed_from_u64(8);
    let labels: Vec<u32> = (0..N_ROWS)
        .map(|_| random.random_range(0..MANY as u32))
        .collect();
    let (mut columns, mut values, mut starts) = (Vec::new(), Vec::new(), vec![0]);
    for _ in 0..N_ROWS {
        // Low columns are frequent.
        let row: BTreeSet<i32> = (0..6).map(|_| 5000 >> random.random_range(0..13)).collect();
        values.extend(row.iter().map(|_| random.random_range(0.1f32..2.0)));
        columns.extend(row);
        starts.push(columns.len() as i32);
    }
    let (starts, columns) = (Indices::I32(&starts), Indices::I32(&columns));
    let rows = Rows::csr(starts, columns, Values::F32(&values), 5001, false).unwrap();
    let targets = Targets::One(Labels::new(&labels, MANY).unwrap());
    let batch = Batch::new(rows, targets, None).unwrap();
    let control = Control::new(0);
    for policy in [Policy::Filter, Policy::Random] {
        let mut tree = Model::create(params(policy), MANY, false).unwrap();
        tree.partial_fit(&batch, 1, &control).unwrap();
        let frozen = [tree.members[0].learner.freeze(&control).unwrap()];
        for k in [1, 5, 20, MANY] {
            let [learning, frozen] =
                [None, Some(&frozen[..])].map(|frozen| top_k(&tree, frozen, &rows, k));
            assert_eq!(learning, frozen);
        }
    }
}

/// Returns the `k` best labels of each row and their scores, found with the frozen members, if given.
fn top_k(
    tree: &Model,
    frozen: Option<&[FrozenRouters]>,
    rows: &Rows<'_>,
    k: usize,
) -> (Vec<i32>, Vec<f32>) {
    let (options, control) = (PredictOptions::default(), Control::new(0));
    let memory = Lent::alone(RoutingMemory::default());
    let mut predictor = LabelTree::predictor(&tree.members, frozen, &options, memory);
    let n = rows.n_rows();
    let (mut labels, mut scores) = (vec![TopK::NO_LABEL; n * k], vec![0.0; n * k]);
    predictor.read(rows, 0..n, &control).unwrap();
    predictor
        .top_k(k, &mut labels, &mut scores, &control)
        .unwrap();
    (labels, scores)
}

/// If all scores are equal, the search does not open all nodes.
#[test]
fn the_search_is_bounded_if_all_scores_are_equal() {
    const MANY: usize = 1 << 18;
    let rows = Rows::dense(Values::F32(&[1.0, 2.0]), 1, 2, false).unwrap();
    let labels = Targets::One(Labels::new(&[7], MANY).unwrap());
    let mut tree = Model::create(params(Policy::Random), MANY, false).unwrap();
    let control = Control::new(0);
    tree.partial_fit(&Batch::new(rows, labels, None).unwrap(), 1, &control)
        .unwrap();
    let member = &tree.members[0];
    let routers = member.learner.freeze(&control).unwrap();
    let mut block = crate::linear::Block::default();
    let other = Rows::dense(Values::F32(&[0.0, 0.0]), 1, 2, false).unwrap();
    block.fill(&member.preparation, &other, 0..1, routers.width());
    let routers = crate::tree::Routers::<LabelTree>::Frozen(&routers);
    let n_looks = std::cell::Cell::new(0);
    let look = routers.look(&block, 0, 1.0);
    let look = |node| {
        n_looks.set(n_looks.get() + 1);
        look(node)
    };
    let mut search = crate::tree::BestFirst::default();
    let first = Some(search.end_of_path(0, &look));
    let found = search.best_labels(0, &look, 5, MANY, first).to_vec();
    assert_eq!(found.len(), 5);
    // A breadth-first search would open all nodes.
    assert!(n_looks.get() < 5000, "{n_looks:?}");
}

#[test]
fn damaged_files_are_refused() {
    let (values, labels) = ([0.5f32; 40], [0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let mut tree = Model::create(params(Policy::Filter), K, false).unwrap();
    tree.fit(
        &batch(&values, &labels),
        FitOptions::threads(1),
        &Control::new(0),
    )
    .unwrap();
    assert!(Model::from_bundle(tree.to_bundle()).is_ok());
    let refused = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = tree.to_bundle();
        let mut inner = bundle.unnest("member0").unwrap();
        change(&mut inner);
        bundle.nest("member0", inner);
        assert!(Model::from_bundle(bundle).is_err());
    };
    for name in ["examples", "records.trained", "records.won"] {
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            refused(&|inner| {
                let mut values: Vec<f64> = inner.take(name).unwrap();
                values[0] = wrong;
                inner.put(name, values);
            });
        }
    }
    for wrong in [1, K as u32, u32::MAX] {
        refused(&|inner| {
            let mut order: Vec<u32> = inner.take("order").unwrap();
            order[0] = wrong;
            inner.put("order", order);
        });
    }
    refused(&|inner| {
        let mut other = Model::create(params(Policy::Filter), 3, false).unwrap();
        let rows = Rows::dense(Values::F32(&values), 10, WIDTH, false).unwrap();
        let few = Targets::One(Labels::new(&[0; 10], 3).unwrap());
        let few = Batch::new(rows, few, None).unwrap();
        other
            .fit(&few, FitOptions::threads(1), &Control::new(0))
            .unwrap();
        let mut other = other.to_bundle().unnest("member0").unwrap();
        inner.unnest("regressors").unwrap();
        inner.nest("regressors", other.unnest("regressors").unwrap());
    });
    let mut bundle = tree.to_bundle();
    bundle.take_meta::<usize>("n_classes").unwrap();
    bundle.put_meta("n_classes", &(K + 1));
    assert!(Model::from_bundle(bundle).is_err());
}
