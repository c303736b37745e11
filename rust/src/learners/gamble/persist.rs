//! A committee as named arrays: those of all trees one after the other.

use super::leaf::Leaves;
use super::tree::{Statistics, TreeNode};
use super::{Gamble, Params, Tree};
use crate::classifier::checks::is_possible;
use crate::error::Result;
use crate::file::{Bundle, Element, LegacyPersist};

/// Stands for no set.
const NO_SET: u32 = u32::MAX;

impl LegacyPersist for Gamble {
    const KIND: &'static str = "gamble";

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("n_features", &self.n_features);
        let trees = &self.trees;
        let lengths = |of: fn(&Tree) -> usize| -> Vec<u32> {
            trees.iter().map(|tree| of(tree) as u32).collect()
        };
        bundle.put("n_nodes", lengths(|tree| tree.nodes.len()));
        bundle.put("n_sets", lengths(|tree| tree.sets.len()));
        bundle.put("n_leaves", lengths(|tree| tree.leaves.count()));
        bundle.put("feature", self.of_nodes(|node| node.feature));
        bundle.put("threshold", self.of_nodes(|node| node.threshold));
        bundle.put("left", self.of_nodes(|node| node.left));
        bundle.put(
            "missing_left",
            self.of_nodes(|node| u8::from(node.missing_left)),
        );
        bundle.put("set", self.of_nodes(|node| node.set.unwrap_or(NO_SET)));
        bundle.put("n_rows", self.of_statistics(|node| node.n_rows));
        bundle.put("weight", self.of_statistics(|node| node.weight));
        bundle.put("gain", self.of_statistics(|node| node.gain));
        bundle.put("entropy", self.of_statistics(|node| node.entropy));
        let sets = || trees.iter().flat_map(|tree| &tree.sets);
        let sizes: Vec<u32> = sets().map(|set| set.len() as u32).collect();
        bundle.put("set_sizes", sizes);
        bundle.put(
            "categories",
            sets().flatten().copied().collect::<Vec<f32>>(),
        );
        let leaves = || trees.iter().map(|tree| &tree.leaves);
        let sizes = leaves().flat_map(|leaves| leaves.starts.windows(2).map(|w| w[1] - w[0]));
        bundle.put("leaf_sizes", sizes.collect::<Vec<u32>>());
        let classes = leaves().flat_map(|leaves| leaves.classes.iter().copied());
        bundle.put("classes", classes.collect::<Vec<u32>>());
        let votes = leaves().flat_map(|leaves| leaves.votes.iter().copied());
        bundle.put("votes", votes.collect::<Vec<f32>>());
        let others = leaves().flat_map(|leaves| leaves.others.iter().copied());
        bundle.put("others", others.collect::<Vec<f32>>());
        bundle
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let params: Params = bundle.take_meta("params")?;
        let params = params.check().map_err(|error| bundle.damaged(error))?;
        let n_classes: usize = bundle.take_meta("n_classes")?;
        let n_features: usize = bundle.take_meta("n_features")?;
        if !is_possible(n_classes) {
            return Err(bundle.damaged(format_args!("{n_classes} classes")));
        }
        let trees = take_trees(&mut bundle)?;
        for (at, tree) in trees.iter().enumerate() {
            if !tree.is_sound(n_classes, n_features) {
                return Err(bundle.damaged(format_args!("tree {at} is inconsistent")));
            }
        }
        Ok(Self {
            params,
            n_classes,
            n_features,
            trees,
        })
    }
}

impl Gamble {
    fn of_nodes<T>(&self, of: fn(&TreeNode) -> T) -> Vec<T> {
        let nodes = self.trees.iter().flat_map(|tree| &tree.nodes);
        nodes.map(of).collect()
    }

    fn of_statistics<T>(&self, of: fn(&Statistics) -> T) -> Vec<T> {
        let nodes = self.trees.iter().flat_map(|tree| &tree.statistics);
        nodes.map(of).collect()
    }
}

/// Arrays of all trees, handed out tree by tree.
struct Parts<T>(std::vec::IntoIter<T>);

impl<T: Element> Parts<T> {
    /// The array `name`, which must have as many elements as `sizes` add up to.
    fn take(bundle: &mut Bundle, name: &str, sizes: &[u32]) -> Result<Self> {
        let total: u64 = sizes.iter().map(|&n| u64::from(n)).sum();
        let elements = bundle.take_exactly(name, usize::try_from(total).unwrap_or(usize::MAX))?;
        Ok(Self(elements.into_iter()))
    }

    fn next(&mut self, n: u32) -> Vec<T> {
        self.0.by_ref().take(n as usize).collect()
    }
}

fn take_trees(bundle: &mut Bundle) -> Result<Vec<Tree>> {
    let n_nodes: Vec<u32> = bundle.take("n_nodes")?;
    let n_sets: Vec<u32> = bundle.take_exactly("n_sets", n_nodes.len())?;
    let n_leaves: Vec<u32> = bundle.take_exactly("n_leaves", n_nodes.len())?;
    let mut feature: Parts<u32> = Parts::take(bundle, "feature", &n_nodes)?;
    let mut threshold: Parts<f32> = Parts::take(bundle, "threshold", &n_nodes)?;
    let mut left: Parts<u32> = Parts::take(bundle, "left", &n_nodes)?;
    let mut missing_left: Parts<u8> = Parts::take(bundle, "missing_left", &n_nodes)?;
    let mut set: Parts<u32> = Parts::take(bundle, "set", &n_nodes)?;
    let mut n_rows: Parts<u32> = Parts::take(bundle, "n_rows", &n_nodes)?;
    let mut weight: Parts<f64> = Parts::take(bundle, "weight", &n_nodes)?;
    let mut gain: Parts<f64> = Parts::take(bundle, "gain", &n_nodes)?;
    let mut entropy: Parts<f64> = Parts::take(bundle, "entropy", &n_nodes)?;
    let mut set_sizes: Parts<u32> = Parts::take(bundle, "set_sizes", &n_sets)?;
    let mut categories: Parts<f32> = Parts::take(bundle, "categories", set_sizes.0.as_slice())?;
    let mut leaf_sizes: Parts<u32> = Parts::take(bundle, "leaf_sizes", &n_leaves)?;
    let sizes = leaf_sizes.0.as_slice();
    let mut classes: Parts<u32> = Parts::take(bundle, "classes", sizes)?;
    let mut votes: Parts<f32> = Parts::take(bundle, "votes", sizes)?;
    let mut others: Parts<f32> = Parts::take(bundle, "others", &n_leaves)?;
    let mut trees = Vec::with_capacity(n_nodes.len());
    for ((&n_nodes, &n_sets), &n_leaves) in n_nodes.iter().zip(&n_sets).zip(&n_leaves) {
        let mut tree = Tree::default();
        for _ in 0..n_nodes {
            let (Some(feature), Some(threshold), Some(left), Some(missing_left), Some(set)) = (
                feature.0.next(),
                threshold.0.next(),
                left.0.next(),
                missing_left.0.next(),
                set.0.next(),
            ) else {
                break;
            };
            tree.nodes.push(TreeNode {
                feature,
                threshold,
                left,
                missing_left: missing_left != 0,
                set: (set != NO_SET).then_some(set),
            });
        }
        let statistics = n_rows.next(n_nodes).into_iter().zip(weight.next(n_nodes));
        let statistics = statistics.zip(gain.next(n_nodes).into_iter().zip(entropy.next(n_nodes)));
        tree.statistics = statistics
            .map(|((n_rows, weight), (gain, entropy))| Statistics {
                n_rows,
                weight,
                gain,
                entropy,
            })
            .collect();
        let sizes = set_sizes.next(n_sets);
        tree.sets = sizes.into_iter().map(|n| categories.next(n)).collect();
        let mut leaves = Leaves::new();
        for n in leaf_sizes.next(n_leaves) {
            let end = leaves.classes.len() as u32 + n;
            leaves.classes.extend(classes.0.by_ref().take(n as usize));
            leaves.votes.extend(votes.0.by_ref().take(n as usize));
            leaves.starts.push(end);
        }
        leaves.others = others.next(n_leaves);
        tree.leaves = leaves;
        trees.push(tree);
    }
    Ok(trees)
}

impl Tree {
    /// Whether a traversal stays within the arrays and comes to an end, and all numbers are
    /// such as learning makes them.
    fn is_sound(&self, n_classes: usize, n_features: usize) -> bool {
        let n_leaves = self.leaves.count();
        let node_is_sound = |(at, node): (usize, &TreeNode)| {
            if node.left == 0 {
                return (node.feature as usize) < n_leaves;
            }
            (node.feature as usize) < n_features
                && node.left as usize > at
                && (node.left as usize) < self.nodes.len() - 1
                && node.set.is_none_or(|set| (set as usize) < self.sets.len())
                && !node.threshold.is_nan()
        };
        let leaf_is_sound = |leaf: usize| {
            let (classes, votes) = self.leaves.listed(leaf);
            classes.iter().is_sorted_by(|a, b| a < b)
                && classes
                    .last()
                    .is_none_or(|&class| (class as usize) < n_classes)
                && votes.iter().all(|vote| vote.is_finite())
        };
        let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
        !self.nodes.is_empty()
            && self.nodes.iter().enumerate().all(node_is_sound)
            && (0..n_leaves).all(leaf_is_sound)
            && self.leaves.others.iter().all(|vote| vote.is_finite())
            && self.statistics[0].weight > 0.0
            && self
                .statistics
                .iter()
                .all(|s| is_amount(s.weight) && is_amount(s.gain) && is_amount(s.entropy))
    }
}
