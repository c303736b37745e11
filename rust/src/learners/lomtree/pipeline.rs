//! One tree on two threads, with the model of one.
//!
//! A node must see the examples in their order, but not at the same time as other nodes do. So
//! one thread prepares each example and takes it through the nodes of the upper levels, and
//! another takes the group of examples before it through the nodes below, to the leaves. Both
//! have about the same number of nodes to train. An example leaves the upper nodes at an exit, a
//! node that the lower ones begin with; what happens there depends on no later example, as upper
//! nodes have children already and nothing below changes them. Swap would: with the budget of
//! nodes nearly spent the tree learns on one thread.
//!
//! Cost beside that of learning: once in [`SECTION`] examples the upper nodes are chosen anew,
//! O(upper nodes), and moved, not copied, to a tree of their own and back.

use std::collections::BinaryHeap;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use super::arena::Arena;
use super::learner::{Descent, LomTree};
use crate::classifier::Learning;
use crate::control::Control;
use crate::data::{Batch, Preparation, RowBuffer};
use crate::error::Result;
use crate::linear::PathExample;
use crate::threads::with_threads;
use crate::tree::NodeId;

/// Examples between two choices of the upper nodes: at each, one thread waits for a group.
const SECTION: usize = 2048;

/// Fewer examples are learned before a second thread would have been started.
const FEWEST: usize = 512;

/// What preparing an example costs, in trainings of a node.
const PREPARATION: f64 = 3.0;

/// What an example costs at its leaf, in trainings of a node.
const AT_LEAF: f64 = 1.0;

/// The upper nodes as a tree of their own, whose leaves are the exits.
struct UpperTree {
    tree: LomTree,
    /// The node of the whole tree that each of its nodes is.
    ids: Vec<NodeId>,
    /// The regressors of the whole tree that its own are.
    regressors: Vec<u32>,
}

/// An example that has passed the upper nodes.
#[derive(Default)]
struct PassedExample {
    example: PathExample,
    label: u32,
    importance: f32,
    /// By nodes of the whole tree.
    descent: Descent,
}

/// The first stage.
struct UpperStage<'a> {
    upper: UpperTree,
    batch: &'a Batch<'a>,
    preparation: &'a mut Preparation,
    /// Whether means and deviations follow the examples.
    is_stream: bool,
    scratch: RowBuffer,
}

impl UpperStage<'_> {
    /// Prepares the rows `which` in their order and takes them through the upper nodes.
    fn pass(&mut self, which: &[u32], group: &mut Vec<PassedExample>) {
        let (rows, labels) = (&self.batch.rows, self.batch.labels());
        let UpperTree { tree, ids, .. } = &mut self.upper;
        group.resize_with(which.len(), PassedExample::default);
        for (&row, passed) in which.iter().zip(group) {
            let row = row as usize;
            if self.is_stream {
                self.preparation.observe(rows, row, &mut self.scratch);
            }
            let example = &mut passed.example;
            example.read(self.preparation, rows, row);
            (passed.label, passed.importance) = (labels[row], self.batch.weight(row));
            tree.regressors.prepare(example, passed.importance);
            let mut descent = tree.at_root();
            while !tree.arena.node(descent.at).is_leaf() {
                tree.step_down(&mut descent, example, passed.label, passed.importance);
            }
            let leaf_from = |at| tree.leaf_from(at, example, descent.span);
            let previous = descent.previous.map(leaf_from);
            passed.descent = Descent {
                at: ids[descent.at.at()],
                previous: previous.map(|exit| ids[exit.at()]),
                ..descent
            };
        }
    }
}

impl LomTree {
    /// Learns examples in their order.
    pub(super) fn learn_batch(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        let is_worth_it = learning.n_threads > 1 && learning.order.len() >= FEWEST;
        if !is_worth_it || !self.regressors.are_independent() {
            return self.learn_in_turn(learning);
        }
        let order = learning.order;
        with_threads(2, |_| {
            for section in order.chunks(SECTION) {
                learning.order = section;
                // An example splits one leaf at most.
                let splits_left = self.budget.saturating_sub(self.arena.n_internal);
                if (splits_left as usize) < section.len() {
                    self.learn_in_turn(learning)?;
                } else {
                    self.learn_section(learning)?;
                }
            }
            Ok(())
        })?
    }

    fn learn_in_turn(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        learning.one_by_one(|example, label, importance| {
            self.regressors.prepare(example, importance);
            self.learn_one(example, label, importance)
        })
    }

    /// Learns a section on two threads. Stopped, both stages end with the same example.
    fn learn_section(&mut self, learning: &mut Learning<'_>) -> Result<()> {
        let levels = (self.mean_depth + AT_LEAF - PREPARATION) / 2.0;
        let mut stage = UpperStage {
            upper: self.take_upper(levels),
            batch: learning.batch,
            is_stream: learning.is_stream(),
            preparation: &mut *learning.preparation,
            scratch: RowBuffer::default(),
        };
        // Where memory does not suffice, what was learned stays: the upper nodes go back all the same.
        let learned = catch_unwind(AssertUnwindSafe(|| {
            let mut groups = learning.order.chunks(Control::CHUNK);
            let (mut current, mut next) = (Vec::new(), Vec::new());
            stage.pass(groups.next().unwrap_or_default(), &mut current);
            let (mut all_depths, mut outcome) = (0, Ok(()));
            while !current.is_empty() {
                let next_group = groups.next().filter(|_| outcome.is_ok());
                let progress = &mut *learning.progress;
                let learn_group = || {
                    for passed in &current {
                        let (label, importance) = (passed.label, passed.importance);
                        let (was_right, depth) =
                            self.learn_from(passed.descent, &passed.example, label, importance);
                        progress.count(!was_right, importance);
                        all_depths += u64::from(depth);
                    }
                };
                let pass_group = || stage.pass(next_group.unwrap_or_default(), &mut next);
                rayon::join(learn_group, pass_group);
                if let Some(loss) = learning.progress.loss() {
                    learning.control.set_loss(loss);
                }
                outcome = outcome.and(learning.control.tick(current.len()));
                std::mem::swap(&mut current, &mut next);
            }
            self.mean_depth = all_depths as f64 / learning.order.len() as f64;
            outcome
        }));
        self.put_back_upper(stage.upper);
        learned.unwrap_or_else(|no_memory| resume_unwind(no_memory))
    }

    /// Takes out the nodes that most examples pass, as many as an example passes about `levels` of.
    fn take_upper(&mut self, levels: f64) -> UpperTree {
        let mut arena = Arena::new();
        let (mut ids, mut numbers) = (vec![self.arena.root], Vec::new());
        // The trainings of each exit that could be an upper node, as bits, which are in the same
        // order, and its number.
        let trainings = |arena: &Arena, id: NodeId| arena.node(id).count.to_bits();
        let mut exits = BinaryHeap::from([(trainings(&self.arena, self.arena.root), 0)]);
        let all = self.arena.node(self.arena.root).count;
        let mut passes_left = levels * all;
        while let Some((count, at)) = exits.pop() {
            let node = self.arena.node(ids[at]);
            if node.is_leaf() {
                continue;
            }
            passes_left -= f64::from_bits(count);
            if passes_left < 0.0 {
                break;
            }
            let children = [node.left, node.right];
            arena.split(NodeId(at as u32), numbers.len() as u32);
            numbers.push(node.regressor);
            for child in children {
                exits.push((trainings(&self.arena, child), ids.len()));
                ids.push(child);
            }
        }
        // Only now, when no more memory is needed, are they moved.
        let params = self.params.clone();
        let regressors = self.regressors.take_out(&numbers);
        self.exchange(&mut arena, &ids);
        UpperTree {
            tree: Self {
                params,
                n_classes: self.n_classes,
                budget: self.budget,
                rate: self.rate,
                soft_levels: self.soft_levels,
                mean_depth: 0.0,
                arena,
                regressors,
            },
            ids,
            regressors: numbers,
        }
    }

    /// The inverse of [`take_upper`](Self::take_upper).
    fn put_back_upper(&mut self, mut upper: UpperTree) {
        self.exchange(&mut upper.tree.arena, &upper.ids);
        let taken = upper.tree.regressors;
        self.regressors.put_back(&upper.regressors, taken);
    }

    /// Exchanges what upper nodes learn with that of the nodes that they are.
    fn exchange(&mut self, upper: &mut Arena, ids: &[NodeId]) {
        for (own, &id) in upper.nodes.iter_mut().zip(ids) {
            if !own.is_leaf() {
                let node = self.arena.node_mut(id);
                std::mem::swap(&mut own.labels, &mut node.labels);
                std::mem::swap(&mut own.count, &mut node.count);
                std::mem::swap(&mut own.score, &mut node.score);
            }
        }
    }
}
