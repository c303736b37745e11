//! Growing a tree: Algorithm 1 of the paper.
//!
//! The leaf of highest priority is trained and split until there are enough
//! nodes. What training makes of a leaf depends on its examples and its number
//! alone, not on when it happens. So with several threads the leaves next in line
//! are trained ahead of their turn, and split in turn: the tree is the same.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rand::{seq::SliceRandom, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::node_data::LocalIds;
use super::node_training::{Split, TrainingContext};
use super::partition::NodeExamples;
use super::scratch_pool::ScratchPool;
use super::tree::Tree;
use super::tree_builder::{build_tree, NodeBuilder};
use crate::error::Result;
use crate::tree::NodeId;

/// A leaf that may be split.
#[derive(Debug)]
struct QueuedLeaf {
    priority: f64,
    id: NodeId,
    examples: Vec<u32>,
    /// Once trained.
    split: Option<Split>,
}

/// Grows a tree, at most `ahead` leaves of which are trained at a time.
pub fn grow<F: Fn() -> LocalIds + Sync>(
    context: &TrainingContext<'_>,
    seed: u64,
    ahead: usize,
    pool: &ScratchPool<LocalIds, F>,
) -> Result<Tree> {
    let arity = context.params.arity as usize;
    let max_nodes = context.params.max_nodes as usize;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut all: Vec<u32> = (0..context.examples.len() as u32).collect();
    all.shuffle(&mut random);
    let mut growing = GrowingTree::default();
    growing.add_leaf(NodeId::NONE, NodeExamples::new(context.examples, all));
    loop {
        let families = max_nodes.saturating_sub(growing.nodes.len()) / arity;
        if families == 0 || growing.queue.is_empty() {
            return Ok(build_tree(context.params.arity, growing.nodes));
        }
        growing.train_next(ahead.min(families), |leaf| {
            let seed = node_seed(seed, leaf.id);
            let train = |ids: &mut LocalIds| context.train(&leaf.examples, seed, ids);
            leaf.split = Some(pool.with(train)?);
            Ok(())
        })?;
        while let Some((leaf, split)) = growing.pop_trained() {
            if !split.is_useful(leaf.examples.len()) {
                continue;
            }
            if growing.nodes.len() + arity > max_nodes {
                break;
            }
            let first_child = NodeId(growing.nodes.len() as u32);
            growing.nodes[leaf.id.at()].split = Some((split.node, first_child));
            for child in split.children {
                growing.add_leaf(leaf.id, child);
            }
            context.control.tick(arity)?;
        }
    }
}

/// The nodes so far, and the leaves among them that may be split.
#[derive(Debug, Default)]
struct GrowingTree {
    nodes: Vec<NodeBuilder>,
    queue: BinaryHeap<QueuedLeaf>,
}

impl GrowingTree {
    fn add_leaf(&mut self, parent: NodeId, examples: NodeExamples) {
        let id = NodeId(self.nodes.len() as u32);
        let node = NodeBuilder {
            parent,
            weight: examples.weight,
            n_examples: examples.ids.len() as u32,
            labels: examples.labels,
            split: None,
        };
        let priority = node.impurity();
        self.nodes.push(node);
        // One example cannot be parted, and one label need not be.
        if examples.ids.len() > 1 && priority > 0.0 {
            self.queue.push(QueuedLeaf {
                priority,
                id,
                examples: examples.ids,
                split: None,
            });
        }
    }

    /// Trains the first `n` leaves of the queue that are not trained yet.
    fn train_next(
        &mut self,
        n: usize,
        train: impl Fn(&mut QueuedLeaf) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let (mut trained, mut next) = (Vec::new(), Vec::new());
        while next.len() < n {
            match self.queue.pop() {
                Some(leaf) if leaf.split.is_some() => trained.push(leaf),
                Some(leaf) => next.push(leaf),
                None => break,
            }
        }
        if next.len() > 1 {
            next.par_iter_mut().try_for_each(train)?;
        } else {
            next.iter_mut().try_for_each(train)?;
        }
        self.queue.extend(trained);
        self.queue.extend(next);
        Ok(())
    }

    /// The first leaf of the queue and its split, if it is trained.
    fn pop_trained(&mut self) -> Option<(QueuedLeaf, Split)> {
        self.queue.peek()?.split.as_ref()?;
        let mut leaf = self.queue.pop()?;
        let split = leaf.split.take()?;
        Some((leaf, split))
    }
}

/// A seed for a node, far from those of its tree and of other trees' nodes.
fn node_seed(seed: u64, id: NodeId) -> u64 {
    crate::random::mix(seed ^ (u64::from(id.0) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03))
}

impl Ord for QueuedLeaf {
    /// Of equal priorities the older node comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_age = || other.id.0.cmp(&self.id.0);
        self.priority.total_cmp(&other.priority).then_with(by_age)
    }
}

impl PartialOrd for QueuedLeaf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for QueuedLeaf {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for QueuedLeaf {}
