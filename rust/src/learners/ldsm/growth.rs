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

use super::node_training::{Split, TrainedNode, TrainingContext};
use super::routing::NodeExamples;
use super::tree::{inverse_mass, Tree};
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
    let mut growing = GrowingTree::default();
    growing.tree.arity = context.params.arity;
    let root = NodeExamples::new(context.examples, all.clone(), &all, |label| label as u32);
    growing.add_leaf(NodeId::NONE, root);
    loop {
        let families = max_nodes.saturating_sub(growing.tree.len()) / arity;
        if families == 0 || growing.queue.is_empty() {
            return Ok(growing.finish());
        }
        growing.train_next(ahead.min(families), |leaf| {
            leaf.split = Some(context.train(&leaf.examples, node_seed(seed, leaf.id))?);
            Ok(())
        })?;
        while let Some((leaf, split)) = growing.pop_trained() {
            if !split.is_useful(leaf.examples.len()) {
                continue;
            }
            if growing.tree.len() + arity > max_nodes {
                break;
            }
            growing.tree.first_child[leaf.id.at()] = NodeId(growing.tree.len() as u32);
            growing.trained[leaf.id.at()] = split.node;
            for child in split.children {
                growing.add_leaf(leaf.id, child);
            }
            context.control.tick(arity)?;
        }
    }
}

/// A leaf that may be split.
struct QueuedLeaf {
    id: NodeId,
    examples: Vec<u32>,
    /// Once trained.
    split: Option<Split>,
}

/// The nodes so far, and the leaves among them that may be split.
#[derive(Default)]
struct GrowingTree {
    /// Still without what training found.
    tree: Tree,
    trained: Vec<TrainedNode>,
    /// The last is the next to be split. Priorities are above 0, where floats are ordered
    /// as their bits are; of equal ones the older node comes first.
    queue: BTreeMap<(u64, Reverse<NodeId>), QueuedLeaf>,
}

impl GrowingTree {
    fn add_leaf(&mut self, parent: NodeId, examples: NodeExamples) {
        // The weight of all labels but the most frequent one: what a split could separate.
        let counts = examples.labels.iter().map(|&(_, count)| count);
        let priority = counts.clone().sum::<f64>() - counts.fold(0.0, f64::max);
        let tree = &mut self.tree;
        let id = NodeId(tree.len() as u32);
        tree.parents.push(parent);
        tree.first_child.push(Tree::ROOT);
        tree.weight.push(examples.weight);
        tree.n_examples.push(examples.ids.len() as u32);
        let labels = examples.labels.into_iter();
        tree.labels
            .push(labels.map(|(label, count)| (label, count as f32)));
        tree.inverse_mass
            .push(inverse_mass(tree.labels.get(id.at())));
        self.trained.push(TrainedNode::default());
        // One example cannot be parted, and one label need not be.
        if examples.ids.len() > 1 && priority > 0.0 {
            let leaf = QueuedLeaf {
                id,
                examples: examples.ids,
                split: None,
            };
            self.queue.insert((priority.to_bits(), Reverse(id)), leaf);
        }
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

    fn finish(mut self) -> Tree {
        for trained in self.trained {
            self.tree.columns.push(trained.columns);
            self.tree.weights.to_mut().extend(trained.weights);
            self.tree.stats.push(trained.stats);
            self.tree.curves.push(trained.curve);
        }
        self.tree
    }
}

/// A seed for a node, far from those of its tree and of other trees' nodes.
pub(super) fn node_seed(seed: u64, id: NodeId) -> u64 {
    crate::random::mix(seed ^ (u64::from(id.0) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03))
}
