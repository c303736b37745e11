//! The learner in an online model: predictions, files, parameters.

mod learning;
mod shares;
mod structure;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::control::Control;
use crate::data::{Batch, Labels, Preparation, Rows, Scaling, Targets, Values};
use crate::file::Bundle;
use crate::linear::{Loss, Optimizer};
use crate::model::{
    Classifier, FitOptions, Learner, OnlineLearner, OnlineModel, PredictOptions, Predictor, Query,
};
use crate::threads::Lent;
use crate::tree::{FrozenRouters, RoutingMemory, Subtrees};

type Model = OnlineModel<LomTree>;

const WIDTH: usize = 4;

/// Returns parameters of a small tree, which stays above the depth at which splits become harder.
fn params() -> Params {
    Params {
        loss: Loss::SquaredHinge,
        scaling: Scaling::None,
        nodes_per_class: 1.0,
        split_threshold: 1.0,
        n_passes: 1,
        ..Params::default()
    }
}

fn batch<'a>(values: &'a [f32], labels: &'a [u32], n_classes: usize) -> Batch<'a> {
    let rows = Rows::dense(Values::F32(values), labels.len(), WIDTH, false).unwrap();
    let targets = Targets::One(Labels::new(labels, n_classes).unwrap());
    Batch::new(rows, targets, None).unwrap()
}

/// Returns a tree before any example.
fn empty(params: &Params, n_classes: usize) -> LomTree {
    let rows = Rows::dense(Values::F32(&[0.0; WIDTH]), 1, WIDTH, false).unwrap();
    let preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
    LomTree::empty(params, n_classes, &preparation)
}

fn most_recycled(tree: &LomTree) -> u32 {
    let nodes = tree.arena.nodes.iter();
    nodes.map(|node| node.recycled).max().unwrap_or(0)
}

/// Returns a model of `params`, fitted on `batch`.
fn fitted(params: Params, batch: &Batch<'_>) -> Model {
    let mut model = Model::create(params, batch.targets.n_classes(), false).unwrap();
    let options = FitOptions::threads(1);
    model.fit(batch, options, &Control::new(0)).unwrap();
    model
}

/// Generates examples of `WIDTH` features whose classes come and go, so that old leaves get no more
/// examples and nodes are recycled.
fn streams() -> impl Strategy<Value = (Vec<f32>, Vec<u32>)> {
    let example = (0u32..8, prop::array::uniform4(-8i8..8));
    prop::collection::vec(example, 1..300).prop_map(|examples| {
        let mut labels = Vec::new();
        let mut values = Vec::new();
        for (at, (label, noise)) in examples.into_iter().enumerate() {
            let label = label + at as u32 / 64;
            labels.push(label);
            for (f, noise) in noise.into_iter().enumerate() {
                let sign = if label >> f & 1 == 1 { 8.0 } else { -8.0 };
                values.push(sign + f32::from(noise));
            }
        }
        (values, labels)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Predicting before each update gives the progressive loss and does not change the model.
    #[test]
    fn predictions_before_updates_are_the_progressive_ones((values, labels) in streams()) {
        let params = Params { paper_tree: true, ..params() };
        let mut model = Model::create(params, 16, false).unwrap();
        let control = Control::new(0);
        let mut wrong = 0;
        for (i, row) in values.chunks(WIDTH).enumerate() {
            let one = batch(row, &labels[i..=i], 16);
            let predicted = if i == 0 { 0 } else { model.predict_topk(&Query::new(&one.rows, 1, &control), 1).unwrap().0[0] };
            wrong += u32::from(predicted != labels[i] as i32);
            model.partial_fit(&one, 1, &control).unwrap();
        }
        prop_assert_eq!(model.progressive_loss(), Some(f64::from(wrong) / labels.len() as f64));
        // A loaded copy continues in the same way.
        let mut again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let batch = batch(&values, &labels, 16);
        model.partial_fit(&batch, 1, &control).unwrap();
        again.partial_fit(&batch, 1, &control).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
    }
}

fn few_rows() -> (Vec<f32>, Vec<u32>) {
    let values = (0..400).map(|i| ((i * 37) % 23) as f32 - 11.0).collect();
    (values, (0..100).map(|i| (i * i) % 7).collect())
}

#[test]
fn damaged_files_are_refused() {
    let (values, labels) = few_rows();
    let model = fitted(params(), &batch(&values, &labels, 7));
    assert!(Model::from_bundle(model.to_bundle()).is_ok());
    let refused = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = model.to_bundle();
        let mut tree = bundle.unnest("member0").unwrap();
        change(&mut tree);
        bundle.nest("member0", tree);
        assert!(Model::from_bundle(bundle).is_err());
    };
    for name in [
        "nodes.size",
        "nodes.count",
        "nodes.majority_arrivals",
        "nodes.labels.count",
    ] {
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            refused(&|tree| {
                let mut values: Vec<f64> = tree.take(name).unwrap();
                values.fill(wrong);
                tree.put(name, values);
            });
        }
    }
    for wrong in [-1.0, f32::NAN, f32::INFINITY] {
        refused(&|tree| {
            let mut values: Vec<f32> = tree.take("nodes.labels.before").unwrap();
            values[0] = wrong;
            tree.put("nodes.labels.before", values);
        });
    }
    for name in [
        "nodes.labels.key",
        "nodes.labels.length",
        "nodes.majority",
        "nodes.left",
        "nodes.parent",
        "nodes.regressor",
    ] {
        for wrong in [1 << 30, u32::MAX - 1] {
            refused(&|tree| {
                let mut values: Vec<u32> = tree.take(name).unwrap();
                values[0] = wrong;
                tree.put(name, values);
            });
        }
    }
    refused(&|tree| {
        let mut labels: Vec<u32> = tree.take("nodes.labels.key").unwrap();
        labels[0] = u32::MAX;
        tree.put("nodes.labels.key", labels);
    });
    for name in ["root", "n_internal"] {
        refused(&|tree| {
            let number: u32 = tree.take_meta(name).unwrap();
            tree.put_meta(name, &(number + 1));
        });
    }
    refused(&|tree| {
        let mut regressors = tree.unnest("regressors").unwrap();
        let squares: Vec<f32> = regressors.take("squares").unwrap();
        regressors.put("squares", squares[1..].to_vec());
        tree.nest("regressors", regressors);
    });
}

/// The paper's tree does not count importances, so it learns rows of importance 0.
#[test]
fn papers_tree_counts_rows_of_importance_zero() {
    let (values, labels) = few_rows();
    let batch = batch(&values, &labels, 7);
    let weights: Vec<f32> = (0..100).map(|i| (i % 2) as f32).collect();
    let batch = Batch::new(batch.rows, batch.targets, Some(Values::F32(&weights))).unwrap();
    for (paper_tree, n) in [(false, 50), (true, 100)] {
        let params = Params {
            paper_tree,
            ..params()
        };
        let mut model = Model::create(params, 7, false).unwrap();
        let control = Control::new(0);
        model.partial_fit(&batch, 1, &control).unwrap();
        assert_eq!(model.n_examples_seen(), n);
        let weight = model.members[0].progress.weight;
        let counted = if paper_tree { n as f64 } else { weight };
        let bound = model.reports()[0].get("recycle_bound");
        assert_eq!(bound, Some(vec![counted.log2()]));
    }
}

/// Weights so small that they vanish do not make labels appear twice or shares exceed 1.
#[test]
fn shares_are_at_most_one_and_labels_unique() {
    let values = vec![1.0f32; 40 * WIDTH];
    let labels: Vec<u32> = (0..40).map(|i| i % 4).collect();
    let weights: Vec<f32> = (0..40).map(|i| [1e30, 1e-30, 1e-30, 1.0][i % 4]).collect();
    let batch = batch(&values, &labels, 4);
    let batch = Batch::new(batch.rows, batch.targets, Some(Values::F32(&weights))).unwrap();
    for n_estimators in [1, 3] {
        let params = Params {
            n_estimators,
            nodes_per_class: 0.0,
            ..params()
        };
        let model = fitted(params, &batch);
        let top = model.predict_topk(&Query::new(&batch.rows, 1, &Control::new(0)), 4);
        let (best, shares) = top.unwrap();
        for (best, shares) in best.chunks(4).zip(shares.chunks(4)) {
            let mut once = best.to_vec();
            once.sort_unstable();
            assert_eq!(once, [0, 1, 2, 3]);
            assert!(best[0] == 0 && shares[0] <= 1.0, "{shares:?}");
        }
    }
}

/// Trees with different scaling read a row each in their own way, and their distributions are
/// averaged.
#[test]
fn ensemble_averages_the_predictions_of_its_trees() {
    let (values, labels) = few_rows();
    let large: Vec<f32> = values.iter().map(|value| value * 100.0 + 7.0).collect();
    let params = Params {
        scaling: Scaling::Standard,
        ..params()
    };
    let learned = batch(&values, &labels, 7);
    let models = [&values, &large].map(|values| fitted(params.clone(), &batch(values, &labels, 7)));
    let members = models.map(|model| model.members[0].clone());
    let control = Control::new(0);
    let trees = [0, 1].map(|at| members[at].learner.freeze(&control).unwrap());
    let distribution = |which: std::ops::Range<usize>| {
        let (members, trees) = (&members[which.clone()], &trees[which]);
        let mut predictor = LomTree::predictor(
            members,
            Some(trees),
            &PredictOptions::default(),
            Lent::alone(RoutingMemory::default()),
        );
        let mut shares = vec![0.0; 100 * 7];
        predictor.read(&learned.rows, 0..100, &control).unwrap();
        predictor.all_scores(&mut shares, &control).unwrap();
        shares
    };
    let (first, second, both) = (distribution(0..1), distribution(1..2), distribution(0..2));
    for at in 0..both.len() {
        let mean = f32::midpoint(first[at], second[at]);
        assert!((both[at] - mean).abs() < 1e-6, "{} not {mean}", both[at]);
    }
}

/// Returns rows of 150 columns with about as many values as given, and labels that share columns.
fn sparse_rows(n_values: &[usize], seed: u64) -> (Vec<f32>, Vec<u32>) {
    const WIDTH: usize = 150;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for &n in n_values {
        let label = random.random_range(0..40);
        let mut row = [0.0; WIDTH];
        for i in 0..n {
            let own = (label * 7 + random.random_range(0..12)) as usize % WIDTH;
            row[if i % 3 == 0 {
                random.random_range(0..WIDTH)
            } else {
                own
            }] = random.random_range(-1.0..2.0);
        }
        values.extend(row);
        labels.push(label);
    }
    (values, labels)
}

/// Routers of sparse examples are frozen as subtrees, of tables and of dense rows of weights. They
/// route rows of any density like the nodes. Those of dense examples are frozen by node.
#[test]
fn subtrees_route_rows_like_their_nodes() {
    for (optimizer, each, is_sparse) in [
        (Optimizer::Pn, 3, true),
        (Optimizer::Pn, 30, true),
        (Optimizer::Nag, 3, true),
        (Optimizer::Nag, 30, true),
        (Optimizer::Pn, 300, false),
    ] {
        let lengths: Vec<usize> = (0..900).map(|i| each + i % 5).collect();
        let (values, labels) = sparse_rows(&lengths, 1);
        let rows = Rows::dense(Values::F32(&values), labels.len(), 150, false).unwrap();
        let targets = Targets::One(Labels::new(&labels, 40).unwrap());
        let params = Params {
            optimizer,
            nodes_per_class: 8.0,
            ..params()
        };
        let model = fitted(params, &Batch::new(rows, targets, None).unwrap());
        let (member, control) = (&model.members[0], Control::new(0));
        let tree = &member.learner;
        let subtrees = Subtrees::new(tree, &control, |leaf| leaf).unwrap();
        assert_eq!(subtrees.is_some(), is_sparse);
        let Some(subtrees) = subtrees else { continue };
        let nodes = FrozenRouters::new(tree, &control, |leaf| leaf).unwrap();
        let lengths: Vec<usize> = (0..500).map(|i| [0, 2, 9, 28, 400][i % 5]).collect();
        let (values, labels) = sparse_rows(&lengths, 2);
        let rows = Rows::dense(Values::F32(&values), labels.len(), 150, false).unwrap();
        let RoutingMemory { block, groups } = &mut RoutingMemory::default();
        block.fill(&member.preparation, &rows, 0..500, nodes.width());
        let (mut found, mut expected) = (vec![0; 500], vec![0; 500]);
        subtrees.route(block, groups, &mut found);
        nodes.route(block, groups, &mut expected);
        assert_eq!(found, expected);
        expected.sort_unstable();
        expected.dedup();
        assert!(expected.len() > 40, "{}", expected.len());
    }
}

/// A leaf keeps 64 labels, whose shares are divided by their sum.
#[test]
fn distribution_of_a_leaf_with_many_labels_adds_up_to_one() {
    let labels: Vec<u32> = (0..300).map(|i| i % 90).collect();
    let values = vec![1.0f32; 300 * WIDTH];
    let batch = batch(&values, &labels, 100);
    let params = Params {
        nodes_per_class: 0.0,
        ..params()
    };
    let model = fitted(params, &batch);
    let control = Control::new(0);
    let scores = model.predict_scores(&Query::new(&batch.rows, 1, &control));
    let shares = <f32 as crate::file::Element>::from_array(scores.unwrap()).unwrap();
    let row = &shares[..100];
    assert_eq!(row.iter().filter(|&&share| share > 0.0).count(), 64);
    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
}

/// The first labels of each leaf decide some rows; the others need all labels.
#[test]
fn best_labels_of_several_trees_have_the_largest_shares() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let values: Vec<f32> = (0..300 * WIDTH).map(|_| random.random()).collect();
    let labels: Vec<u32> = (0..300).map(|i| i % 90).collect();
    let batch = batch(&values, &labels, 90);
    for (nodes_per_class, k) in [(0.0, 1), (0.0, 20), (0.2, 1), (0.2, 5), (1.0, 1), (1.0, 20)] {
        let params = Params {
            nodes_per_class,
            n_estimators: 3,
            ..params()
        };
        let model = fitted(params, &batch);
        let control = Control::new(0);
        let query = Query::new(&batch.rows, 1, &control);
        let shares = model.predict_scores(&query).unwrap();
        let shares = <f32 as crate::file::Element>::from_array(shares).unwrap();
        let (best, _) = model.predict_topk(&query, k).unwrap();
        for (shares, best) in shares.chunks(90).zip(best.chunks(k)) {
            let share = |&label: &i32| shares.get(label as usize).copied().unwrap_or_default();
            let found: Vec<f32> = best.iter().map(share).collect();
            let mut largest = shares.to_vec();
            largest.sort_unstable_by(|a, b| b.total_cmp(a));
            assert_eq!(found, largest[..k], "{nodes_per_class}, {k}");
        }
    }
}
