//! Growing a tree: Algorithm 1 of the paper.
//!
//! The leaf of highest priority is trained and split until there are enough nodes. The result of
//! training a leaf depends on its examples and its number only, not on when it happens. So several
//! threads can train the leaves that come next ahead of their turn, and the tree is the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::objective::NodeStats;
use super::train_node::{NodeExamples, Split, TrainingContext};
use super::tree::{entropy, Node, Tree, TreeStatistics};
use crate::data::{PackedList, PackedLists};
use crate::error::Result;
use crate::learners::mix;
use crate::tree::NodeId;

/// Grows a tree on the examples `rows`. Up to `n_ahead` leaves are trained at a time.
pub fn grow(
    context: &TrainingContext<'_>,
    mut rows: Vec<u32>,
    seed: u64,
    n_ahead: usize,
) -> Result<Tree> {
    let arity = context.params.arity as usize;
    let max_nodes = context.params.max_nodes as usize;
    rows.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
    let mut growing = GrowingTree::new(context);
    growing.add_leaf(NodeExamples::new(context.examples, rows));
    loop {
        let families = max_nodes.saturating_sub(growing.len()) / arity;
        if families == 0 || growing.queue.is_empty() {
            return growing.finish();
        }
        growing.train_next(n_ahead.min(families), |leaf| {
            // Far from the seeds of the tree and of other trees' nodes.
            let number = u64::from(leaf.id.0) + 1;
            let seed = mix(seed ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
            leaf.split = Some(context.train(&leaf.examples, seed)?);
            Ok(())
        })?;
        while let Some((leaf, split)) = growing.pop_trained() {
            if !split.is_useful(leaf.examples.len()) {
                continue;
            }
            if growing.len() + arity > max_nodes {
                break;
            }
            growing.split(leaf.id, split);
            context.control.tick(arity)?;
        }
    }
}

/// Leaves of more than this share of the root's priority are split in spite of `min_priority`, so
/// that a root with few examples is split, too.
const MIN_PRIORITY_SHARE: f64 = 0.01;
/// A slim leaf drops labels of less than this share of its most frequent label's weight.
const LEAF_THRESHOLD: f64 = 0.3;

/// A leaf that may be split.
struct QueuedLeaf {
    id: NodeId,
    examples: Vec<u32>,
    /// The split, once the leaf is trained.
    split: Option<Split>,
}

/// The examples of a leaf in numbers.
struct Leaf {
    weight: f64,
    priority: f64,
    labels: Vec<(u32, f32)>,
}

/// The nodes so far, and the leaves among them that may be split.
struct GrowingTree<'a> {
    context: &'a TrainingContext<'a>,
    /// The leaf at each node; None once the node is split.
    leaves: Vec<Option<Leaf>>,
    /// The splits in the order in which they were made, and the node of each.
    splits: Vec<(NodeId, Split)>,
    root_entropy: f64,
    /// Leaves are only split if their priority is higher.
    min_priority: f64,
    /// Statistics of the nodes so far, without objectives and curves.
    statistics: Option<TreeStatistics>,
    /// The last leaf is the next to be split. Priorities are positive, so their bits have the same
    /// order; of equal priorities the older node comes first.
    queue: BTreeMap<(u64, Reverse<NodeId>), QueuedLeaf>,
}

impl<'a> GrowingTree<'a> {
    fn new(context: &'a TrainingContext<'a>) -> Self {
        Self {
            context,
            leaves: Vec::new(),
            splits: Vec::new(),
            root_entropy: 0.0,
            min_priority: 0.0,
            statistics: context.params.keep_statistics.then(TreeStatistics::default),
            queue: BTreeMap::new(),
        }
    }

    fn len(&self) -> usize {
        self.leaves.len()
    }

    fn add_leaf(&mut self, examples: NodeExamples) {
        // The weight of all labels but the most frequent one, which is all that a split could
        // separate.
        let counts = examples.labels.iter().map(|&(_, count)| count);
        let priority = counts.clone().sum::<f64>() - counts.fold(0.0, f64::max);
        let id = NodeId(self.len() as u32);
        let labels = examples.labels.into_iter();
        let mut labels: Vec<(u32, f32)> =
            labels.map(|(label, count)| (label, count as f32)).collect();
        if id == Tree::ROOT {
            self.root_entropy = entropy(&labels);
            let least = MIN_PRIORITY_SHARE * priority;
            self.min_priority = self.context.params.min_priority.min(least);
        }
        if let Some(statistics) = &mut self.statistics {
            labels.sort_unstable_by_key(|&(label, _)| label);
            statistics.weights.push(examples.weight);
            statistics.labels.push(labels.iter().copied());
        }
        self.leaves.push(Some(Leaf {
            weight: examples.weight,
            priority,
            labels,
        }));
        // A single example cannot be split.
        if examples.ids.len() > 1 && priority > self.min_priority {
            let leaf = QueuedLeaf {
                id,
                examples: examples.ids,
                split: None,
            };
            self.queue.insert((priority.to_bits(), Reverse(id)), leaf);
        }
    }

    fn split(&mut self, id: NodeId, mut split: Split) {
        self.leaves[id.at()] = None;
        let children = std::mem::take(&mut split.children).into_iter();
        children.for_each(|child| self.add_leaf(child));
        self.splits.push((id, split));
    }

    /// Trains those of the next `n` leaves of the queue that are not trained yet.
    fn train_next(
        &mut self,
        n: usize,
        train: impl Fn(&mut QueuedLeaf) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let untrained = self.queue.values_mut().rev();
        let untrained = untrained.filter(|leaf| leaf.split.is_none());
        let next: Vec<&mut QueuedLeaf> = untrained.take(n).collect();
        if next.len() > 1 {
            next.into_par_iter().try_for_each(train)
        } else {
            next.into_iter().try_for_each(train)
        }
    }

    /// Removes the next leaf from the queue if it is trained, and returns it and its split.
    fn pop_trained(&mut self) -> Option<(QueuedLeaf, Split)> {
        let mut next = self.queue.last_entry()?;
        let split = next.get_mut().split.take()?;
        Some((next.remove(), split))
    }

    /// Returns whether the labels in the leaves are nearly as mixed as those of the root although
    /// most examples are in leaves that would have been split.
    fn is_mixed(&self) -> bool {
        /// Share of the root's entropy.
        const MIN_MIXED_SHARE: f64 = 0.75;
        let (mut mixed, mut all, mut unsplit) = (0.0, 0.0, 0.0);
        for leaf in self.leaves.iter().flatten() {
            mixed += leaf.weight * entropy(&leaf.labels);
            all += leaf.weight;
            if leaf.priority > self.min_priority {
                unsplit += leaf.weight;
            }
        }
        let root = self.root_entropy;
        root > 0.0 && mixed > MIN_MIXED_SHARE * root * all && 2.0 * unsplit > all
    }

    fn finish(mut self) -> Result<Tree> {
        for leaf in self.leaves.iter_mut().flatten() {
            leaf.labels.sort_unstable_by_key(|&(label, _)| label);
        }
        let TrainingContext {
            examples, params, ..
        } = self.context;
        let mut nodes = vec![Node::Leaf(0); self.len()];
        for (number, (id, _)) in (0..).zip(&self.splits) {
            nodes[id.at()] = Node::Split(number);
        }
        let leaves = nodes
            .iter_mut()
            .filter(|node| matches!(node, Node::Leaf(_)));
        for (number, leaf) in (0..).zip(leaves) {
            *leaf = Node::Leaf(number);
        }
        let mut tree = Tree::from_nodes(params.arity, nodes.into_iter());
        tree.is_mixed = self.is_mixed();
        let biases = self.splits.iter().flat_map(|(_, split)| &split.biases);
        tree.biases = biases.copied().collect();
        tree.statistics = self.statistics.map(|mut statistics| {
            statistics.objectives = vec![NodeStats::default(); tree.len()];
            let mut curves = vec![&[][..]; tree.len()];
            for (id, split) in &self.splits {
                statistics.objectives[id.at()] = split.stats;
                curves[id.at()] = &split.curve[..];
            }
            for curve in curves {
                statistics.curves.push(curve.iter().copied());
            }
            statistics
        });
        let weights = self.splits.into_iter().map(|(_, split)| split.weights);
        let weights: Vec<PackedList> = weights.collect();
        tree.routers = PackedLists::new(&weights, params.arity as usize, examples.width)?;
        drop(weights);
        let (mut inverse_masses, mut labels_each) = (Vec::new(), Vec::new());
        let mut histograms = Vec::new();
        for mut leaf in self.leaves.into_iter().flatten() {
            let counts = leaf.labels.iter().map(|&(_, count)| count);
            let mass: f64 = counts.clone().map(f64::from).sum();
            let most = f64::from(counts.fold(0.0, f32::max));
            let inverse_mass = mass.recip() as f32;
            inverse_masses.push(inverse_mass);
            labels_each.push((leaf.weight as f32 * inverse_mass).recip());
            if params.slim_trees {
                leaf.labels
                    .retain(|&(_, count)| f64::from(count) >= LEAF_THRESHOLD * most);
            }
            let (ids, counts) = leaf.labels.into_iter().unzip();
            histograms.push(PackedList::new(ids, counts, 1, params.precision()));
        }
        tree.inverse_masses = inverse_masses.into();
        tree.labels_each = labels_each.into();
        tree.histograms = PackedLists::new(&histograms, 1, examples.n_labels)?;
        Ok(tree)
    }
}
