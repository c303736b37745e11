//! The structure without examples: conditions for splits, Lemma 3, all cases of Swap.

use super::super::node::{Arena, Node};
use super::super::*;
use super::{empty, most_recycled, params};
use crate::tree::NodeId;

/// Lemma 3 holds for any routers. Here all examples, each with a new label, go right, so the left
/// leaf is recycled over and over.
#[test]
fn lemma_3_holds_against_an_adversary() {
    type Weight = fn(i32) -> f64;
    let growing: Weight = |i| 1.5f64.powi(i);
    let weights: [(i32, Weight); 3] = [
        (5000, |_| 1.0),
        (5000, |i| f64::from(i % 5) + 0.5),
        (60, growing),
    ];
    for ((n, weight), resistance) in weights
        .into_iter()
        .flat_map(|w| [4.0, 5.0, 8.0].map(|r| (w, r)))
    {
        let params = Params {
            nodes_per_class: f64::from(n - 1).recip(),
            swap_resistance: resistance,
            ..params()
        };
        let mut tree = empty(&params, n as usize);
        let right_leaf = |arena: &Arena| {
            let root = arena.node(arena.root);
            if root.is_leaf() {
                arena.root
            } else {
                root.right
            }
        };
        let mut total = 0.0;
        for i in 0..n {
            let mut leaf = right_leaf(&tree.arena);
            tree.arena.node_mut(leaf).count(i as u32, weight(i));
            if tree.may_split(leaf, 0) {
                let (smallest, was_full) = (
                    tree.arena.node(tree.arena.root).size,
                    tree.arena.n_internal == 1,
                );
                tree.split(leaf);
                if was_full {
                    let Node { left, right, .. } = *tree.arena.node(tree.arena.root);
                    for child in [left, right].map(|child| tree.arena.node(child)) {
                        assert!(child.size + 1.0 > resistance / 2.0 * (smallest + 1.0));
                        assert!(f64::from(child.recycled) < f64::log2(total) - 1.0);
                    }
                }
                leaf = right_leaf(&tree.arena);
                tree.arena.node_mut(leaf).count(i as u32, weight(i));
            }
            tree.arena.node_mut(leaf).size += weight(i);
            tree.arena.update_c(leaf);
            total += weight(i);
        }
        let times = f64::from(most_recycled(&tree));
        let is_growing = n < 100;
        assert!(
            if is_growing {
                times > f64::from(n).log2()
            } else {
                times >= 5.0
            },
            "{times} times"
        );
        let bound: Vec<f64> = tree.node_report(total).get("recycle_bound").unwrap();
        assert_eq!(bound, [total.log2()]);
    }
}

/// Growth is bounded by T and by the threshold, which doubles every two levels.
#[test]
fn split_threshold_doubles_every_two_levels() {
    let grown = Params {
        nodes_per_class: 2.5,
        split_threshold: 4.0,
        ..params()
    };
    let tree = empty(&grown, 64);
    let mut growing = empty(&grown, 1);
    assert_eq!((tree.budget, growing.budget), (158, 0));
    growing.add_classes(64).unwrap();
    assert_eq!(growing.budget, 158);
    // 2 log2(64) = 12 levels of 4, then 4 sqrt(2), 8, ...
    for (depth, threshold) in [
        (0, 4.0),
        (12, 4.0),
        (13, 4.0 * 2f64.sqrt()),
        (14, 8.0),
        (18, 32.0),
    ] {
        for (impurity, splits) in [(threshold - 0.01, false), (threshold + 0.01, true)] {
            let mut tree = tree.clone();
            let root = tree.arena.root;
            tree.arena.node_mut(root).count(1, 100.0);
            tree.arena.node_mut(root).count(2, impurity);
            assert_eq!(
                tree.may_split(root, depth),
                splits,
                "depth {depth}, {impurity}"
            );
        }
    }
    let hard = Params {
        paper_tree: true,
        ..grown
    };
    let mut tree = empty(&hard, 64);
    tree.arena.node_mut(NodeId(0)).count(1, 100.0);
    assert!(!tree.may_split(NodeId(0), 50));
    // A leaf splits exactly at the threshold: with 1, at the second label.
    tree.arena.node_mut(NodeId(0)).count(2, 4.0);
    assert!(tree.may_split(NodeId(0), 50));
}

/// Without budget a leaf splits if C_j - max l > R_S (C_r + 1) (Eq. 2), but not if they are equal.
#[test]
fn equation_2_decides_splits_without_budget() {
    for (size, may_swap) in [(13.0, false), (14.0, true)] {
        let mut tree = empty(
            &Params {
                nodes_per_class: 1.0 / 3.0,
                ..params()
            },
            4,
        );
        let regressor = tree.regressors.push();
        tree.arena = grown(&[2.0, size]);
        assert_eq!(regressor, 0);
        // One arrival each of two labels: max l is 1, and 4 (2 + 1) + 1 = 13.
        tree.arena.node_mut(NodeId(2)).count(0, 1.0);
        tree.arena.node_mut(NodeId(2)).count(1, 1.0);
        assert_eq!(tree.may_split(NodeId(2), 1), may_swap, "{size}");
    }
}

#[test]
fn report_of_a_tree_grown_by_hand() {
    let mut tree = empty(&params(), 8);
    let root = tree.arena.root;
    for (label, n) in [(5, 2.0), (3, 2.0), (1, 1.0)] {
        tree.arena.node_mut(root).count(label, n);
    }
    tree.split(root);
    let fresh = tree.node_report(5.0).get::<u32>("label").unwrap();
    assert_eq!(
        fresh,
        [3, 5, 5],
        "new children predict the label of their parent"
    );
    let [left, right] = [NodeId(1), NodeId(2)];
    for (leaf, label, n) in [(left, 5, 1.0), (left, 3, 1.0), (right, 6, 3.0)] {
        let at_root = tree.arena.node_mut(root).labels.place_of(label);
        tree.arena.node_mut(root).add_score(at_root, 0.5, n);
        tree.arena.node_mut(leaf).count(label, n);
    }
    let report = tree.node_report(10.0);
    let column = |name: &str| report.get::<f64>(name).unwrap();
    // The root has the labels 3, 5 and 6 equally often and reports the lowest, a leaf its first one.
    assert_eq!(report.get::<u32>("label").unwrap(), [3, 5, 6]);
    assert_eq!(report.get::<u32>("n_labels").unwrap(), [4, 2, 1]);
    assert_eq!(column("n_examples"), [10.0, 2.0, 3.0]);
    let ln2 = 2f64.ln();
    assert_eq!(column("leaf_entropy"), [2.0 * ln2 / 5.0]);
    let shares = [3.0, 3.0, 3.0, 1.0].map(|n: f64| n / 10.0);
    let at_root: f64 = shares.iter().map(|p| -p * p.ln()).sum();
    for (entropy, expected) in column("label_entropy").into_iter().zip([at_root, ln2, 0.0]) {
        assert!(
            (entropy - expected).abs() < 1e-12,
            "{entropy} not {expected}"
        );
    }
    // Label 6 went right, the others left.
    for (name, expected) in [("objective", 0.96), ("balance", 0.6), ("purity", 0.0)] {
        assert!((column(name)[0] - expected).abs() < 1e-12, "{name}");
    }
}

#[test]
fn inconsistent_structures_are_refused() {
    type Damage = fn(&mut Arena);
    let damages: [(&str, Damage); 8] = [
        ("the root has a parent or is out of range", |a| {
            a.root = NodeId(7);
        }),
        ("the root has a parent or is out of range", |a| {
            a.root = NodeId(1);
        }),
        ("7 nodes do not fit 2 internal ones", |a| a.n_internal = 2),
        ("node 0 is not the parent of its children", |a| {
            a.node_mut(NodeId(0)).left = NodeId(2);
        }),
        ("node 2 is not the parent of its children", |a| {
            a.node_mut(NodeId(2)).right = NodeId(4);
        }),
        ("node 0 has a wrong size of its smallest leaf", |a| {
            a.node_mut(NodeId(0)).size = 2.0;
        }),
        ("node 1 has no regressor of its own", |a| {
            a.node_mut(NodeId(1)).regressor = 2;
        }),
        ("5 of 7 nodes can be reached", |a| {
            let node = a.node_mut(NodeId(2));
            (node.left, node.right) = (NodeId::NONE, NodeId::NONE);
            node.size = 1.0;
        }),
    ];
    for (message, damage) in damages {
        let mut arena = grown(&[1.0, 20.0, 30.0, 40.0]);
        damage(&mut arena);
        assert_eq!(arena.check(3), Err(message.into()));
    }
}

/// Returns a tree with the shape ((a b) (c d)), or (a b), whose leaves have these `sizes` from left
/// to right.
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
        arena.update_c(leaf);
    }
    let n_internal = arena.n_internal as usize;
    assert_eq!(arena.check(n_internal), Ok(()));
    arena
}

#[test]
fn swap_in_the_middle_of_the_tree() {
    let mut arena = grown(&[1.0, 20.0, 30.0, 40.0]);
    arena.swap(NodeId(6));
    // Node 1 and its left leaf 3 now hang below 6; 4 has moved up to the root.
    let children = |at| [arena.node(NodeId(at)).left, arena.node(NodeId(at)).right].map(|id| id.0);
    let leaves = [3, 1].map(|at| arena.node(NodeId(at)));
    assert_eq!(arena.node(NodeId(6)).regressor, 1);
    assert_eq!((children(0)[0], children(6)), (4, [3, 1]));
    assert_eq!(leaves[0].size + leaves[1].size, 40.0);
    assert_eq!(
        (arena.n_swaps, leaves.map(|leaf| leaf.recycled)),
        (1, [1, 1])
    );
    assert_eq!(arena.check(3), Ok(()));
}

/// Cases: sizes of the leaves, the leaf that splits, the new root, and some nodes with their children.
#[test]
fn swap_in_cases_that_the_paper_leaves_open() {
    type Children = (u32, [u32; 2]);
    let cases: [(&[f64], u32, u32, &[Children]); 4] = [
        // The smallest leaf is the sibling of the one that splits.
        (&[1.0, 20.0, 30.0, 40.0], 4, 0, &[(0, [4, 2])]),
        // Its parent is the root: the sibling becomes the root.
        (&[1.0, 20.0], 2, 2, &[(2, [1, 0])]),
        // The leaf that splits is below the sibling, which is an internal node.
        (&[1.0, 20.0], 4, 2, &[(2, [3, 4]), (4, [1, 0])]),
        // The rightmost of equal leaves is the smallest.
        (&[50.0, 5.0, 5.0, 5.0], 3, 0, &[(3, [6, 2])]),
    ];
    for (sizes, splitting, root, expected) in cases {
        let mut arena = grown(sizes);
        if splitting as usize >= arena.nodes.len() {
            arena.split(NodeId(2), 1);
        }
        arena.swap(NodeId(splitting));
        assert_eq!(arena.root, NodeId(root));
        for &(node, children) in expected {
            let Node { left, right, .. } = arena.node(NodeId(node));
            assert_eq!([left.0, right.0], children, "{sizes:?}");
        }
        assert_eq!(arena.check(arena.n_internal as usize), Ok(()));
    }
}
