//! Properties of trees trained on random weighted streams, compared with a slow reference that
//! follows each example.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::node::LabelStat;
use super::super::predict::FrozenTree;
use super::super::*;
use super::{empty, most_recycled, params, streams, WIDTH};
use crate::control::Control;
use crate::data::{Preparation, Rows, Scaling, Values};
use crate::linear::{Optimizer, PathExample};
use crate::tree::NodeId;

/// Learns the examples with weights `weight(i)`, and calls `after` with the tree, the number of the
/// example and the weight of all so far.
fn learn_each(
    mut tree: LomTree,
    values: &[f32],
    labels: &[u32],
    weight: impl Fn(usize) -> f32,
    mut after: impl FnMut(&LomTree, usize, f64) -> std::result::Result<(), TestCaseError>,
) -> std::result::Result<(), TestCaseError> {
    let rows = Rows::dense(Values::F32(values), labels.len(), WIDTH, false).unwrap();
    let mut preparation = Preparation::new(Scaling::None, None, &rows, &[]).unwrap();
    let mut example = PathExample::default();
    let mut total = 0.0;
    for (i, &label) in labels.iter().enumerate() {
        example.read(&mut preparation, &rows, i, false);
        tree.regressors.prepare(&mut example, weight(i));
        tree.learn_one(&example, label, weight(i));
        total += f64::from(weight(i));
        after(&tree, i, total)?;
    }
    Ok(())
}

/// Returns a weight that adds up without rounding. The weights of a kind are all 1, differ a little,
/// or some of them exceed the sum of all before.
fn example_weight(kind: usize, i: usize) -> f32 {
    let weights = [[1.0; 4], [0.5, 2.0, 1.0, 3.25], [1.0, 64.0, 0.25, 1024.0]];
    weights[kind][i % 4]
}

/// Examples that an internal node routed, as observed from outside.
#[derive(Debug, Clone, Default)]
struct Seen {
    children: [Option<NodeId>; 2],
    recycled: u32,
    /// Label, true if it went right, weight.
    examples: Vec<(u32, bool, f64)>,
    lost_a_child: bool,
}

/// Follows every example through the tree.
#[derive(Debug, Default)]
struct Witness {
    nodes: HashMap<NodeId, Seen>,
    /// Arrivals per node and label.
    arrivals: HashMap<(NodeId, u32), f64>,
}

impl Witness {
    fn observe(&mut self, tree: &LomTree, label: u32, weight: f64) {
        let arena = &tree.arena;
        for (at, node) in arena.nodes.iter().enumerate() {
            let id = NodeId(at as u32);
            let seen = self.nodes.entry(id).or_default();
            if seen.recycled < node.recycled {
                self.arrivals.retain(|&(node, _), _| node != id);
                *seen = Seen::default();
                seen.recycled = node.recycled;
            }
            let children = [node.left, node.right].map(|child| child.is_some().then_some(child));
            seen.lost_a_child |= seen.children[0].is_some() && seen.children != children;
            seen.children = children;
        }
        let mut at = arena.root;
        while !arena.node(at).is_leaf() {
            let node = arena.node(at);
            let now = |child| {
                arena
                    .node(child)
                    .labels
                    .get(label)
                    .map_or(0.0, LabelStat::arrivals)
            };
            let came = |child| now(child) > *self.arrivals.get(&(child, label)).unwrap_or(&0.0);
            let goes_right = came(node.right);
            assert_ne!(goes_right, came(node.left), "an example goes one way");
            let seen = self.nodes.get_mut(&at).unwrap();
            seen.examples.push((label, goes_right, weight));
            at = if goes_right { node.right } else { node.left };
        }
        for (at, node) in arena.nodes.iter().enumerate() {
            let arrivals = node.labels.get(label).map_or(0.0, LabelStat::arrivals);
            self.arrivals.insert((NodeId(at as u32), label), arrivals);
        }
    }

    /// Returns J, beta and alpha by their definitions, if no child was removed.
    fn split(&self, id: NodeId) -> Option<[f64; 3]> {
        let seen = &self.nodes[&id];
        let weight = |which: &dyn Fn(u32, bool) -> bool| -> f64 {
            let examples = seen.examples.iter();
            examples.filter(|e| which(e.0, e.1)).map(|e| e.2).sum()
        };
        let all = weight(&|_, _| true);
        let beta = weight(&|_, right| right) / all;
        let (mut j, mut alpha) = (0.0, 0.0);
        for label in 0..64 {
            let of_label = weight(&|y, _| y == label);
            if of_label > 0.0 {
                let right = weight(&|y, right| y == label && right) / of_label;
                j += 2.0 * of_label / all * (beta - right).abs();
                alpha += of_label / all * right.min(1.0 - right);
            }
        }
        (!seen.lost_a_child).then_some([j, beta, alpha])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn structure_holds_after_every_example(
        (values, labels) in streams(), kind in 0usize..3, budget in 0u32..20, resistance in 1u8..6
    ) {
        let params = Params { nodes_per_class: f64::from(budget) / 63.0, swap_resistance: f64::from(resistance), ..params() };
        learn_each(empty(&params, 64), &values, &labels, |i| example_weight(kind, i), |tree, _, total| {
            prop_assert_eq!(tree.arena.check(tree.regressors.len()), Ok(()));
            prop_assert!(tree.arena.n_internal <= budget);
            if resistance >= 4 {
                prop_assert!(f64::from(most_recycled(tree)) <= total.max(1.0).log2());
            }
            Ok(())
        })?;
    }

    /// J, beta and alpha describe the examples that the node's router routed, and are NaN only where
    /// Swap removed a child.
    #[test]
    fn report_agrees_with_the_observed_splits(
        (values, labels) in streams(), kind in 0usize..3, budget in 1u32..20, resistance in 1u8..6
    ) {
        let params = Params { nodes_per_class: f64::from(budget) / 63.0, swap_resistance: f64::from(resistance), ..params() };
        let mut witness = Witness::default();
        let n = labels.len();
        learn_each(empty(&params, 64), &values, &labels, |i| example_weight(kind, i), |tree, i, total| {
            witness.observe(tree, labels[i], f64::from(example_weight(kind, i)));
            if i % 16 != 0 && i + 1 != n {
                return Ok(());
            }
            let report = tree.node_report(total);
            let column = |name: &str| report.get::<f64>(name).unwrap();
            let columns = ["objective", "balance", "purity"].map(column);
            let (n_examples, depth) = (column("n_examples"), report.get::<u32>("depth").unwrap());
            let topology = tree.arena.topology();
            for (at, &id) in topology.nodes.iter().enumerate() {
                let known = witness.split(id).filter(|_| !tree.arena.node(id).is_leaf());
                for (column, of_split) in columns.iter().zip(known.unwrap_or([f64::NAN; 3])) {
                    let agree = (column[at] - of_split).abs() < 1e-9;
                    prop_assert!(agree || column[at].is_nan() && of_split.is_nan(), "{} {of_split}", column[at]);
                }
                prop_assert!(topology.children[at].iter().all(|&child| child < 0 || depth[child as usize] == depth[at] + 1));
            }
            if tree.arena.n_swaps == 0 {
                prop_assert_eq!(n_examples[0], total);
            }
            Ok(())
        })?;
    }

    /// Lemmas 1 and 2 of the paper hold for any split.
    #[test]
    fn lemmas_hold(sides in prop::collection::vec((0u8..50, 0u8..50), 1..20)) {
        let sides = sides.iter().map(|&(l, r)| (f64::from(l), f64::from(r)));
        let [objective, balance, purity] = split_quality(&sides.collect::<Vec<_>>());
        prop_assert!((0.0..=1.0 + 1e-12).contains(&objective), "J {objective}");
        // The lemma takes beta as the smaller side.
        let beta = balance.min(1.0 - balance);
        if beta > 0.0 {
            let bound = ((2.0 - objective) / (4.0 * beta) - beta).min(0.5);
            prop_assert!(purity <= bound + 1e-12, "alpha {purity} > {bound}");
        }
    }
}

#[test]
fn pure_and_balanced_split_has_objective_one() {
    let sides = [(5.0, 0.0), (0.0, 3.0), (0.0, 2.0)];
    assert_eq!(split_quality(&sides), [1.0, 0.5, 0.0]);
}

/// Split threshold, smoothing, decay and learning rate are in units of examples. If they are scaled
/// with the weights, the tree is the same: nothing else depends on the unit of weights, except
/// Swap (the 1 in Eq. 2 and the floors of line 14).
#[test]
fn tree_depends_on_the_unit_of_weights_only_by_its_parameters() {
    let (values, labels) = drifting(700);
    for optimizer in [Optimizer::Pn, Optimizer::Nag] {
        let learned = |scale: f64| {
            // "nag" divides its steps by a square root of sums.
            let is_nag = optimizer == Optimizer::Nag;
            let params = Params {
                optimizer,
                learning_rate: 0.5 / if is_nag { scale.sqrt() } else { scale },
                decay: 0.5 / scale,
                split_threshold: 3.0 * scale,
                nodes_per_class: 64.0,
                ..params()
            };
            let mut tree = empty(&params, 64);
            tree.rules.leaf_smoothing = 2.0 * scale;
            tree.rules.soft_depth = 0.5;
            let mut frozen = None;
            let mut nodes = Vec::new();
            learn_each(
                tree,
                &values,
                &labels,
                |i| example_weight(1, i) * scale as f32,
                |tree, i, _| {
                    if i + 1 == labels.len() {
                        frozen = Some(FrozenTree::new(tree, &Control::new(0)).unwrap().leaves);
                        for node in &tree.arena.nodes {
                            let stats = node.labels.iter().map(|(label, stat)| {
                                (label, stat.arrivals() / scale, stat.score.0 / scale)
                            });
                            let links = [node.left.0, node.right.0, node.majority];
                            nodes.push((links, node.score / scale, stats.collect::<Vec<_>>()));
                        }
                    }
                    Ok(())
                },
            )
            .unwrap();
            (nodes, frozen)
        };
        let plain = learned(1.0);
        assert!(plain.0.len() > 20, "{} nodes", plain.0.len());
        for scale in [1.0 / 16.0, 4.0] {
            assert_eq!(learned(scale), plain, "{optimizer:?}");
        }
    }
}

/// Returns examples whose labels come for a while and never again, so that leaves get no more
/// examples.
fn drifting(n: usize) -> (Vec<f32>, Vec<u32>) {
    let labels: Vec<u32> = (0..n as u32).map(|i| (i * i % 7 + i / 64) % 64).collect();
    let value = |i: usize| {
        ((i * 37) % 23) as f32 - 11.0 + (labels[i / WIDTH] >> (i % WIDTH) & 1) as f32 * 8.0
    };
    ((0..n * WIDTH).map(value).collect(), labels)
}

/// If the means of the label and of all examples are equal, the example goes right (line 16).
#[test]
fn equal_means_send_the_example_right() {
    let mut after = Vec::new();
    let values = [1.0; 2 * WIDTH];
    learn_each(
        empty(&params(), 64),
        &values,
        &[4, 2],
        |_| 1.0,
        |tree, _, total| {
            after = tree.node_report(total).get::<f64>("n_examples").unwrap();
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(after, [2.0, 0.0, 1.0]);
}
