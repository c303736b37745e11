//! Growing a tree: Algorithm 1 of the paper.
//!
//! The leaf of highest priority is trained and split until there are enough
//! nodes. What a leaf's training comes to depends on its examples and its number
//! alone, not on when it happens. So with several threads the leaves next in line
//! are trained ahead of their turn, and split in turn: the tree is the same.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use rand::{seq::SliceRandom, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::split::{Share, Split, Task};
use super::tree::{Draft, Tree};
use super::view::{Numbers, View};
use super::Examples;
use crate::error::Result;
use crate::tree::NodeId;

/// A leaf that may be split.
#[derive(Debug)]
struct Waiting {
    priority: f64,
    id: NodeId,
    ids: Vec<u32>,
    /// Once trained.
    split: Option<Split>,
}

/// Room for the renumbering of nodes, handed from one to the next.
#[derive(Debug)]
pub struct Desks {
    free: Mutex<Vec<Numbers>>,
    width: usize,
    n_labels: usize,
}

impl Desks {
    /// For these examples; none yet.
    pub fn new(examples: &Examples) -> Self {
        Self {
            free: Mutex::new(Vec::new()),
            width: examples.width,
            n_labels: examples.n_labels,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Numbers) -> T) -> T {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = free().pop();
        let mut numbers = numbers.unwrap_or_else(|| Numbers::new(self.width, self.n_labels));
        let done = work(&mut numbers);
        free().push(numbers);
        done
    }
}

/// Grows a tree, at most `ahead` leaves of which are trained at a time.
pub fn grow(task: &Task<'_>, seed: u64, ahead: usize, desks: &Desks) -> Result<Tree> {
    let params = task.params;
    let arity = params.arity as usize;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let used = columns_of_tree(task, &mut random);
    let task = Task {
        used: used.as_deref(),
        ..*task
    };
    let mut queue = BinaryHeap::new();
    let mut drafts = Vec::new();
    let add = |parent, share: Share, drafts: &mut Vec<Draft>, queue: &mut BinaryHeap<Waiting>| {
        let (draft, ids) = Draft::of(parent, share);
        let priority = draft.impurity();
        let id = NodeId(drafts.len() as u32);
        drafts.push(draft);
        // One example cannot be parted, nor is there a need to part one label.
        if ids.len() > 1 && priority > 0.0 {
            queue.push(Waiting {
                priority,
                id,
                ids,
                split: None,
            });
        }
    };
    let root = examples_of_tree(&task, &mut random);
    let root = desks.with(|numbers| {
        let view = View::of(task.examples, &root, |_| false, numbers);
        Share::all(&view, root)
    });
    add(NodeId::NONE, root, &mut drafts, &mut queue);
    loop {
        let room = (params.max_nodes as usize).saturating_sub(drafts.len()) / arity;
        if room == 0 || queue.is_empty() {
            return Ok(Tree::of(params.arity, drafts));
        }
        train_next(&task, seed, ahead.min(room), &mut queue, desks)?;
        while let Some(leaf) = queue.pop_if_trained() {
            let Some(mut split) = leaf.split.filter(|split| split.parts(leaf.ids.len())) else {
                continue;
            };
            if drafts.len() + arity > params.max_nodes as usize {
                break;
            }
            let first = NodeId(drafts.len() as u32);
            let children = std::mem::take(&mut split.children);
            drafts[leaf.id.at()].take(split, first);
            for share in children {
                add(leaf.id, share, &mut drafts, &mut queue);
            }
            task.control.tick(arity)?;
        }
    }
}

/// Trains the first `n` leaves of the queue that are not trained yet.
fn train_next(
    task: &Task<'_>,
    seed: u64,
    n: usize,
    queue: &mut BinaryHeap<Waiting>,
    desks: &Desks,
) -> Result<()> {
    let (mut trained, mut next) = (Vec::new(), Vec::new());
    while next.len() < n {
        match queue.pop() {
            Some(leaf) if leaf.split.is_some() => trained.push(leaf),
            Some(leaf) => next.push(leaf),
            None => break,
        }
    }
    let train = |leaf: &mut Waiting| {
        let seed = mixed(seed, leaf.id);
        let split = desks.with(|numbers| Split::train(task, &leaf.ids, seed, numbers))?;
        leaf.split = Some(split);
        Ok(())
    };
    if next.len() > 1 {
        next.par_iter_mut().try_for_each(train)?;
    } else {
        next.iter_mut().try_for_each(train)?;
    }
    queue.extend(trained);
    queue.extend(next);
    Ok(())
}

/// A seed for a node, far from those of its tree and of other trees' nodes.
fn mixed(seed: u64, id: NodeId) -> u64 {
    crate::random::mix(seed ^ (u64::from(id.0) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03))
}

/// The examples that a tree learns from, in the order in which it does.
fn examples_of_tree(task: &Task<'_>, random: &mut Pcg64Mcg) -> Vec<u32> {
    let n = task.examples.len() as u32;
    let mut ids: Vec<u32> = if task.params.bootstrap {
        (0..n).map(|_| random.random_range(0..n)).collect()
    } else {
        (0..n).collect()
    };
    ids.shuffle(random);
    ids
}

/// The columns that a tree may use, if not all; the constant always.
fn columns_of_tree(task: &Task<'_>, random: &mut Pcg64Mcg) -> Option<Vec<bool>> {
    let share = task.params.feature_share;
    let width = task.examples.width;
    (share < 1.0).then(|| {
        let mut used: Vec<bool> = (0..width).map(|_| random.random_bool(share)).collect();
        used[width - 1] = true;
        used
    })
}

trait PopIfTrained {
    fn pop_if_trained(&mut self) -> Option<Waiting>;
}

impl PopIfTrained for BinaryHeap<Waiting> {
    fn pop_if_trained(&mut self) -> Option<Waiting> {
        self.peek()?.split.as_ref()?;
        self.pop()
    }
}

impl Ord for Waiting {
    /// Of equal priorities the older node comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_age = || other.id.0.cmp(&self.id.0);
        self.priority.total_cmp(&other.priority).then_with(by_age)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
