//! Growing a tree: Algorithm 1 of the paper.
//!
//! The leaf of highest priority is trained and split until there are enough
//! nodes. What training makes of a leaf depends on its examples and its number
//! alone, not on when it happens. So with several threads the leaves next in line
//! are trained ahead of their turn, and split in turn: the tree is the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::node_data::NodeExamples;
use super::objective::NodeStats;
use super::train_node::{Split, TrainedNode, TrainingContext};
use super::tree::{entropy, Node, Tree, TreeStatistics};
use crate::data::{PackedList, PackedLists};
use crate::error::Result;
use crate::tree::NodeId;

/// Grows a tree on the examples `rows`, at most `ahead` leaves of which are trained at a time.
pub fn grow(
    context: &TrainingContext<'_>,
    rows: impl Iterator<Item = u32>,
    seed: u64,
    ahead: usize,
) -> Result<Tree> {
    let arity = context.params.arity as usize;
    let max_nodes = context.params.max_nodes as usize;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut all: Vec<u32> = rows.collect();
    all.shuffle(&mut random);
    let mut growing = GrowingTree::new(context);
    growing.add_leaf(NodeExamples::new(context.examples, all));
    loop {
        let families = max_nodes.saturating_sub(growing.len()) / arity;
        if families == 0 || growing.queue.is_empty() {
            return growing.finish();
        }
        growing.train_next(ahead.min(families), |leaf| {
            leaf.split = Some(context.train(&leaf.examples, node_seed(seed, leaf.id))?);
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

/// Leaves of more than this share of the root's priority are split whatever `min_priority` says, so
/// that few examples are split, too.
const MIN_PRIORITY_SHARE: f64 = 0.01;
/// A slim leaf drops labels of less than this share of its most frequent one's weight.
const LEAF_THRESHOLD: f64 = 0.3;

/// A leaf that may be split.
struct QueuedLeaf {
    id: NodeId,
    examples: Vec<u32>,
    /// Once trained.
    split: Option<Split>,
}

/// What is known of a leaf.
struct Leaf {
    weight: f64,
    priority: f64,
    labels: Vec<(u32, f32)>,
}

/// The nodes so far, and the leaves among them that may be split.
struct GrowingTree<'a> {
    context: &'a TrainingContext<'a>,
    /// None of a node that has been split.
    leaves: Vec<Option<Leaf>>,
    /// The splits in their order, and the node of each.
    splits: Vec<(NodeId, TrainedNode)>,
    root_entropy: f64,
    /// Leaves of no greater priority are not split.
    min_priority: f64,
    /// Of the nodes so far, without objectives and curves.
    statistics: Option<TreeStatistics>,
    /// The last is the next to be split. Priorities are above 0, where floats are ordered
    /// as their bits are; of equal ones the older node comes first.
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
        // The weight of all labels but the most frequent one: what a split could separate.
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
            sort_by_label(&mut labels);
            statistics.weights.push(examples.weight);
            statistics.labels.push(labels.iter().copied());
        }
        let weight = examples.weight;
        self.leaves.push(Some(Leaf {
            weight,
            priority,
            labels,
        }));
        // One example cannot be parted, and one label need not be.
        if examples.ids.len() > 1 && priority > self.min_priority {
            let leaf = QueuedLeaf {
                id,
                examples: examples.ids,
                split: None,
            };
            self.queue.insert((priority.to_bits(), Reverse(id)), leaf);
        }
    }

    fn split(&mut self, id: NodeId, split: Split) {
        self.leaves[id.at()] = None;
        self.splits.push((id, split.node));
        split
            .children
            .into_iter()
            .for_each(|child| self.add_leaf(child));
    }

    /// Trains the first `n` leaves of the queue that are not trained yet.
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

    /// The first leaf of the queue and its split, if it is trained.
    fn pop_trained(&mut self) -> Option<(QueuedLeaf, Split)> {
        let mut first = self.queue.last_entry()?;
        let split = first.get_mut().split.take()?;
        Some((first.remove(), split))
    }

    /// Whether the labels in the leaves are nearly as mixed as those of the root although most
    /// examples are in leaves that were to be split.
    fn is_mixed(&self) -> bool {
        /// Of the root's entropy.
        const MIN_MIXED_SHARE: f64 = 0.75;
        let (mut mixed, mut all, mut to_be_split) = (0.0, 0.0, 0.0);
        for leaf in self.leaves.iter().flatten() {
            mixed += leaf.weight * entropy(&leaf.labels);
            all += leaf.weight;
            if leaf.priority > self.min_priority {
                to_be_split += leaf.weight;
            }
        }
        let root = self.root_entropy;
        root > 0.0 && mixed > MIN_MIXED_SHARE * root * all && 2.0 * to_be_split > all
    }

    fn finish(mut self) -> Result<Tree> {
        // Most nodes are split: only what is left needs the order.
        for leaf in self.leaves.iter_mut().flatten() {
            sort_by_label(&mut leaf.labels);
        }
        let TrainingContext {
            examples, params, ..
        } = self.context;
        let mut n_leaves = 0;
        let mut nodes = vec![Node::Leaf(0); self.leaves.len()];
        for (number, (id, _)) in (0..).zip(&self.splits) {
            nodes[id.at()] = Node::Split(number);
        }
        for node in &mut nodes {
            if let Node::Leaf(number) = node {
                *number = n_leaves;
                n_leaves += 1;
            }
        }
        let mut tree = Tree::from_nodes(params.arity, nodes.into_iter());
        tree.is_mixed = self.is_mixed();
        let biases = self.splits.iter().flat_map(|(_, node)| &node.biases);
        tree.biases = biases.copied().collect();
        tree.statistics = self.statistics.map(|mut statistics| {
            statistics.objectives = vec![NodeStats::default(); tree.len()];
            let mut curves = vec![&[][..]; tree.len()];
            for (id, node) in &self.splits {
                statistics.objectives[id.at()] = node.stats;
                curves[id.at()] = &node.curve[..];
            }
            for curve in curves {
                statistics.curves.push(curve.iter().copied());
            }
            statistics
        });
        let weights = self.splits.into_iter().map(|(_, node)| node.weights);
        let weights: Vec<PackedList> = weights.collect();
        tree.routers = PackedLists::new(&weights, params.arity as usize, examples.width)?;
        drop(weights);
        let leaves: Vec<Leaf> = self.leaves.into_iter().flatten().collect();
        let masses = leaves.iter().map(|leaf| inverse_mass(&leaf.labels));
        tree.inverse_masses = masses.collect();
        let each = leaves.iter().zip(&tree.inverse_masses);
        tree.labels_each = each
            .map(|(leaf, mass)| (leaf.weight as f32 * mass).recip())
            .collect();
        let histograms = leaves.into_iter().map(|leaf| {
            let mut labels = leaf.labels;
            if params.slim_trees {
                keep_frequent(&mut labels);
            }
            let (ids, counts) = labels.into_iter().unzip();
            PackedList::new(ids, counts, 1, params.precision())
        });
        let histograms: Vec<PackedList> = histograms.collect();
        tree.histograms = PackedLists::new(&histograms, 1, examples.n_labels)?;
        Ok(tree)
    }
}

/// Drops labels of less than [`LEAF_THRESHOLD`] of the most frequent one's weight.
fn keep_frequent(labels: &mut Vec<(u32, f32)>) {
    let most = labels.iter().map(|&(_, count)| count).fold(0.0, f32::max);
    labels.retain(|&(_, count)| f64::from(count) >= LEAF_THRESHOLD * f64::from(most));
}

fn sort_by_label(labels: &mut [(u32, f32)]) {
    labels.sort_unstable_by_key(|&(label, _)| label);
}

/// 1 / the sum of a histogram.
fn inverse_mass(labels: &[(u32, f32)]) -> f32 {
    let mass: f64 = labels.iter().map(|&(_, count)| f64::from(count)).sum();
    mass.recip() as f32
}

/// A seed for a node, far from those of its tree and of other trees' nodes.
fn node_seed(seed: u64, id: NodeId) -> u64 {
    crate::learners::mix(seed ^ (u64::from(id.0) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03))
}
