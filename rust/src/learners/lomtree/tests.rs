//! Properties of the structure on random streams, and every case of Swap.

use proptest::prelude::*;

use super::*;
use crate::classifier::{Online, Schedule};
use crate::control::Control;
use crate::data::{Batch, Targets};
use crate::data::{Labels, Preparation, Rows, Scaling, Values};
use crate::file::{Bundle, LegacyPersist};
use crate::linear::{Loss, Optimizer};
use crate::tree::NodeId;

fn params() -> Params {
    Params {
        loss: Loss::SquaredHinge,
        optimizer: Optimizer::Pn,
        scaling: Scaling::None,
        n_bits: None,
        learning_rate: 1.0,
        decay: 1.0,
        nodes_per_class: 1.0,
        max_internal: None,
        swap_resistance: 4.0,
        split_threshold: 1.0,
        soft_depth: None,
        reset_recycled: false,
        score_clamp: Some(1.0),
        weighted_counts: true,
        leaf_smoothing: 1.0,
        n_estimators: 1,
        schedule: Schedule {
            n_passes: 1,
            seed: 0,
            early_stopping: false,
            validation_fraction: 0.1,
            patience: 1,
        },
    }
}

const WIDTH: usize = 4;

/// Examples of `WIDTH` features whose classes come and go, so that old leaves
/// starve and nodes are recycled.
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

fn learn_each(
    params: &Params,
    values: &[f32],
    labels: &[u32],
    mut after: impl FnMut(&Tree, usize) -> Result<(), TestCaseError>,
) -> Result<Tree, TestCaseError> {
    let rows = Rows::dense(Values::F32(values), labels.len(), WIDTH).unwrap();
    let batch = Batch::new(rows, Targets::One(Labels::new(labels, 16).unwrap()), None).unwrap();
    let preparation = Preparation::new(params.scaling, None, &rows).unwrap();
    let mut tree = Tree::new(params, preparation, 16);
    let control = Control::new(0);
    for i in 0..labels.len() {
        tree.learn(&batch, &[i as u32], 0.0, &control).unwrap();
        after(&tree, i)?;
    }
    Ok(tree)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn structure_holds_after_every_example((values, labels) in streams(), budget in 0u32..20, resistance in 1u8..6) {
        let params = Params { max_internal: Some(budget), swap_resistance: f64::from(resistance), ..params() };
        learn_each(&params, &values, &labels, |tree, i| {
            prop_assert_eq!(tree.arena().check(tree.regressors.len()), Ok(()));
            prop_assert!(tree.arena().n_internal <= budget);
            if resistance >= 4 {
                let most = tree.arena().nodes.iter().map(|node| node.recycled).max().unwrap_or(0);
                prop_assert!(f64::from(most) <= ((i + 1) as f64).log2(), "recycled {most} times in {i}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn counts_add_up_and_the_objective_stays_in_range((values, labels) in streams()) {
        let tree = learn_each(&params(), &values, &labels, |_, _| Ok(()))?;
        let report = tree.report();
        let n = report.parent.len();
        for at in 0..n {
            if report.children[2 * at] < 0 {
                continue;
            }
            prop_assert!((0.0..=1.0).contains(&report.objective[at]) || report.objective[at].is_nan());
            for child in &report.children[2 * at..2 * at + 2] {
                prop_assert_eq!(report.parent[*child as usize], at as i32);
                prop_assert_eq!(report.depth[*child as usize], report.depth[at] + 1);
            }
        }
        if report.n_swaps == 0 {
            let root = labels.len() as f64;
            prop_assert_eq!(report.n_examples[0], root);
        }
    }

    /// Walking the frozen tree is walking the learning one, and changes nothing.
    #[test]
    fn frozen_answers_are_the_progressive_ones((values, labels) in streams()) {
        let params = Params { leaf_smoothing: 0.0, ..params() };
        let rows = Rows::dense(Values::F32(&values), labels.len(), WIDTH).unwrap();
        let batch = Batch::new(rows, Targets::One(Labels::new(&labels, 16).unwrap()), None).unwrap();
        let mut forest = Forest::new(params, 16).unwrap();
        let control = Control::new(0);
        let mut wrong = 0;
        for i in 0..labels.len() {
            let row = &values[i * WIDTH..(i + 1) * WIDTH];
            let one = Rows::dense(Values::F32(row), 1, WIDTH).unwrap();
            let label = &labels[i..=i];
            let learned = Batch::new(one, Targets::One(Labels::new(label, 16).unwrap()), None).unwrap();
            let answer = if i == 0 { 0 } else { forest.predict_topk(&one, 1, 1, &control).unwrap().0[0] };
            wrong += u32::from(answer != label[0] as i32);
            forest.partial_fit(&learned, 1, &control).unwrap();
        }
        prop_assert_eq!(forest.progressive_loss(), Some(f64::from(wrong) / labels.len() as f64));
        // A copy out of a file goes on in the same way.
        let mut again = Forest::from_bytes(&forest.to_bytes().unwrap()).unwrap();
        forest.partial_fit(&batch, 1, &control).unwrap();
        again.partial_fit(&batch, 1, &control).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), forest.to_bytes().unwrap());
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let values: Vec<f32> = (0..400).map(|i| ((i * 37) % 23) as f32 - 11.0).collect();
    let labels: Vec<u32> = (0..100).map(|i| (i * i) % 7).collect();
    let rows = Rows::dense(Values::F32(&values), 100, WIDTH).unwrap();
    let batch = Batch::new(rows, Targets::One(Labels::new(&labels, 7).unwrap()), None).unwrap();
    let control = Control::new(0);
    let fit = |n_threads| {
        let params = Params {
            n_estimators: 5,
            ..params()
        };
        let mut forest = Forest::new(params, 7).unwrap();
        forest.fit(&batch, n_threads, &control).unwrap();
        forest.partial_fit(&batch, n_threads, &control).unwrap();
        let top = forest.predict_topk(&rows, 3, n_threads, &control).unwrap();
        (forest.to_bytes().unwrap(), top)
    };
    assert_eq!(fit(1), fit(3));
}

/// A tree grown by hand: `sizes` of its leaves from left to right below the
/// shape ((a b) (c d)), or (a b) of two.
fn grown(sizes: &[f64]) -> Arena {
    let mut arena = Arena::new();
    arena.split(arena.root, 0);
    let mut leaves = vec![NodeId(1), NodeId(2)];
    if sizes.len() == 4 {
        arena.split(NodeId(1), 1);
        arena.split(NodeId(2), 2);
        leaves = vec![NodeId(3), NodeId(4), NodeId(5), NodeId(6)];
    }
    for (&leaf, &size) in leaves.iter().zip(sizes) {
        arena.node_mut(leaf).size = size;
    }
    for leaf in leaves {
        arena.update_sizes(leaf);
    }
    let n_internal = arena.n_internal as usize;
    assert_eq!(arena.check(n_internal), Ok(()));
    arena
}

#[test]
fn swap_in_the_middle_of_the_tree() {
    let mut arena = grown(&[1.0, 20.0, 30.0, 40.0]);
    let regressor = arena.swap(NodeId(6));
    // Node 1 and its left leaf 3 now hang below 6; 4 has moved up to the root.
    assert_eq!(regressor, 1);
    assert_eq!(arena.node(arena.root).left, NodeId(4));
    assert_eq!(
        (arena.node(NodeId(6)).left, arena.node(NodeId(6)).right),
        (NodeId(3), NodeId(1))
    );
    assert_eq!(
        arena.node(NodeId(3)).size + arena.node(NodeId(1)).size,
        40.0
    );
    assert_eq!(arena.n_swaps, 1);
    assert_eq!(
        (
            arena.node(NodeId(1)).recycled,
            arena.node(NodeId(3)).recycled
        ),
        (1, 1)
    );
    assert_eq!(arena.check(3), Ok(()));
}

#[test]
fn swap_where_the_smallest_leaf_is_the_sibling() {
    let mut arena = grown(&[1.0, 20.0, 30.0, 40.0]);
    arena.swap(NodeId(4));
    assert_eq!(arena.node(arena.root).left, NodeId(4));
    assert!(!arena.node(NodeId(4)).is_leaf());
    assert_eq!(arena.check(3), Ok(()));
}

#[test]
fn swap_where_the_smallest_leaf_hangs_from_the_root() {
    let mut arena = grown(&[1.0, 20.0]);
    arena.swap(NodeId(2));
    // The sibling is the new root, and the old root and leaf are its children.
    assert_eq!(arena.root, NodeId(2));
    assert_eq!(
        (arena.node(NodeId(2)).left, arena.node(NodeId(2)).right),
        (NodeId(1), NodeId(0))
    );
    assert_eq!(arena.check(1), Ok(()));
}

#[test]
fn swap_where_the_asking_leaf_is_below_the_smallest_leafs_sibling() {
    let mut arena = grown(&[1.0, 20.0]);
    arena.split(NodeId(2), 1);
    assert_eq!(arena.check(2), Ok(()));
    let asking = arena.node(NodeId(2)).right;
    arena.swap(asking);
    assert_eq!(arena.root, NodeId(2));
    assert_eq!(arena.node(asking).parent, NodeId(2));
    assert_eq!(arena.node(asking).right, NodeId(0));
    assert_eq!(arena.check(2), Ok(()));
}

#[test]
fn the_smallest_of_equal_leaves_is_the_rightmost() {
    let mut arena = grown(&[5.0, 5.0, 5.0, 5.0]);
    arena.node_mut(NodeId(3)).size = 50.0;
    arena.update_sizes(NodeId(3));
    arena.swap(NodeId(3));
    assert_eq!(arena.node(NodeId(3)).left, NodeId(6));
    assert_eq!(arena.check(3), Ok(()));
}

fn few_rows() -> (Vec<f32>, Vec<u32>) {
    let values = (0..400).map(|i| ((i * 37) % 23) as f32 - 11.0).collect();
    (values, (0..100).map(|i| (i * i) % 7).collect())
}

#[test]
fn a_fit_that_is_refused_changes_nothing() {
    let (values, labels) = few_rows();
    let rows = Rows::dense(Values::F32(&values), 100, WIDTH).unwrap();
    let learned = Batch::new(rows, Targets::One(Labels::new(&labels, 7).unwrap()), None).unwrap();
    let control = Control::new(0);
    let mut forest = Forest::new(params(), 7).unwrap();
    forest.fit(&learned, 1, &control).unwrap();
    let before = forest.to_bytes().unwrap();
    let nothing = [0.0; 100];
    let (other, weightless) = (Labels::new(&labels, 8).unwrap(), learned.targets);
    for batch in [
        Batch::new(rows, Targets::One(other), None).unwrap(),
        Batch::new(rows, weightless, Some(&nothing)).unwrap(),
    ] {
        assert!(forest.fit(&batch, 1, &control).is_err());
        assert_eq!(forest.to_bytes().unwrap(), before);
    }
}

#[test]
fn trees_that_had_hardly_begun_are_left_out() {
    let (values, labels) = few_rows();
    let rows = Rows::dense(Values::F32(&values), 100, WIDTH).unwrap();
    let batch = Batch::new(rows, Targets::One(Labels::new(&labels, 7).unwrap()), None).unwrap();
    let preparation = Preparation::new(Scaling::None, None, &rows).unwrap();
    let tree = |n: u32| {
        let mut tree = Tree::new(&params(), preparation.clone(), 7);
        let order: Vec<u32> = (0..n).collect();
        tree.learn(&batch, &order, 0.0, &Control::new(0)).unwrap();
        tree
    };
    let mut trees = vec![tree(100), tree(20), tree(70), tree(20)];
    super::forest::leave_out_stragglers(&mut trees, &[false, false, false, true]);
    let seen: Vec<u64> = trees.iter().map(|tree| tree.progress().examples).collect();
    assert_eq!(seen, [100, 70, 20]);
}

#[test]
fn made_up_files_are_refused() {
    let (values, labels) = few_rows();
    let rows = Rows::dense(Values::F32(&values), 100, WIDTH).unwrap();
    let batch = Batch::new(rows, Targets::One(Labels::new(&labels, 7).unwrap()), None).unwrap();
    let mut forest = Forest::new(params(), 7).unwrap();
    forest.fit(&batch, 1, &Control::new(0)).unwrap();
    let refused = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = forest.to_bundle();
        let mut tree = bundle.unnest("tree0").unwrap();
        change(&mut tree);
        bundle.nest("tree0", tree);
        assert!(Forest::from_bundle(bundle).is_err());
    };
    for name in ["size", "count", "top_arrivals", "label_count"] {
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            refused(&|tree| {
                let mut values: Vec<f64> = tree.take(name).unwrap();
                values.fill(wrong);
                tree.put(name, values);
            });
        }
    }
    for name in ["label", "top", "left", "parent", "regressor"] {
        refused(&|tree| {
            let mut values: Vec<u32> = tree.take(name).unwrap();
            values[0] = 1 << 30;
            tree.put(name, values);
        });
    }
    refused(&|tree| {
        let mut regressors = tree.unnest("regressors").unwrap();
        let width: usize = regressors.take_meta("width").unwrap();
        regressors.put_meta("width", &(width - 1));
        let squares: Vec<f32> = regressors.take("squares").unwrap();
        regressors.put("squares", squares[1..].to_vec());
        tree.nest("regressors", regressors);
    });
}

#[test]
fn parameters_beyond_the_floats_are_refused_by_name() {
    type Change = fn(&mut Params);
    let cases: [(&str, Change); 4] = [
        ("learning_rate", |p| p.learning_rate = 1e308),
        ("decay", |p| p.decay = 1e39),
        ("leaf_smoothing", |p| p.leaf_smoothing = f64::INFINITY),
        ("n_estimators", |p| p.n_estimators = 1_000_000_000),
    ];
    for (name, change) in cases {
        let mut params = params();
        change(&mut params);
        let message = Forest::new(params, 3).unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    }
}

/// Shares so small that they vanish neither name a label twice nor exceed 1.
#[test]
fn shares_are_at_most_one_and_labels_come_once() {
    let values = vec![1.0f32; 40 * WIDTH];
    let labels: Vec<u32> = (0..40).map(|i| i % 4).collect();
    let weights: Vec<f32> = (0..40).map(|i| [1e30, 1e-30, 1e-30, 1.0][i % 4]).collect();
    let rows = Rows::dense(Values::F32(&values), 40, WIDTH).unwrap();
    let targets = Targets::One(Labels::new(&labels, 4).unwrap());
    let batch = Batch::new(rows, targets, Some(&weights)).unwrap();
    for n_estimators in [1, 3] {
        let params = Params {
            n_estimators,
            max_internal: Some(0),
            ..params()
        };
        let mut forest = Forest::new(params, 4).unwrap();
        forest.fit(&batch, 1, &Control::new(0)).unwrap();
        let (best, shares) = forest.predict_topk(&rows, 4, 1, &Control::new(0)).unwrap();
        for (best, shares) in best.chunks(4).zip(shares.chunks(4)) {
            let mut once = best.to_vec();
            once.sort_unstable();
            assert_eq!(once, [0, 1, 2, 3]);
            assert!(best[0] == 0 && shares[0] <= 1.0, "{shares:?}");
        }
    }
}
